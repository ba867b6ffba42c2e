"""Streams are admitted as arrays are, in whatever pieces and order their blocks stand."""

import numpy as np
import pytest

from discreet.bounds import Bounds
from discreet.curator.records import admission, stream
from discreet.curator.records.stream import Block, RecordStream, admit_stream

N, P = 61, 5


class Blocks(RecordStream):
    """Rows in blocks of some size, column by column or row by row."""

    def __init__(self, X, y, size, order):
        self.columns = [f"x{j}" for j in range(P)]
        self.shape, self._X, self._y, self._size, self._order = X.shape, X, y, size, order

    def blocks(self):
        for first in range(0, len(self._y), self._size):
            part = slice(first, first + self._size)
            yield Block(np.array(self._X[part], order=self._order), self._y[part])

    def persons(self):
        raise NotImplementedError


@pytest.mark.parametrize("values", [1, 37, 10**6])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [1, 20, N])
def test_pieces_and_orders_give_the_integers_of_arrays(values, order, size, monkeypatch):
    monkeypatch.setattr(stream, "TURNED_VALUES", values)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, P)) * 2, rng.integers(0, 2, N).astype(float)
    X[3, 1], X[40, 4], y[7] = np.nan, np.inf, np.nan
    bounds = Bounds(features=[(-1.0, 1.0)] * P, row_norm=1.5, classes=(0, 1))
    scaling, targets = admission.scaling_for(bounds, P, None, True), admission.TargetScaling(signed=True)
    expected = admission.admit(X, targets.placed(y), scaling, None)
    seen = np.full((N, P), -7.0)

    def watch(first, last, features):
        seen[first:last] = features

    found = admit_stream(Blocks(X, y, size, order), targets, scaling, watch)
    for name in ("rows", "targets", "norms"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(seen, X)
