"""Keyed hashes of rows, summed over some of them: what a fingerprint is merged from, wherever the rows are.

Workers of a cluster import this file. They are given three words that were made from the ledger's key, not the key.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.kernels import hashes
from discreet.typing import Floats, Words

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
        hashes.dense_hashes(_bits(block), self._secrets, self._rows[first:last])

    def see_sparse(self, csr: Any) -> None:
        """Hash all rows of a sparse table."""
        indptr, indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int64)
        hashes.sparse_hashes(indptr, indices, _bits(csr.data), self._secrets, self._rows)

    def sketch(self) -> RowSketch:
        """Return what is kept of the hashes."""
        rows, again = self._rows, np.empty_like(self._rows)
        hashes.dense_hashes(rows.view(np.uint32).reshape(-1, 2), self._secrets, again)
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
