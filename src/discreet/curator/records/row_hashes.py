"""The fingerprint of a table's features: from the records to what a ledger compares (``ledger/fingerprint.py``)."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.kernels import hashes
from discreet.curator.records import admission, containers
from discreet.ledger.fingerprint import SKETCH, Fingerprint
from discreet.typing import Floats, Words

_WORD = 2**64


class Sketcher:
    """A fingerprint in the making: rows are shown to it in blocks, whoever else reads them."""

    def __init__(self, key: bytes, n: int) -> None:
        self._key, self._secrets = key, _secrets(key)
        self._rows = np.empty(n, dtype=np.uint64)

    def see(self, first: int, last: int, block: Floats) -> None:
        """Rows ``first`` to ``last`` of the table."""
        hashes.dense_hashes(_bits(block), self._secrets, self._rows[first:last])

    def see_sparse(self, csr: Any) -> None:
        """All rows of a sparse table."""
        indptr, indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int64)
        hashes.sparse_hashes(indptr, indices, _bits(csr.data), self._secrets, self._rows)

    def result(self) -> Fingerprint:
        """What a ledger compares."""
        rows, again = self._rows, np.empty_like(self._rows)
        hashes.dense_hashes(rows.view(np.uint32).reshape(-1, 2), self._secrets, again)
        digest = hashlib.blake2b(key=self._key, digest_size=32)
        for number in (len(rows), *(int(part.sum(dtype=np.uint64)) for part in (rows, again))):
            digest.update((number % _WORD).to_bytes(8, "little"))
        ordered = np.sort(rows)  # faster than np.unique by far
        distinct = ordered[np.diff(ordered, prepend=ordered[:1] - np.uint64(1)) != 0]
        return Fingerprint(digest.hexdigest(), tuple(distinct[:SKETCH].tolist()), len(rows))


def fingerprint_of(X: Any, key: bytes) -> Fingerprint:
    """The fingerprint of a table under a key. Whoever has the key can test guesses of records against it.

    Privacy
    -------
    None: it depends on every record. It goes into the owner's ledger, and nothing that leaves depends on it.
    """
    table = containers.two_dimensional(X)
    n, width = table.shape
    sketcher = Sketcher(key, n)
    if containers.is_sparse(table):
        sketcher.see_sparse(admission.canonical(table))
    else:
        for first, last, block in admission.blocks(table, n, width):
            sketcher.see(first, last, block)
    return sketcher.result()


def _secrets(key: bytes) -> Words:
    """Three words for the hashes of rows."""
    return np.frombuffer(hashlib.blake2b(b"rows", key=key, digest_size=24).digest(), dtype=np.uint64).copy()


def _bits(values: Floats) -> NDArray[np.uint32]:
    """In single precision, so that a copy in it is recognized."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
