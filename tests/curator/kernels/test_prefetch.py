"""Fetching ahead reads and writes nothing: not at the ends of an array, nor beyond."""

import numpy as np
import pytest
from numba import njit

from discreet.curator.kernels.kernel import prefetch_entries, prefetch_row
from tests.covering import covering


@njit
def fetch_rows(table):
    for i in range(-2, table.shape[0] + 2):
        prefetch_row(table, i)


@njit
def fetch_entries(array):
    for first in range(array.size + 1):
        for last in range(first, array.size + 1):
            prefetch_entries(array, first, last)


@pytest.mark.few(1)
@covering(("columns", [0, 1, 3, 100]), ("dtype", [np.int16, np.int32, np.float64]))
def test_nothing_changes(dtype, columns):
    table = np.arange(7 * columns).reshape(7, columns).astype(dtype)
    before = table.copy()
    fetch_rows(table)
    fetch_rows(table[::2])  # rows that lie apart
    fetch_entries(table[0])
    assert (table == before).all()
