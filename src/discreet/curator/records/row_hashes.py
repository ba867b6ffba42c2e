"""The fingerprint of a table's features: from the records to what a ledger compares (``ledger/fingerprint.py``)."""

import hashlib

import numpy as np

from discreet.curator.records import admission, containers
from discreet.curator.records.row_sketches import RowHashes, RowSketch, row_secrets
from discreet.ledger.fingerprint import Fingerprint
from discreet.typing import Floats

_WORD = 2**64


class Sketcher:
    """A fingerprint in the making: rows are shown to it in blocks, no matter who else reads them.

    Of the ``rows_per_record`` rows that a record becomes it takes the first.
    """

    def __init__(self, key: bytes, n: int, rows_per_record: int = 1) -> None:
        self._key, self._every = key, rows_per_record
        self._hashes = RowHashes(row_secrets(key), n // rows_per_record)

    def see(self, first: int, last: int, block: Floats) -> None:
        """Rows ``first`` to ``last`` of the table, all rows of some records."""
        self._hashes.see(first // self._every, last // self._every, np.ascontiguousarray(block[:: self._every]))

    def see_sparse(self, csr: containers.Table) -> None:
        """All rows of a sparse table."""
        self._hashes.see_sparse(csr)

    def result(self) -> Fingerprint:
        """What a ledger compares."""
        return fingerprint_from(self._hashes.sketch(), self._key)


def fingerprint_from(sketch: RowSketch, key: bytes) -> Fingerprint:
    """The fingerprint of rows that were hashed with words from this key, in one place or in several."""
    digest = hashlib.blake2b(key=key, digest_size=32)
    for number in (sketch.rows, *sketch.sums):
        digest.update((number % _WORD).to_bytes(8, "little"))
    return Fingerprint(digest.hexdigest(), sketch.smallest, sketch.rows)


def fingerprint_of(X: containers.Table, key: bytes) -> Fingerprint:
    """The fingerprint of a table under a key. Anyone who has the key can test guesses of records against it.

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
