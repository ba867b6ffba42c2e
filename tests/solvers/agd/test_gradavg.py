"""Averaging a gradient measured twice: the closed form, and what the slides' order of steps costs."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.solvers.agd import Measured
from discreet.testing import seeded
from tests.replaying import window
from tests.solvers.agd.cases import ask_gradient, large_budget, opened

SIGNIFICANCE = 1e-9


def measure(rng, truth, rho, sensitivity, count=1):
    """The Gaussian mechanism at rho: variance sensitivity^2 / (2 rho) in each coordinate."""
    return truth + rng.normal(0.0, sensitivity / math.sqrt(2 * rho), (count, len(truth)))


def law_of_merged(merge, seed=1, count=100_000):
    """(p of the closed-form mean, p of the closed-form variance, the variance) at rho .3 -> .5, sensitivity 2."""
    rng, truth = np.random.default_rng(seed), np.array([5.0])
    first, second = measure(rng, truth, 0.3, 2.0, count), measure(rng, truth, 0.2, 2.0, count)
    merged = merge(Measured(first, 0.3), Measured(second, 0.2))
    assert merged.rho == pytest.approx(0.5)
    errors = merged.value - truth
    statistic = float(np.sum(errors**2)) / 4.0
    spread = 2 * min(stats.chi2.cdf(statistic, errors.size), stats.chi2.sf(statistic, errors.size))
    center = 2 * stats.norm.sf(abs(float(errors.mean())) / (2.0 / math.sqrt(errors.size)))
    return center, spread, float(errors.var())


@pytest.mark.statistical
def test_mean_and_variance_are_the_closed_form():
    center, spread, variance = law_of_merged(Measured.merged)
    assert center > SIGNIFICANCE
    assert spread > SIGNIFICANCE
    assert variance == pytest.approx(4.0, rel=0.05)


def test_averaging_is_exact_in_small_numbers():
    merged = Measured(np.array([1.0, -4.0]), 3.0).merged(Measured(np.array([5.0, 0.0]), 1.0))
    assert merged.value.tolist() == [2.0, -3.0]
    assert merged.rho == 4.0


@pytest.mark.statistical
@pytest.mark.parametrize("relation", ["replace_one", "zero_out"])
def test_measured_by_a_curator_the_variance_is_the_same(relation):
    """a^2 C^2 / (2 (rho + rho')) of the real answers, about the exact sum."""
    rng, clip, rhos = np.random.default_rng(0), 0.5, (0.3, 0.2)
    with seeded(5), window() as seen:
        curator = opened(large_budget(relation), X=rng.uniform(-1, 1, (6, 150)), y=rng.choice([-1, 1], 6))
        merged = [
            Measured(ask_gradient(curator, rhos[0], clip), rhos[0]).merged(
                Measured(ask_gradient(curator, rhos[1], clip), rhos[1])
            )
            for _ in range(30)
        ]
    exact = seen[0].exact.ravel() * seen[0].unit.step
    a = 2 if relation == "replace_one" else 1
    errors = np.concatenate([m.value - exact for m in merged]) / (a * clip / math.sqrt(2 * sum(rhos)))
    statistic = float(np.sum(errors**2))
    assert 2 * min(stats.chi2.cdf(statistic, errors.size), stats.chi2.sf(statistic, errors.size)) > SIGNIFICANCE
