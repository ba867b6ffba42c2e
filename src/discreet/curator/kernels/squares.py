"""Sums of squared features, each record's squares scaled down to a bounded total."""

import numpy as np
from numba import int64, njit


@njit(inline="always")
def _add_squares(columns, x, bound, squares, out):
    """Add one row's squares, shrunk so that their sum is at most ``bound``, checked in integers."""
    total = int64(0)
    for e in range(x.size):
        squares[e] = int64(x[e]) * int64(x[e])
        total += squares[e]
    if total > bound:
        factor = float(bound) / float(total)
        while total > bound:  # a second round only where the division rounded up
            total = int64(0)
            for e in range(x.size):
                squares[e] = int64(float(squares[e]) * factor)
                total += squares[e]
            factor = 1.0 - 2.0**-20
    for e in range(x.size):
        out[columns[e]] += squares[e]


@njit(cache=True, nogil=True)
def square_sums(rows, bounds, out):
    """Add to ``out`` each column's sum over all rows; ``bounds`` is each row's own."""
    p = rows.shape[1]
    squares, columns = np.empty(p, dtype=np.int64), np.arange(p)
    for i in range(rows.shape[0]):
        _add_squares(columns, rows[i], bounds[i], squares, out)


@njit(cache=True, nogil=True)
def sparse_square_sums(indptr, indices, data, bounds, out):
    """The same over compressed rows."""
    squares = np.empty(out.size, dtype=np.int64)
    for i in range(indptr.size - 1):
        first, last = indptr[i], indptr[i + 1]
        _add_squares(indices[first:last], data[first:last], bounds[i], squares, out)
