import math
import sys

import pytest

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import ZCDP, Gaussian, NonPrivate
from discreet.accounting.plan import Charge
from discreet.accounting.pricing import epsilon_of
from discreet.budget import Neighbors
from discreet.report.model_report import ModelReport
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


def test_the_promise_is_for_persons_where_the_certificate_is():
    assert "any one person" in promise(certificate(unit="person"))[0]
    assert "any one row" in promise(certificate())[0]


def test_pure_promises_have_no_slack():
    assert "probability" not in promise(certificate(delta=0.0))[0]


def test_no_promise_without_privacy():
    made = certificate(epsilon=math.inf, events=(NonPrivate(),))
    assert promise(made)[0].startswith("Nothing")


def test_the_budget_trace_is_shown_where_there_is_one(monkeypatch):
    trace = (Charge("noisy_gradient", 0.02, 1), Charge("noisy_gradient", 0.03, 2, answered=False))
    made = certificate(events=(ZCDP(0.04),), epsilon=2.0, trace=trace)
    html = ModelReport("x", made).html()
    assert "Where the budget went" in html
    assert "1 answers refused" not in html
    assert "1 refused" in html
    assert "Where the budget went" not in ModelReport("x", certificate()).html()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "<figure>" not in ModelReport("x", made).html()


@pytest.mark.parametrize(
    ("epsilon", "n", "color"),
    [(1.0, 30_000, "good"), (9.0, 30_000, "weak"), (17.0, 30_000, "bad"), (1.0, 2_000_000, "bad")],
)
def test_the_stamp_has_the_color_of_its_promise(epsilon, n, color):
    made = certificate(epsilon=epsilon, assumed_public={"n": n})
    assert f'class="stamp {color}"' in heading("A model", made)
