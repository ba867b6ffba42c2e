"""Where random bits come from: the operating system, always, except under ``discreet.testing``.

There is no seed and no state to fork, pickle or copy: each request is a fresh read of ``os.urandom``.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.typing import Words


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
    """The operating system's cryptographic generator."""

    name = "os.urandom"
    is_private = True

    def words(self, count: int) -> Words:
        """Return fresh words of the system's generator."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededEntropy:
    """A ChaCha20 key stream (RFC 8439, 32-bit counter) from a public seed: for tests, never private."""

    name = "seeded ChaCha20 (for tests)"
    is_private = False

    def __init__(self, seed: int) -> None:
        self._key = np.frombuffer(int(seed).to_bytes(32, "little"), dtype="<u4").astype(np.uint32)
        self._block = 0

    def words(self, count: int) -> Words:
        """Return the next words of the key stream."""
        blocks = -(-count // 8)
        stream = chacha20_blocks(self._key, self._block, blocks)
        self._block += blocks
        words = stream.view(np.uint64)[:count]
        words.flags.writeable = False  # as the system's: compiled code must be the same
        return words


def chacha20_blocks(
    key: NDArray[np.uint32], first: int, count: int, nonce: tuple[int, int, int] = (0, 0, 0)
) -> NDArray[np.uint32]:
    """The key stream's blocks ``first`` to ``first + count - 1`` as one array of 32-bit words."""
    initial = np.empty((16, count), dtype=np.uint32)
    initial[:4] = np.frombuffer(b"expand 32-byte k", dtype="<u4")[:, None]
    initial[4:12] = key[:, None]
    initial[12] = np.arange(first, first + count, dtype=np.uint64).astype(np.uint32)
    initial[13:] = np.array(nonce, dtype=np.uint32)[:, None]
    state = initial.copy()
    for _ in range(10):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
            _quarter_round(state, a, b, c, d)
        for a, b, c, d in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            _quarter_round(state, a, b, c, d)
    return np.ascontiguousarray((state + initial).T).reshape(-1)


def _quarter_round(state: NDArray[np.uint32], a: int, b: int, c: int, d: int) -> None:
    for first, second, third, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[first] += state[second]
        state[third] ^= state[first]
        state[third] = (state[third] << np.uint32(turn)) | (state[third] >> np.uint32(32 - turn))


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
