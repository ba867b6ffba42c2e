"""Shrinking by empirical Bayes: noise goes, what stands out stays, nothing is made larger."""

import numpy as np
import pytest

from discreet import DPLasso, DPLinearRegression
from discreet.solvers import Declared, ShrunkenDescent
from discreet.solvers.shrinkage import posterior_weights
from discreet.testing import seeded


def left(q, noise=1.0):
    return q * posterior_weights(q, np.ones(len(q)), noise)


def test_mere_noise_is_taken_away():
    rng = np.random.default_rng(0)
    energies = [np.mean(left(rng.normal(size=60)) ** 2) for _ in range(40)]
    assert np.mean(energies) < 0.08


def test_few_large_entries_stay_among_noise():
    q = np.random.default_rng(0).normal(size=60)
    q[:2] += 8.0
    kept = left(q)
    np.testing.assert_allclose(kept[:2], q[:2], rtol=0.15)
    assert np.mean(kept[2:] ** 2) < 0.2


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1.0, 1e6])
def test_nothing_is_turned_or_made_larger(noise):
    q, values = np.random.default_rng(1).normal(size=20), np.geomspace(1e-3, 10, 20)
    weights = posterior_weights(q, values, noise)
    assert ((weights >= 0) & (weights <= (1 + 1e-9) / values)).all()


def test_where_nothing_is_clear_nothing_moves():
    assert not posterior_weights(np.ones(5), np.ones(5), 1.0, np.zeros(5, dtype=bool)).any()


def table(n, slope):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 10))
    return X, np.clip(0.3 + slope * X[:, 0] + rng.normal(0, 0.2, n), -1, 1)


@pytest.mark.parametrize(("slope", "low", "high"), [(0.0, -0.05, 0.02), (0.4, 0.1, 0.7)])
def test_shrunken_descent_finds_a_slope_or_the_mean(slope, low, high):
    X, y = table(1000, slope)
    solver = Declared(ShrunkenDescent(), constant=0.5)
    with seeded(0):
        model = DPLinearRegression(0.5, bounds=1.0, target=(-1, 1), solver=solver, neighbors="zero_out").fit(X, y)
    r2 = 1 - np.mean((y - model.predict(X)) ** 2) / np.var(y)
    assert low < r2 < high
    assert (model.coef_noise_ >= 0).all()


def test_shrunken_descent_follows_a_corner():
    X, y = table(1000, 0.4)
    with seeded(0):
        model = DPLasso(1.0, bounds=1.0, target=(-1, 1), alpha=0.05, solver=Declared(ShrunkenDescent())).fit(X, y)
    assert np.count_nonzero(model.coef_) < 6


def test_the_default_for_little_signal():
    X, y = table(100, 0.4)
    quote = DPLinearRegression(0.1, bounds=1.0, target=(-1, 1)).quote(X, y)
    assert quote.solver["solver"]["name"] == "shrunken"


@pytest.mark.parametrize(("slope", "low"), [(0.0, -0.05), (0.4, 0.3)])
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_pure_budgets_learn_a_slope_and_stay_at_the_mean_without_one(slope, low, relation):
    X, y = table(4000, slope)
    with seeded(0):
        model = DPLinearRegression(1.0, 0.0, bounds=1.0, target=(-1, 1), neighbors=relation).fit(X, y)
    assert model.certificate_.solver["name"] == "whitened"
    assert (model.certificate_.epsilon, model.certificate_.delta) == (1.0, 0.0)
    assert 1 - np.mean((y - model.predict(X)) ** 2) / np.var(y) > low
