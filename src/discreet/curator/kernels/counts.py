"""How often each cell occurs: integers added row by row."""

from numba import njit


@njit(cache=True, nogil=True)
def add_counts(cells, weights, first, seen, out):
    """Add ``weights[i]`` to each of row i's cells, once a cell; what is not a cell of ``out`` is passed over.

    ``seen`` holds the number of the row that was last in each cell, counted from 1; this block's rows are ``first`` + 1
    and so on.
    """
    for i in range(cells.shape[0]):
        row = first + i + 1
        for e in range(cells.shape[1]):
            cell = cells[i, e]
            if cell >= 0 and cell < out.size and seen[cell] != row:
                seen[cell] = row
                out[cell] += weights[i]
