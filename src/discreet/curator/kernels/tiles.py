"""Full-batch sums over tiles: records in blocks, column-major inside a block.

A tile holds ``rows`` records, feature by feature, and fits the second-level cache: it is read from
memory once, for the margins, and again from cache, for the sum. The last tile is padded with null
records, which contribute nothing. Every loop runs across rows on integers, so that it vectorizes
and its result does not depend on the order.
"""

from numba import int32, int64, njit

from discreet.curator.kernels.clip import bounded
from discreet.losses.base import derivative

# These kernels allocate nothing: without reference counts on their arrays they compile in two thirds of the time.
_LEAN = {"cache": True, "nogil": True, "_nrt": False}


@njit(**_LEAN)
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


@njit(**_LEAN)
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


@njit(**_LEAN)
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
