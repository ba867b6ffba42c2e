"""Columns into features, one pass, each row for itself."""

import numpy as np
from numba import njit

from discreet.curator.tables.cell_states import ABSENT, FINE, STRANGE


@njit(cache=True, nogil=True)
def scale_column(values, low, high, middle, half, absent, out, states):  # type: ignore[no-untyped-def]
    """(x - middle) / half with x clipped to [low, high], within [-1, 1]; ``absent`` where x is not finite.

    ``states``, where it has a place for each row, receives what each cell holds (``cell_states.py``).
    """
    told = states.size == values.size
    for i in range(values.size):
        x = values[i]
        if abs(x) < np.inf:  # False for NaN too
            scaled = (min(max(x, low), high) - middle) / half
            out[i] = min(max(scaled, -1.0), 1.0)
            if told:
                states[i] = FINE if low <= x <= high else STRANGE
        else:
            out[i] = absent
            if told:
                states[i] = ABSENT


@njit(cache=True, nogil=True)
def mark_rows(states, marked):  # type: ignore[no-untyped-def]
    """Set ``marked`` for the rows that have a cell which does not hold what was declared; return how many are set."""
    for j in range(states.shape[1]):
        column = states[:, j]
        for i in range(column.size):
            marked[i] |= column[i] != FINE
    return marked.sum()


@njit(cache=True, nogil=True)
def number_cells(states, is_null, wanted, out):  # type: ignore[no-untyped-def]
    """Fill one row of ``out`` per wanted row with its cells: 0 for a null row, two numbers per column, -1 for none."""
    k = 0
    for i in range(states.shape[0]):
        if wanted[i]:
            out[k, 0] = 0 if is_null[i] else -1
            for j in range(states.shape[1]):
                state = states[i, j]
                out[k, j + 1] = -1 if state == FINE else 2 * j + state
            k += 1
