"""What intervals for effects need of each record: curvatures, couplings, scores and squared slopes, as integers.

Every output depends on its own record (its own person) and on the point alone. Values are computed in double
precision, row by row in a fixed order; what counts are the integers that come out, and these are bounded in integers.
``facts`` holds each row's target, weight and limit side by side. Losses with one output come first, those with several
after them.
"""

import numpy as np
from numba import int64, njit

from discreet.curator.kernels.clip import bound_vector, bounded
from discreet.curator.kernels.kernel import kernel
from discreet.losses.base import couplings, curvature, derivative, derivatives


@njit(inline="always")
def _margin(x, w, margin_scale):
    total = int64(0)
    for j in range(w.size):
        total += int64(x[j]) * int64(w[j])
    return float(total) * margin_scale


@kernel()
def curvature_coefficients(rows, facts, w, margin_scale, scale, loss, out):
    """Fill ``out`` with each row's weighted curvature: the nearest integer from 0 to its limit; 0 for NaN."""
    for i in range(rows.shape[0]):
        bend = curvature(loss, _margin(rows[i], w, margin_scale), facts[i, 0])
        out[i] = max(int64(bounded(bend * (facts[i, 1] * scale), facts[i, 2])), int64(0))


@kernel()
def squared_slope_sum(rows, facts, w, margin_scale, scale, loss):
    """Return the sum of each row's weighted squared slope: the nearest integer from 0 to its limit; 0 for NaN."""
    total = int64(0)
    for i in range(rows.shape[0]):
        slope = derivative(loss, _margin(rows[i], w, margin_scale), facts[i, 0])
        total += max(int64(bounded(slope * slope * (facts[i, 1] * scale), facts[i, 2])), int64(0))
    return total


@kernel()
def slopes_and_curvatures(rows, facts, w, margin_scale, loss, out):
    """Fill ``out`` (rows, 2) with the size of each row's slope and its curvature."""
    for i in range(rows.shape[0]):
        margin = _margin(rows[i], w, margin_scale)
        out[i, 0] = abs(derivative(loss, margin, facts[i, 0]))
        out[i, 1] = curvature(loss, margin, facts[i, 0])


@kernel()
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


@njit(inline="always")
def _margins(x, w, margin_scale, margins):
    for k in range(w.shape[0]):
        total = int64(0)
        for j in range(w.shape[1]):
            total += int64(x[j]) * int64(w[k, j])
        margins[k] = float(total) * margin_scale


@kernel()
def coupling_coefficients(rows, facts, w, margin_scale, scale, loss, out):
    """Fill ``out`` (pairs, rows) with each row's weighted couplings: integers >= 0, of a norm within its limit."""
    outputs, pairs = w.shape[0], out.shape[0]
    margins, chances = np.empty(outputs), np.empty(outputs)
    found, whole = np.empty(pairs), np.empty(pairs, dtype=np.int64)
    for i in range(rows.shape[0]):
        _margins(rows[i], w, margin_scale, margins)
        couplings(loss, margins, facts[i, 0], chances, found)
        for e in range(pairs):
            found[e] *= facts[i, 1] * scale
        bound_vector(found, int64(facts[i, 2]), False, whole)
        for e in range(pairs):
            out[e, i] = max(whole[e], int64(0))


@kernel()
def squared_slopes_sum(rows, facts, w, margin_scale, scale, loss):
    """Return the sum of each row's weighted squared slope, of all outputs: the nearest integer from 0 to its limit."""
    margins, slopes = np.empty(w.shape[0]), np.empty(w.shape[0])
    total = int64(0)
    for i in range(rows.shape[0]):
        _margins(rows[i], w, margin_scale, margins)
        derivatives(loss, margins, facts[i, 0], slopes)
        square = 0.0
        for k in range(slopes.size):
            square += slopes[k] * slopes[k]
        total += max(int64(bounded(square * (facts[i, 1] * scale), facts[i, 2])), int64(0))
    return total


@kernel()
def class_slopes_and_curvatures(rows, facts, w, margin_scale, loss, out):
    """Fill ``out`` (rows, 2) with the norms of each row's slopes and of its couplings."""
    outputs = w.shape[0]
    margins, slopes = np.empty(outputs), np.empty(outputs)
    chances, found = np.empty(outputs), np.empty(outputs * (outputs - 1) // 2)
    for i in range(rows.shape[0]):
        _margins(rows[i], w, margin_scale, margins)
        derivatives(loss, margins, facts[i, 0], slopes)
        couplings(loss, margins, facts[i, 0], chances, found)
        out[i, 0] = np.sqrt((slopes * slopes).sum())
        out[i, 1] = np.sqrt((found * found).sum())


@kernel()
def class_scores(rows, facts, starts, w, margin_scale, scale, loss, limit, out):
    """Fill ``out`` (units, K p) with each unit's score, the sum of its rows' weighted slopes times row.

    Output by output, within ``limit``; ``starts`` as in ``effects.unit_scores``. The norm is that of integers.
    """
    outputs, p = w.shape
    margins, slopes = np.empty(outputs), np.empty(outputs)
    score, whole = np.empty(outputs * p), np.empty(outputs * p, dtype=np.int64)
    for u in range(out.shape[0]):
        score[:] = 0.0
        for i in range(starts[u], starts[u + 1]):
            _margins(rows[i], w, margin_scale, margins)
            derivatives(loss, margins, facts[i, 0], slopes)
            for k in range(outputs):
                slope = slopes[k] * (facts[i, 1] * scale)
                slope = slope if slope == slope else 0.0
                for j in range(p):
                    score[k * p + j] += slope * float(rows[i, j])
        bound_vector(score, limit, False, whole)
        for j in range(outputs * p):
            out[u, j] = whole[j]
