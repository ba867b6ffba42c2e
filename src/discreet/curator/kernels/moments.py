"""Sums of rows, of their squares, of outer products, counts of magnitudes and of cells: integers, exactly.

Rows and squared rows: a record's vector times an integer coefficient, as large as its clip allows. With r the norm
(ceiling) of an integer vector q and |c| <= B // r: ||c q|| <= B, as for gradients (``lattice``).

Outer products are added up in double precision. Every product and every partial sum is an integer below 2^53
(``queries/moments.py``), so the order of additions does not matter (``matrix_products``).
"""

import numpy as np
from numba import int64, njit

from discreet.curator.kernels.encode import ceil_sqrt
from discreet.curator.kernels.kernel import add_products, kernel, rounded_bits
from discreet.typing import Array, Integers

_STRIP = 256
_FLUSH = 4096
"""Rows whose entries, each at most 2^40, may be added up in doubles: 2^52."""


@kernel(_nrt=False)
def row_sums(rows, coefficients, out):
    """Add to ``out`` the sum of coefficient times row."""
    for i in range(rows.shape[0]):
        c = int64(coefficients[i])
        for j in range(out.size):
            out[j] += c * int64(rows[i, j])


@kernel()
def sparse_row_sums(indptr, indices, data, coefficients, out):
    """The same over compressed rows."""
    for i in range(indptr.size - 1):
        c = int64(coefficients[i])
        for e in range(indptr[i], indptr[i + 1]):
            out[indices[e]] += c * int64(data[e])


@njit(inline="always")
def _clipped_squares(x, center, shift, bound, most, use_l1, squares):
    """Fill in the squares about ``center`` of one row, less their low bits; return c, with c times their norm <= bound.

    c is at most ``most``.
    """
    total = int64(0)
    for e in range(x.size):
        distance = int64(x[e]) - center[e]
        squares[e] = (distance * distance) >> shift
        total += squares[e] if use_l1 else squares[e] * squares[e]
    norm = total if use_l1 else ceil_sqrt(total)
    if norm == 0:
        return int64(0)
    c = bound // norm
    return most if most < c else c


@kernel(_nrt=False)
def clipped_square_sums(rows, center, shift, bounds, most, use_l1, squares, out):
    """Add to ``out`` the sum over all rows of their squared distances from ``center``, each row's within its bound.

    ``squares`` is room for one row.
    """
    for i in range(rows.shape[0]):
        c = _clipped_squares(rows[i], center, shift, bounds[i], most[i], use_l1, squares)
        for j in range(out.size):
            out[j] += c * squares[j]


@kernel()
def sparse_clipped_square_sums(indptr, indices, data, shift, bounds, most, use_l1, out):
    """The same over compressed rows, about 0."""
    squares, center = np.empty(out.size, dtype=np.int64), np.zeros(out.size, dtype=np.int64)
    for i in range(indptr.size - 1):
        x, columns = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        c = _clipped_squares(x, center, shift, bounds[i], most[i], use_l1, squares)
        for e in range(x.size):
            out[columns[e]] += c * squares[e]


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


@kernel()
def square_sums(rows, shares, bounds, scales, caps, out):
    """Add to ``out`` each column's sum over all rows; ``bounds`` is each row's own."""
    p = rows.shape[1]
    entries, columns = np.empty(p, dtype=np.int64), np.arange(p)
    for i in range(rows.shape[0]):
        _add_squares(columns, rows[i], shares[i], bounds[i], scales, caps, entries, out)


@kernel()
def sparse_square_sums(indptr, indices, data, shares, bounds, scales, caps, out):
    """The same over compressed rows."""
    entries = np.empty(out.size, dtype=np.int64)
    for i in range(indptr.size - 1):
        first, last = indptr[i], indptr[i + 1]
        _add_squares(indices[first:last], data[first:last], shares[i], bounds[i], scales, caps, entries, out)


def outer_sums(rows: Array, coefficients: Array, out: Integers) -> None:
    """Add to ``out`` (p, p) the sum of coefficient times outer product, its lower half mirrored."""
    padded = (rows.shape[1] + 3) // 4 * 4
    strips, part = np.zeros((2, padded, _STRIP)), np.zeros((padded, padded))
    add_outer_products(rows, coefficients, strips[0], strips[1], part, out)


@kernel(_nrt=False)
def add_outer_products(rows, coefficients, left, right, part, out):
    """Add up strips of rows, turned so that each column lies together, in ``left`` (times coefficients) and ``right``.

    Products are added up in doubles, in ``part``, for ``_FLUSH`` rows at most before they join the integers. Where a
    strip is not full the rest of ``left`` is 0.
    """
    n, p = rows.shape
    since = 0
    for first in range(0, n, _STRIP):
        count = _STRIP if n - first > _STRIP else n - first
        whole = count - count % 8
        for start in range(0, whole, 8):  # eight rows at a time: whole cache lines
            x = rows[first + start : first + start + 8]
            for j in range(p):
                column = right[j, start : start + 8]
                for i in range(8):
                    column[i] = x[i, j]
        for j in range(p):
            for i in range(whole, count):
                right[j, i] = rows[first + i, j]
            c, a, b = coefficients[first : first + count], left[j], right[j]
            for i in range(count):
                a[i] = b[i] * float(c[i])
            for i in range(count, _STRIP):
                a[i] = 0.0
        add_products(left, right, part)
        since += _STRIP
        if since >= _FLUSH or first + _STRIP >= n:
            for j in range(p):
                for k in range(j, p):
                    out[j, k] += int64(part[j, k])
                    part[j, k] = 0.0
            since = 0
    for j in range(p):
        for k in range(j):
            out[j, k] = out[k, j]


@kernel(_nrt=False)
def add_magnitudes(rows, weights, center, shift, digits, out):
    """Add ``weights[i]`` to ``out[j, k]``, k the binary digits of row i's distance from ``center[j]``, for each j.

    Distances lose ``shift`` bits, and are below 2^53 then; the last place of ``out`` is for that many digits and more.
    ``digits`` is room for those of a row: a double's exponent tells them.
    """
    most = out.shape[1] - 1
    for i in range(rows.shape[0]):
        for j in range(center.size):
            distance = abs(int64(rows[i, j]) - center[j]) >> shift
            k = (rounded_bits(float(distance)) >> 52) - 1022
            k = k if k > 0 else 0
            digits[j] = k if k < most else most
        for j in range(center.size):
            out[j, digits[j]] += weights[i]


@kernel()
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
