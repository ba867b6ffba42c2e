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


WRONG = {
    "equal weights": lambda a, b: Measured((a.value + b.value) / 2, a.rho + b.rho),
    "swapped weights": lambda a, b: Measured((b.rho * a.value + a.rho * b.value) / (a.rho + b.rho), a.rho + b.rho),
    "the last one only": lambda a, b: Measured(b.value, a.rho + b.rho),
    "a sum": lambda a, b: Measured((a.rho * a.value + b.rho * b.value) / a.rho, a.rho + b.rho),
}


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", WRONG)
def test_other_averages_are_told_apart(wrong):
    center, spread, _ = law_of_merged(WRONG[wrong])
    assert min(center, spread) < SIGNIFICANCE


def test_averaging_is_exact_in_small_numbers():
    merged = Measured(np.array([1.0, -4.0]), 3.0).merged(Measured(np.array([5.0, 0.0]), 1.0))
    assert merged.value.tolist() == [2.0, -3.0]
    assert merged.rho == 4.0


def test_averaging_is_associative():
    rng = np.random.default_rng(2)
    a, b, c = (Measured(rng.normal(size=4), rho) for rho in (0.1, 2.0, 0.7))
    left, right = a.merged(b).merged(c), a.merged(b.merged(c))
    np.testing.assert_allclose(left.value, right.value, rtol=1e-12)
    assert left.rho == pytest.approx(right.rho)


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


def cosines(runs=20_000):
    """Cosines to the truth: averaged as here, normalized first as in the slides, the first measurement alone."""
    rng, dim, length, sensitivity = np.random.default_rng(8), 50, 30.0, 3.0
    truth = np.zeros(dim)
    truth[0] = length
    first, second = measure(rng, truth, 0.02, sensitivity, runs), measure(rng, truth, 0.002, sensitivity, runs)
    ours = Measured(first, 0.02).merged(Measured(second, 0.002)).value
    unit = first / np.linalg.norm(first, axis=1, keepdims=True)
    slides = Measured(unit, 0.02).merged(Measured(second, 0.002)).value
    return [vectors[:, 0] / np.linalg.norm(vectors, axis=1) for vectors in (ours, slides, first)]


@pytest.mark.statistical
def test_to_normalize_before_averaging_is_worse_than_not_to_average():
    found = cosines()
    for values, published in zip(found, (0.283, 0.095, 0.273), strict=True):
        error = float(values.std()) / math.sqrt(len(values))
        assert abs(float(values.mean()) - published) < 6 * error + 0.0005
    ours, slides, first = (float(values.mean()) for values in found)
    assert slides < 0.5 * first < first < ours
