"""Hashes of rows merge: a fingerprint is the same from one place and from several."""

import numpy as np
import pytest

from discreet.curator.private_data import fingerprint_from, fingerprint_of
from discreet.curator.records import row_sketches
from discreet.curator.records.row_sketches import EMPTY, RowHashes, row_secrets
from discreet.ledger.ledger import SKETCH

KEY = bytes(range(32))
X = np.random.default_rng(0).normal(size=(1000, 3))


def sketch(rows):
    hashes = RowHashes(row_secrets(KEY), len(rows))
    hashes.see(0, len(rows), rows)
    return hashes.sketch()


@pytest.mark.whole
@pytest.mark.parametrize("edges", [(), (500,), (0, 3, 3, 999), tuple(range(0, 1000, 7))])
def test_parts_merge_to_the_fingerprint_of_all_rows(edges):
    merged = EMPTY
    for part in np.split(X, edges):
        merged += sketch(part)
    assert fingerprint_from(merged, KEY) == fingerprint_of(X, KEY)


def test_rows_that_two_parts_share_count_twice_and_are_kept_once():
    merged = sketch(X[:4]) + sketch(X[:4])
    assert (merged.rows, len(merged.smallest)) == (8, 4)
    assert fingerprint_from(merged, KEY) == fingerprint_of(np.vstack([X[:4], X[:4]]), KEY)


def test_both_sides_keep_as_many_hashes():
    assert row_sketches.SKETCH == SKETCH
