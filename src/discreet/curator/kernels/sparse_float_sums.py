"""The minimizer's passes over compressed rows: what ``float_sums.py`` does over tiles.

Every addition keeps its rounding error, since a frequent column takes as many additions as there are records.
"""

import numpy as np
from numba import njit

from discreet.losses.base import derivatives


@njit(inline="always")
def _product(columns, x, w):
    total = 0.0
    for e in range(x.size):
        total += float(x[e]) * w[np.uint32(columns[e])]
    return total


@njit(inline="always")
def _add_entries(columns, x, c, sums):
    """sums[:, 0] + sums[:, 1] += c x, rounding errors kept in the second column (Knuth's two-sum)."""
    for e in range(x.size):
        j = np.uint32(columns[e])
        a, b = sums[j, 0], c * float(x[e])
        s = a + b
        t = s - a
        sums[j, 1] += (a - (s - t)) + (b - t)
        sums[j, 0] = s


@njit(cache=True, nogil=True)
def slopes_over_sparse(
    indptr, indices, data, targets, shrinks, pulls, limits, norms, first, last, w, loss, margins, out
):  # fmt: skip
    """Add to ``out`` (K p + 1) the records first to last: coefficients times x, then |coefficients| times norm."""
    outputs, p = w.shape
    sums, slopes, size = np.zeros((outputs, p, 2)), np.empty(outputs), 0.0
    for i in range(first, last):
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        for k in range(outputs):
            margins[i, k] = _product(columns, x, w[k]) * shrinks[i]
        derivatives(loss, margins[i], targets[i], slopes)
        squares = 0.0
        for k in range(outputs):
            slope = slopes[k]
            if outputs == 1:  # comparisons that let NaN through, so that it is seen
                slope = limits[i] if slope > limits[i] else slope
                slope = -limits[i] if slope < -limits[i] else slope
            c = slope * pulls[i]
            squares += c * c
            _add_entries(columns, x, c, sums[k])
        size += np.sqrt(squares) * norms[i]
    for k in range(outputs):
        for j in range(p):
            out[k * p + j] += sums[k, j, 0] + sums[k, j, 1]
    out[outputs * p] += size


@njit(cache=True, nogil=True)
def margins_over_sparse(indptr, indices, data, shrinks, w, margins):
    """All records' margins."""
    for i in range(margins.shape[0]):
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        for k in range(w.shape[0]):
            margins[i, k] = _product(columns, x, w[k]) * shrinks[i]


@njit(cache=True, nogil=True)
def product_over_sparse(indptr, indices, data, weights, states, first, last, v, out):
    """Add to ``out`` (K, p) the product of the records' Hessian with ``v``; ``states`` as in ``product_over_tiles``."""
    outputs = v.shape[0]
    c = np.empty(outputs)
    for i in range(first, last):
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        mean = 0.0
        for k in range(outputs):
            c[k] = _product(columns, x, v[k])
            mean += states[i, k] * c[k]
        for k in range(outputs):
            ck = states[i, 0] * c[0] if outputs == 1 else weights[i] * states[i, k] * (c[k] - mean)
            sums = out[k]
            for e in range(x.size):
                sums[np.uint32(columns[e])] += ck * float(x[e])


@njit(cache=True, nogil=True)
def add_pairs(indptr, indices, data, states, first, last, out):
    """Add to ``out`` (p, p) the records' x x^T times their curvature: row and column as the entries are stored."""
    for i in range(first, last):
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        h = states[i, 0]
        if h != 0.0:
            for a in range(x.size):
                ha, line = h * float(x[a]), out[np.uint32(columns[a])]
                for b in range(x.size):
                    line[np.uint32(columns[b])] += ha * float(x[b])
