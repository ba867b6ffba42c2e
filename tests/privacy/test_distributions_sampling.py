"""Poisson samples: each unit by its own coin of exactly k / 2^16. Each test rejects a sampler that is not."""

import itertools

import numpy as np
import pytest
from scipy import stats

from discreet.curator.lattice.entropy import SystemEntropy
from discreet.curator.lattice.noise import _gap_table, poisson_sample

SIGNIFICANCE = 1e-6
ONE = 1 << 16
pytestmark = pytest.mark.statistical


def draw(n, numerator):
    return poisson_sample(n, numerator, SystemEntropy())


def count_p(chosen, n, q):
    return stats.binomtest(len(chosen), n, q).pvalue


def pairs_p(chosen, n, q):
    """p-value of how often both of (0, 1), (2, 3), ... are chosen, which is q^2 if coins are independent."""
    inside = np.zeros(n + n % 2, dtype=bool)
    inside[chosen] = True
    both = int((inside[::2] & inside[1::2]).sum())
    return stats.binomtest(both, n // 2, q * q).pvalue


def gaps_p(chosen, q, edges):
    """p-value of the gaps' law: P(gap >= e) = (1 - q)^e."""
    gaps = np.diff(chosen) - 1
    counts = np.histogram(gaps, bins=[0, *edges, np.iinfo(np.int64).max])[0]
    beyond = (1 - q) ** np.array([0, *edges], dtype=float)
    return stats.chisquare(counts, np.append(-np.diff(beyond), beyond[-1]) * len(gaps)).pvalue


def edges_for(q):
    """Nine gaps that cut the geometric law into about ten equal parts."""
    return sorted({max(1, round(np.log1p(-p) / np.log1p(-q))) for p in np.arange(0.1, 1.0, 0.1)})


@pytest.mark.parametrize("numerator", [655, 6554, ONE // 2, ONE - 6554])
def test_inclusion_pairs_and_gaps(numerator):
    n, q = 4_000_000, numerator / ONE
    chosen = draw(n, numerator)
    assert (np.diff(chosen) > 0).all()
    assert chosen[0] >= 0
    assert chosen[-1] < n
    assert count_p(chosen, n, q) > SIGNIFICANCE
    assert pairs_p(chosen, n, q) > SIGNIFICANCE
    assert gaps_p(chosen, q, edges_for(q)) > SIGNIFICANCE
    first, second = chosen[chosen < n // 2], chosen[chosen >= n // 2]
    assert count_p(first, n // 2, q) > SIGNIFICANCE
    assert count_p(second, n // 2, q) > SIGNIFICANCE


def test_controls_are_rejected():
    n, q = 4_000_000, 1 / 16
    g = np.random.default_rng()
    wrong = np.flatnonzero(g.random(n) < 1.03 * q)  # 3 % too often
    assert count_p(wrong, n, q) < SIGNIFICANCE
    systematic = np.arange(g.integers(16), n, 16)  # the right rate, but no coins
    assert pairs_p(systematic, n, q) < SIGNIFICANCE
    assert gaps_p(systematic, q, edges_for(q)) < SIGNIFICANCE
    shuffled = np.sort(np.concatenate([b + g.choice(64, 4, replace=False) for b in range(0, n // 16, 64)]))
    assert gaps_p(shuffled, q, edges_for(q)) < SIGNIFICANCE  # fixed batches within blocks


@pytest.mark.parametrize("numerator", [1, 16, 63, 64, 65])
def test_rare_samples_cross_the_end_of_the_table(numerator):
    """Gaps longer than the table are pieced together from misses: nothing happens at the seam."""
    q, length = numerator / ONE, len(_gap_table(numerator)[1])
    n = min(1 << 31, int(60_000 / q))
    chosen = draw(n, numerator)
    assert length == 4096 if numerator <= 64 else length < 4096
    assert count_p(chosen, n, q) > SIGNIFICANCE
    seam = [length // 2, length - length // 8, length, length + length // 8, 2 * length, 2 * length + length // 8]
    usable = [e for e in seam if (1 - q) ** e * len(chosen) > 50]
    assert gaps_p(chosen, q, usable) > SIGNIFICANCE


@pytest.mark.parametrize(("n", "numerator"), [(1, ONE // 2), (3, ONE // 2), (4, 3 * ONE // 4), (5, 20_000)])
def test_every_subset_of_a_small_set_has_its_probability(n, numerator):
    trials, q = 20_000, numerator / ONE
    seen = np.bincount([int((1 << draw(n, numerator)).sum()) for _ in range(trials)], minlength=1 << n)
    law = [np.prod([q if bit else 1 - q for bit in bits]) for bits in itertools.product((0, 1), repeat=n)]
    law = [law[int(format(s, f"0{n}b")[::-1], 2)] for s in range(1 << n)]
    assert stats.chisquare(seen, np.array(law) * trials).pvalue > SIGNIFICANCE
    wrong = stats.binom.pmf(np.arange(n + 1), n, min(1.0, q * 1.1))
    sizes = np.bincount([bin(s).count("1") for s in range(1 << n)], weights=seen, minlength=n + 1)
    assert n == 1 or stats.chisquare(sizes, wrong * trials).pvalue < SIGNIFICANCE


def test_the_first_coin_is_exact_in_128_bits():
    for numerator in (1, 2, 655, ONE // 2, ONE - 1):
        _, high, low = _gap_table(numerator)
        assert (int(high[0]) << 64) + int(low[0]) == numerator << 112
        thresholds = [(int(h) << 64) + int(v) for h, v in zip(high, low, strict=True)]
        for j in (1, len(thresholds) // 2, len(thresholds) - 1):
            exact = (1 << 128) * (ONE ** (j + 1) - (ONE - numerator) ** (j + 1))  # over ONE^(j + 1)
            assert abs(thresholds[j] * ONE ** (j + 1) - exact) <= ONE ** (j + 1)
        assert thresholds == sorted(thresholds)


def test_edges():
    assert draw(10, ONE).tolist() == list(range(10))
    assert draw(0, 100).size == draw(0, ONE).size == 0
    nearly = draw(2_000_000, ONE - 1)
    assert count_p(nearly, 2_000_000, 1 - 1 / ONE) > SIGNIFICANCE
    for bad in (0, -1, ONE + 1):
        with pytest.raises(ValueError, match="probability"):
            draw(10, bad)
