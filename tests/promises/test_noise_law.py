"""Noise, samples and choices follow the laws that prices are computed for, at a significance of 1e-6.

Each test has a control: a sampler that is off by a few percent is rejected.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData, session
from discreet.curator.noise import (
    SystemEntropy,
    _gap_table,
    discrete_laplace,
    exponential_choice,
    permute_and_flip_choice,
    poisson_sample,
    rounded_gaussian,
)
from discreet.losses import Squared
from tests.registry import QUERIES, WIDTH
from tests.replaying import window

# --- Gaussian and Laplace noise ----------------------------------------------------------------------


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


@pytest.mark.parametrize("m", [1, 5])
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


# --- Poisson samples: each unit by its own coin of exactly k / 2^16 ----------------------------------


ONE = 1 << 16


def sample(n, numerator):
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


@pytest.mark.parametrize("numerator", [655, ONE // 2, pytest.param(ONE - 6554, marks=pytest.mark.thorough)])
def test_inclusion_pairs_and_gaps(numerator):
    n, q = 4_000_000, numerator / ONE
    chosen = sample(n, numerator)
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


@pytest.mark.parametrize("numerator", [1, pytest.param(64, marks=pytest.mark.thorough), 65])
def test_rare_samples_cross_the_end_of_the_table(numerator):
    """Gaps longer than the table are pieced together from misses: nothing happens at the seam."""
    q, length = numerator / ONE, len(_gap_table(numerator)[1])
    n = min(1 << 31, int(60_000 / q))
    chosen = sample(n, numerator)
    assert length == 4096 if numerator <= 64 else length < 4096
    assert count_p(chosen, n, q) > SIGNIFICANCE
    seam = [length // 2, length - length // 8, length, length + length // 8, 2 * length, 2 * length + length // 8]
    usable = [e for e in seam if (1 - q) ** e * len(chosen) > 50]
    assert gaps_p(chosen, q, usable) > SIGNIFICANCE


@pytest.mark.parametrize(("n", "numerator"), [(3, ONE // 2), pytest.param(5, 20_000, marks=pytest.mark.thorough)])
def test_every_subset_of_a_small_set_has_its_probability(n, numerator):
    trials, q = 20_000, numerator / ONE
    seen = np.bincount([int((1 << sample(n, numerator)).sum()) for _ in range(trials)], minlength=1 << n)
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
    assert sample(10, ONE).tolist() == list(range(10))
    assert sample(0, 100).size == sample(0, ONE).size == 0
    nearly = sample(2_000_000, ONE - 1)
    assert count_p(nearly, 2_000_000, 1 - 1 / ONE) > SIGNIFICANCE
    for bad in (0, -1, ONE + 1):
        with pytest.raises(ValueError, match="probability"):
            sample(10, bad)


# --- the exponential mechanism and permute-and-flip --------------------------------------------------


TRIALS = 20_000
M = 20


def exponential_law(scores, scale):
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


def permute_and_flip_law(scores, scale):
    """Candidates arrive at uniform times; i wins at time t if it accepts and all earlier ones declined."""
    accept = np.exp((scores - scores.max()) / scale)
    nodes, weights = np.polynomial.legendre.leggauss(32)  # exact for these polynomials
    t = (nodes + 1) / 2
    return np.array([a * np.sum(weights / 2 * np.prod(1 - np.outer(np.delete(accept, i), t), axis=0))
                     for i, a in enumerate(accept)])  # fmt: skip


MECHANISMS = {
    "exponential": (exponential_choice, exponential_law),
    "permute_and_flip": (permute_and_flip_choice, permute_and_flip_law),
}
each = pytest.mark.parametrize("name", MECHANISMS)


class QuickEntropy:
    """Uniform words from numpy: what is under test here is what the samplers make of them."""

    def __init__(self):
        self._generator = np.random.default_rng()

    def words(self, count):
        return self._generator.integers(0, 2**64, count, dtype=np.uint64)


def frequencies(choice, scores, m=M, trials=TRIALS):
    source = QuickEntropy()
    return np.bincount([choice(scores, m, source) for _ in range(trials)], minlength=scores.size)


def spread(k, m=M):
    """Scores over about three scales, none a whole multiple; ties among them."""
    g = np.random.default_rng(k)
    scores = (g.uniform(-3, 0, k) * 2**m).astype(np.int64)
    scores[-1] = scores[0]
    return scores if k > 2 else np.array([0, -(2**m) // 3 - 2**m], dtype=np.int64)


@each
@pytest.mark.parametrize(("k", "offset"), [(2, 0), pytest.param(21, -(2**55), marks=pytest.mark.thorough)])
def test_frequencies(name, k, offset):
    choice, law = MECHANISMS[name]
    scores = spread(k) + offset
    seen = frequencies(choice, scores)
    assert law(scores, 2.0**M).sum() == pytest.approx(1.0)
    assert stats.chisquare(seen, law(scores, 2.0**M) * TRIALS).pvalue > SIGNIFICANCE
    assert stats.chisquare(seen, law(scores, 2.0**M * 1.25) * TRIALS).pvalue < SIGNIFICANCE  # noise 25 % off
    assert stats.chisquare(seen, law(scores, 2.0**M / 1.25) * TRIALS).pvalue < SIGNIFICANCE


@pytest.mark.thorough
@each
@pytest.mark.parametrize("m", [1, 57])
def test_other_scales(name, m):
    choice, law = MECHANISMS[name]
    scores = np.array([0, -1, -2, -5], dtype=np.int64) * max(1, 2**m // 4)
    assert stats.chisquare(frequencies(choice, scores, m), law(scores, 2.0**m) * TRIALS).pvalue > SIGNIFICANCE


def ratio_bounds(first, second):
    """Simultaneous lower bounds on |log(P(i) / Q(i))| from counts (Clopper-Pearson)."""
    level = SIGNIFICANCE / (4 * first.size)
    worst = 0.0
    for a, b in ((first, second), (second, first)):
        low = np.where(a > 0, stats.beta.ppf(level, np.maximum(a, 1), TRIALS - a + 1), 0.0)
        high = stats.beta.isf(level, b + 1, np.maximum(TRIALS - b, 1))
        worst = max(worst, float(np.log(np.maximum(low, 1e-300) / high).max()))
    return worst


@pytest.mark.parametrize("k", [2, pytest.param(21, marks=pytest.mark.thorough)])
def test_the_exponential_mechanism_keeps_its_claim(k):
    """One score rises by D against the others: range D, so the claim is D / 2^m = 1."""
    scores = np.zeros(k, dtype=np.int64)
    moved = scores.copy()
    moved[0] += 2**M
    assert ratio_bounds(frequencies(exponential_choice, scores), frequencies(exponential_choice, moved)) <= 1.0
    laws = exponential_law(scores, 2.0**M), exponential_law(moved, 2.0**M)
    assert np.abs(np.log(laws[0] / laws[1])).max() <= 1.0
    double = scores.copy()
    double[0] += 2 * 2**M  # a sensitivity of 2 D passed off as D: the claim must be refuted where k is large
    broken = ratio_bounds(frequencies(exponential_choice, scores), frequencies(exponential_choice, double))
    assert k == 2 or broken > 1.0


@pytest.mark.parametrize("k", [2, pytest.param(21, marks=pytest.mark.thorough)])
def test_permute_and_flip_keeps_its_claim(k):
    """Every score moves by D, one against the others: the claim is 2 D / 2^m = 1."""
    step = 2 ** (M - 1)
    scores = np.full(k, step, dtype=np.int64)
    scores[0] = 0
    moved = scores - step
    moved[0] = step
    first, second = (frequencies(permute_and_flip_choice, s) for s in (scores, moved))
    assert ratio_bounds(first, second) <= 1.0
    laws = permute_and_flip_law(scores, 2.0**M), permute_and_flip_law(moved, 2.0**M)
    assert np.abs(np.log(laws[0] / laws[1])).max() <= 1.0 + 1e-12
    half = frequencies(permute_and_flip_choice, 3 * scores), frequencies(permute_and_flip_choice, 3 * moved)
    assert ratio_bounds(*half) > 1.0  # noise three times too small


@each
def test_scores_at_the_ends_of_64_bits_do_not_wrap(name):
    choice, _ = MECHANISMS[name]
    scores = np.array([-(2**63), 2**63 - 1], dtype=np.int64)
    try:
        picks = {choice(scores, 1, SystemEntropy()) for _ in range(50)}
    except ValueError:
        return  # refusing such scores is as good
    assert picks == {1}


# --- what the curator draws for each query --------------------------------------------------------------

MINIMIZERS = ("noisy_minimizer", "noisy_descent")
"""Their pure noise has a Gamma length, see ``tests/solvers/perturbation/test_noise.py``."""
SCALARS = (
    "noisy_count",
    "noisy_weight",
    "noisy_share_within",
    "noisy_score",
    "noisy_target_moments",
    "noisy_squared_slopes",
)


def noise_of(query, delta):
    """The noise of many answers of one query over its planned scale, whatever its lattice is."""
    count = 2000 if query in SCALARS else 150
    relation = "add_remove" if query in ("noisy_count", "noisy_weight") else "zero_out"
    data = PrivateData(np.ones((4, WIDTH)), np.ones(4), Bounds(1.0, target=(-1, 1)), fit_intercept=False)
    priced = price_plan(Plan([Release(query, count)]), Budget(1.0, delta, relation))
    with window() as seen:
        curator = data.open(priced, Squared())
        for _ in range(count):
            QUERIES[query](curator, np.zeros(WIDTH))
    scale = priced.noise_multiplier * float(seen[0].factor) * seen[0].unit.bound
    return np.concatenate([np.ravel((one.noisy - one.exact).astype(float)) for one in seen]) / scale


@pytest.mark.whole
@pytest.mark.parametrize("query", QUERIES)
def test_every_query_has_the_noise_that_was_planned(query):
    noise = noise_of(query, 1e-6)
    assert min(stats.kstest(noise, "norm").pvalue, variance_p(noise)) > SIGNIFICANCE
    assert min(stats.kstest(1.5 * noise, "norm").pvalue, variance_p(1.5 * noise)) < SIGNIFICANCE


@pytest.mark.few(4)
@pytest.mark.parametrize("query", [query for query in QUERIES if query not in (*session._IN_L2, *MINIMIZERS)])
def test_every_pure_query_has_the_noise_that_was_planned(query):
    noise = noise_of(query, 0.0)
    assert stats.kstest(noise, "laplace").pvalue > SIGNIFICANCE
    assert stats.kstest(2.0 * noise, "laplace").pvalue < SIGNIFICANCE
