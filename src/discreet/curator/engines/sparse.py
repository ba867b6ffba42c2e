"""Compressed sparse rows: only stored entries are touched, and the sums are those of the dense engine."""

from __future__ import annotations  # nested functions would build their annotations on every call

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.certified.float_passes import SparseSmooth
from discreet.curator.engines.base import (
    GradientQuery,
    Limits,
    MomentQuery,
    RowFacts,
    ValueQuery,
    row_weights,
    rows_of_units,
    value_facts,
)
from discreet.curator.engines.coordinates import (
    CoordinateProgram,
    CoordinateQuery,
    SquareQuery,
    person_bounds,
    row_shares,
    unit_bounds,
)
from discreet.curator.engines.moments import diagonal_sum, mean_sum, outer_sum
from discreet.curator.engines.threads import Workers
from discreet.curator.kernels.changes import change_over_sparse_rows
from discreet.curator.kernels.coordinates import sparse_coordinate_steps, sparse_coordinate_sums, sparse_margins
from discreet.curator.kernels.rows import gradient_over_sparse_batch, gradient_over_sparse_rows
from discreet.curator.kernels.squares import sparse_square_sums
from discreet.curator.kernels.values import values_over_sparse_rows
from discreet.curator.kernels.within import within_sum
from discreet.curator.records.admission import Records


class SparseEngine:
    """Exact sums over a sparse integer matrix."""

    def __init__(self, records: Records, *, threads: int | None = None) -> None:
        assert records.sparse is not None
        self.grid = records.grid
        self.n_units, self.is_grouped = records.n_units, records.shares is not None
        self._records = self.records = records
        self._workers = Workers(threads)
        self._weights = row_weights(records.n_rows, records.shares)
        limits = Limits(records.norms, records.sums, records.shares)
        self._facts = RowFacts(records.targets, self._weights, limits)
        self._smooth: SparseSmooth | None = None

    def gradient_sum(self, query: GradientQuery) -> NDArray[np.int64]:
        records, w = self._records, query.weights.integers
        assert records.sparse is not None
        indptr, indices, data = records.sparse
        units = np.arange(self.n_units, dtype=np.int64) if query.units is None else query.units
        chosen = rows_of_units(units, records.starts)
        facts = self._facts.of(query.bound, query.use_l1)
        margin_scale = query.weights.margin_scale(self.grid)

        def part(first: int, last: int) -> NDArray[np.int64]:
            out = np.zeros(w.shape, dtype=np.int64)
            some = (indptr, indices, data, facts, chosen[first:last])
            if query.anchor is not None:
                change_over_sparse_rows(*some, *query.points(self.grid), query.scale, query.use_l1, query.loss, out)
            elif len(w) == 1:
                gradient_over_sparse_batch(*some, w[0], margin_scale, query.scale, query.loss, out[0])
            else:
                gradient_over_sparse_rows(*some, w, margin_scale, query.scale, query.use_l1, query.loss, out)
            return out

        work = len(w) * len(chosen) * (data.size // max(1, records.n_rows))
        return self._workers.sum(part, len(chosen), work)

    def value_sums(self, query: ValueQuery) -> NDArray[np.int64]:
        """The sum of clipped losses at each point, over stored entries only."""
        records = self._records
        assert records.sparse is not None
        w, margin_scales = query.stacked(self.grid)
        rows, facts = records.sparse, (records.targets, *value_facts(records, query))

        def part(first: int, last: int) -> NDArray[np.int64]:
            out = np.zeros(len(w), dtype=np.int64)
            values_over_sparse_rows(*rows, *facts, first, last, w, margin_scales, query.loss, out)
            return out

        return self._workers.sum(part, records.n_rows, len(w) * rows[2].size)

    def smooth(self) -> SparseSmooth:
        """Floating-point passes over the same rows; always the same object."""
        if self._smooth is None:
            self._smooth = SparseSmooth(self._records, self._workers, self._weights)
        return self._smooth

    def coordinate_sums(self, query: CoordinateQuery) -> NDArray[np.int64]:
        """Exact sums of single gradient entries, over each column's stored entries."""
        records = self._records
        own = person_bounds(query.bounds, records.shares, dimensions=1)
        out = np.zeros(query.columns.size, dtype=np.int64)
        sparse_coordinate_sums(
            *self._columns, self._margins_and_targets(query.w), self._weights, own, query.columns,
            query.scales, query.bounds.astype(np.float64), query.margin_scale, query.loss, out,
        )  # fmt: skip
        return out

    def coordinate_steps(self, program: CoordinateProgram) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The weights after a program of steps, and the sum of the iterates after each, in grid units."""
        records, w = self._records, program.w.copy()
        own = person_bounds(np.array([program.bound]), records.shares, dimensions=1)
        sums = np.zeros(w.size)
        sparse_coordinate_steps(
            *self._columns, self._margins_and_targets(program.w), self._weights, own,
            program.coordinates, program.noise, w, sums, program.room, program.scales, float(program.bound),
            program.units, program.n, program.steps, program.margin_scale, program.to_grid,
            program.loss, program.penalty,
        )  # fmt: skip
        return w, sums

    def square_sums(self, query: SquareQuery) -> NDArray[np.int64]:
        """Each column's sum of scaled squares; a person's squares are averaged over the rows."""
        assert self._records.sparse is not None
        out = np.zeros(self._records.n_columns, dtype=np.int64)
        sparse_square_sums(
            *self._records.sparse, row_shares(self._records), unit_bounds(query.bound, self._records),
            query.scales, query.caps, out,
        )  # fmt: skip
        return out

    def mean_sum(self, query: MomentQuery) -> NDArray[np.int64]:
        """The sum of clipped rows."""
        return mean_sum(self._records, query, self._workers)

    def diagonal_sum(self, query: MomentQuery) -> NDArray[np.int64]:
        """The sum of clipped squared rows."""
        return diagonal_sum(self._records, query)

    def outer_sum(self, query: MomentQuery) -> NDArray[np.int64]:
        """The sum of clipped outer products."""
        return outer_sum(self._records, query, self._workers)

    def within_sum(self, query: CoordinateQuery, threshold: float) -> NDArray[np.int64]:
        """Signs of one column's gradient entries against a threshold, summed; null records count nothing."""
        records, starts = self._records, self._columns[0]
        first, last = starts[query.columns[0]], starts[query.columns[0] + 1]
        column = np.zeros(records.n_rows, dtype=self.grid.dtype)
        column[self._columns[1][first:last]] = self._columns[2][first:last]
        signs = unit_bounds(int(query.bounds[0]), records) * (records.norms > 0)
        out = np.zeros(1, dtype=np.int64)
        margins = self._margins(query.w).astype(np.int64)
        within_sum(column, margins, records.targets, signs, query.margin_scale, threshold, query.loss, out)
        return out

    def _margins(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Exact integer margins as doubles: integer products and sums below 2^53."""
        assert self._records.sparse is not None
        margins = np.empty(self._records.n_rows)
        sparse_margins(*self._records.sparse, w, margins)
        return margins

    def _margins_and_targets(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each record's margin beside its target."""
        return np.column_stack((self._margins(w), self._records.targets))

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[Any]]:
        """The same entries by columns."""
        assert self._records.sparse is not None
        indptr, indices, data = self._records.sparse
        order = np.argsort(indices, kind="stable")
        rows = np.repeat(np.arange(self._records.n_rows, dtype=np.uint32), np.diff(indptr))[order]
        starts = np.searchsorted(indices[order], np.arange(self._records.n_columns + 1)).astype(np.int64)
        return starts, rows, data[order]
