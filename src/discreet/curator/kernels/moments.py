"""Sums of rows and of squared rows: a record's vector times an integer coefficient, as large as its clip allows.

With r the norm (ceiling) of an integer vector q and |c| <= B // r: ||c q|| <= B, as for gradients (``lattice``).
"""

import numpy as np
from numba import int64, njit

from discreet.curator.kernels.encode import ceil_sqrt


@njit(cache=True, nogil=True)
def row_sums(rows, coefficients, out):
    """Add to ``out`` the sum of coefficient times row."""
    for i in range(rows.shape[0]):
        c = int64(coefficients[i])
        for j in range(out.size):
            out[j] += c * int64(rows[i, j])


@njit(cache=True, nogil=True)
def sparse_row_sums(indptr, indices, data, coefficients, out):
    """The same over compressed rows."""
    for i in range(indptr.size - 1):
        c = int64(coefficients[i])
        for e in range(indptr[i], indptr[i + 1]):
            out[indices[e]] += c * int64(data[e])


@njit(inline="always")
def _add_squares(x, columns, shift, bound, most, use_l1, squares, out):
    """Add c times the squares of one row, less their low bits; c <= ``most`` and c times their norm <= ``bound``."""
    total = int64(0)
    for e in range(x.size):
        squares[e] = (int64(x[e]) * int64(x[e])) >> shift
        total += squares[e] if use_l1 else squares[e] * squares[e]
    norm = total if use_l1 else ceil_sqrt(total)
    if norm > 0:
        c = min(most, bound // norm)
        for e in range(x.size):
            out[columns[e]] += c * squares[e]


@njit(cache=True, nogil=True)
def clipped_square_sums(rows, shift, bounds, most, use_l1, out):
    """Add to ``out`` the sum over all rows of their squared entries, each row's vector within its bound."""
    squares, columns = np.empty(rows.shape[1], dtype=np.int64), np.arange(rows.shape[1])
    for i in range(rows.shape[0]):
        _add_squares(rows[i], columns, shift, bounds[i], most[i], use_l1, squares, out)


@njit(cache=True, nogil=True)
def sparse_clipped_square_sums(indptr, indices, data, shift, bounds, most, use_l1, out):
    """The same over compressed rows."""
    squares = np.empty(out.size, dtype=np.int64)
    for i in range(indptr.size - 1):
        first, last = indptr[i], indptr[i + 1]
        _add_squares(data[first:last], indices[first:last], shift, bounds[i], most[i], use_l1, squares, out)
