"""Records at hand: dense ones as rows and as tiles (blocks of rows, column by column), sparse ones by rows and columns.

Full passes read tiles; of compressed rows only stored entries are touched.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.curator.certified.float_passes import DenseSmooth, SparseSmooth
from discreet.curator.engines.base import Limits, LocalEngine
from discreet.curator.kernels.coordinates import sparse_margins
from discreet.curator.kernels.gradients import cut_tiles, margins_over_tiles
from discreet.curator.records.admission import Records
from discreet.typing import Floats, Integers

_TILE_BYTES = 1 << 18
MOST_TILE_ROWS = 2048


def _tile_rows(n: int, n_columns: int, itemsize: int) -> int:
    """Return the rows per tile, so that it fits the second-level cache: a power of two between 64 and 2048."""
    fitting = max(64, min(MOST_TILE_ROWS, _TILE_BYTES // (n_columns * itemsize)))
    needed = max(64, 1 << (n - 1).bit_length()) if n > 0 else 64
    return min(1 << (fitting.bit_length() - 1), needed)


def _tiled(tile_rows: int, column: NDArray[Any]) -> NDArray[Any]:
    """Return a row vector in tiles, the last one padded with zeros."""
    count = -(-len(column) // tile_rows)
    padded = np.zeros(count * tile_rows, dtype=column.dtype)
    padded[: len(column)] = column
    return padded.reshape(count, tile_rows)


class Tiles(NamedTuple):
    """The rows, and what belongs to them, cut into tiles; the last one is padded with null records."""

    cells: NDArray[Any]
    targets: Floats
    weights: Floats
    limits: Limits
    shares: Integers | None

    def margins(self, w: Floats) -> Floats:
        """Return exact integer margins, tile by tile, as doubles."""
        margins = np.empty(self.targets.shape, dtype=np.int64)
        margins_over_tiles(self.cells, w.astype(np.int64), margins)
        return margins.astype(np.float64)


class DenseEngine(LocalEngine):
    """Records as a dense integer matrix."""

    def __init__(self, records: Records, *, threads: int | None = None, tile_rows: int | None = None) -> None:
        assert records.rows is not None
        super().__init__(records, threads=threads)
        self.rows = records.rows
        self._tile_rows = tile_rows or _tile_rows(records.n_rows, records.n_columns, records.rows.itemsize)
        self.cells_shape = -(-len(self.rows) // self._tile_rows), self.rows.shape[1], self._tile_rows
        """Tiles, columns, and rows per tile."""

    def narrowed(self, columns: Integers) -> DenseEngine:
        """Return the same records with some of their columns alone; norms stay those of whole rows."""
        rows = np.ascontiguousarray(self.rows[:, columns])
        return DenseEngine(replace(self.records, rows=rows, n_columns=len(columns)), threads=self.workers.threads)

    @cached_property
    def tiles(self) -> Tiles:
        """The rows in tiles, cut when they are first asked for."""
        records = self.records
        shares = None if records.shares is None else np.maximum(self.tiled(records.shares), 1)
        limits = Limits(records.norms, records.sums, records.shares, cut=partial(_tiled, self._tile_rows))
        return Tiles(self.cells, self.tiled(records.targets), self.tiled(self.weights), limits, shares)

    def tiled(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a row vector cut like the tiles, padded with zeros: null records."""
        return _tiled(self._tile_rows, column)

    @cached_property
    def cells(self) -> NDArray[Any]:
        """The rows' entries in tiles, where the records are kept; the last tile ends with null records."""
        cells = self.records.storage.zeros(self.cells_shape, self.rows.dtype)
        self.cut_into(cells)
        return cells

    def cut_into(self, cells: NDArray[Any]) -> None:
        """Fill tiles with the rows."""
        rows, size = self.rows, self._tile_rows

        def part(first: int, last: int) -> None:
            cut_tiles(rows[first * size : last * size], cells[first:last])

        self.workers.each(part, len(cells), rows.size)

    @cached_property
    def _smooth(self) -> DenseSmooth:
        tiles = self.tiles
        norms = self.tiled(self.records.norms)
        return DenseSmooth(self.records, self.workers, tiles.cells, tiles.targets, tiles.weights, norms)

    def smooth(self) -> DenseSmooth:
        return self._smooth


class SparseEngine(LocalEngine):
    """Records as a sparse integer matrix: ``rows`` are (indptr, indices, data)."""

    def __init__(self, records: Records, *, threads: int | None = None) -> None:
        assert records.sparse is not None
        super().__init__(records, threads=threads)
        self.rows = records.sparse

    @cached_property
    def columns(self) -> tuple[Integers, NDArray[np.uint32], NDArray[Any]]:
        """The same entries by columns."""
        indptr, indices, data = self.rows
        order = np.argsort(indices, kind="stable")
        rows = np.repeat(np.arange(self.records.n_rows, dtype=np.uint32), np.diff(indptr))[order]
        starts = np.searchsorted(indices[order], np.arange(self.records.n_columns + 1)).astype(np.int64)
        return starts, rows, data[order]

    def margins(self, w: Floats) -> Floats:
        """Return exact integer margins as doubles: integer products and sums below 2^53."""
        margins = np.empty(self.records.n_rows)
        sparse_margins(*self.rows, w, margins)
        return margins

    @cached_property
    def _smooth(self) -> SparseSmooth:
        return SparseSmooth(self.records, self.workers, self.weights)

    def smooth(self) -> SparseSmooth:
        return self._smooth


def engine_for(records: Records, *, threads: int | None = None) -> LocalEngine:
    """Return tiles for dense records, compressed rows for sparse ones."""
    return (DenseEngine if records.sparse is None else SparseEngine)(records, threads=threads)
