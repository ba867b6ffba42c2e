"""Where there is nothing to learn, or a target's range says little about it, the default stays near the mean.

What can be promised: a private mean has the noise of its window. With S = n mu / a the signal of one number, the model
without signal loses the square of that noise, over the target's variance, of R^2: little from S = 40 on, however wide
the declared range. Below, the window cannot be found, and the noise is that of a clip of a twentieth of half the range.
"""

import numpy as np
import pytest

from discreet import Bounds, DPLinearRegression
from discreet.default import Recipe
from discreet.testing import seeded
from tests.covering import covering

TARGETS = {
    "fitting": (lambda e: e, (-4.0, 4.0)),
    "ten times too wide": (lambda e: e, (-40.0, 40.0)),
    "at the end": (lambda e: e - 36.0, (-40.0, 40.0)),
    "lognormal": (np.exp, (0.0, 100.0)),
}


def mean_r2(kind, n, epsilon, relation, target, slope=0.0, seeds=4):
    make, ends = TARGETS[target]
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 8))
        y = np.clip(make(slope * X[:, 0] + np.sqrt(1 - slope**2) * rng.normal(size=n)), *ends)
        with seeded(seed):
            bounds = Bounds([(-4.0, 4.0)] * 8, target=ends)
            model = kind(epsilon, bounds=bounds, neighbors=relation, ledger=False).fit(X, y)
        found.append(1 - np.mean((y - model.predict(X)) ** 2) / np.var(y))
    return float(np.mean(found))


@pytest.mark.few(4)
@covering(("target", TARGETS), ("relation", ["zero_out", "replace_one"]))
def test_signal_is_found_whatever_the_declared_range(relation, target):
    least = 0.2 if target == "lognormal" else 0.4  # of .39 and .64
    assert mean_r2(DPLinearRegression, 3000, 1.0, relation, target, slope=0.8) > least


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_300_rows_at_a_tenth_lose_no_more_than_a_part(relation):
    """S is 8 and 4 here: a noisy mean, with a loss of .1 and .3 on average."""
    assert mean_r2(DPLinearRegression, 300, 0.1, relation, "fitting", slope=0.5, seeds=8) > -0.7


def tilted(n, slope):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 10))
    return X, np.clip(0.3 + slope * X[:, 0] + rng.normal(0, 0.2, n), -1, 1)


def explained(model, X, y):
    return 1 - np.mean((y - model.predict(X)) ** 2) / np.var(y)


@pytest.mark.parametrize(("slope", "low", "high"), [(0.0, -0.05, 0.02), (0.4, 0.1, 0.7)])
def test_steps_in_declared_coordinates_find_a_slope_or_the_mean(slope, low, high):
    X, y = tilted(1000, slope)
    with seeded(0):
        model = DPLinearRegression(
            0.5, bounds=1.0, target=(-1, 1), solver=Recipe("declared", n_steps=8), neighbors="zero_out"
        ).fit(X, y)
    assert low < explained(model, X, y) < high
    assert (model.coef_noise_ >= 0).all()


@covering(("relation", ["zero_out", "replace_one"]), (("slope", "low"), [(0.0, -0.05), (0.4, 0.3)]))
def test_pure_budgets_learn_a_slope_and_stay_at_the_mean_without_one(slope, low, relation):
    X, y = tilted(4000, slope)
    with seeded(0):
        model = DPLinearRegression(1.0, 0.0, bounds=1.0, target=(-1, 1), neighbors=relation).fit(X, y)
    assert model.certificate_.solver["name"] == "recipe"
    assert (model.certificate_.epsilon, model.certificate_.delta) == (1.0, 0.0)
    assert explained(model, X, y) > low
