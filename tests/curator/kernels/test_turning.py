"""Turned blocks hold the same values, and streams encode the same integers from either order."""

import numpy as np

from discreet.curator.records import stream
from discreet.curator.records.stream import by_rows
from tests.covering import covering


@covering(("values", [1, 7, 64, 10**6]), ("order", ["C", "F"]))
def test_pieces_are_all_rows_in_their_order(order, values, monkeypatch):
    monkeypatch.setattr(stream, "TURNED_VALUES", values)
    features = np.array(np.random.default_rng(0).normal(size=(23, 4)), order=order)
    features[3, 2] = np.nan
    at, found = 0, []
    for piece, turned in by_rows(features):
        assert piece.start == at
        assert turned.flags.c_contiguous
        assert turned.shape == (piece.stop - piece.start, 4)
        found.append(turned.copy())
        at = piece.stop
    np.testing.assert_array_equal(np.concatenate(found), features)
