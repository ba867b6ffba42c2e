"""Known draws: the cipher and the samplers on fixed streams, before a plan is charged; their laws, for the self-test.

The cipher must give the blocks of RFC 8439, and samplers what they are known to give on a fixed stream. The self-test
also compares draws from the operating system's entropy with their laws: a correct sampler fails one of these
statistical checks with a probability below 1e-6; a wrong scale or a stuck bit fails with certainty.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from discreet.accounting.plan import Plan
from discreet.curator.kernels import samplers
from discreet.curator.known_answers import check_coordinate_kernels, check_kernels, once_for_classes, require
from discreet.curator.noise import (
    Entropy,
    SeededEntropy,
    SystemEntropy,
    chacha20_words,
    discrete_laplace,
    poisson_sample,
    rounded_gaussian,
)
from discreet.errors import StaleKernels
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.losses.base import Loss
from discreet.penalties import L1
from discreet.typing import Floats, Integers

_KEY = bytes(range(32))
_VECTORS = (
    # section 2.3.2, and appendix A.1, test vector 4: key, counter, nonce, key stream
    (_KEY, 1, (0x09000000, 0x4A000000, 0),
     "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
     "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"),
    (b"\x00\xff" + bytes(30), 2, (0, 0, 0),
     "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
     "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096"),
)  # fmt: skip

SIGNIFICANCE = 1e-7
BINS = 64
EXPONENT = 20  # noise of scale 2^20: fine enough that the continuous law is the lattice's within 1e-5

Sampler = Callable[[int, int, Entropy], Integers]


def check_planned(plan: Plan, loss: Loss, *, pure: bool, sparse: bool) -> None:
    """Check what a fit of this plan runs, and compile nothing else for it."""
    check_kernels(loss, sparse=sparse, sampled=False)
    if plan.is_sampled:
        check_kernels(loss, sparse=sparse, sampled=True)
        check_poisson()
    if pure or any(release.mechanism != "additive" for release in plan.releases):
        check_laplace()
    if not pure:
        check_gaussian()


@once_for_classes
def check_gaussian() -> None:
    """Raise ``StaleKernels`` unless the exact Gaussian sampler gives its known answers on a fixed stream."""
    check_cipher()
    draws = rounded_gaussian(4, 20, SeededEntropy(1)).tolist()
    require(draws == [696207, -356740, -678959, -285812], "the Gaussian sampler fails its known answers")


@once_for_classes
def check_laplace() -> None:
    """Raise ``StaleKernels`` unless the exact Laplace sampler gives its known answers on a fixed stream."""
    check_cipher()
    draws = discrete_laplace(4, 20, SeededEntropy(1)).tolist()
    require(draws == [-1676727, -1618737, -730481, -169126], "the Laplace sampler fails its known answers")


@once_for_classes
def check_poisson() -> None:
    """Raise ``StaleKernels`` unless Poisson samples are the known ones on a fixed stream."""
    check_cipher()
    draws = poisson_sample(120, 1 << 12, SeededEntropy(1)).tolist()
    require(draws == [13, 25, 32, 53, 68, 107], "the sampler of records fails its known answers")


@once_for_classes
def check_cipher() -> None:
    """Raise ``StaleKernels`` unless the cipher gives the published blocks, and goes on from each to the next."""
    for key, counter, nonce, stream in _VECTORS:
        words = chacha20_words(key, 8, first=counter, nonce=nonce)
        require(words.tobytes().hex() == stream, "the cipher fails its known answers")
    parts = np.frombuffer(_KEY + bytes(16), dtype=np.uint32)
    plain = np.empty((3, samplers.WORDS), dtype=np.uint64)
    for group, out in enumerate(plain):
        samplers.sixteen_blocks(parts, group * samplers.LANES, out)
    require((chacha20_words(_KEY, plain.size) == plain.ravel()).all(), "the cipher fails its known answers")


@dataclass(frozen=True)
class Check:
    """One question, its answer, and what was found."""

    name: str
    passed: bool
    found: str


def kernel_checks() -> Iterator[Check]:
    """Each loss's compiled sums, dense and sparse, against their source; known draws of the samplers."""
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
                yield Check(name, True, "equals plain Python")
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
    result = f"{len(chosen)} of {n} units, p = {probability:.2g}"
    return Check(f"Poisson sampling, q = {q:.3g}", passed and ordered, result)


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
