"""Admission: one record at a time from floating point to the integer grid."""

import math

import numpy as np
from numba import int64, njit


@njit(cache=True, nogil=True)
def ceil_sqrt(s):
    """The smallest integer r with r^2 >= s, for 0 <= s < 2^62."""
    r = int64(math.sqrt(float(s)))
    while r * r < s:
        r += 1
    while r > 0 and (r - 1) * (r - 1) >= s:
        r -= 1
    return r


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


@njit(cache=True, nogil=True)
def encode_rows(block, valid, low, high, inverse, one, longest, intercept, rows, norms, sums):
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
                x = min(max(source[j], low[j]), high[j]) * inverse[j]
                x = min(max(np.rint(x), -float(one)), float(one))
                row[j] = int64(x)
                squares += int64(row[j]) * int64(row[j])
            if longest >= 0 and squares > longest * longest:
                squares = shrink(row[:p], squares, longest)
            for j in range(p):
                total += abs(int64(row[j]))
            if intercept:
                row[p] = one
                squares += one * one
                total += one
        else:
            for j in range(row.size):
                row[j] = 0
        norms[i] = ceil_sqrt(squares)
        sums[i] = total


@njit(cache=True, nogil=True)
def encode_sparse_rows(indptr, indices, values, valid, low, high, inverse, one, longest, intercept, data, norms, sums):
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
                x = min(max(values[first + e], low[j]), high[j]) * inverse[j]
                x = min(max(np.rint(x), -float(one)), float(one))
                row[e] = int64(x)
                squares += int64(row[e]) * int64(row[e])
            if longest >= 0 and squares > longest * longest:
                squares = shrink(row, squares, longest)
            for e in range(last - first):
                total += abs(int64(row[e]))
            if intercept:
                data[at + last - first] = one
                squares += one * one
                total += one
        else:
            for e in range(last - first + extra):
                data[at + e] = 0
        norms[i] = ceil_sqrt(squares)
        sums[i] = total
