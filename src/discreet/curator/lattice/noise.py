"""Noise and choices on the lattice: integers, sampled exactly from uniform bits.

The samplers' proofs are in ``kernels/samplers.py``; here are their tables (computed once, to 128 bits, from exact or
80-digit arithmetic) and the loop that feeds them entropy.

What the lattice does not reach (noise inside an objective, points of a posterior) is drawn in floating point from the
same entropy (``Draws``). Each number is a real draw rounded to a double, not an exactly sampled integer, so the
certificate of whatever uses it says ``arithmetic: idealized``. Nothing is buffered: no state to fork or copy.
"""

import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from discreet.curator.kernels import samplers
from discreet.curator.lattice.entropy import Entropy
from discreet.typing import Floats, Integers, Words

Table = tuple[NDArray[np.int32], Words, Words]  # guide, high words, low words

PROBABILITY_BITS = 16
"""Sampling probabilities are multiples of 2^-16, so that a Bernoulli trial is exact."""

_MOST_WORDS = 1 << 16


class EntropyRefused(RuntimeError):
    """A sampler met a case it does not decide (probability below 2^-100, from the random bits alone)."""


def _table(thresholds: Iterator[int]) -> Table:
    """Split 128-bit cumulative thresholds into 64-bit words, with a guide to the first one above each prefix."""
    values = list(thresholds)
    mask = (1 << 64) - 1
    high = np.array([v >> 64 for v in values], dtype=np.uint64)
    low = np.array([v & mask for v in values], dtype=np.uint64)
    return _guide(high, samplers.GUIDE_BITS), high, low


def _guide(high: Words, bits: int) -> NDArray[np.int32]:
    """Return the number of thresholds at most each prefix of so many bits."""
    starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    return np.searchsorted(high, starts, side="right").astype(np.int32)


def _cumulative(weight: Callable[[int], Decimal], terms: int, entries: int) -> Table:
    with localcontext() as context:
        context.prec = 80
        weights = [weight(k) for k in range(terms)]
        total, running, thresholds = sum(weights, Decimal(0)), Decimal(0), []
        for k in range(entries):
            running += weights[k]
            thresholds.append(int(running / total * (1 << 128)))
    return _table(iter(thresholds))


@lru_cache(maxsize=1)
def _normal_table() -> Table:
    """k with probability proportional to exp(-k^2 / 2)."""
    return _cumulative(lambda k: (Decimal(-k * k) / 2).exp(), terms=40, entries=14)


@lru_cache(maxsize=1)
def _geometric_table() -> Table:
    """v with probability (1 - 1/e) exp(-v)."""
    return _cumulative(lambda k: Decimal(-k).exp(), terms=400, entries=90)


@lru_cache(maxsize=8)
def _gap_table(numerator: int) -> Table:
    """P(a success within j + 1 trials of probability numerator / 2^16), for j below the table's length."""
    length = max(16, min(4096, 4 * (1 << PROBABILITY_BITS) // numerator))
    miss, unit = (1 << PROBABILITY_BITS) - numerator, 1 << 128

    def thresholds() -> Iterator[int]:
        power = 1
        for j in range(1, length + 1):
            power *= miss  # exactly miss^j over 2^(16 j)
            yield min(unit - 1, unit - -((-power << 128) >> (PROBABILITY_BITS * j)))

    return _table(thresholds())


@lru_cache(maxsize=8)
def _gap_search(numerator: int) -> Table:
    """The same as the sampler takes it: with a guide of its own, and two words more that are above all others."""
    _, high, low = _gap_table(numerator)
    beyond = np.full(2, 2**64 - 1, dtype=np.uint64)
    return _guide(high, samplers.GAP_GUIDE_BITS), np.concatenate([high, beyond]), low


def _refuse_if_undecided(cursor: Integers) -> None:
    if cursor[1]:
        raise EntropyRefused("the random bits left a comparison undecided; nothing was released: run again")


def _fill(sampler: Any, table: Table, count: int, m: int, words_each: int, entropy: Entropy) -> Integers:
    out, done = np.empty(count, dtype=np.int64), 0
    while done < count:
        words = entropy.words(min(_MOST_WORDS, samplers.RESERVE + words_each * (count - done)))
        cursor = np.zeros(2, dtype=np.int64)
        done = sampler(out, done, m, *table, words, cursor)
        _refuse_if_undecided(cursor)
    return out


def rounded_gaussian(count: int, m: int, entropy: Entropy) -> Integers:
    """``count`` independent draws of round(2^m N(0, 1))."""
    if not 1 <= m <= 58:
        raise ValueError("the noise exponent m must lie in 1..58")
    return _fill(samplers.rounded_gaussian, _normal_table(), count, m, 9, entropy)


def discrete_laplace(count: int, m: int, entropy: Entropy) -> Integers:
    """``count`` independent draws of the discrete Laplace law of scale 2^m."""
    if not 1 <= m <= 57:
        raise ValueError("the noise exponent m must lie in 1..57")
    return _fill(samplers.discrete_laplace, _geometric_table(), count, m, 6, entropy)


def poisson_sample(n: int, numerator: int, entropy: Entropy) -> Integers:
    """The units among 0..n-1 that independent trials of probability numerator / 2^16 choose, in order."""
    if not 1 <= numerator <= 1 << PROBABILITY_BITS:
        raise ValueError("the sampling probability must be a multiple of 2^-16 in (0, 1]")
    if numerator == 1 << PROBABILITY_BITS:
        return np.arange(n, dtype=np.int64)
    table = _gap_search(numerator)
    expected = n * numerator / (1 << PROBABILITY_BITS)
    chosen = np.empty(int(expected + 6 * math.sqrt(expected) + 64), dtype=np.int64)
    filled = position = 0
    while position < n:
        if filled == chosen.size:
            chosen = np.concatenate([chosen, np.empty_like(chosen)])
        left = expected * (1 - position / n)
        looks = left + (n - position) / len(table[2])
        words = entropy.words(min(_MOST_WORDS, int(looks + 4 * math.sqrt(looks)) + 16))
        cursor = np.zeros(2, dtype=np.int64)
        filled, position = samplers.poisson_sample(chosen, filled, position, n, *table, words, cursor)
        _refuse_if_undecided(cursor)
    return chosen[:filled]


def _check_scores(scores: Integers, m: int) -> None:
    if not 1 <= m <= 57 or int(scores.max()) - int(scores.min()) >= 1 << 63:
        raise ValueError("scores must lie within 63 bits of each other, and m in 1..57")


def exponential_choice(scores: Integers, m: int, entropy: Entropy) -> int:
    """An index drawn with probability proportional to exp(scores / 2^m), exactly.

    Privacy: if one record moves the *differences* of scores by at most D (range D), the choice is
    D / 2^m bounded range, hence D / 2^m-DP and (D / 2^m)^2 / 8-zCDP.
    """
    _check_scores(scores, m)
    while True:
        words, cursor = entropy.words(samplers.RESERVE + 16 * scores.size + 64), np.zeros(2, dtype=np.int64)
        index = samplers.exponential_choice(scores, scores.max(), m, *_geometric_table(), words, cursor)
        _refuse_if_undecided(cursor)
        if index >= 0:
            return int(index)


def permute_and_flip_choice(scores: Integers, m: int, entropy: Entropy) -> int:
    """An index drawn by permute-and-flip with weight 2^-m, exactly.

    Privacy: if one record moves each score by at most D, the choice is 2 D / 2^m-DP (McKenna &
    Sheldon 2020). It has no bounded-range guarantee: account for it as a pure event.
    """
    _check_scores(scores, m)
    order, at = np.arange(scores.size, dtype=np.int64), 0
    while True:
        words, cursor = entropy.words(samplers.RESERVE + 16 * scores.size + 64), np.zeros(2, dtype=np.int64)
        index, at = samplers.permute_and_flip_choice(
            scores, scores.max(), order, at, m, *_geometric_table(), words, cursor
        )
        _refuse_if_undecided(cursor)
        if index >= 0:
            return int(index)


Shape = int | tuple[int, ...]

_BELOW_ONE = 1.0 - 2.0**-53


class Draws:
    """Independent draws of the usual distributions from a source of uniform 64-bit words."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def uniform(self, shape: Shape = ()) -> Floats:
        """Uniform on the open interval (0, 1): steps of 2^-64 near zero, of 2^-53 near one."""
        return np.minimum((self._words(shape).astype(np.float64) + 0.5) * 2.0**-64, _BELOW_ONE)

    def normal(self, shape: Shape = ()) -> Floats:
        """Standard normal: one bit is the sign, 63 bits the depth in the lower tail, so out to 9 deviations."""
        words = self._words(shape)
        half = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
        return np.asarray(np.where(words & np.uint64(1), -1.0, 1.0) * ndtri(half))

    def exponential(self, shape: Shape = ()) -> Floats:
        """Exponential of mean one; the fine steps of ``uniform`` near zero make its upper tail."""
        return -np.log(self.uniform(shape))

    def gamma(self, shape_parameter: int) -> float:
        """Gamma of an integer shape and scale one: a sum of that many exponentials."""
        if shape_parameter < 1:
            raise ValueError("a Gamma draw here needs an integer shape of at least one")
        return float(self.exponential(shape_parameter).sum())

    def gamma_vector(self, p: int, scale: float) -> Floats:
        """A vector b of R^p with density proportional to exp(-||b||_2 / scale).

        In polar coordinates the density is r^(p-1) exp(-r / scale) times the uniform law of the sphere:
        a Gamma(p, scale) radius and, apart from it, the direction of a standard normal vector.
        """
        radius = scale * self.gamma(p)
        direction = self.normal(p)
        return direction * (radius / np.linalg.norm(direction))

    def _words(self, shape: Shape) -> Words:
        count = shape if isinstance(shape, int) else math.prod(shape)
        return self._entropy.words(count).reshape(shape)
