"""Sums of clipped losses at several points: what a private choice among candidates is scored by.

A record adds an integer between 0 and its limit to each candidate's sum: its loss above the least for its own target,
which is the same for all candidates. A null record's limit is 0.
"""

import numpy as np
from numba import int64, njit

from discreet.curator.kernels.gradients import tile_margins
from discreet.losses.base import least, value, values


@njit(inline="always")
def _clipped(loss_value, limit):
    """The nearest integer within [0, limit]; NaN becomes the limit, so that nothing passes the clip."""
    edge = float(limit)
    loss_value = loss_value if loss_value < edge else edge
    return int64(np.rint(loss_value if loss_value > 0.0 else 0.0))


@njit(cache=True, nogil=True)
def values_over_tiles(tiles, targets, scales, limits, w, margin_scales, loss, out):
    """Add to ``out`` the sum over all records of the clipped loss at each row of ``w``, in lattice steps."""
    rows = tiles.shape[2]
    margins = np.empty(rows, dtype=np.int64)
    for t in range(tiles.shape[0]):
        target, scale, limit = targets[t], scales[t], limits[t]
        for c in range(w.shape[0]):
            tile_margins(tiles[t], w[c], margins)
            total = int64(0)
            for i in range(rows):
                above = value(loss, float(margins[i]) * margin_scales[c], target[i]) - least(loss, target[i])
                total += _clipped(above * scale[i], limit[i])
            out[c] += total


@njit(cache=True, nogil=True)
def values_over_rows(rows, targets, scales, limits, first, last, w, margin_scales, loss, out):
    """The same, row by row, for any number of outputs: ``w`` is (candidates, outputs, p)."""
    margins = np.empty(w.shape[1])
    for i in range(first, last):
        x = rows[i]
        for c in range(w.shape[0]):
            for k in range(w.shape[1]):
                total, wk = int64(0), w[c, k]
                for j in range(x.size):
                    total += int64(x[j]) * int64(wk[j])
                margins[k] = float(total) * margin_scales[c]
            above = values(loss, margins, targets[i]) - least(loss, targets[i])
            out[c] += _clipped(above * scales[i], limits[i])


@njit(cache=True, nogil=True)
def values_over_sparse_rows(indptr, indices, data, targets, scales, limits, first, last, w, margin_scales, loss, out):
    """The same over compressed rows."""
    margins = np.empty(w.shape[1])
    for i in range(first, last):
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        for c in range(w.shape[0]):
            for k in range(w.shape[1]):
                total, wk = int64(0), w[c, k]
                for e in range(x.size):
                    total += int64(x[e]) * int64(wk[columns[e]])
                margins[k] = float(total) * margin_scales[c]
            above = values(loss, margins, targets[i]) - least(loss, targets[i])
            out[c] += _clipped(above * scales[i], limits[i])
