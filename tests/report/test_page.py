import math

import pytest

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import Gaussian, NonPrivate
from discreet.accounting.pricing import epsilon_of
from discreet.budget import Neighbors
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
