"""Records through a map of released values, one row at a time, onto a new integer grid.

Each output depends on its own row and on the map alone: every loop stays inside a row, and the order of its additions
is fixed by the source, so the same row gives the same integers in any table.
"""

import math

import numpy as np
from numba import int64, njit

from discreet.curator.kernels.encode import ceil_sqrt, shrink

LARGEST = 32767
"""The largest integer that a recoded entry may be."""


@njit(inline="always")
def _factor(squares, row_norm):
    """What shrinks a row onto ``row_norm``; 1 where it is short enough."""
    return row_norm / math.sqrt(squares) if squares > row_norm * row_norm else 1.0


@njit(inline="always")
def _placed(z, one, longest, row):
    """Round a row of doubles onto the grid and shrink it there; its norm (ceiling) and L1 norm."""
    squares, total, most, length = int64(0), int64(0), float(min(longest, LARGEST)), 0.0
    for k in range(z.size):
        length += z[k] * z[k]
    scale = one * _factor(length, float(longest) / one)
    for k in range(z.size):
        x = z[k] * scale
        row[k] = int64(np.rint(min(max(x, -most), most))) if x == x else int64(0)
        squares += int64(row[k]) * int64(row[k])
    if squares > longest * longest:
        squares = shrink(row, squares, longest)
    for k in range(z.size):
        total += abs(int64(row[k]))
    return ceil_sqrt(squares), total


@njit(inline="always")
def _through(u, matrix, factor, z):
    """z = factor * (matrix^T u), four features at a time."""
    z[:] = 0.0
    j = 0
    while j + 4 <= u.size:
        x0, x1, x2, x3 = u[j] * factor, u[j + 1] * factor, u[j + 2] * factor, u[j + 3] * factor
        w0, w1, w2, w3 = matrix[j], matrix[j + 1], matrix[j + 2], matrix[j + 3]
        for k in range(z.size):
            z[k] += ((x0 * w0[k] + x1 * w1[k]) + x2 * w2[k]) + x3 * w3[k]
        j += 4
    while j < u.size:
        x0, w0 = u[j] * factor, matrix[j]
        for k in range(z.size):
            z[k] += x0 * w0[k]
        j += 1


@njit(cache=True, nogil=True)
def recode_rows(
    rows, found, unit, center, inverse, constant, row_norm, matrix, one, longest, out, norms, sums, factors
):
    """out = matrix^T shrink((x - center) * inverse, constant) on the grid of ``one``; null rows stay null.

    ``found`` are the norms of ``rows``: 0 marks a null row. An empty ``matrix`` is the identity. ``factors`` receives
    what each row was multiplied by.
    """
    n, p = rows.shape
    last = center.size
    u, z = np.empty(p), np.empty(out.shape[1])
    for i in range(n):
        row = out[i]
        if found[i] == 0:
            row[:] = 0
            norms[i], sums[i], factors[i] = 0, 0, 0.0
            continue
        squares = 0.0
        for j in range(last):
            u[j] = (float(rows[i, j]) * unit - center[j]) * inverse[j]
            squares += u[j] * u[j]
        if p > last:
            u[last] = constant
            squares += constant * constant
        factor = _factor(squares, row_norm)
        if matrix.size == 0:
            for j in range(p):
                z[j] = u[j] * factor
        else:
            _through(u, matrix, factor, z)
        norms[i], sums[i] = _placed(z, one, longest, row)
        factors[i] = factor


@njit(cache=True, nogil=True)
def recode_sparse_rows(
    indptr, indices, data, found, unit, inverse, constant, row_norm, diagonal, one, longest, out, norms, sums, factors
):  # fmt: skip
    """The same for compressed rows, without a center, entry by entry: absent ones stay absent."""
    last = inverse.size
    widest = 0
    for i in range(indptr.size - 1):
        widest = max(widest, indptr[i + 1] - indptr[i])
    room = np.empty(widest)
    for i in range(indptr.size - 1):
        first, end = indptr[i], indptr[i + 1]
        row, z = out[first:end], room[: end - first]
        if found[i] == 0:
            row[:] = 0
            norms[i], sums[i], factors[i] = 0, 0, 0.0
            continue
        squares = 0.0
        for e in range(first, end):
            j = indices[e]
            x = constant if j == last else float(data[e]) * unit * inverse[j]
            z[e - first] = x
            squares += x * x
        factor = _factor(squares, row_norm)
        for e in range(end - first):
            z[e] *= factor * diagonal[indices[first + e]]
        norms[i], sums[i] = _placed(z, one, longest, row)
        factors[i] = factor
