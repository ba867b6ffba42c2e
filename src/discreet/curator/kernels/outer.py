"""Sums of outer products of integer rows, in double precision, exactly.

Every product and every partial sum is an integer below 2^53 (``engines/moments.py``), so the order of additions does
not matter, and the compiler may vectorize them (``reassoc``, ``contract``).
"""

import numpy as np
from numba import int64, njit

_STRIP = 256
_FLUSH = 4096
"""Rows whose entries, each at most 2^40, may be added up in doubles: 2^52."""


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _add_products(left, right, out):
    """Add left right^T to ``out`` on and above its diagonal, in blocks of 4 by 2; p is a multiple of 4."""
    p, rows = left.shape
    for j in range(0, p, 4):
        a0, a1, a2, a3 = left[j], left[j + 1], left[j + 2], left[j + 3]
        for k in range(j, p, 2):
            b0, b1 = right[k], right[k + 1]
            s00, s01, s10, s11, s20, s21, s30, s31 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(rows):
                s00 += a0[i] * b0[i]
                s01 += a0[i] * b1[i]
                s10 += a1[i] * b0[i]
                s11 += a1[i] * b1[i]
                s20 += a2[i] * b0[i]
                s21 += a2[i] * b1[i]
                s30 += a3[i] * b0[i]
                s31 += a3[i] * b1[i]
            out[j, k] += s00
            out[j, k + 1] += s01
            out[j + 1, k] += s10
            out[j + 1, k + 1] += s11
            out[j + 2, k] += s20
            out[j + 2, k + 1] += s21
            out[j + 3, k] += s30
            out[j + 3, k + 1] += s31


@njit(cache=True, nogil=True)
def outer_sums(rows, coefficients, out):
    """Add to ``out`` (p, p) the sum of coefficient times outer product, its lower half mirrored.

    Strips of rows are turned so that each column lies together, and added up in doubles for ``_FLUSH`` rows at most
    before they join the integers.
    """
    n, p = rows.shape
    padded = (p + 3) // 4 * 4
    left, right = np.zeros((padded, _STRIP)), np.zeros((padded, _STRIP))
    part, weights = np.zeros((padded, padded)), np.zeros(_STRIP)
    since = 0
    for first in range(0, n, _STRIP):
        count = min(_STRIP, n - first)
        if count < _STRIP:
            right[:] = 0.0
            weights[:] = 0.0
        weights[:count] = coefficients[first : first + count]
        for start in range(0, count, 8):  # eight rows at a time: whole cache lines
            for j in range(p):
                for i in range(start, min(start + 8, count)):
                    right[j, i] = rows[first + i, j]
        for j in range(p):
            left[j] = right[j] * weights
        _add_products(left, right, part)
        since += _STRIP
        if since >= _FLUSH or first + _STRIP >= n:
            for j in range(p):
                for k in range(j, p):
                    out[j, k] += int64(part[j, k])
            part[:] = 0.0
            since = 0
    for j in range(p):
        for k in range(j):
            out[j, k] = out[k, j]
