"""One loop or two: the move of the margins and the sum of the next column give the same bits."""

import numpy as np
from numba import njit

from discreet.curator.kernels import coordinates
from discreet.losses import Huber, Logistic, Squared
from tests.covering import covering

one_loop = njit(coordinates._in_one_loop)


@njit
def chosen_loop(loss, x, moved, move, margin, target, slopes, margin_scale, scale, bound):
    return coordinates._moved_column_sum(loss, x, moved, move, margin, target, slopes, margin_scale, scale, bound)


@covering(("bound", [2.0**20, 2.0**45]), ("rows", [64, 100, 1024]), ("loss", [Squared(), Logistic(), Huber(0.5)]))
def test_same_bits(loss, rows, bound):
    rng = np.random.default_rng(rows)
    x, moved = rng.integers(-(2**14), 2**14, (2, rows), dtype=np.int16)
    margin, target = rng.integers(-(2**36), 2**36, rows).astype(np.float64), rng.uniform(-1, 1, rows)
    found = []
    for sums in (coordinates._moved_column_sum, one_loop, chosen_loop):
        margins = margin.copy()
        given = (loss, x, moved, 12345.0, margins, target, np.empty(rows), 2.0**-38, 2.0**18 / 3, bound)
        with np.errstate(all="ignore"):
            found.append((int(sums(*given)), margins.tolist()))
    assert found[0] == found[1] == found[2]
    assert found[0][1] != margin.tolist()
