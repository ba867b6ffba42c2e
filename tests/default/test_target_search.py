"""Looking for a target's center and scale: found in ranges that are far too wide, and priced as planned."""

import numpy as np
import pytest

from discreet import Bounds, Budget, DPLinearRegression
from discreet.default.target import search_releases, search_target
from discreet.losses import Squared
from discreet.testing import seeded
from tests.covering import covering
from tests.solvers.whitened.cases import opened

ROUNDS = 16


def found(y, target, budget, seed=0):
    X = np.zeros((len(y), 2))
    bounds = Bounds([(-1.0, 1.0)] * 2, target=target)
    with seeded(seed):
        curator = opened(X, y, search_releases(0.9, ROUNDS), budget, loss=Squared(), intercept=True, bounds=bounds)
        low, high = curator.domain.target_range
        got = search_target(curator, float(len(y)), ROUNDS)
    unit = (target[1] - target[0]) / (high - low)
    return target[0] + (got.center - low) * unit, got.scale * unit


@covering(("spread", [0.4, 8.0]), ("center", [-30.0, 0.0, 36.0]))
def test_center_and_scale_are_found_in_a_wide_range(center, spread):
    y = np.clip(np.random.default_rng(0).normal(center, spread, 4000), -40, 40)
    at, scale = found(y, (-40.0, 40.0), Budget(1.0, 1e-6, "replace_one"))
    assert abs(at - y.mean()) < 0.15 * y.std()
    assert 0.6 < scale / y.std() < 1.6


def test_without_noise_the_window_holds_what_it_should():
    y = np.random.default_rng(0).normal(3.0, 0.5, 4000)
    at, scale = found(y, (-100.0, 100.0), Budget(np.inf))
    assert at == pytest.approx(y.mean(), abs=0.05)
    assert scale == pytest.approx(y.std(), rel=0.15)


def test_windows_stay_within_the_declared_range():
    """Targets that are all alike, and noise alone: neither a window of nothing nor one beyond the range."""
    for y, epsilon in ((np.full(200, 5.0), 1.0), (np.full(3, 5.0), 0.01)):
        at, scale = found(y, (0.0, 10.0), Budget(epsilon, 1e-6, "zero_out"))
        assert 0.0 <= at <= 10.0
        assert 0.0 < scale <= 5.0


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_a_target_range_that_is_ten_times_too_wide_costs_little(relation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 6))
    y = X @ np.full(6, 0.3) + rng.normal(0, 0.6, 6000)
    with seeded(1):
        bounds = Bounds([(-4.0, 4.0)] * 6, target=(-40.0, 40.0))
        model = DPLinearRegression(0.5, bounds=bounds, neighbors=relation).fit(X, y)
    assert 1 - np.mean((y - model.predict(X)) ** 2) / np.var(y) > 0.5
    events = model.certificate_.events
    assert sum(event.count == ROUNDS for event in events) + sum(event.count == 2 * ROUNDS for event in events)
