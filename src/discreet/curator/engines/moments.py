"""First and second moments: exact integer sums of rows, of their squares, of their outer products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.curator.engines.base import MomentQuery, coefficient_limits, row_weights
from discreet.curator.engines.coordinates import unit_bounds
from discreet.curator.engines.threads import Workers
from discreet.curator.kernels.moments import clipped_square_sums, row_sums, sparse_clipped_square_sums, sparse_row_sums
from discreet.curator.kernels.outer import outer_sums
from discreet.curator.records.admission import Records
from discreet.errors import Unsupported

Integers = NDArray[np.int64]

_SQUARE_BITS = 22
_MOST_BOUND = 1 << 40
_MOST = 2.0**50
_LONGEST = 1 << 31


def _most(records: Records, scale: float) -> Integers:
    """Each row's unclipped coefficient: the scale, or a person's k-th of it; more than any bound is as good as that."""
    return np.floor(row_weights(records.n_rows, records.shares) * min(scale, _MOST)).astype(np.int64)


def mean_sum(records: Records, query: MomentQuery, workers: Workers) -> Integers:
    """The sum of rows, each within the bound."""
    reach = records.sums if query.use_l1 else records.norms
    limits = coefficient_limits(reach, records.shares, query.bound)
    coefficients = np.minimum(_most(records, query.scale), limits)

    def part(first: int, last: int) -> Integers:
        out = np.zeros(records.n_columns, dtype=np.int64)
        if records.sparse is None:
            row_sums(records.rows[first:last], coefficients[first:last], out)  # type: ignore[index]
        else:
            indptr, indices, data = records.sparse
            sparse_row_sums(indptr[first : last + 1], indices, data, coefficients[first:last], out)
        return out

    return workers.sum(part, records.n_rows, records.n_rows * records.n_columns)


def square_shift(records: Records) -> int:
    """How many bits squares lose: each then fits 22 bits, fewer for wide rows, whose sum must stay below 2^62."""
    bits = min(_SQUARE_BITS, (61 - records.n_columns.bit_length()) // 2)
    return max(0, 2 * (15 if np.dtype(records.grid.dtype).itemsize == 2 else records.grid.bits + 1) - bits)


def diagonal_sum(records: Records, query: MomentQuery) -> Integers:
    """The sum of squared rows, each within the bound; a person's are averaged over the rows."""
    shift = square_shift(records)
    most = _most(records, query.scale * 2.0**shift)
    facts = (shift, unit_bounds(query.bound, records), most, query.use_l1)
    out = np.zeros(records.n_columns, dtype=np.int64)
    if records.sparse is None:
        clipped_square_sums(records.rows, *facts, out)
    else:
        sparse_clipped_square_sums(*records.sparse, *facts, out)
    return out


def outer_sum(records: Records, query: MomentQuery, workers: Workers) -> Integers:
    """The sum of outer products c x x^T in integers, with c |x_j| |x_k| <= c ||x||^2 <= bound <= 2^40 for each row."""
    rows = records.rows
    if rows is None:
        raise Unsupported("second moments of sparse records are bought as a diagonal: p^2 numbers would fill them")
    if query.bound > _MOST_BOUND:
        raise Unsupported("the bound of an outer product must not exceed 2^40")
    if query.scale < 1:
        raise Unsupported("these records' grid is too fine for outer products: recode them first")
    coefficients = _outer_coefficients(records, query)
    p = records.n_columns

    def part(first: int, last: int) -> Integers:
        out = np.zeros((p, p), dtype=np.int64)
        outer_sums(rows[first:last], coefficients[first:last], out)
        return out

    return workers.sum(part, len(rows), len(rows) * p * p)


def _outer_coefficients(records: Records, query: MomentQuery) -> Integers:
    """Each row's coefficient: the scale, or what keeps its outer product within the bound."""
    squared = np.square(np.minimum(records.sums if query.use_l1 else records.norms, _LONGEST))  # its limit is 0 anyway
    limits = np.where(squared > 0, unit_bounds(query.bound, records) // np.maximum(squared, 1), 0)
    return np.minimum(_most(records, query.scale), limits)
