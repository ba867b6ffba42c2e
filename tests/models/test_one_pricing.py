"""A fit, a private score and a private selection price each plan once, with a ledger and without."""

from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

from discreet import Bounds, DPLogisticRegression, DPRandomizedSearch, Ledger, private_score
from discreet.accounting import calibration, pricing
from discreet.accounting.events import merged
from discreet.models import fitting, lifecycle

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 3))
Y = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
FACTS = {"bounds": Bounds(1.0), "classes": (0, 1)}
SOLVERS = ["recipe", "gd", "sgd", "gcd", "agd", "svrg", "output", "objective", "exponential"]


class Pricings:
    """How often each plan was calibrated, and each list of events priced: worked out, not remembered."""

    def __init__(self):
        self.calibrated, self.priced, self.depth = Counter(), Counter(), 0

    def twice(self, events=None, delta=None):
        """What was worked out more than once; of prices those of these events at this delta, where given."""
        plans = [plan for plan, count in self.calibrated.items() if count > 1]
        return plans + [
            asked
            for asked, count in self.priced.items()
            if count > 1 and (events is None or asked[:2] == (merged(events), delta))
        ]


@contextmanager
def counted(monkeypatch):
    """Count while the block runs; a calibration inside another one is a part of it."""
    found = Pricings()
    calibrated, price = calibration._calibrated, pricing._price

    def calibrating(plan, budget):
        found.calibrated[plan, budget] += found.depth == 0
        found.depth += 1
        try:
            return calibrated(plan, budget)
        finally:
            found.depth -= 1

    def pricing_(listed, delta, relation):
        found.priced[listed, delta, relation] += 1
        return price(listed, delta, relation)

    with monkeypatch.context() as patch:
        patch.setattr(calibration, "_calibrated", calibrating)
        patch.setattr(pricing, "_price", pricing_)
        yield found


@pytest.fixture(params=[False, True], ids=["no ledger", "ledger"])
def account(request):
    if not request.param:
        return {"ledger": False}
    ledger = Ledger(":memory:")
    ledger.grant("rows", 30.0, 1e-4)
    return {"ledger": ledger, "dataset": "rows"}


def priced_once(found, certificate):
    """One calibration, and one price of what the certificate lists at the budget's delta."""
    asked = {
        key: count for key, count in found.priced.items() if key[:2] == (merged(certificate.events), certificate.delta)
    }
    assert list(asked.values()) == [1]
    assert found.twice() == []


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_is_priced_once(solver, delta, account, monkeypatch):
    if delta == 0 and solver in ("agd", "exponential"):
        pytest.skip("has no pure guarantee, or draws from a density that has none")
    model = DPLogisticRegression(2.0, delta, solver=solver, **FACTS, **account)
    with counted(monkeypatch) as found:
        model.fit(X, Y)
    assert sum(found.calibrated.values()) == 1
    priced_once(found, model.certificate_)


def test_a_quote_is_priced_once(account, monkeypatch):
    with counted(monkeypatch) as found:
        quote = DPLogisticRegression(2.0, 1e-6, **FACTS, **account).quote(X, Y)
    assert sum(found.calibrated.values()) == 1
    assert found.twice() == []
    assert quote.price.epsilon <= 2.0


@pytest.mark.parametrize("metric", ["accuracy", "auc"])
def test_a_score_is_priced_once(metric, account, monkeypatch):
    model = DPLogisticRegression(2.0, 1e-6, solver="gd", **FACTS, ledger=False).fit(X, Y)
    with counted(monkeypatch) as found:
        score = private_score(model, X, Y, metric=metric, epsilon=1.0, delta=1e-6, **account)
    assert sum(found.calibrated.values()) == 1
    priced_once(found, score.certificate)


def test_a_selection_prices_each_plan_once(account, monkeypatch):
    """However many runs there are: each candidate's plan, the score and the whole."""
    candidates = {"alpha": [1e-3, 1e-2], "solver": ["gd", "objective"]}
    inner = DPLogisticRegression(**FACTS, ledger=False)
    model = DPRandomizedSearch(
        inner, candidates, epsilon=3.0, delta=1e-6, stopping="geometric", mean_runs=4.0, **account
    )
    with counted(monkeypatch) as found:
        model.fit(X, Y)
    assert found.twice() == []
    priced_once(found, model.certificate_)


def test_a_planted_second_pricing_is_noticed(account, monkeypatch):
    """A charge or a certificate that works the price out again is seen by the counter."""

    def again(priced, *rest, rule=lifecycle.promise):
        fitting.price_plan(priced.plan, priced.budget)
        return rule(priced, *rest)

    monkeypatch.setattr(lifecycle, "promise", again)
    model = DPLogisticRegression(2.0, 1e-6, solver="gd", **FACTS, **account)
    with counted(monkeypatch) as found:
        model.fit(X, Y)
    assert sum(found.calibrated.values()) == 2
    with pytest.raises(AssertionError):
        priced_once(found, model.certificate_)


def test_a_planted_second_price_of_the_events_is_noticed(account, monkeypatch):
    def again(priced, *rest, rule=lifecycle.promise):
        pricing.epsilon_of(priced.events, priced.budget.delta, priced.budget.neighbors)
        return rule(priced, *rest)

    monkeypatch.setattr(lifecycle, "promise", again)
    model = DPLogisticRegression(2.0, 1e-6, solver="gd", **FACTS, **account)
    with counted(monkeypatch) as found:
        model.fit(X, Y)
    with pytest.raises(AssertionError):
        priced_once(found, model.certificate_)
