"""Sums over chosen records, row by row, dense or compressed: sampled batches and several outputs.

``facts`` holds each row's target, weight and coefficient limit. For one output the arithmetic is that of
``tiles.py``, so the integers are the same bit for bit.
"""

import numpy as np
from numba import int32, int64, njit

from discreet.curator.kernels.clip import bound_vector, bounded
from discreet.losses.base import derivative, derivatives


@njit(inline="always")
def _coefficients(loss, margins, facts, scale, use_l1, slopes, coefficients):
    target, weight, limit = facts[0], facts[1], facts[2]
    derivatives(loss, margins, target, slopes)
    for k in range(slopes.size):
        slopes[k] *= weight * scale
    if slopes.size == 1:
        coefficients[0] = int64(bounded(slopes[0], limit))
    else:
        bound_vector(slopes, int64(limit), use_l1, coefficients)


@njit(cache=True, nogil=True)
def gradient_over_rows(rows, facts, chosen, w, margin_scale, scale, use_l1, loss, out):
    """Add to ``out`` (K, p) the sum over the chosen records of the clipped gradient, in lattice steps."""
    outputs, p = w.shape
    margins, slopes = np.empty(outputs), np.empty(outputs)
    coefficients = np.empty(outputs, dtype=np.int64)
    for index in range(chosen.size):
        i = chosen[index]
        x = rows[i]
        for k in range(outputs):
            total, wk = int64(0), w[k]
            for j in range(p):
                total += int64(x[j]) * int64(wk[j])
            margins[k] = float(total) * margin_scale
        _coefficients(loss, margins, facts[i], scale, use_l1, slopes, coefficients)
        for k in range(outputs):
            c, sums = coefficients[k], out[k]
            if c != 0:
                for j in range(p):
                    sums[j] += c * int64(x[j])


@njit(cache=True, nogil=True)
def gradient_over_sparse_batch(indptr, indices, data, facts, chosen, w, margin_scale, scale, loss, out):
    """Compressed rows, one output: only stored entries are touched. Unsigned indices spare a test for negative ones."""
    for index in range(chosen.size):
        i = chosen[index]
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        total = int64(0)
        for e in range(x.size):
            total += int64(x[e]) * int64(w[np.uint32(columns[e])])
        slope = derivative(loss, float(total) * margin_scale, facts[i, 0])
        c = int64(int32(bounded(slope * (facts[i, 1] * scale), facts[i, 2])))
        if c != 0:
            for e in range(x.size):
                out[np.uint32(columns[e])] += c * int64(x[e])


@njit(cache=True, nogil=True)
def gradient_over_sparse_rows(indptr, indices, data, facts, chosen, w, margin_scale, scale, use_l1, loss, out):
    """The same over compressed rows: only stored entries are touched."""
    outputs = w.shape[0]
    margins, slopes = np.empty(outputs), np.empty(outputs)
    coefficients = np.empty(outputs, dtype=np.int64)
    for index in range(chosen.size):
        i = chosen[index]
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        for k in range(outputs):
            total, wk = int64(0), w[k]
            for e in range(x.size):
                total += int64(x[e]) * int64(wk[columns[e]])
            margins[k] = float(total) * margin_scale
        _coefficients(loss, margins, facts[i], scale, use_l1, slopes, coefficients)
        for k in range(outputs):
            c, sums = coefficients[k], out[k]
            if c != 0:
                for e in range(x.size):
                    sums[columns[e]] += c * int64(x[e])
