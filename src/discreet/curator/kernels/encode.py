"""Rows onto the integer grid, one at a time: at admission from floating point, later through a map of released values.

Each output depends on its own row and on declared or released values alone: every loop stays inside a row, and the
order of its additions is fixed by the source, so the same row gives the same integers in any table.
"""

import math

import numpy as np
from numba import int64, njit

from discreet.curator.kernels.kernel import four_through, inner, kernel


@inner()
def ceil_sqrt(s):
    """The smallest integer r with r^2 >= s, for 0 <= s < 2^62."""
    r = int64(math.sqrt(float(s)))
    while r * r < s:
        r += 1
    while r > 0 and (r - 1) * (r - 1) >= s:
        r -= 1
    return r


@njit(inline="always")
def _clamped(x, low, high):
    """``x`` within [low, high], without numba's own ``min`` and ``max``, which are compiled for every kernel."""
    x = x if x > low else low
    return x if x < high else high


@njit(inline="always")
def shrink(row, squares, longest):
    """Scale a row toward zero until its squared norm is at most ``longest`` squared."""
    factor = float(longest) / math.sqrt(float(squares))
    while squares > longest * longest:
        squares = int64(0)
        for j in range(row.size):
            row[j] = int64(float(row[j]) * factor)  # toward zero
            squares += int64(row[j]) * int64(row[j])
        factor = 1.0 - 2.0**-20
    return squares


@kernel(_nrt=False)
def encode_rows(block, valid, low, high, inverse, unity, longest, intercept, rows, norms, sums):
    """Clip, scale and round each row of ``block`` into ``rows``; its norms (ceiling) and L1 norms next to it.

    A row with a value that is not finite, or that ``valid`` strikes out, becomes the null record: zero
    everywhere, in the intercept's column too. ``longest`` >= 0 bounds the norm of a row on the grid (the
    intercept's constant apart).
    """
    n, p = block.shape
    for i in range(n):
        source, row = block[i], rows[i]
        finite = valid[i]
        for j in range(p):
            finite &= abs(source[j]) < np.inf  # False for NaN too
        squares, total = int64(0), int64(0)
        if finite:
            for j in range(p):
                x = np.rint(_clamped(source[j], low[j], high[j]) * inverse[j])
                row[j] = int64(_clamped(x, -float(unity), float(unity)))
                squares += int64(row[j]) * int64(row[j])
            if longest >= 0 and squares > longest * longest:
                squares = shrink(row[:p], squares, longest)
            for j in range(p):
                total += abs(int64(row[j]))
            if intercept:
                row[p] = unity
                squares += unity * unity
                total += unity
        else:
            for j in range(row.size):
                row[j] = 0
        norms[i] = ceil_sqrt(squares)
        sums[i] = total


@kernel()
def encode_sparse_rows(
    indptr, indices, values, valid, low, high, inverse, unity, longest, intercept, data, norms, sums
):
    """The same for compressed rows: ``data`` holds the entries' integers; the intercept's stand at each row's end.

    ``data`` and ``indices`` have room for the intercept: row i occupies indptr[i] + i * intercept on.
    """
    n = indptr.size - 1
    extra = 1 if intercept else 0
    for i in range(n):
        first, last = indptr[i], indptr[i + 1]
        at = first + i * extra
        row = data[at : at + last - first]
        finite = valid[i]
        for e in range(first, last):
            finite &= abs(values[e]) < np.inf
        squares, total = int64(0), int64(0)
        if finite:
            for e in range(last - first):
                j = indices[first + e]
                x = np.rint(_clamped(values[first + e], low[j], high[j]) * inverse[j])
                row[e] = int64(_clamped(x, -float(unity), float(unity)))
                squares += int64(row[e]) * int64(row[e])
            if longest >= 0 and squares > longest * longest:
                squares = shrink(row, squares, longest)
            for e in range(last - first):
                total += abs(int64(row[e]))
            if intercept:
                data[at + last - first] = unity
                squares += unity * unity
                total += unity
        else:
            for e in range(last - first + extra):
                data[at + e] = 0
        norms[i] = ceil_sqrt(squares)
        sums[i] = total


LARGEST = 32767
"""The largest integer that a recoded entry may be."""


@njit(inline="always")
def _factor(squares, row_norm):
    """What shrinks a row onto ``row_norm``; 1 where it is short enough."""
    return row_norm / math.sqrt(squares) if squares > row_norm * row_norm else 1.0


@njit(inline="always")
def _squares_of_four(z, squares):
    """The squared norms of four rows, each added up in the order of its entries: four sums wait less than one."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for k in range(z.shape[1]):
        s0 += z[0, k] * z[0, k]
        s1 += z[1, k] * z[1, k]
        s2 += z[2, k] * z[2, k]
        s3 += z[3, k] * z[3, k]
    squares[0], squares[1], squares[2], squares[3] = s0, s1, s2, s3


@njit(inline="always")
def _placed(z, length, unity, longest, row):
    """Round a row of doubles onto the grid and shrink it there; its norm (ceiling) and L1 norm."""
    squares, total = int64(0), int64(0)
    most = float(longest if longest < LARGEST else LARGEST)
    scale = unity * _factor(length, float(longest) / unity)
    for k in range(z.size):
        x = z[k] * scale
        row[k] = int64(np.rint(_clamped(x, -most, most))) if x == x else int64(0)
        squares += int64(row[k]) * int64(row[k])
    if squares > longest * longest:
        squares = shrink(row, squares, longest)
    for k in range(z.size):
        total += abs(int64(row[k]))
    return ceil_sqrt(squares), total


@kernel(_nrt=False)
def recode_rows(
    rows, row_norms, unit, center, inverse, constant, row_norm, matrix, unity, longest, drop, u, z, squares,
    out, norms, sums, factors,
):  # fmt: skip
    """out = matrix^T shrink((x - center) * inverse, constant) on the grid of ``unity``; null rows stay null.

    ``row_norms`` are those of ``rows``: 0 marks a null row. An empty ``matrix`` is the identity; its columns are padded
    with zeros (``matrix_products``). ``factors`` receives what each row was multiplied by. With ``drop``, rows longer
    than ``longest`` become null rows instead of shorter. ``u`` and ``z`` are room for four rows and their images,
    ``squares`` for four norms.
    """
    n, p = rows.shape
    last, width = center.size, out.shape[1]
    most = (float(longest) / unity) ** 2 if drop else np.inf
    for start in range(0, n, 4):
        count = 4 if n - start > 4 else n - start
        for r in range(count):
            row, v = rows[start + r], u[r]
            for j in range(last):
                v[j] = (float(row[j]) * unit - center[j]) * inverse[j]
            if p > last:
                v[last] = constant
        shrunk = False
        if row_norm < np.inf:
            _squares_of_four(u, squares)
        for r in range(count):
            factor = _factor(squares[r], row_norm) if row_norm < np.inf else 1.0
            factors[start + r] = factor
            if factor != 1.0:
                shrunk = True
                for j in range(p):
                    u[r, j] *= factor
        if matrix.size > 0:
            four_through(u, matrix, z)
        image = z if matrix.size > 0 else u
        if shrunk or matrix.size > 0 or row_norm == np.inf:
            _squares_of_four(image, squares)
        for r in range(count):
            i = start + r
            if row_norms[i] == 0 or squares[r] > most:
                for k in range(width):
                    out[i, k] = 0
                norms[i], sums[i], factors[i] = 0, 0, 0.0
            else:
                norms[i], sums[i] = _placed(image[r, :width], squares[r], unity, longest, out[i])


@kernel()
def recode_sparse_rows(
    indptr, indices, data, row_norms, unit, inverse, constant, row_norm, diagonal, unity, longest,
    out, norms, sums, factors,
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
        if row_norms[i] == 0:
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
        length = 0.0
        for e in range(end - first):
            z[e] *= factor * diagonal[indices[first + e]]
            length += z[e] * z[e]
        norms[i], sums[i] = _placed(z, length, unity, longest, row)
        factors[i] = factor
