"""The minimizer without privacy: numpy's, in every container, and refused wherever there is a budget."""

import math

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, DPLinearRegression
from discreet.accounting import Plan, Release, price_plan
from discreet.budget import Budget
from discreet.curator import PrivateData
from discreet.errors import PlanViolation
from discreet.losses import Squared
from discreet.penalties import NoPenalty
from discreet.solvers import ExactMinimizer

rng = np.random.default_rng(0)
X = np.rint(rng.uniform(-1, 1, (60, 4)) * 2**10) / 2**10
X[:, 3] = (X[:, 1] - X[:, 2]) / 2  # a direction in which rows do not vary
Y = np.clip(X @ [0.3, -0.2, 0.1, 0.0] + 0.1 * rng.normal(size=60), -1, 1)
WEIGHTS, PERSONS = rng.uniform(0.5, 2.0, 60), rng.integers(0, 20, 60)


def predicted(weights):
    rows = np.column_stack([X, np.ones(60)])
    root = np.sqrt(weights)
    return rows @ np.linalg.lstsq(rows * root[:, None], Y * root, rcond=None)[0]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", ["plain", "weights", "persons"])
def test_it_is_the_least_squares_solution(store, kind):
    weights, given, facts = np.ones(60), {}, {}
    if kind == "weights":
        weights, given, facts = WEIGHTS, {"sample_weight": WEIGHTS}, {"weights": (0.0, 2.0)}
    elif kind == "persons":
        weights, given = 1.0 / np.bincount(PERSONS)[PERSONS], {"groups": PERSONS}
    model = DPLinearRegression(math.inf, bounds=Bounds(1.0, target=(-1, 1), **facts), ledger=False)
    model.fit(store(X), Y, **given)
    assert model.certificate_.solver["name"] == "exact"
    assert np.allclose(model.predict(X), predicted(weights), atol=1e-6)  # a weight is rounded, as a row is
    assert np.abs(model.coef_).max() < 1  # nothing runs off along the direction without rows


def test_a_budget_refuses_it_before_anything_is_charged(tmp_path):
    model = DPLinearRegression(1.0, bounds=Bounds(1.0, target=(-1, 1)), solver=ExactMinimizer(), ledger=False)
    with pytest.raises(PlanViolation, match="epsilon=inf"):
        model.fit(X, Y)
    data = PrivateData(X, Y, Bounds(1.0, target=(-1, 1)), ledger=tmp_path / "ledger.db", dataset="d")
    priced = price_plan(Plan([Release("exact_minimizer", 1)]), Budget(1.0, 1e-6))
    with pytest.raises(PlanViolation, match="epsilon=inf"):
        data.open(priced, Squared())
    assert not (tmp_path / "ledger.db").exists()


def test_it_is_refused_where_it_is_asked_too():
    data = PrivateData(X, Y, Bounds(1.0, target=(-1, 1)), ledger=False)
    curator = data.open(price_plan(Plan([Release("exact_minimizer", 1)]), Budget(math.inf, 1e-6)), Squared())
    curator._session.budget = Budget(1.0, 1e-6)  # as if a plan had come past the check
    with pytest.raises(PlanViolation, match="epsilon=inf"):
        curator.exact_minimizer(NoPenalty(), n=60.0, n_steps=1)
