"""Quick checks that this machine's noise is what the proofs take it to be.

Two kinds: the compiled kernels against plain Python integers (known answers, exact), and draws of the
samplers from the operating system's entropy against their laws. A correct sampler fails one of the
statistical checks with a probability below 1e-6; a wrong scale or a stuck bit fails with certainty.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from discreet.curator.known_answers.coordinates import check_coordinate_kernels
from discreet.curator.known_answers.gradients import check_kernels
from discreet.curator.known_answers.planned import check_gaussian, check_laplace, check_poisson
from discreet.curator.lattice.entropy import Entropy, SystemEntropy
from discreet.curator.lattice.noise import discrete_laplace, poisson_sample, rounded_gaussian
from discreet.errors import StaleKernels
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.penalties import L1
from discreet.typing import Floats, Integers

SIGNIFICANCE = 1e-7
BINS = 64
EXPONENT = 20  # noise of scale 2^20: fine enough that the continuous law is the lattice's within 1e-5

Sampler = Callable[[int, int, Entropy], Integers]


@dataclass(frozen=True)
class Check:
    """One question, its answer, and what was found."""

    name: str
    passed: bool
    found: str


def kernel_checks() -> Iterator[Check]:
    """Each loss's compiled sums, dense and sparse, against Python integers; known draws of the samplers."""
    for loss in (Logistic(), Squared(), Huber(0.5), SmoothedHinge(0.5), Poisson(5.0), Softmax(3)):
        for sparse in (False, True):
            name = f"{type(loss).__name__}, {'sparse' if sparse else 'dense'} records"
            try:
                for sampled in (False, True):
                    check_kernels(loss, sparse=sparse, sampled=sampled)
                check_gaussian()
                check_laplace()
                check_poisson()
                if loss.n_outputs == 1:
                    check_coordinate_kernels(loss, L1(0.01), sparse=sparse)
                yield Check(name, True, "equals plain Python integers")
            except StaleKernels as error:
                yield Check(name, False, str(error))


def sampler_checks(draws: int = 200_000, entropy: Entropy | None = None) -> Iterator[Check]:
    """Draws against their laws: Gaussian, Laplace, Poisson sampling, and the entropy's bits."""
    source = SystemEntropy() if entropy is None else entropy
    yield entropy_check(source)
    yield law_check("Gaussian noise", rounded_gaussian, _normal_quantiles(), draws, source)
    yield law_check("Laplace noise", discrete_laplace, _laplace_quantiles(), draws, source)
    yield poisson_check(draws, source)
    # gaps beyond the sampler's table; enough units that the binomial tails are normal at this significance
    yield poisson_check(max(10_000_000, 50 * draws), source, numerator=7)


def law_check(name: str, sampler: Sampler, edges: Floats, draws: int, entropy: Entropy) -> Check:
    """A chi-square test on bins of equal probability under the law, in units of the noise's scale."""
    values = sampler(draws, EXPONENT, entropy) / 2.0**EXPONENT
    counts = np.bincount(np.searchsorted(edges, values), minlength=BINS)
    expected = draws / BINS
    statistic = float(((counts - expected) ** 2).sum() / expected)
    passed, probability = _judged(statistic, BINS - 1)
    return Check(name, passed, f"{draws} draws, {BINS} bins, p = {probability:.2g}")


def entropy_check(entropy: Entropy, words: int = 1 << 14) -> Check:
    """Each of the 64 bits is one half of the time one; no word comes twice."""
    drawn = entropy.words(words)
    bits = (drawn[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    deviations = (bits.sum(axis=0) - words / 2) / math.sqrt(words / 4)
    passed, probability = _judged(float((deviations**2).sum()), 64)
    repeated = len(np.unique(drawn)) < words
    return Check("entropy", passed and not repeated, f"{words} words from {entropy.name}, p = {probability:.2g}")


def poisson_check(n: int, entropy: Entropy, numerator: int = 6554) -> Check:
    """Each half of a Poisson sample has a binomial size, and its units are in order."""
    q = numerator / 2**16
    chosen = poisson_sample(n, numerator, entropy)
    halves = np.array([(chosen < n // 2).sum(), (chosen >= n // 2).sum()])
    sizes = np.array([n // 2, n - n // 2])
    statistic = float((((halves - q * sizes) ** 2) / (q * (1 - q) * sizes)).sum())
    passed, probability = _judged(statistic, 2)
    ordered = bool((np.diff(chosen) > 0).all())
    found = f"{len(chosen)} of {n} units, p = {probability:.2g}"
    return Check(f"Poisson sampling, q = {q:.3g}", passed and ordered, found)


def _judged(statistic: float, freedom: int) -> tuple[bool, float]:
    """Both tails: a fit that is too good is as suspicious as one that is too bad."""
    from scipy.special import gammainc, gammaincc

    above, below = gammaincc(freedom / 2, statistic / 2), gammainc(freedom / 2, statistic / 2)
    return bool(min(above, below) > SIGNIFICANCE / 2), float(above)


def _levels() -> Floats:
    return np.arange(1, BINS) / BINS


def _normal_quantiles() -> Floats:
    from scipy.special import ndtri

    return np.asarray(ndtri(_levels()))


def _laplace_quantiles() -> Floats:
    level = _levels()
    return np.where(level < 0.5, np.log(2 * level), -np.log(2 * (1 - level)))
