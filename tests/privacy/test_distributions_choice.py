"""The exponential mechanism and permute-and-flip against their exact laws, and against their privacy claims."""

import numpy as np
import pytest
from scipy import stats

from discreet.curator.lattice.entropy import SystemEntropy
from discreet.curator.lattice.noise import exponential_choice, permute_and_flip_choice

SIGNIFICANCE = 1e-6
TRIALS = 20_000
M = 20
pytestmark = pytest.mark.statistical
SIZES = [2, 5, 21]


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


@pytest.mark.few(1)
@each
@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("offset", [0, -(2**55)], ids=["near", "far"])
def test_frequencies(name, k, offset):
    choice, law = MECHANISMS[name]
    scores = spread(k) + offset
    seen = frequencies(choice, scores)
    assert law(scores, 2.0**M).sum() == pytest.approx(1.0)
    assert stats.chisquare(seen, law(scores, 2.0**M) * TRIALS).pvalue > SIGNIFICANCE
    assert stats.chisquare(seen, law(scores, 2.0**M * 1.25) * TRIALS).pvalue < SIGNIFICANCE  # noise 25 % off
    assert stats.chisquare(seen, law(scores, 2.0**M / 1.25) * TRIALS).pvalue < SIGNIFICANCE


@each
@pytest.mark.parametrize("m", [1, 2, 57])
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


@pytest.mark.few(1)
@pytest.mark.parametrize("k", SIZES)
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


@pytest.mark.few(1)
@pytest.mark.parametrize("k", SIZES)
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
