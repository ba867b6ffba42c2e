"""Dense records: tiles for full passes, rows for sampled batches and several outputs."""

from __future__ import annotations  # nested functions would build their annotations on every call

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.certified.float_passes import DenseSmooth
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
from discreet.curator.kernels.batch import gradient_over_batch
from discreet.curator.kernels.changes import change_over_rows
from discreet.curator.kernels.coordinates import coordinate_steps, coordinate_sums
from discreet.curator.kernels.rows import gradient_over_rows
from discreet.curator.kernels.squares import square_sums
from discreet.curator.kernels.tiles import gradient_over_tiles, tile_margins
from discreet.curator.kernels.values import values_over_rows, values_over_tiles
from discreet.curator.kernels.within import within_sum
from discreet.curator.records.admission import Records

_TILE_BYTES = 1 << 18
_MOST_TILE_ROWS = 2048


def _tile_rows(n: int, n_columns: int, itemsize: int) -> int:
    """Rows a tile, so that it fits the second-level cache; a power of two between 64 and 2048."""
    fitting = max(64, min(_MOST_TILE_ROWS, _TILE_BYTES // (n_columns * itemsize)))
    needed = max(64, 1 << (n - 1).bit_length()) if n > 0 else 64
    return min(1 << (fitting.bit_length() - 1), needed)


class DenseEngine:
    """Exact sums over a dense integer matrix."""

    def __init__(self, records: Records, *, threads: int | None = None, tile_rows: int | None = None) -> None:
        assert records.rows is not None
        self.grid = records.grid
        self.n_units, self.is_grouped = records.n_units, records.shares is not None
        self._records = self.records = records
        self._workers = Workers(threads)
        self._weights = row_weights(records.n_rows, records.shares)
        limits = Limits(records.norms, records.sums, records.shares)
        self._facts = RowFacts(records.targets, self._weights, limits)
        self._tile_rows = tile_rows or _tile_rows(records.n_rows, records.n_columns, records.rows.itemsize)
        self._tiles: NDArray[Any] = np.empty((0, 0, 0))
        self._smooth: DenseSmooth | None = None

    def gradient_sum(self, query: GradientQuery) -> NDArray[np.int64]:
        if query.units is None and query.anchor is None and query.weights.integers.shape[0] == 1:
            return self._over_tiles(query)
        return self._over_rows(query)

    def _tiled(self, column: NDArray[Any]) -> NDArray[Any]:
        """A row vector cut like the tiles, padded with zeros: null records."""
        count = -(-self._records.n_rows // self._tile_rows)
        padded = np.zeros(count * self._tile_rows, dtype=column.dtype)
        padded[: len(column)] = column
        return padded.reshape(count, self._tile_rows)

    def _make_tiles(self) -> NDArray[Any]:
        rows, size = self._records.rows, self._tile_rows
        assert rows is not None
        count = -(-len(rows) // size)
        tiles = np.zeros((count, rows.shape[1], size), dtype=rows.dtype)
        for t in range(count):
            part = rows[t * size : (t + 1) * size]
            tiles[t, :, : len(part)] = part.T
        return tiles

    def _prepare_tiles(self) -> None:
        """Cut the rows, and what belongs to them, into tiles, once."""
        if len(self._tiles) > 0:
            return
        records = self._records
        self._tile_shares = None if records.shares is None else np.maximum(self._tiled(records.shares), 1)
        self._tiles = self._make_tiles()
        self._tile_targets = self._tiled(records.targets)
        self._tile_weights = self._tiled(self._weights)
        self._tile_limits = Limits(self._tiled(records.norms), self._tiled(records.sums), self._tile_shares)

    def smooth(self) -> DenseSmooth:
        """Floating-point passes over the same tiles; always the same object."""
        if self._smooth is None:
            self._prepare_tiles()
            facts = self._tile_targets, self._tile_weights, self._tiled(self._records.norms)
            self._smooth = DenseSmooth(self._records, self._workers, self._tiles, *facts)
        return self._smooth

    def _over_tiles(self, query: GradientQuery) -> NDArray[np.int64]:
        self._prepare_tiles()
        tiles, targets, weights = self._tiles, self._tile_targets, self._tile_weights
        limits = self._tile_limits.of(query.bound, query.use_l1)
        margin_scale = query.weights.margin_scale(self.grid)
        w = query.weights.integers[0]

        def part(first: int, last: int) -> NDArray[np.int64]:
            out = np.zeros(w.size, dtype=np.int64)
            cut = slice(first, last)
            room = np.empty(self._tile_rows, dtype=np.int64), np.empty(self._tile_rows, dtype=np.int32)
            facts = targets[cut], weights[cut], limits[cut]
            gradient_over_tiles(tiles[cut], *facts, w, margin_scale, query.scale, query.loss, *room, out)
            return out

        return self._workers.sum(part, len(tiles), tiles.size)[None, :]

    def value_sums(self, query: ValueQuery) -> NDArray[np.int64]:
        """The sum of clipped losses at each point: tiles for one output, rows for several."""
        w, margin_scales = query.stacked(self.grid)
        scales, limits = value_facts(self._records, query)
        single = w.shape[1] == 1
        if single:
            self._prepare_tiles()
            scales, limits = self._tiled(scales), self._tiled(limits)

        def part(first: int, last: int) -> NDArray[np.int64]:
            out = np.zeros(len(w), dtype=np.int64)
            if single:
                cut = slice(first, last)
                values_over_tiles(
                    self._tiles[cut], self._tile_targets[cut], scales[cut], limits[cut],
                    w[:, 0], margin_scales, query.loss, out,
                )  # fmt: skip
            else:
                rows, targets = self._records.rows, self._records.targets
                values_over_rows(rows, targets, scales, limits, first, last, w, margin_scales, query.loss, out)
            return out

        count = len(self._tiles) if single else self._records.n_rows
        return self._workers.sum(part, count, self._records.n_rows * w.size)

    def coordinate_sums(self, query: CoordinateQuery) -> NDArray[np.int64]:
        """Exact sums of single gradient entries over all records, two threads on halves of the tiles."""
        self._prepare_tiles()
        margins = self._margins(query.w)
        own = person_bounds(query.bounds, self._tile_shares, dimensions=2)
        limits = query.bounds.astype(np.float64)

        def part(first: int, last: int) -> NDArray[np.int64]:
            out = np.zeros(query.columns.size, dtype=np.int64)
            cut = slice(first, last)
            coordinate_sums(
                self._tiles[cut], margins[cut], self._tile_targets[cut], self._tile_weights[cut], own[:, cut],
                query.columns, query.scales, limits, query.margin_scale, query.loss, out,
            )  # fmt: skip
            return out

        return self._workers.sum(part, len(self._tiles), self._tiles.size)

    def coordinate_steps(self, program: CoordinateProgram) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The weights after a program of steps, and the sum of the iterates after each, in grid units."""
        self._prepare_tiles()
        margins, w = self._margins(program.w), program.w.copy()
        own = person_bounds(np.array([program.bound]), self._tile_shares, dimensions=2)
        sums = np.zeros(w.size)
        coordinate_steps(
            self._tiles, margins, self._tile_targets, self._tile_weights, own, program.coordinates, program.noise,
            w, sums, program.room, program.scales, float(program.bound), program.units, program.n, program.steps,
            program.margin_scale, program.to_grid, program.loss, program.penalty,
        )  # fmt: skip
        return w, sums

    def square_sums(self, query: SquareQuery) -> NDArray[np.int64]:
        """Each column's sum of scaled squares; a person's squares are averaged over the rows."""
        out = np.zeros(self._records.n_columns, dtype=np.int64)
        square_sums(
            self._records.rows, row_shares(self._records), unit_bounds(query.bound, self._records),
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
        records = self._records
        assert records.rows is not None
        margins = records.rows.astype(np.int64) @ query.w.astype(np.int64)
        signs = unit_bounds(int(query.bounds[0]), records) * (records.norms > 0)
        out = np.zeros(1, dtype=np.int64)
        column = np.ascontiguousarray(records.rows[:, query.columns[0]])
        within_sum(column, margins, records.targets, signs, query.margin_scale, threshold, query.loss, out)
        return out

    def _margins(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Exact integer margins, tile by tile, as doubles."""
        integers = w.astype(np.int64)
        margins = np.empty(self._tile_targets.shape, dtype=np.int64)
        for tile, margin in zip(self._tiles, margins, strict=True):
            tile_margins(tile, integers, margin)
        return margins.astype(np.float64)

    def _over_rows(self, query: GradientQuery) -> NDArray[np.int64]:
        records, w = self._records, query.weights.integers
        units = np.arange(self.n_units, dtype=np.int64) if query.units is None else query.units
        chosen = rows_of_units(units, records.starts)
        facts = self._facts.of(query.bound, query.use_l1)
        margin_scale = query.weights.margin_scale(self.grid)

        def part(first: int, last: int) -> NDArray[np.int64]:
            out = np.zeros(w.shape, dtype=np.int64)
            some = (records.rows, facts, chosen[first:last])
            if query.anchor is not None:
                change_over_rows(*some, *query.points(self.grid), query.scale, query.use_l1, query.loss, out)
            elif len(w) == 1:
                gradient_over_batch(*some, w[0], margin_scale, query.scale, query.loss, out[0])
            else:
                gradient_over_rows(*some, w, margin_scale, query.scale, query.use_l1, query.loss, out)
            return out

        return self._workers.sum(part, len(chosen), chosen.size * w.size)
