"""Sums of *changes* of gradients between two points, row by row: what variance reduction needs.

A record's change is (f'(x.w) - f'(x.anchor)) x: one coefficient a margin, clipped like a gradient's. ``facts`` holds
each row's target, weight and coefficient limit.
"""

import numpy as np
from numba import int64, njit

from discreet.curator.kernels.clip import bound_vector, bounded
from discreet.losses.base import derivatives


@njit(inline="always")
def _coefficients(loss, margins, anchored, facts, scale, use_l1, slopes, others, coefficients):
    target, weight, limit = facts[0], facts[1], facts[2]
    derivatives(loss, margins, target, slopes)
    derivatives(loss, anchored, target, others)
    for k in range(slopes.size):
        slopes[k] = (slopes[k] - others[k]) * (weight * scale)
    if slopes.size == 1:
        coefficients[0] = int64(bounded(slopes[0], limit))
    else:
        bound_vector(slopes, int64(limit), use_l1, coefficients)


@njit(cache=True, nogil=True)
def change_over_rows(rows, facts, chosen, w, anchor, margin_scale, anchor_scale, scale, use_l1, loss, out):
    """Add to ``out`` (K, p) the sum over the chosen records of the clipped change, in lattice steps."""
    outputs, p = w.shape
    margins, anchored, slopes, others = np.empty(outputs), np.empty(outputs), np.empty(outputs), np.empty(outputs)
    coefficients = np.empty(outputs, dtype=np.int64)
    for index in range(chosen.size):
        i = chosen[index]
        x = rows[i]
        for k in range(outputs):
            total, before, wk, ak = int64(0), int64(0), w[k], anchor[k]
            for j in range(p):
                total += int64(x[j]) * int64(wk[j])
                before += int64(x[j]) * int64(ak[j])
            margins[k], anchored[k] = float(total) * margin_scale, float(before) * anchor_scale
        _coefficients(loss, margins, anchored, facts[i], scale, use_l1, slopes, others, coefficients)
        for k in range(outputs):
            c, sums = coefficients[k], out[k]
            if c != 0:
                for j in range(p):
                    sums[j] += c * int64(x[j])


@njit(cache=True, nogil=True)
def change_over_sparse_rows(
    indptr, indices, data, facts, chosen, w, anchor, margin_scale, anchor_scale, scale, use_l1, loss, out
):
    """The same over compressed rows: only stored entries are touched."""
    outputs = w.shape[0]
    margins, anchored, slopes, others = np.empty(outputs), np.empty(outputs), np.empty(outputs), np.empty(outputs)
    coefficients = np.empty(outputs, dtype=np.int64)
    for index in range(chosen.size):
        i = chosen[index]
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        for k in range(outputs):
            total, before, wk, ak = int64(0), int64(0), w[k], anchor[k]
            for e in range(x.size):
                total += int64(x[e]) * int64(wk[columns[e]])
                before += int64(x[e]) * int64(ak[columns[e]])
            margins[k], anchored[k] = float(total) * margin_scale, float(before) * anchor_scale
        _coefficients(loss, margins, anchored, facts[i], scale, use_l1, slopes, others, coefficients)
        for k in range(outputs):
            c, sums = coefficients[k], out[k]
            if c != 0:
                for e in range(x.size):
                    sums[columns[e]] += c * int64(x[e])
