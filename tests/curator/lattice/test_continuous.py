"""The continuous draws against their distributions; a scale that is 5 % off must fail the same test."""

import math

import numpy as np
import pytest
from scipy import special, stats

from discreet.curator.noise import Draws
from tests.entropy import Buffered

SIGNIFICANCE = 1e-6
N = 60_000


class Fixed:
    """A source that gives the same word for ever."""

    def __init__(self, word):
        self._word = word

    def words(self, count):
        return np.full(count, self._word, dtype=np.uint64)


def draws(seed):
    return Draws(Buffered(seed))


def matches(sample, distribution):
    """Shape (Kolmogorov-Smirnov), place (sum of normal scores) and scale (of their squares) are right."""
    uniform = np.clip(distribution.cdf(sample), 1e-300, 1 - 1e-16)
    scores, n = special.ndtri(uniform), sample.size
    squares = np.sum(scores**2)
    scale = 2 * min(stats.chi2.sf(squares, n), stats.chi2.cdf(squares, n))
    place = 2 * stats.norm.sf(abs(scores.sum()) / math.sqrt(n))
    return min(stats.kstest(uniform, "uniform").pvalue, place, scale) > SIGNIFICANCE


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "distribution"), [("uniform", stats.uniform()), ("normal", stats.norm()), ("exponential", stats.expon())]
)
def test_distribution(name, distribution):
    sample = getattr(draws(1), name)((N // 3, 3)).reshape(-1)
    assert matches(sample, distribution)
    assert not matches(sample * 1.05, distribution)
    assert not matches(sample / 1.05, distribution)
    assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 5 / math.sqrt(N)


@pytest.mark.parametrize("word", [0, 1, 2**11, 2**63, 2**64 - 2**10, 2**64 - 2, 2**64 - 1])
def test_the_extreme_words(word):
    source = Draws(Fixed(word))
    assert 0 < source.uniform() < 1
    assert 0 < source.exponential() < 46
    assert abs(source.normal()) < 9.2


def test_the_tails_are_deep():
    assert Draws(Fixed(0)).uniform() == 2.0**-65
    assert Draws(Fixed(0)).exponential() > 45
    assert Draws(Fixed(0)).normal() == -Draws(Fixed(1)).normal() == pytest.approx(special.ndtri(2.0**-65))


@pytest.mark.statistical
@pytest.mark.parametrize("shape", [1, 7])
def test_gamma(shape):
    source = draws(3)
    assert matches(np.array([source.gamma(shape) for _ in range(10_000)]), stats.gamma(shape))


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("p", [1, 3, 50])
def test_gamma_vector(p):
    source, scale, n = draws(4), 2.5, 20_000 if p == 1 else 6_000
    sample = np.array([source.gamma_vector(p, scale) for _ in range(n)])

    def is_right(radius):
        mean_error = radius.mean() / (p * scale) - 1
        square_error = np.mean(radius**2) / (p * (p + 1) * scale**2) - 1
        moments = abs(mean_error) < 5 / math.sqrt(p * n) and abs(square_error) < 5 * math.sqrt(
            (4 * p + 6) / (p * (p + 1) * n)
        )
        return moments and matches(radius, stats.gamma(p, scale=scale))

    radius = np.linalg.norm(sample, axis=1)
    assert is_right(radius)
    assert not is_right(radius * 1.05)
    assert not is_right(radius / 1.05)


@pytest.mark.statistical
@pytest.mark.parametrize("p", [2, 10])
def test_directions_are_uniform(p):
    source, n = draws(5), 6_000
    sample = np.array([source.gamma_vector(p, 1.0) for _ in range(n)])
    radius = np.linalg.norm(sample, axis=1)
    direction = sample / radius[:, None]
    for axis in (np.eye(p)[0], np.ones(p) / math.sqrt(p)):
        # (1 + cosine) / 2 of a uniform direction is a symmetric Beta
        assert stats.kstest((1 + direction @ axis) / 2, stats.beta((p - 1) / 2, (p - 1) / 2).cdf).pvalue > SIGNIFICANCE
    tilted = direction * np.append(1.2, np.ones(p - 1))
    tilted /= np.linalg.norm(tilted, axis=1, keepdims=True)
    moment = p * np.array([np.mean(direction[:, 0] ** 2), np.mean(tilted[:, 0] ** 2)]) - 1
    deviation = math.sqrt(2 * (p - 1) / (p + 2) / n)  # of p u_1^2
    assert abs(moment[0]) < 5 * deviation < abs(moment[1])
    assert abs(np.corrcoef(radius, direction[:, 0])[0, 1]) < 5 / math.sqrt(n)
