"""Sums of clipped gradients over records, of their changes, and of losses; curvatures and scores for effects.

*Tiles* are blocks of records, column-major inside. A tile fits the second-level cache: it is read from memory once, for
the margins, and again from cache, for the sum. The last tile is padded with null records, which contribute nothing.
Every loop runs across rows on integers, so that it vectorizes and its result does not depend on the order.

*Batches* are sampled rows, which lie far apart in memory. They are taken in blocks that fit the nearest cache: while
the margins of one block are summed, the rows of the next are on their way.

*Rows*, dense or compressed, serve several outputs. A record's *change* is (f'(x.w) - f'(x.anchor)) x, one coefficient
per margin, clipped like a gradient's.

For one output the arithmetic is the same in all three, so the integers are the same bit for bit. ``facts`` holds each
row's target, weight and coefficient limit side by side: one fetch from memory, not three.

Sums of clipped losses at several points score a private choice among candidates: a record adds an integer between 0 and
its limit to each candidate's sum, its loss above the least for its own target, which is the same for all candidates. A
null record's limit is 0.

*Effects* need curvatures, couplings, scores and squared slopes, all as integers. Every output depends on its own record
(its own person) and on the point alone. Values are computed in double precision, row by row in a fixed order; what
counts are the integers that come out, and these are bounded in integers. Losses with one output come first, those with
several after them.

*Coordinates*, one at a time: sums of one feature's clipped gradient entries, and whole programs of steps. A record's
contribution to coordinate j is the integer q = round(clip(f'(margin) x_j scale, +-B)), one number, so the clip is
direct. NaN counts as 0, so that a null record (x_j = 0) adds 0 whatever its slope. Margins are exact integers held in
doubles (below 2^53), so that adding one coordinate's move keeps them exact: a fused program of steps and a loop of
single queries see the same bits.
"""

import numpy as np
from numba import int32, int64, njit
from numba.extending import overload

from discreet.curator.kernels.kernel import (
    bound_vector,
    bounded,
    inner,
    interleaved,
    kernel,
    prefetch_entries,
    prefetch_row,
    rounded_bits,
    within,
)
from discreet.losses.base import couplings, curvature, derivative, derivatives, least, value, values
from discreet.penalties.base import prox_coordinate

BLOCK = 32
AHEAD = 4


@kernel(_nrt=False)
def cut_tiles(rows, cells):
    """Copy rows into tiles, column by column, eight rows at a time; the last tile is filled up with null records."""
    size = cells.shape[2]
    for t in range(cells.shape[0]):
        first, tile = t * size, cells[t]
        count = size if rows.shape[0] - first > size else rows.shape[0] - first
        whole = count - count % 8
        for k in range(0, whole, 8):
            x = rows[first + k : first + k + 8]
            for j in range(rows.shape[1]):
                column = tile[j, k : k + 8]
                for i in range(8):
                    column[i] = x[i, j]
        for j in range(rows.shape[1]):
            for k in range(whole, count):
                tile[j, k] = rows[first + k, j]
            for k in range(count, size):
                tile[j, k] = 0


@inner()
def tile_margins(tile, w, margins):
    """Exact integer margins of one tile's records."""
    p, rows = tile.shape
    for i in range(rows):
        margins[i] = 0
    j = 0
    while j + 4 <= p:  # four features at a time, to save passes over the margins
        x0, x1, x2, x3 = tile[j], tile[j + 1], tile[j + 2], tile[j + 3]
        w0, w1, w2, w3 = int64(w[j]), int64(w[j + 1]), int64(w[j + 2]), int64(w[j + 3])
        for i in range(rows):
            margins[i] += int64(x0[i]) * w0 + int64(x1[i]) * w1 + int64(x2[i]) * w2 + int64(x3[i]) * w3
        j += 4
    while j < p:
        x0, w0 = tile[j], int64(w[j])
        for i in range(rows):
            margins[i] += int64(x0[i]) * w0
        j += 1


@kernel(_nrt=False)
def margins_over_tiles(tiles, w, margins):
    """Exact integer margins of all records, tile by tile."""
    for t in range(tiles.shape[0]):
        tile_margins(tiles[t], w, margins[t])


@inner()
def add_tile(tile, coefficients, out):
    """Add each feature's exact integer sum of coefficient times value."""
    p, rows = tile.shape
    j = 0
    while j + 4 <= p:
        x0, x1, x2, x3 = tile[j], tile[j + 1], tile[j + 2], tile[j + 3]
        s0, s1, s2, s3 = int64(0), int64(0), int64(0), int64(0)
        for i in range(rows):
            c = int64(coefficients[i])
            s0 += c * int64(x0[i])
            s1 += c * int64(x1[i])
            s2 += c * int64(x2[i])
            s3 += c * int64(x3[i])
        out[j] += s0
        out[j + 1] += s1
        out[j + 2] += s2
        out[j + 3] += s3
        j += 4
    while j < p:
        x0, s0 = tile[j], int64(0)
        for i in range(rows):
            s0 += int64(coefficients[i]) * int64(x0[i])
        out[j] += s0
        j += 1


@kernel(_nrt=False)
def gradient_over_tiles(tiles, targets, weights, limits, w, margin_scale, scale, loss, margins, coefficients, out):
    """Add to ``out`` the sum over all records of clip(loss'(margin)) x, in lattice steps.

    ``margins`` (int64) and ``coefficients`` (int32) are room for one tile's rows.
    """
    count, _, rows = tiles.shape
    for t in range(count):
        tile = tiles[t]
        target, weight, limit = targets[t], weights[t], limits[t]
        tile_margins(tile, w, margins)
        for i in range(rows):
            slope = derivative(loss, float(margins[i]) * margin_scale, target[i])
            coefficients[i] = int32(bounded(slope * (weight[i] * scale), limit[i]))
        add_tile(tile, coefficients, out)


@inner()
def _add_rows(rows, chosen, coefficients, out):
    """Add each chosen row times its coefficient, four at a time to save passes over ``out``."""
    whole = chosen.size - chosen.size % 4
    for k in range(0, whole, 4):
        x0, x1, x2, x3 = rows[chosen[k]], rows[chosen[k + 1]], rows[chosen[k + 2]], rows[chosen[k + 3]]
        c0, c1 = int64(coefficients[k]), int64(coefficients[k + 1])
        c2, c3 = int64(coefficients[k + 2]), int64(coefficients[k + 3])
        for j in range(out.size):
            out[j] += c0 * int64(x0[j]) + c1 * int64(x1[j]) + c2 * int64(x2[j]) + c3 * int64(x3[j])
    for k in range(whole, chosen.size):
        x0, c0 = rows[chosen[k]], int64(coefficients[k])
        for j in range(out.size):
            out[j] += c0 * int64(x0[j])


@kernel()
def gradient_over_batch(rows, facts, chosen, w, margin_scale, scale, loss, out):
    """Add to ``out`` the sum over the chosen records of clip(loss'(margin)) x, in lattice steps."""
    margins, coefficients = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int32)
    target, weight, limit = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for k in range(min(BLOCK, chosen.size)):
        prefetch_row(rows, chosen[k])
        prefetch_row(facts, chosen[k])
    for first in range(0, chosen.size, BLOCK):
        part, ahead = chosen[first : first + BLOCK], chosen[first + BLOCK : first + 2 * BLOCK]
        for k in range(part.size):
            if k < ahead.size:
                prefetch_row(rows, ahead[k])
                prefetch_row(facts, ahead[k])
            i = part[k]
            x, total = rows[i], int64(0)
            for j in range(w.size):
                total += int64(x[j]) * int64(w[j])
            margins[k] = total
            target[k], weight[k], limit[k] = facts[i, 0], facts[i, 1], facts[i, 2]
        for k in range(part.size):
            slope = derivative(loss, float(margins[k]) * margin_scale, target[k])
            coefficients[k] = int32(bounded(slope * (weight[k] * scale), limit[k]))
        _add_rows(rows, part, coefficients, out)


@njit(inline="always")
def _margins(x, w, margin_scale, margins):
    for k in range(w.shape[0]):
        total = int64(0)
        for j in range(w.shape[1]):
            total += int64(x[j]) * int64(w[k, j])
        margins[k] = float(total) * margin_scale


@njit(inline="always")
def _coefficients(slopes, facts, scale, use_l1, coefficients):
    for k in range(slopes.size):
        slopes[k] *= facts[1] * scale
    if slopes.size == 1:
        coefficients[0] = int64(bounded(slopes[0], facts[2]))
    else:
        bound_vector(slopes, int64(facts[2]), use_l1, coefficients)


@njit(inline="always")
def _add_outputs(x, coefficients, out):
    for k in range(coefficients.size):
        c, sums = coefficients[k], out[k]
        if c != 0:
            for j in range(x.size):
                sums[j] += c * int64(x[j])


@kernel()
def gradient_over_rows(rows, facts, chosen, w, margin_scale, scale, use_l1, loss, out):
    """Add to ``out`` (K, p) the sum over the chosen records of the clipped gradient, in lattice steps."""
    margins, slopes = np.empty(w.shape[0]), np.empty(w.shape[0])
    coefficients = np.empty(w.shape[0], dtype=np.int64)
    for index in range(chosen.size):
        i = chosen[index]
        _margins(rows[i], w, margin_scale, margins)
        derivatives(loss, margins, facts[i, 0], slopes)
        _coefficients(slopes, facts[i], scale, use_l1, coefficients)
        _add_outputs(rows[i], coefficients, out)


@kernel()
def gradient_over_sparse_batch(indptr, indices, data, facts, chosen, w, margin_scale, scale, loss, out):
    """Compressed rows, one output: only stored entries are touched. Unsigned indices spare a test for negative ones.

    What a row needs is fetched ahead: first where its entries begin, then the entries.
    """
    for index in range(chosen.size):
        if index + 2 * AHEAD < chosen.size:
            i = chosen[index + 2 * AHEAD]
            prefetch_entries(indptr, i, i + 2)
        if index + AHEAD < chosen.size:
            i = chosen[index + AHEAD]
            prefetch_entries(indices, indptr[i], indptr[i + 1])
            prefetch_entries(data, indptr[i], indptr[i + 1])
            prefetch_row(facts, i)
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


@njit(inline="always")
def _stored_margins(columns, x, w, margin_scale, margins):
    for k in range(w.shape[0]):
        total, wk = int64(0), w[k]
        for e in range(x.size):
            total += int64(x[e]) * int64(wk[columns[e]])
        margins[k] = float(total) * margin_scale


@njit(inline="always")
def _add_stored(columns, x, coefficients, out):
    for k in range(coefficients.size):
        c, sums = coefficients[k], out[k]
        if c != 0:
            for e in range(x.size):
                sums[columns[e]] += c * int64(x[e])


@kernel()
def gradient_over_sparse_rows(indptr, indices, data, facts, chosen, w, margin_scale, scale, use_l1, loss, out):
    """The same over compressed rows: only stored entries are touched."""
    margins, slopes = np.empty(w.shape[0]), np.empty(w.shape[0])
    coefficients = np.empty(w.shape[0], dtype=np.int64)
    for index in range(chosen.size):
        i = chosen[index]
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        _stored_margins(columns, x, w, margin_scale, margins)
        derivatives(loss, margins, facts[i, 0], slopes)
        _coefficients(slopes, facts[i], scale, use_l1, coefficients)
        _add_stored(columns, x, coefficients, out)


@njit(inline="always")
def _changes(loss, margins, anchored, target, slopes, others):
    derivatives(loss, margins, target, slopes)
    derivatives(loss, anchored, target, others)
    for k in range(slopes.size):
        slopes[k] -= others[k]


@kernel()
def change_over_rows(rows, facts, chosen, w, anchor, margin_scale, anchor_scale, scale, use_l1, loss, out):
    """Add to ``out`` (K, p) the sum over the chosen records of the clipped change, in lattice steps."""
    outputs = w.shape[0]
    margins, anchored, slopes, others = np.empty(outputs), np.empty(outputs), np.empty(outputs), np.empty(outputs)
    coefficients = np.empty(outputs, dtype=np.int64)
    for index in range(chosen.size):
        i = chosen[index]
        _margins(rows[i], w, margin_scale, margins)
        _margins(rows[i], anchor, anchor_scale, anchored)
        _changes(loss, margins, anchored, facts[i, 0], slopes, others)
        _coefficients(slopes, facts[i], scale, use_l1, coefficients)
        _add_outputs(rows[i], coefficients, out)


@kernel()
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
        _stored_margins(columns, x, w, margin_scale, margins)
        _stored_margins(columns, x, anchor, anchor_scale, anchored)
        _changes(loss, margins, anchored, facts[i, 0], slopes, others)
        _coefficients(slopes, facts[i], scale, use_l1, coefficients)
        _add_stored(columns, x, coefficients, out)


@njit(inline="always")
def _clipped(loss_value, limit):
    """The nearest integer within [0, limit]; NaN becomes the limit, so that nothing passes the clip."""
    edge = float(limit)
    loss_value = loss_value if loss_value < edge else edge
    return int64(np.rint(loss_value if loss_value > 0.0 else 0.0))


@kernel()
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


@kernel()
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


@kernel()
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


@kernel()
def coupling_coefficients(rows, facts, w, margin_scale, scale, loss, out):
    """Fill ``out`` (pairs, rows) with each row's weighted couplings: integers >= 0, of a norm within its limit."""
    outputs, pairs = w.shape[0], out.shape[0]
    margins, chances = np.empty(outputs), np.empty(outputs)
    values, whole = np.empty(pairs), np.empty(pairs, dtype=np.int64)
    for i in range(rows.shape[0]):
        _margins(rows[i], w, margin_scale, margins)
        couplings(loss, margins, facts[i, 0], chances, values)
        for e in range(pairs):
            values[e] *= facts[i, 1] * scale
        bound_vector(values, int64(facts[i, 2]), False, whole)
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
    chances, coupled = np.empty(outputs), np.empty(outputs * (outputs - 1) // 2)
    for i in range(rows.shape[0]):
        _margins(rows[i], w, margin_scale, margins)
        derivatives(loss, margins, facts[i, 0], slopes)
        couplings(loss, margins, facts[i, 0], chances, coupled)
        out[i, 0] = np.sqrt((slopes * slopes).sum())
        out[i, 1] = np.sqrt((coupled * coupled).sum())


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


_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to the nearest integer, which the low bits then hold
_ROUND_BITS = int(np.float64(_ROUND).view(np.int64))


@inner()
def column_sum(x, slopes, scale, bound):
    """The sum over one tile of round(clip(slope x scale, +-bound)); ``bound`` is below 2^51."""
    total = int64(0)
    for i in range(x.size):
        q = slopes[i] * (float(x[i]) * scale)
        q = within(q, bound)
        total += rounded_bits(q + _ROUND)
    return total - int64(x.size) * int64(_ROUND_BITS)


@inner()
def shared_column_sum(x, slopes, scale, bounds):
    """The same where each row has its own bound: B // k for one of a person's k rows."""
    total = int64(0)
    for i in range(x.size):
        q = slopes[i] * (float(x[i]) * scale)
        q = within(q, bounds[i])
        total += rounded_bits(q + _ROUND)
    return total - int64(x.size) * int64(_ROUND_BITS)


@interleaved
def _slopes(i, args):
    """One record's slope."""
    margin, target, slopes, margin_scale, loss = args
    slopes[i] = derivative(loss, margin[i] * margin_scale, target[i])


@interleaved
def _slopes_after_move(i, args):
    """One record's slope once its margin has moved."""
    moved, move, margin, target, slopes, margin_scale, loss = args
    m = margin[i] + float(moved[i]) * move
    margin[i] = m
    slopes[i] = derivative(loss, m * margin_scale, target[i])


def _moved_column_sum(loss, x, moved, move, margin, target, slopes, margin_scale, scale, bound):
    """Move one tile's margins by ``move`` times a column, and return the ``column_sum`` of another after it."""
    _slopes_after_move(x.size, (moved, move, margin, target, slopes, margin_scale, loss))
    return column_sum(x, slopes, scale, bound)


def _in_one_loop(loss, x, moved, move, margin, target, slopes, margin_scale, scale, bound):
    total = int64(0)
    for i in range(x.size):
        m = margin[i] + float(moved[i]) * move
        margin[i] = m
        q = derivative(loss, m * margin_scale, target[i]) * (float(x[i]) * scale)
        q = within(q, bound)
        total += rounded_bits(q + _ROUND)
    return total - int64(x.size) * int64(_ROUND_BITS)


@overload(_moved_column_sum)
def _compiled_moved_column_sum(loss, x, moved, move, margin, target, slopes, margin_scale, scale, bound):
    """The same operations on each record: one loop is faster where a slope takes few, two where it takes many."""
    return _in_one_loop if loss.instance_class.quadratic is True else _moved_column_sum


@kernel(_nrt=False)
def coordinate_sums(tiles, margins, targets, weights, bounds, columns, scales, limits, margin_scale, loss, slopes, out):
    """Add to ``out`` each chosen column's sum over all records; ``bounds`` (empty for records) are persons'.

    ``slopes`` is room for one tile's rows.
    """
    count, _, rows = tiles.shape
    for t in range(count):
        tile, margin, target, weight = tiles[t], margins[t], targets[t], weights[t]
        _slopes(rows, (margin, target, slopes, margin_scale, loss))
        if bounds.size > 0:
            for i in range(rows):
                slopes[i] *= weight[i]
        for c in range(columns.size):
            if bounds.size == 0:
                out[c] += column_sum(tile[columns[c]], slopes, scales[c], limits[c])
            else:
                out[c] += shared_column_sum(tile[columns[c]], slopes, scales[c], bounds[c, t])


@njit(inline="always")
def _landed(penalty, w, gradient, step, j, to_grid, room):
    """Where a proximal step lands on the weights' grid, within what keeps margins exact."""
    real = prox_coordinate(penalty, w / to_grid - step * gradient, step, j)
    landed = np.rint(real * to_grid)
    return within(landed, room) + 0.0  # no negative zero


@kernel()
def coordinate_steps(
    tiles, margins, targets, weights, bounds, coordinates, noise, w, sums, room,
    scales, bound, units, n, steps, margin_scale, to_grid, loss, penalty,
):  # fmt: skip
    """Run a program of proximal coordinate steps; ``sums`` collects the sum of the iterates after each step.

    The margins' move of one step is fused with the gradient of the next: one pass over the records a step.
    """
    count, _, rows = tiles.shape
    slopes = np.empty(rows)
    last = np.zeros(w.size, dtype=np.int64)
    length = 0.0
    for j in range(w.size):
        length += abs(w[j])
    previous, move = int64(0), 0.0
    for k in range(coordinates.size):
        j = coordinates[k]
        total = noise[k]
        for t in range(count):
            tile, margin, target, weight = tiles[t], margins[t], targets[t], weights[t]
            if bounds.size == 0:
                total += _moved_column_sum(
                    loss, tile[j], tile[previous], move, margin, target, slopes, margin_scale, scales[j], bound
                )
            else:
                _slopes_after_move(rows, (tile[previous], move, margin, target, slopes, margin_scale, loss))
                for i in range(rows):
                    slopes[i] *= weight[i]
                total += shared_column_sum(tile[j], slopes, scales[j], bounds[0, t])
        landed = _landed(penalty, w[j], float(total) * units[j] / n, steps[j], j, to_grid, room - (length - abs(w[j])))
        sums[j] += w[j] * float(k - last[j])
        last[j] = k
        length += abs(landed) - abs(w[j])
        previous, move = j, landed - w[j]
        w[j] = landed
    for j in range(w.size):
        sums[j] += w[j] * float(coordinates.size - last[j])


@kernel()
def sparse_margins(indptr, indices, data, w, out):
    """Exact integer margins of compressed rows, as doubles."""
    for i in range(out.size):
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        total = 0.0
        for e in range(columns.size):
            total += float(x[e]) * w[columns[e]]
        out[i] = total


@inner()
def _entry_sum(rows, x, records, weights, bounds, scale, bound, margin_scale, loss):
    """One sparse column's sum: only its stored entries contribute.

    ``records`` holds margin and target side by side: one fetch from memory brings both.
    """
    total = int64(0)
    if bounds.size == 0:  # a loop of its own, without a test for each entry
        for e in range(rows.size):
            i = rows[e]
            q = derivative(loss, records[i, 0] * margin_scale, records[i, 1]) * (float(x[e]) * scale)
            q = within(q, bound)
            total += rounded_bits(q + _ROUND)
    else:
        for e in range(rows.size):
            i = rows[e]
            slope = derivative(loss, records[i, 0] * margin_scale, records[i, 1]) * weights[i]
            q = within(slope * (float(x[e]) * scale), bounds[i])
            total += rounded_bits(q + _ROUND)
    return total - int64(rows.size) * int64(_ROUND_BITS)


@kernel()
def sparse_coordinate_sums(
    indptr, indices, data, records, weights, bounds, columns, scales, limits, margin_scale, loss, out
):
    """``coordinate_sums`` over compressed columns."""
    for c in range(columns.size):
        first, last = indptr[columns[c]], indptr[columns[c] + 1]
        rows, x = indices[first:last], data[first:last]
        row_bounds = bounds[c] if bounds.shape[0] > 0 else np.empty(0)
        out[c] += _entry_sum(rows, x, records, weights, row_bounds, scales[c], limits[c], margin_scale, loss)


@kernel()
def sparse_coordinate_steps(
    indptr, indices, data, records, weights, bounds, coordinates, noise, w, sums, room,
    scales, bound, units, n, steps, margin_scale, to_grid, loss, penalty,
):  # fmt: skip
    """``coordinate_steps`` over compressed columns: a step touches one column's stored entries, twice."""
    row_bounds = bounds[0] if bounds.shape[0] > 0 else np.empty(0)
    last = np.zeros(w.size, dtype=np.int64)
    length = 0.0
    for j in range(w.size):
        length += abs(w[j])
    for k in range(coordinates.size):
        j = coordinates[k]
        rows, x = indices[indptr[j] : indptr[j + 1]], data[indptr[j] : indptr[j + 1]]
        total = noise[k]
        total += _entry_sum(rows, x, records, weights, row_bounds, scales[j], bound, margin_scale, loss)
        landed = _landed(penalty, w[j], float(total) * units[j] / n, steps[j], j, to_grid, room - (length - abs(w[j])))
        sums[j] += w[j] * float(k - last[j])
        last[j] = k
        length += abs(landed) - abs(w[j])
        move = landed - w[j]
        if move != 0.0:
            for e in range(rows.size):
                records[rows[e], 0] += float(x[e]) * move
        w[j] = landed
    for j in range(w.size):
        sums[j] += w[j] * float(coordinates.size - last[j])


@kernel(_nrt=False)
def within_sum(column, margins, targets, signs, margin_scale, threshold, loss, out):
    """Add +signs[i] where |slope x| <= threshold and -signs[i] where not (NaN counts as outside)."""
    for i in range(column.size):
        slope = derivative(loss, float(margins[i]) * margin_scale, targets[i])
        if abs(slope * float(column[i])) <= threshold:
            out[0] += signs[i]
        else:
            out[0] -= signs[i]
