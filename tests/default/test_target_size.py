"""The center and scale of a numeric target from two noisy moments: with an intercept, without one, and of counts."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.losses import Huber, Poisson, Squared
from discreet.solvers.coordinates import estimate_target
from tests.solvers.perturbation.cases import stream
from tests.solvers.whitened.cases import opened

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
