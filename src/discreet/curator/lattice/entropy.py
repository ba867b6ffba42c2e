"""Where random bits come from: the operating system, always, except under ``discreet.testing``.

A request for few words gets words of ``os.urandom``. A larger one gets the key stream of ChaCha20 (RFC 8439, compiled
in ``kernels/chacha20.py``) under a key of 256 bits that ``os.urandom`` gave for this request alone, from block 0 on.
Which of the two it is depends on the number of words alone: ``DIRECT_WORDS`` is about where both take as long.

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

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.curator.kernels import chacha20
from discreet.typing import Words

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
        parts = bytearray(4 * chacha20.PARTS)  # the counter and the nonce are 0
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
    parts = np.empty(chacha20.PARTS, dtype=np.uint32)
    parts[:8] = np.frombuffer(key, dtype="<u4")
    parts[8:] = first % 2**32, *nonce
    return _key_stream(parts, count, forget=False)


def _key_stream(parts: NDArray[np.uint32], count: int, *, forget: bool) -> Words:
    if count > MOST_WORDS:
        raise ValueError("one key of ChaCha20 gives at most 2^35 words: ask for fewer")
    stream = np.empty(-(-count // chacha20.WORDS) * chacha20.WORDS, dtype=np.uint64)
    chacha20.key_stream(parts, forget, stream)
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
