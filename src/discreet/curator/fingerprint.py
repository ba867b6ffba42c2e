"""The fingerprint of a table's features: from the records to what a ledger compares (``ledger/fingerprint.py``)."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator import door
from discreet.curator.kernels import hashes
from discreet.ledger.fingerprint import SKETCH, Fingerprint

_WORD = 2**64


def fingerprint_of(X: Any, key: bytes) -> Fingerprint:
    """The fingerprint of a table under a key. Whoever has the key can test guesses of records against it.

    Privacy
    -------
    None: it depends on every record. It goes into the owner's ledger, and nothing that leaves depends on it.
    """
    table = door.two_dimensional(X)
    secrets = _secrets(key)
    rows = _row_hashes(table, secrets)
    again = np.empty_like(rows)
    hashes.dense_hashes(rows.view(np.uint32).reshape(-1, 2), secrets, again)
    sums = [int(part.sum(dtype=np.uint64)) for part in (rows, again)]
    digest = hashlib.blake2b(key=key, digest_size=32)
    for number in (len(rows), *sums):
        digest.update((number % _WORD).to_bytes(8, "little"))
    ordered = np.sort(rows)  # faster than np.unique by far
    distinct = ordered[np.diff(ordered, prepend=ordered[:1] - np.uint64(1)) != 0]
    return Fingerprint(digest.hexdigest(), tuple(distinct[:SKETCH].tolist()), len(rows))


def _secrets(key: bytes) -> NDArray[np.uint64]:
    """Three words for the hashes of rows."""
    return np.frombuffer(hashlib.blake2b(b"rows", key=key, digest_size=24).digest(), dtype=np.uint64).copy()


def _bits(values: NDArray[np.float64]) -> NDArray[np.uint32]:
    """In single precision, so that a copy in it is recognized."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)


def _row_hashes(table: Any, secrets: NDArray[np.uint64]) -> NDArray[np.uint64]:
    n, width = table.shape
    rows = np.empty(n, dtype=np.uint64)
    if door.is_sparse(table):
        csr = door.canonical(table)
        hashes.sparse_hashes(csr.indptr.astype(np.int64), csr.indices.astype(np.int64), _bits(csr.data), secrets, rows)
        return rows
    for first, last, block in door.blocks(table, n, width):
        hashes.dense_hashes(_bits(block), secrets, rows[first:last])
    return rows
