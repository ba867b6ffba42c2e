"""Turned blocks hold the same values, and streams encode the same integers from either order."""

import numpy as np
import pytest

from discreet.curator.kernels.hints import turn_to_rows
from discreet.curator.records import stream
from discreet.curator.records.stream import by_rows
from tests.covering import covering


@pytest.mark.parametrize("shape", [(1, 1), (127, 9), (128, 8), (300, 50), (5, 200), (0, 3)])
def test_the_same_values(shape):
    columns = np.asfortranarray(np.random.default_rng(0).normal(size=shape))
    out = np.empty(shape)
    turn_to_rows(columns, out)
    np.testing.assert_array_equal(out, columns)


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
