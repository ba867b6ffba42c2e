"""Passes of the minimizer in floating point: margins, slopes, gradients, and products with Hessians.

Nothing here is released as it stands: ``minimize.py`` proves how far the computed gradient can be from the true
one. So sums may be reordered and fused, but only in the two functions that say so. The losses are compiled
without: their exponential rounds by adding a large constant, which a compiler free to reorder would remove.

Dense records are numbered through the tiles; ``margins`` and ``states`` hold a row for each, the padding's included.
``shrinks`` are the factors that records are shrunk by, ``pulls`` are these times the records' weights. Over compressed
rows every addition keeps its rounding error, since a frequent column takes as many additions as there are records.
"""

import numpy as np
from numba import njit

from discreet.curator.kernels.kernel import interleaved, kernel
from discreet.losses.base import curvature, derivative, derivatives, value, values

COLUMNS = 64
"""Columns in one plain sum of a margin."""
BLOCK = 256
"""Records in one plain sum; the sums of blocks are added with their rounding errors kept."""


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_columns(tile, w, j, last, out):
    """out += the products with columns j to last, four at a time: a term takes (last - j) / 4 + 6 roundings at most."""
    rows = tile.shape[1]
    while j + 4 <= last:
        x0, x1, x2, x3 = tile[j], tile[j + 1], tile[j + 2], tile[j + 3]
        w0, w1, w2, w3 = w[j], w[j + 1], w[j + 2], w[j + 3]
        for i in range(rows):
            out[i] += float(x0[i]) * w0 + float(x1[i]) * w1 + float(x2[i]) * w2 + float(x3[i]) * w3
        j += 4
    while j < last:
        x0, w0 = tile[j], w[j]
        for i in range(rows):
            out[i] += float(x0[i]) * w0
        j += 1


@njit(cache=True, nogil=True)
def tile_products(tile, w, out):
    """Each record's x . w by groups of columns: COLUMNS / 4 + 6 roundings in a group, then one a group."""
    p, rows = tile.shape
    part = np.empty(rows)
    out[:] = 0.0
    _add_columns(tile, w, 0, min(p, COLUMNS), out)
    for first in range(COLUMNS, p, COLUMNS):
        part[:] = 0.0
        _add_columns(tile, w, first, min(p, first + COLUMNS), part)
        for i in range(rows):
            out[i] += part[i]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def block_sums(tile, c, first, last, out):
    """Each feature's sum of c x over the records first to last of a tile, in any order."""
    p = tile.shape[0]
    j = 0
    while j + 4 <= p:
        x0, x1, x2, x3 = tile[j], tile[j + 1], tile[j + 2], tile[j + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(first, last):
            s0 += c[i] * float(x0[i])
            s1 += c[i] * float(x1[i])
            s2 += c[i] * float(x2[i])
            s3 += c[i] * float(x3[i])
        out[j], out[j + 1], out[j + 2], out[j + 3] = s0, s1, s2, s3
        j += 4
    while j < p:
        x0, s0 = tile[j], 0.0
        for i in range(first, last):
            s0 += c[i] * float(x0[i])
        out[j] = s0
        j += 1


@njit(cache=True, nogil=True)
def add_exactly(part, high, low):
    """high + low += part, where ``low`` gathers what rounding takes from ``high`` (Knuth's two-sum)."""
    for j in range(part.size):
        a, b = high[j], part[j]
        s = a + b
        t = s - a
        low[j] += (a - (s - t)) + (b - t)
        high[j] = s


@njit(cache=True, nogil=True)
def add_tile(tile, c, part, high, low):
    """high + low += the sum of c x over one tile, block by block."""
    rows = tile.shape[1]
    for first in range(0, rows, BLOCK):
        block_sums(tile, c, first, min(rows, first + BLOCK), part)
        add_exactly(part, high, low)


@interleaved
def _coefficients(i, args):
    """One record's coefficient: its slope, within its limit, times its pull.

    Comparisons that let NaN through, so that it is seen.
    """
    margin, products, target, shrink, pull, limit, loss = args
    margin[i] = products[i] * shrink[i]
    slope = derivative(loss, margin[i], target[i])
    slope = limit[i] if slope > limit[i] else slope
    slope = -limit[i] if slope < -limit[i] else slope
    products[i] = slope * pull[i]


@kernel()
def slopes_over_tiles(tiles, targets, shrinks, pulls, limits, norms, w, loss, margins, out):
    """Add to ``out`` (p + 1) the sum of coefficients times x, and last the sum of |coefficient| times norm.

    The coefficients hold the shrinking, so ``norms`` are those of x as it is stored.
    """
    count, p, rows = tiles.shape
    c, part, high, low, size = np.empty(rows), np.empty(p), np.zeros(p), np.zeros(p), 0.0
    for t in range(count):
        margin = margins[t * rows : (t + 1) * rows, 0]
        tile_products(tiles[t], w[0], c)
        _coefficients(rows, (margin, c, targets[t], shrinks[t], pulls[t], limits[t], loss))
        for i in range(rows):
            size += abs(c[i]) * norms[t, i]
        add_tile(tiles[t], c, part, high, low)
    for j in range(p):
        out[j] += high[j] + low[j]
    out[p] += size


@kernel()
def slopes_of_many_over_tiles(tiles, targets, shrinks, pulls, norms, w, loss, margins, out):
    """The same for a loss of several outputs (no limits): ``out`` holds K rows of sums, one after the other."""
    count, p, rows = tiles.shape
    outputs = w.shape[0]
    c, part, slopes, size = np.empty((outputs, rows)), np.empty(p), np.empty(outputs), 0.0
    high, low = np.zeros((outputs, p)), np.zeros((outputs, p))
    for t in range(count):
        for k in range(outputs):
            tile_products(tiles[t], w[k], c[k])
        for i in range(rows):
            margin, squares = margins[t * rows + i], 0.0
            for k in range(outputs):
                margin[k] = c[k, i] * shrinks[t, i]
            derivatives(loss, margin, targets[t, i], slopes)
            for k in range(outputs):
                c[k, i] = slopes[k] * pulls[t, i]
                squares += c[k, i] * c[k, i]
            size += np.sqrt(squares) * norms[t, i]
        for k in range(outputs):
            add_tile(tiles[t], c[k], part, high[k], low[k])
    for k in range(outputs):
        for j in range(p):
            out[k * p + j] += high[k, j] + low[k, j]
    out[outputs * p] += size


@kernel()
def margins_over_tiles(tiles, shrinks, w, margins):
    """All records' margins."""
    rows = tiles.shape[2]
    products = np.empty(rows)
    for t in range(tiles.shape[0]):
        for k in range(w.shape[0]):
            tile_products(tiles[t], w[k], products)
            for i in range(rows):
                margins[t * rows + i, k] = products[i] * shrinks[t, i]


@kernel()
def product_over_tiles(tiles, weights, states, v, out):
    """Add to ``out`` (K, p) the product of the losses' Hessian with ``v`` (K, p).

    ``states`` are the records' weighted curvatures; for several outputs their probabilities P, whose Hessian in
    the margins is weight (diag(P) - P P^T).
    """
    count, p, rows = tiles.shape
    outputs = v.shape[0]
    c, part = np.empty((outputs, rows)), np.empty(p)
    for t in range(count):
        for k in range(outputs):
            tile_products(tiles[t], v[k], c[k])
        for i in range(rows):
            state = states[t * rows + i]
            if outputs == 1:
                c[0, i] *= state[0]
            else:
                mean = 0.0
                for k in range(outputs):
                    mean += state[k] * c[k, i]
                for k in range(outputs):
                    c[k, i] = weights[t, i] * state[k] * (c[k, i] - mean)
        for k in range(outputs):
            for first in range(0, rows, BLOCK):
                block_sums(tiles[t], c[k], first, min(rows, first + BLOCK), part)
                for j in range(p):
                    out[k, j] += part[j]


@kernel()
def scale_tile(tile, roots, start, out):
    """Put the tile's records, each times its root, into the columns of ``out`` from ``start`` on."""
    p, rows = tile.shape
    for j in range(p):
        x, line = tile[j], out[j]
        for i in range(rows):
            line[start + i] = x[i] * roots[i]


@interleaved
def _curvature(i, args):
    """One record's weighted curvature: none where its limit is active."""
    margin, target, weight, limit, out, loss = args
    slope = derivative(loss, margin[i], target[i])
    out[i] = curvature(loss, margin[i], target[i]) * weight[i] if abs(slope) <= limit[i] else 0.0


@kernel()
def curvatures(margins, targets, weights, limits, loss, out):
    """Every record's weighted curvature at its margin."""
    _curvature(out.size, (margins, targets, weights, limits, out, loss))


@kernel()
def probabilities(margins, targets, loss, out):
    """Every record's class probabilities: the slopes, and 1 more at the record's own class."""
    for i in range(margins.shape[0]):
        derivatives(loss, margins[i], targets[i], out[i])
        for k in range(margins.shape[1]):
            out[i, k] += 1.0 if k == targets[i] else 0.0


@interleaved
def _weighted_value(i, args):
    """One record's weighted loss."""
    margin, target, weight, out, loss = args
    out[i] = weight[i] * value(loss, margin[i], target[i])


@kernel()
def sum_of_values(margins, targets, weights, loss):
    """The weighted sum of losses of one output, in blocks."""
    total, terms = 0.0, np.empty(BLOCK)
    for first in range(0, margins.size, BLOCK):
        last = min(margins.size, first + BLOCK)
        _weighted_value(last - first, (margins[first:last], targets[first:last], weights[first:last], terms, loss))
        part = 0.0
        for i in range(last - first):
            part += terms[i]
        total += part
    return total


@kernel()
def sum_of_values_of_many(margins, targets, weights, loss):
    """The weighted sum of losses of several outputs, in blocks."""
    total, n = 0.0, margins.shape[0]
    for first in range(0, n, BLOCK):
        part = 0.0
        for i in range(first, min(n, first + BLOCK)):
            part += weights[i] * values(loss, margins[i], targets[i])
        total += part
    return total


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


@kernel()
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


@kernel()
def margins_over_sparse(indptr, indices, data, shrinks, w, margins):
    """All records' margins."""
    for i in range(margins.shape[0]):
        columns, x = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        for k in range(w.shape[0]):
            margins[i, k] = _product(columns, x, w[k]) * shrinks[i]


@kernel()
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


@kernel()
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
