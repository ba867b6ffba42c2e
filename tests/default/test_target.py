"""Looking for a target's center and scale: found in ranges that are far too wide, and priced as planned."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget, DPLinearRegression
from discreet.default.rows import search_releases, search_target
from discreet.losses import Huber, Poisson, Squared
from discreet.solvers.coordinates import estimate_target
from discreet.testing import seeded
from tests.covering import covering
from tests.solvers.perturbation.cases import stream
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


# --- the center and scale of a numeric target from two noisy moments

N = 4000


def estimated(y, ends, *, intercept, loss=None, epsilon=math.inf, seed=0):
    """Return center and scale in units of the target that was declared."""
    budget = Budget(epsilon, 1e-6, "zero_out")
    with stream(seed):
        curator = opened(
            np.ones((len(y), 2)), y, ["noisy_target_moments"], budget, loss=loss or Squared(), intercept=intercept,
            bounds=Bounds(1.0, target=ends),
        )  # fmt: skip
        target = estimate_target(curator, float(len(y)))
    low, high = curator.domain.target_range
    unit = (ends[1] - ends[0]) / (high - low)
    return target, unit, ends[0] - low * unit


def draws(center, spread):
    return np.random.default_rng(0).normal(center, spread, N)


@pytest.mark.whole
@pytest.mark.parametrize("loss", [Squared(), Huber(0.3)], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(("center", "spread"), [(0.0, 1.0), (3.0, 0.5), (-2.0, 2.0)])
def test_without_an_intercept_a_target_stays_and_its_scale_is_its_size(center, spread, loss):
    """Predictions begin at 0, so residuals are as large as the target itself, wherever its mean is."""
    y = np.clip(draws(center, spread), -10, 10)
    target, unit, shift = estimated(y, (-10.0, 10.0), intercept=False, loss=loss)
    assert target.center == 0.0
    assert shift == pytest.approx(0.0)
    assert target.scale * unit == pytest.approx(math.sqrt(np.mean(y**2)), rel=1e-3)


@pytest.mark.parametrize(("center", "spread"), [(0.0, 1.0), (3.0, 0.5), (-2.0, 2.0)])
def test_with_one_it_is_centered(center, spread):
    y = np.clip(draws(center, spread), -10, 10)
    target, unit, shift = estimated(y, (-10.0, 10.0), intercept=True)
    assert target.center * unit + shift == pytest.approx(y.mean(), abs=1e-3)
    assert target.scale * unit == pytest.approx(y.std(), rel=1e-2)


@pytest.mark.parametrize("intercept", [True, False])
def test_counts_are_at_least_their_noise_and_never_nothing(intercept):
    y = np.random.default_rng(0).poisson(2.0, N).clip(0, 20).astype(float)
    target, unit, shift = estimated(y, (0.0, 20.0), intercept=intercept, loss=Poisson(3.0))
    assert (unit, shift) == (pytest.approx(1.0), pytest.approx(0.0))  # counts stay what they are
    assert target.center == pytest.approx(y.mean(), rel=1e-2)
    for seed in range(10):
        hidden, *_ = estimated(
            np.zeros(N), (0.0, 20.0), intercept=intercept, loss=Poisson(3.0), epsilon=0.01, seed=seed
        )
        assert hidden.center >= hidden.noise > 0
