"""Designs that are hard for private regression: the default stays at the mean or above, and keeps what it had.

The measure is a private mean with a tenth of the budget: no model may lose more than its noise against the exact mean.
"""

import math

import numpy as np
import pytest

from discreet import DPLinearRegression, DPPoissonRegressor
from discreet.accounting.gaussian import mu_of
from discreet.testing import seeded
from tests.covering import covering

COLUMNS, SEEDS, SIGNIFICANT = 12, 3, 4.0


def design(kind, seed, n=15_000):
    """Return rows, targets, the features' ranges and the target's."""
    rng = np.random.default_rng(seed)
    n, p = {"few rows": (300, COLUMNS), "wide table": (3000, 150)}.get(kind, (n, COLUMNS))
    X = rng.normal(size=(n, p))
    w = rng.normal(size=p) / math.sqrt(p) if kind != "wide table" else np.where(np.arange(p) < 15, 0.3, 0.0)
    signal = X @ w * {"no signal": 0.0, "weak signal": 0.2}.get(kind, 1.0)
    y, ends, bounds = signal + rng.normal(0, 0.77, n), (-4.0, 4.0), [(-4.0, 4.0)] * p
    if kind == "features 100 times too wide":
        bounds = [(-400.0, 400.0)] * p
    elif kind == "target 10 times too wide":
        ends = (-40.0, 40.0)
    elif kind == "lognormal target":
        y, ends = np.exp(1.5 * y), (0.0, 1000.0)
    elif kind == "years":
        X, bounds = 1985.0 + 8.0 * X, [(1950.0, 2020.0)] * p
    elif kind == "target far from 0":
        y, ends = y + 1000.0, (996.0, 1004.0)
    elif kind == "collinear":
        X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=n)
    low, high = np.array(bounds).T
    return np.clip(X, low, high), np.clip(y, *ends), bounds, ends


def r_squared(kind, epsilon, seed, estimator=DPLinearRegression, **settings):
    X, y, bounds, ends = design(kind, seed)
    with seeded(seed):
        model = estimator(epsilon, bounds=bounds, target=ends, **settings).fit(X, y)
    return 1 - np.mean((y - np.clip(model.predict(X), *ends)) ** 2) / np.var(y)


KINDS = [
    *("plain", "no signal", "weak signal", "few rows", "wide table", "features 100 times too wide"),
    *("target 10 times too wide", "lognormal target", "years", "target far from 0", "collinear"),
]


@pytest.mark.few(4)
@covering(("kind", KINDS), ("epsilon", [0.01, 0.1, 1.0]), ("relation", ["zero_out", "replace_one"]))
def test_never_below_a_private_mean(kind, epsilon, relation):
    found = [r_squared(kind, epsilon, seed, neighbors=relation) for seed in range(SEEDS)]
    _, y, _, (low, high) = design(kind, 0)
    factor = 2.0 if relation == "replace_one" else 1.0
    noise = factor * (high - low) / 2.0 / (len(y) * mu_of(epsilon, min(1e-6, len(y) ** -2.0)))
    allowed = 0.01 + 10.0 * noise**2 / float(np.var(y))
    assert np.mean(found) >= -allowed - SIGNIFICANT * np.std(found) / math.sqrt(SEEDS)


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.6), (64.0, 0.95)])
def test_skewed_counts_are_learned(epsilon, least):
    """A clip that cut rare, large counts kept half of the deviance at every epsilon."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (15_000, 6))
    means = np.exp(0.5 + X @ [0.6, -0.4, 0.3, 0.0, 0.0, 0.2]) * rng.gamma(0.5, 2.0, len(X))
    y = np.clip(rng.poisson(means), 0, 30).astype(float)

    def deviance(model):
        found = np.log(model.predict(X))
        return np.mean(np.exp(found) - y * found)

    trivial = y.mean() - y.mean() * math.log(y.mean())
    with seeded(0):
        private, free = (DPPoissonRegressor(e, bounds=1.0, target=(0, 30)).fit(X, y) for e in (epsilon, math.inf))
    assert trivial - deviance(private) > least * (trivial - deviance(free))
