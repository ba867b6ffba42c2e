"""Sums of squared features: each record's (a person's mean of) squares, with a bounded total."""

import numpy as np
from numba import int64, njit


@njit(inline="always")
def _add_squares(columns, x, share, bound, scales, caps, entries, out):
    """Add one row's scaled squares: each within its cap, their sum within ``bound``, checked in integers."""
    total = int64(0)
    for e in range(x.size):
        j = columns[e]
        square = float(int64(x[e]) * int64(x[e])) / float(share)
        entries[e] = min(int64(min(square * scales[j], float(bound))), caps[j] // share)
        total += entries[e]
    factor = float(bound) / float(total) if total > bound else 1.0
    while total > bound:  # a second round only where the division rounded up
        total = int64(0)
        for e in range(x.size):
            entries[e] = int64(float(entries[e]) * factor)
            total += entries[e]
        factor = 1.0 - 2.0**-20
    for e in range(x.size):
        out[columns[e]] += entries[e]


@njit(cache=True, nogil=True)
def square_sums(rows, shares, bounds, scales, caps, out):
    """Add to ``out`` each column's sum over all rows; ``bounds`` is each row's own."""
    p = rows.shape[1]
    entries, columns = np.empty(p, dtype=np.int64), np.arange(p)
    for i in range(rows.shape[0]):
        _add_squares(columns, rows[i], shares[i], bounds[i], scales, caps, entries, out)


@njit(cache=True, nogil=True)
def sparse_square_sums(indptr, indices, data, shares, bounds, scales, caps, out):
    """The same over compressed rows."""
    entries = np.empty(out.size, dtype=np.int64)
    for i in range(indptr.size - 1):
        first, last = indptr[i], indptr[i + 1]
        _add_squares(indices[first:last], data[first:last], shares[i], bounds[i], scales, caps, entries, out)
