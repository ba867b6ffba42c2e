"""Where there is nothing to learn, or a target's range says little about it, the default stays near the mean.

What can be promised: a private mean has the noise of its window. With S = n mu / a the signal of one number, the model
without signal loses the square of that noise, over the target's variance, of R^2: little from S = 40 on, however wide
the declared range. Below, the window cannot be found, and the noise is that of a clip of a twentieth of half the range.
"""

import numpy as np
import pytest

from discreet import Bounds, DPHuberRegressor, DPLinearRegression
from discreet.testing import seeded

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
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [DPLinearRegression, DPHuberRegressor])
def test_without_signal_the_default_stays_at_the_mean(kind, relation, target):
    assert mean_r2(kind, 2000, 1.0, relation, target) > -0.06


@pytest.mark.few(4)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("target", TARGETS)
def test_signal_is_found_whatever_the_declared_range(relation, target):
    least = 0.2 if target == "lognormal" else 0.4  # of .39 and .64
    assert mean_r2(DPLinearRegression, 3000, 1.0, relation, target, slope=0.8) > least


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_300_rows_at_a_tenth_lose_no_more_than_a_part(relation):
    """S is 8 and 4 here: a noisy mean, with a loss of .1 and .3 on average."""
    assert mean_r2(DPLinearRegression, 300, 0.1, relation, "fitting", slope=0.5, seeds=8) > -0.7
