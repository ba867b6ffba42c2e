"""Columns in ranges that are far too wide: their scale is found, and effects are adjusted for them."""

import numpy as np
import pytest

from benchmarks.problems.ugly import plain_fit
from discreet import Bounds, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from discreet.accounting.plan import Plan
from discreet.accounting.pricing import price_plan
from discreet.budget import Budget
from discreet.curator import PrivateData
from discreet.errors import Unsupported
from discreet.inference.scales import narrow_columns, scale_releases
from discreet.losses import Logistic
from discreet.testing import seeded

ESTIMATORS = {"logistic": DPLogisticRegression, "linear": DPLinearRegression, "poisson": DPPoissonRegressor}
N = 20_000


def drawn(model, wide, seed, *, n=N, off=0.0):
    """Return a table whose last column goes with the first, and is declared ``wide`` times too wide; and its bounds."""
    rng = np.random.default_rng([seed, 17])
    X = rng.uniform(-1, 1, (n, 6))
    X[:, 1] = rng.random(n) < 0.3
    X[:, 5] = rng.normal(size=n)
    X[:, 0] = np.clip(0.33 * (0.7 * X[:, 5] + 0.714 * rng.normal(size=n)), -1, 1)
    ends = (3.0 * wide * (off - 1), 3.0 * wide * (off + 1))
    m = X @ [0.3, 0.4, -0.8, 0.2, 0.2, 0.5]
    ranges = [(-1, 1), (0, 1), *[(-1, 1)] * 3, ends]
    X[:, 5] = np.clip(X[:, 5], *ends)
    if model == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-m))).astype(float), Bounds(ranges, classes=(0, 1))
    if model == "poisson":
        return X, np.minimum(rng.poisson(np.exp(m)), 30).astype(float), Bounds(ranges, target=(0, 30))
    return X, np.clip(m + rng.normal(size=n), -8, 8), Bounds(ranges, target=(-8, 8))


def errors(model, wide, seed, **facts):
    """Return how many standard errors the effects of the first and the last column are off; NaN for hidden ones."""
    relation, n = facts.pop("relation", "zero_out"), facts.get("n", N)
    X, y, bounds = drawn(model, wide, seed, **facts)
    fit = ESTIMATORS[model](1.0, 1 / n**2, bounds=bounds, neighbors=relation, inference="sandwich", ledger=False)
    try:
        with seeded(seed):
            found = fit.fit(X, y).summary().columns()
    except Unsupported:
        return np.full(2, np.nan)
    truth = plain_fit(*drawn(model, wide, 99, n=400_000, off=facts.get("off", 0.0))[:2], model)[0]
    return ((found["coef"] - truth) / found["se"])[[0, 5]]


def test_a_range_a_hundred_times_too_wide_costs_little():
    assert np.all(np.abs(errors("logistic", 100.0, 1)) < 3.5), "shown, and adjusted for each other"


@pytest.mark.thorough
@pytest.mark.parametrize("model", ESTIMATORS)
@pytest.mark.parametrize(
    "facts",
    [{}, {"off": 0.9}, {"relation": "replace_one", "n": 30_000}, {"n": 3_000}],
    ids=["", "at an end", "replace_one", "few rows"],
)
@pytest.mark.parametrize("wide", [10.0, 30.0, 100.0, 1000.0])
def test_what_is_shown_is_adjusted_for_columns_in_ranges_too_wide(model, wide, facts):
    found = np.array([errors(model, wide, seed, **facts) for seed in range(3)])
    assert np.nanmax(np.abs(found), initial=0.0) < 4.2
    if model != "poisson" and "n" not in facts:
        assert np.isfinite(found).mean() > 0.6


def looked_at(X, ranges, *, intercept=True, epsilon=0.2, seed=0):
    """Return what is found of columns, by a plan of nothing else."""
    bounds = Bounds(ranges, classes=(0, 1))
    budget = Budget(epsilon, 1e-9, "zero_out")
    data, loss = PrivateData(X, np.ones(len(X)), bounds, fit_intercept=intercept), Logistic()
    priced = price_plan(Plan(scale_releases(data.domain(budget.neighbors, loss), 1.0)), budget)
    with seeded(seed):
        curator = data.open(priced, loss)
        return narrow_columns(curator, curator.domain, np.zeros(X.shape[1]), float(len(X)))


def test_scales_are_found_and_rare_values_are_left_alone():
    rng = np.random.default_rng(3)
    n = 8_000
    columns = {
        "fits": (rng.uniform(-1, 1, n), (-1, 1)),
        "wide": (rng.normal(2.0, 1.0, n), (-300, 300)),
        "wider": (rng.uniform(-1, 1, n), (-900, 900)),
        "rare": ((rng.random(n) < 0.004).astype(float), (0, 1)),
        "constant": (np.full(n, 0.2), (-1, 1)),
        "cell": ((rng.random(n) < 0.1).astype(float), (0, 1)),
        "zeros": ((rng.random(n) < 0.02) * rng.lognormal(0, 1, n), (0, 60)),
    }
    X, ranges = np.column_stack([values for values, _ in columns.values()]), [ends for _, ends in columns.values()]
    found = looked_at(X, ranges)
    assert [name for name, narrow in zip(columns, found.places, strict=True) if narrow] == ["wide", "wider"]
    largest = np.array([300, 900])  # in training coordinates
    np.testing.assert_allclose(largest * found.scale[[1, 2]], [1.0, 0.7], rtol=0.5)
    np.testing.assert_allclose(largest * found.center[[1, 2]], [2.0, 0.0], atol=0.5)


@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_columns_of_few_values_are_never_taken_for_narrow_ones(epsilon):
    """With little signal every column is looked at."""
    rng = np.random.default_rng(4)
    shares = (0.02, 0.05, 0.12, 0.3, 0.5)
    cells = [(rng.random(8_000) < share).astype(float) for share in shares]
    X = np.column_stack([*cells, rng.uniform(-1, 1, 8_000), np.zeros(8_000), (rng.random(8_000) < 0.08) * 3.0])
    ranges = [*[(0, 1)] * len(shares), (-1, 1), (0, 1), (0, 60)]
    found = [looked_at(X, ranges, epsilon=epsilon, seed=seed).places for seed in range(8)]
    assert not np.any(found)


def test_several_narrow_columns_are_told_apart():
    X = np.random.default_rng(5).normal(size=(8_000, 5)) * [1.0, 0.2, 3.0, 1.0, 0.5]
    found = looked_at(X, [(-200, 200)] * 5, epsilon=0.5)
    assert found.places.sum() >= 3
    assert np.all(np.abs(np.log(200 * found.scale / [1.0, 0.2, 3.0, 1.0, 0.5])) < 0.8)


def test_nothing_is_centered_without_an_intercept():
    X = np.random.default_rng(3).normal(0.0, 1.0, (8_000, 2))
    found = looked_at(X, [(-200, 200), (-4, 4)], intercept=False)
    assert found.places.tolist() == [True, False]
    assert not found.center.any()
