import math

import pytest

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import Gaussian, NonPrivate
from discreet.accounting.pricing import epsilon_of
from discreet.budget import Neighbors
from discreet.report.page import heading
from discreet.report.privacy_sections import promise


def certificate(**facts):
    events = (Gaussian(10.0, 4),)
    found = epsilon_of(events, 1e-6)
    settings = {"epsilon": found.epsilon, "delta": 1e-6, "neighbors": Neighbors.REPLACE_ONE, "events": events}
    return Certificate(**{**settings, **facts})


@pytest.mark.parametrize(
    ("relation", "words"),
    [("replace_one", "somebody else's"), ("zero_out", "blank"), ("add_remove", "had not been there")],
)
def test_the_promise_names_the_relation_and_the_factor(relation, words):
    text = " ".join(promise(certificate(neighbors=relation, epsilon=1.0)))
    assert words in text
    assert "2.72 times" in text
    assert "10⁻⁶" in text


def test_no_promise_without_privacy():
    made = certificate(epsilon=math.inf, events=(NonPrivate(),))
    assert promise(made)[0].startswith("Nothing")


@pytest.mark.parametrize(
    ("epsilon", "n", "color"),
    [(1.0, 30_000, "good"), (9.0, 30_000, "weak"), (17.0, 30_000, "bad"), (1.0, 2_000_000, "bad")],
)
def test_the_stamp_has_the_color_of_its_promise(epsilon, n, color):
    made = certificate(epsilon=epsilon, assumed_public={"n": n})
    assert f'class="stamp {color}"' in heading("A model", made)
