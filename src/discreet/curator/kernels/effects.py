"""What intervals for effects need of each record: curvatures, scores and squared slopes at a point, as integers.

Every output depends on its own record (its own person) and on the point alone. Values are computed in double
precision, row by row in a fixed order; what counts are the integers that come out, and these are bounded in integers.
``facts`` holds each row's target, weight and limit side by side.
"""

import numpy as np
from numba import int64, njit

from discreet.curator.kernels.clip import bound_vector, bounded
from discreet.losses.base import curvature, derivative


@njit(inline="always")
def _margin(x, w, margin_scale):
    total = int64(0)
    for j in range(w.size):
        total += int64(x[j]) * int64(w[j])
    return float(total) * margin_scale


@njit(cache=True, nogil=True)
def curvature_coefficients(rows, facts, w, margin_scale, scale, loss, out):
    """Fill ``out`` with each row's weighted curvature: the nearest integer from 0 to its limit; 0 for NaN."""
    for i in range(rows.shape[0]):
        bend = curvature(loss, _margin(rows[i], w, margin_scale), facts[i, 0])
        out[i] = max(int64(bounded(bend * (facts[i, 1] * scale), facts[i, 2])), int64(0))


@njit(cache=True, nogil=True)
def squared_slope_sum(rows, facts, w, margin_scale, scale, loss):
    """Return the sum of each row's weighted squared slope: the nearest integer from 0 to its limit; 0 for NaN."""
    total = int64(0)
    for i in range(rows.shape[0]):
        slope = derivative(loss, _margin(rows[i], w, margin_scale), facts[i, 0])
        total += max(int64(bounded(slope * slope * (facts[i, 1] * scale), facts[i, 2])), int64(0))
    return total


@njit(cache=True, nogil=True)
def slopes_and_curvatures(rows, facts, w, margin_scale, loss, out):
    """Fill ``out`` (rows, 2) with the size of each row's slope and its curvature."""
    for i in range(rows.shape[0]):
        margin = _margin(rows[i], w, margin_scale)
        out[i, 0] = abs(derivative(loss, margin, facts[i, 0]))
        out[i, 1] = curvature(loss, margin, facts[i, 0])


@njit(cache=True, nogil=True)
def unit_scores(rows, facts, starts, w, margin_scale, scale, loss, limit, out):
    """Fill ``out`` (units, p) with each unit's score, the sum of its rows' weighted slope times row, within ``limit``.

    ``starts`` has the first row of each unit and of the one after the last. The norm is that of integers.
    """
    p = w.size
    score, whole = np.empty(p), np.empty(p, dtype=np.int64)
    for u in range(out.shape[0]):
        score[:] = 0.0
        for i in range(starts[u], starts[u + 1]):
            slope = derivative(loss, _margin(rows[i], w, margin_scale), facts[i, 0]) * (facts[i, 1] * scale)
            slope = slope if slope == slope else 0.0
            for j in range(p):
                score[j] += slope * float(rows[i, j])
        bound_vector(score, limit, False, whole)
        for j in range(p):
            out[u, j] = whole[j]
