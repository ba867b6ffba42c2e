"""Random bits, and what is drawn from them: exact noise and choices on the lattice.

The samplers' proofs are in ``kernels/samplers.py``; here are their tables (computed once, to 128 bits, from exact or
80-digit arithmetic) and the loop that feeds them entropy.

What the lattice does not reach (noise inside an objective, points of a posterior) is drawn in floating point from the
same entropy (``Draws``). Each number is a real draw rounded to a double, not an exactly sampled integer, so the
certificate of whatever uses it says ``arithmetic: idealized``. Nothing is buffered: no state to fork or copy.

**Entropy** comes from the operating system, always, except under ``discreet.testing``. A request for few words gets
words of ``os.urandom``. A larger one gets the key stream of ChaCha20 (RFC 8439, compiled in ``kernels/samplers.py``)
under a key of 256 bits that ``os.urandom`` gave for this request alone, from block 0 on. Which of the two it is depends
on the number of words alone: ``DIRECT_WORDS`` is about where both take as long.

*No two requests share words.* (1) A key is a local variable of one call of ``SystemEntropy.words``. It is read after
the call began, serves one key stream, and is overwritten before the call returns. Nothing is kept: the class has no
attributes but constants, and this module has no generator, buffer, counter or seed. (2) So between two calls there is
no state that threads could share, that a fork could copy into the child, or that pickling or copying could double: the
next call, in whatever thread or process, begins by asking the operating system. (3) Calls that overlap in several
threads each have a key of their own; the compiled loop writes to its arguments only. (4) Within a request no block
comes twice: the counter has 32 bits, and a request for more than 2^32 blocks is refused. (5) Two requests have the same
key with probability 2^-256 per pair, if the operating system's words are random. What remains is a fork in the midst of
a call, which takes a signal handler that forks: both processes then go on with the same words, as with all that were
drawn before a fork. A curator answers only in the process that opened it.

*What is assumed.* That ``os.urandom`` cannot be predicted, as ever; and that ChaCha20 is a pseudorandom generator: no
feasible computation tells its key stream under a random key from uniform bits. By the usual hybrid argument (replace
one stream after the other) k requests together differ from independent uniform words by at most k times the advantage
against one stream, so every proof that takes words as uniform holds for everybody who cannot break the cipher. This is
no new kind of trust: what ``os.urandom`` gives is itself the output of a cipher under a random key, ChaCha20 on Linux,
AES on Windows and macOS.

The overwriting is a precaution, and the proofs do not rest on it: the 32 bytes that Python received cannot be
overwritten, nor what the processor left on its stack, and the words themselves lie in memory until they are used.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from discreet.curator.kernels import samplers
from discreet.typing import Floats, Integers, Words

DIRECT_WORDS = 64
"""Requests for fewer words get words of ``os.urandom`` itself, which is faster there."""

MOST_WORDS = 1 << 35
"""What one key and a counter of 32 bits give: 2^32 blocks of eight words."""

_UINT32 = np.dtype(np.uint32)


class Entropy(Protocol):
    """A source of independent uniform 64-bit words."""

    @property
    def name(self) -> str:
        """What the certificate says of it."""
        ...

    @property
    def is_private(self) -> bool:
        """Whether nobody can predict it."""
        ...

    def words(self, count: int) -> Words:
        """Return ``count`` fresh words; never the same ones twice."""
        ...


class SystemEntropy:
    """The operating system's generator: its own words, or a ChaCha20 key stream under a key of its words."""

    name = "ChaCha20 keyed by os.urandom"
    is_private = True

    def words(self, count: int) -> Words:
        """Return words that no other request gets: the docstring of this module has the proof."""
        if count < DIRECT_WORDS:
            return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        parts = bytearray(4 * samplers.PARTS)  # the counter and the nonce are 0
        parts[:32] = os.urandom(32)
        return _key_stream(np.frombuffer(parts, _UINT32), count, forget=True)


class SeededEntropy:
    """A ChaCha20 key stream (RFC 8439, 32-bit counter) from a public seed: for tests, never private."""

    name = "seeded ChaCha20 (for tests)"
    is_private = False

    def __init__(self, seed: int) -> None:
        self._key = int(seed).to_bytes(32, "little")
        self._block = 0

    def words(self, count: int) -> Words:
        """Return the next words of the key stream."""
        words = chacha20_words(self._key, count, first=self._block)
        self._block += -(-count // 8)
        return words


def chacha20_words(key: bytes, count: int, *, first: int = 0, nonce: tuple[int, int, int] = (0, 0, 0)) -> Words:
    """Return ``count`` words of the key stream of ChaCha20 (RFC 8439), from its block ``first`` on.

    For streams that are to be repeated: private ones come from ``SystemEntropy``.
    """
    parts = np.empty(samplers.PARTS, dtype=np.uint32)
    parts[:8] = np.frombuffer(key, dtype="<u4")
    parts[8:] = first % 2**32, *nonce
    return _key_stream(parts, count, forget=False)


def _key_stream(parts: NDArray[np.uint32], count: int, *, forget: bool) -> Words:
    if count > MOST_WORDS:
        raise ValueError("one key of ChaCha20 gives at most 2^35 words: ask for fewer")
    stream = np.empty(-(-count // samplers.WORDS) * samplers.WORDS, dtype=np.uint64)
    samplers.key_stream(parts, forget, stream)
    words = stream[:count]
    words.setflags(write=False)  # as os.urandom's are, so that the same compiled samplers take both
    return words


_SYSTEM = SystemEntropy()
_current: ContextVar[Entropy] = ContextVar("discreet_entropy")


def current_entropy() -> Entropy:
    """The source in force: the operating system's unless a test replaced it."""
    return _current.get(_SYSTEM)


@contextmanager
def use_entropy(source: Entropy) -> Iterator[Entropy]:
    """Draw from ``source`` inside the block. A source that is not private stamps the certificate."""
    token = _current.set(source)
    try:
        yield source
    finally:
        _current.reset(token)


def uniform_below(bound: int, entropy: Entropy) -> int:
    """Return one of 0, ..., ``bound`` - 1, exactly uniform."""
    if not 1 <= bound <= 2**64:
        raise ValueError("the bound of a uniform integer must lie between 1 and 2^64")
    limit = 2**64 - 2**64 % bound  # words at or past the last whole multiple of the bound would favor small answers
    while True:
        word = int(entropy.words(1)[0])
        if word < limit:
            return word % bound


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
