"""Keyed hashes of rows, summed over some of them: what a fingerprint is merged from, wherever the rows are.

Workers of a cluster import this file. They are given three words that were made from the ledger's key, not the key.

Each value, with its column, is mixed with a secret word (the finalizer of MurmurHash3 around it), the row's are added,
and the sum goes through SipHash-2-4 (Aumasson and Bernstein 2012) under another 128 secret bits: what leaves is a
pseudo-random function of the row. Zeros do not count, so that dense and compressed rows agree.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numba import njit, uint32, uint64
from numpy.typing import NDArray

from discreet.curator.kernels.kernel import kernel
from discreet.curator.records.admission import Table
from discreet.typing import Floats, Words


@njit(inline="always")
def _mixed(bits, secret):  # type: ignore[no-untyped-def]
    x = bits ^ secret
    x ^= x >> uint64(33)
    x *= uint64(0xFF51AFD7ED558CCD)
    x ^= x >> uint64(33)
    x *= uint64(0xC4CEB9FE1A85EC53)
    x ^= x >> uint64(33)
    return x


@njit(inline="always")
def _rotated(x, by):  # type: ignore[no-untyped-def]
    return (x << uint64(by)) | (x >> uint64(64 - by))


@njit(inline="always")
def _round(a, b, c, d):  # type: ignore[no-untyped-def]
    a += b
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c += d
    d = _rotated(d, 16) ^ c
    a += d
    d = _rotated(d, 21) ^ a
    c += b
    b = _rotated(b, 17) ^ c
    c = _rotated(c, 32)
    return a, b, c, d


@njit(cache=True)
def siphash(word, k0, k1):  # type: ignore[no-untyped-def]
    """SipHash-2-4 of the eight bytes of one word."""
    a, b = k0 ^ uint64(0x736F6D6570736575), k1 ^ uint64(0x646F72616E646F6D)
    c, d = k0 ^ uint64(0x6C7967656E657261), k1 ^ uint64(0x7465646279746573)
    for message in (word, uint64(8) << uint64(56)):  # the word, then its length
        d ^= message
        for _ in range(2):
            a, b, c, d = _round(a, b, c, d)
        a ^= message
    c ^= uint64(0xFF)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@njit(inline="always")
def _value_hash(bits, column, secret):  # type: ignore[no-untyped-def]
    """Of a single's bits and its place: nothing for both zeros, and one hash for every NaN."""
    magnitude = bits & uint32(0x7FFFFFFF)
    if magnitude == uint32(0):
        return uint64(0)
    canonical = uint32(0x7FC00000) if magnitude > uint32(0x7F800000) else bits
    return _mixed((uint64(column) << uint64(32)) | uint64(canonical), secret)


@kernel()
def dense_hashes(block, secrets, out):  # type: ignore[no-untyped-def]
    """The hash of each row of a block of singles' bits."""
    for i in range(block.shape[0]):
        total = uint64(0)
        for j in range(block.shape[1]):
            total += _value_hash(block[i, j], j, secrets[0])
        out[i] = siphash(total, secrets[1], secrets[2])


@kernel()
def sparse_hashes(indptr, indices, data, secrets, out):  # type: ignore[no-untyped-def]
    """The same for compressed rows: absent entries are zeros."""
    for i in range(indptr.size - 1):
        total = uint64(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += _value_hash(data[k], indices[k], secrets[0])
        out[i] = siphash(total, secrets[1], secrets[2])


SKETCH = 256
_WORD = 2**64


@dataclass(frozen=True, repr=False)
class RowSketch:
    """Of some rows: their number, two sums of their hashes modulo 2^64, and the smallest distinct hashes."""

    rows: int
    sums: tuple[int, int]
    smallest: tuple[int, ...]

    def __add__(self, other: "RowSketch") -> "RowSketch":
        first, second = ((a + b) % _WORD for a, b in zip(self.sums, other.sums, strict=True))
        smallest = sorted({*self.smallest, *other.smallest})[:SKETCH]
        return RowSketch(self.rows + other.rows, (first, second), tuple(smallest))


EMPTY = RowSketch(0, (0, 0), ())


class RowHashes:
    """Hashes of rows that are shown in blocks, no matter who else reads them."""

    def __init__(self, secrets: Words, n: int) -> None:
        self._secrets, self._rows = secrets, np.empty(n, dtype=np.uint64)

    def see(self, first: int, last: int, block: Floats) -> None:
        """Hash rows ``first`` to ``last`` of the table."""
        dense_hashes(_bits(block), self._secrets, self._rows[first:last])

    def see_sparse(self, csr: Table) -> None:
        """Hash all rows of a sparse table."""
        indptr, indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int64)
        sparse_hashes(indptr, indices, _bits(csr.data), self._secrets, self._rows)

    def sketch(self) -> RowSketch:
        """Return what is kept of the hashes."""
        rows, again = self._rows, np.empty_like(self._rows)
        dense_hashes(rows.view(np.uint32).reshape(-1, 2), self._secrets, again)
        ordered = np.sort(rows)  # faster than np.unique by far
        distinct = ordered[np.diff(ordered, prepend=ordered[:1] - np.uint64(1)) != 0]
        first, second = (int(part.sum(dtype=np.uint64)) for part in (rows, again))
        return RowSketch(len(rows), (first, second), tuple(distinct[:SKETCH].tolist()))


def row_secrets(key: bytes) -> Words:
    """Return three words for the hashes of rows, made from a ledger's key."""
    return np.frombuffer(hashlib.blake2b(b"rows", key=key, digest_size=24).digest(), dtype=np.uint64).copy()


def _bits(values: Floats) -> NDArray[np.uint32]:
    """In single precision, so that a copy in it is recognized."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
