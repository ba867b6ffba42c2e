"""Blocks that stand column by column, row by row, which is how kernels read them."""

from numba import njit

_ROWS, _COLUMNS = 128, 8
"""What is turned at once stays in the first cache, on both sides."""


@njit(cache=True, nogil=True)
def turn_to_rows(columns, out):
    """Copy ``columns`` (rows, columns) into ``out`` of the same shape, whose rows are contiguous."""
    n, p = columns.shape
    for first in range(0, n, _ROWS):
        last = min(n, first + _ROWS)
        for left in range(0, p, _COLUMNS):
            right = min(p, left + _COLUMNS)
            for i in range(first, last):
                for j in range(left, right):
                    out[i, j] = columns[i, j]
