"""One coordinate at a time: sums of one feature's clipped gradient entries, and whole programs of steps.

A record's contribution to coordinate j is the integer q = round(clip(f'(margin) x_j scale, +-B)), one
number, so the clip is direct. NaN counts as 0, so that a null record (x_j = 0) adds 0 whatever its slope. Margins are
exact integers held in doubles (below 2^53), so that adding one coordinate's move keeps them exact: a fused program of
steps and a loop of single queries see the same bits.
"""

import numpy as np
from numba import int64, njit
from numba.extending import overload

from discreet.curator.kernels.kernel import inner, interleaved, kernel, rounded_bits, within
from discreet.losses.base import derivative
from discreet.penalties.base import prox_coordinate

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
