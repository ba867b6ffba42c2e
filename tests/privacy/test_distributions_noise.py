"""The samplers against their exact laws, at a significance of 1e-6; each test rejects a sampler 1 % or 2 % off."""

import numpy as np
import pytest
from scipy import stats

from discreet.curator.lattice.entropy import SystemEntropy
from discreet.curator.lattice.noise import discrete_laplace, rounded_gaussian

SIGNIFICANCE = 1e-6
pytestmark = pytest.mark.statistical


def chi_square(draws, probability, reach):
    """p-value of integer draws, folded at +-reach, against P(|x| <= reach) folded likewise."""
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)
    return stats.chisquare(counts, probability * draws.size).pvalue


def gaussian_law(m, reach):
    edges = np.arange(-reach, reach) + 0.5
    return np.diff(stats.norm.cdf(edges / 2.0**m), prepend=0.0, append=1.0)


def laplace_law(m, reach):
    r = np.exp(-(2.0**-m))
    inside = (1 - r) / (1 + r) * r ** np.abs(np.arange(-reach, reach + 1))
    inside[[0, -1]] = r**reach / (1 + r)
    return inside


def narrow_gaussian(count, m, scale=0.99):
    return np.rint(np.random.default_rng().standard_normal(count) * scale * 2.0**m).astype(np.int64)


def narrow_laplace(count, m, scale=0.98):
    g = np.random.default_rng()
    q = 1 - np.exp(-1 / (scale * 2.0**m))
    return g.geometric(q, count) - g.geometric(q, count)


@pytest.mark.few(2)
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_rounded_gaussian(m):
    count, reach = 2_000_000, 4 * 2**m
    law = gaussian_law(m, reach)
    assert law.sum() == pytest.approx(1.0)
    assert chi_square(rounded_gaussian(count, m, SystemEntropy()), law, reach) > SIGNIFICANCE
    assert chi_square(narrow_gaussian(count, m), law, reach) < SIGNIFICANCE  # 1 % too narrow
    assert chi_square(narrow_gaussian(count, m, 1.0), law, reach) > SIGNIFICANCE  # the test itself is fair


@pytest.mark.parametrize("m", [1, 3])
def test_discrete_laplace(m):
    count, reach = 2_000_000, 6 * 2**m
    law = laplace_law(m, reach)
    assert law.sum() == pytest.approx(1.0)
    assert chi_square(discrete_laplace(count, m, SystemEntropy()), law, reach) > SIGNIFICANCE
    assert chi_square(narrow_laplace(count, m), law, reach) < SIGNIFICANCE  # 2 % too narrow
    assert chi_square(narrow_laplace(count, m, 1.0), law, reach) > SIGNIFICANCE


def variance_p(z):
    """p-value of a unit variance: the sample's is normal about 1 with standard deviation sqrt(2 / n)."""
    return 2 * stats.norm.sf(abs(np.mean(z**2) - 1) / np.sqrt(2 / z.size))


def test_at_the_precision_that_is_used():
    """m = 40: Kolmogorov-Smirnov, variance, signs, tails and independence of neighbors."""
    count = 2_000_000
    z = rounded_gaussian(count, 40, SystemEntropy()) / 2.0**40
    narrow = np.random.default_rng().standard_normal(count)
    assert stats.kstest(z, "norm").pvalue > SIGNIFICANCE
    assert stats.kstest(0.98 * narrow, "norm").pvalue < SIGNIFICANCE
    assert variance_p(z) > SIGNIFICANCE
    assert variance_p(0.99 * narrow) < SIGNIFICANCE
    assert stats.binomtest(int((z > 0).sum()), count).pvalue > SIGNIFICANCE
    assert abs(np.mean(z[1:] * z[:-1])) * np.sqrt(count) < stats.norm.isf(SIGNIFICANCE / 2)
    for sign in (1, -1):
        for edge in (3, 4):
            beyond = int((sign * z > edge).sum())
            assert stats.binomtest(beyond, count, stats.norm.sf(edge)).pvalue > SIGNIFICANCE
    assert stats.binomtest(0, count, stats.norm.sf(4)).pvalue < SIGNIFICANCE  # a tail cut at 4 would be seen


def test_no_grid_coarser_than_the_lattice():
    """The low bits are as random as the high ones: a float in disguise would leave zeros."""
    for sampler in (rounded_gaussian, discrete_laplace):
        for m in (30, 40, 56):
            z = np.abs(sampler(40_000, m, SystemEntropy()))
            for bit in range(m - 12):  # above, the law itself prefers zeros
                ones = int(((z >> bit) & 1).sum())
                assert stats.binomtest(ones, z.size).pvalue > SIGNIFICANCE / 100


@pytest.mark.thorough
def test_laplace_at_the_precision_that_is_used():
    x = discrete_laplace(1_000_000, 40, SystemEntropy()) / 2.0**40
    assert stats.kstest(x, "laplace").pvalue > SIGNIFICANCE
    assert stats.kstest(0.97 * np.random.default_rng().laplace(size=x.size), "laplace").pvalue < SIGNIFICANCE
    for edge in (5, 9):
        assert stats.binomtest(int((np.abs(x) > edge).sum()), x.size, np.exp(-edge)).pvalue > SIGNIFICANCE


@pytest.mark.parametrize(("sampler", "most"), [(rounded_gaussian, 58), (discrete_laplace, 57)])
def test_exponents_at_the_edge(sampler, most):
    assert np.median(np.abs(sampler(2000, most, SystemEntropy()) / 2.0**most)) == pytest.approx(0.68, abs=0.15)
    for m in (0, -1, most + 1):
        with pytest.raises(ValueError, match="exponent"):
            sampler(1, m, SystemEntropy())
    assert sampler(0, 20, SystemEntropy()).size == 0
