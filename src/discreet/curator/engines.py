"""Where records are, and exact sums over them: what a curator asks of any engine, and the engines of records at hand.

Dense records are kept as rows and as tiles (blocks of rows, column by column), sparse ones by rows and by columns.
Records that memory does not hold, or whose recoded copies it does not hold, are asked part by part. A sum over all
records is the sum over their parts, each taken exactly once. A part is a run of units (records, or persons with all
their rows), so that no person is cut, and a sample of units is cut like the units. What a pass needs for each row is
made for one part at a time; with a map, its rows are recoded on the way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from discreet.curator.certified.float_passes import DenseSmooth, SparseSmooth
from discreet.curator.kernels.gradients import cut_tiles, margins_over_tiles, sparse_margins
from discreet.curator.kernels.kernel import Workers
from discreet.curator.lattice import COEFFICIENT_LIMIT, Grid
from discreet.curator.records.admission import Records, rows_of_units
from discreet.curator.records.storage import rows_per_part
from discreet.errors import Unsupported
from discreet.typing import Array, Floats, Integers

if TYPE_CHECKING:
    from discreet.curator.certified.float_passes import Smooth
    from discreet.curator.records.recoding import Placement


class ExactSum(ABC):
    """A question whose exact answer is a sum of integers over records.

    Such a sum is the sum of its parts: however records are cut into parts, and in whatever order their answers come,
    the total is the same in every bit. A question holds public and released values only, and can be sent anywhere.
    """

    @abstractmethod
    def over(self, engine: LocalEngine) -> Integers:
        """Return the exact sum over the records of one engine."""

    def of_units(self, first: int, last: int) -> Self:
        """Return the question to ask of units ``first`` to ``last - 1`` alone, which are numbered from 0 there."""
        return self

    def with_units_at(self, places: Integers) -> Self:
        """Return the question with unit k at ``places[k]``."""
        return self

    @property
    def is_sampled(self) -> bool:
        """Whether it is asked of some units only."""
        return False


class Engine(ABC):
    """Private records, at hand or in parts elsewhere, and exact sums over all of them.

    ``n_units`` counts records or persons. It is as private as n: a session, a sample and a noisy count use it.
    """

    grid: Grid
    n_columns: int
    n_units: int
    is_sparse: bool
    is_grouped: bool
    """Whether a person may have several rows."""
    runs_programs: bool = True
    """Whether ``whole`` gives the records at hand, so that many steps can run in one compiled call."""

    @abstractmethod
    def total(self, question: ExactSum) -> Integers:
        """Return the exact sum over all records, each counted once."""

    @abstractmethod
    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        """Return an engine of the same records through a map; ``once`` says that one question will be asked of it."""

    @abstractmethod
    def whole(self) -> LocalEngine:
        """Return all records as one engine at hand: for minimizers, samplers and fused programs of steps."""


class AlikeRows(Engine):
    """Rows each of which stands for ``times`` alike, so that few of them rehearse a plan for a table of any size.

    A sum over equal records is the sum over different ones, times how many are alike.
    """

    runs_programs = False

    def __init__(self, engine: Engine, times: int) -> None:
        self._engine, self._times = engine, times
        self.grid, self.n_columns, self.n_units = engine.grid, engine.n_columns, times * engine.n_units
        self.is_sparse, self.is_grouped = engine.is_sparse, engine.is_grouped

    def total(self, question: ExactSum) -> Integers:
        return self._times * self._engine.total(question)

    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        return AlikeRows(self._engine.recoded(placement, once=once), self._times)

    def whole(self) -> LocalEngine:
        raise Unsupported("a rehearsal asks for sums")


_NARROW = 16
"""Images that are so many times narrower than the records, or fit into one part, are made whole: they are small."""


class LocalEngine(Engine):
    """Private records at hand, and the threads that sum over them."""

    def __init__(self, records: Records, *, threads: int | None = None) -> None:
        self.records, self.grid = records, records.grid
        self.n_units, self.n_columns = records.n_units, records.n_columns
        self.is_sparse, self.is_grouped = records.sparse is not None, records.shares is not None
        self.workers = Workers(threads)
        shares = records.shares  # a person's loss is the mean over that person's rows
        self.parts = np.ones(records.n_rows) if shares is None else np.reciprocal(shares.astype(np.float64))
        self.weights = self.parts if records.weights is None else self.parts * records.weights
        self._within: tuple[tuple[float, float], Floats] | None = None
        self._facts: tuple[NDArray[np.int32], Floats] | None = None

    def total(self, question: ExactSum) -> Integers:
        return question.over(self)

    def weights_within(self, reach: float, slack: float) -> Floats:
        """Return each row's weight times min(1, reach / r) min(1, slack reach / r), r its norm; kept until others are.

        A row counts in full up to ``reach``, in units of the grid.
        """
        last = self._within  # read and replaced as one
        if last is None or last[0] != (reach, slack):
            part = np.minimum(1.0, reach / np.maximum(self.records.norms, 1).astype(np.float64))
            last = (reach, slack), np.asarray(self.weights * part * np.minimum(1.0, slack * part))
            self._within = last
        return last[1]

    @cached_property
    def _limits(self) -> Limits:
        return Limits(self.records.norms, self.records.sums, self.records.shares)

    def facts(self, bound: int, use_l1: bool) -> Floats:
        """Return each row's target, weight and coefficient limit side by side, kept for the bound last asked."""
        limits, last = self._limits.of(bound, use_l1), self._facts
        if last is None or last[0] is not limits:
            self._facts = last = limits, np.column_stack([self.records.targets, self.weights, limits])
        return last[1]

    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        is_large = self.records.n_rows > rows_per_part(placement.n_columns)
        if once and is_large and placement.n_columns * _NARROW > self.n_columns:
            return PartedEngine(self.records, threads=self.workers.threads, placement=placement)
        return type(self)(placement.of(self.records), threads=self.workers.threads)

    def whole(self) -> LocalEngine:
        return self

    @property
    @abstractmethod
    def smooth(self) -> Smooth:
        """Floating-point passes over the same records, always the same object: for minimizers and samplers."""

    def chosen_rows(self, units: Integers | None) -> Integers:
        """Return the rows of the sampled records or persons; all rows for None."""
        chosen = np.arange(self.n_units, dtype=np.int64) if units is None else units
        return rows_of_units(chosen, self.records.starts)


def coefficient_limits(reach: Integers, shares: Integers | None, bound: int) -> NDArray[np.int32]:
    """Return the largest |c| for each row: (B // k) // r for one of a person's k rows of norm at most r.

    A person's contribution is the sum of at most k vectors of norm at most B // k: at most B. A null
    row (r = 0) gets 0.
    """
    per_row = bound if shares is None else bound // shares
    limits = np.where(reach > 0, per_row // np.maximum(reach, 1), 0)
    return np.minimum(limits, COEFFICIENT_LIMIT).astype(np.int32)


class Limits:
    """The rows' coefficient limits, kept for the bound last asked (a clip rarely changes); ``cut`` lays them out."""

    def __init__(
        self,
        norms: Integers,
        sums: Integers,
        shares: Integers | None,
        cut: Callable[[NDArray[np.int32]], NDArray[np.int32]] = lambda rows: rows,
    ) -> None:
        self._reach = {False: norms, True: sums}
        self._shares, self._cut = shares, cut
        self._last: tuple[tuple[int, bool], NDArray[np.int32]] | None = None

    def of(self, bound: int, use_l1: bool) -> NDArray[np.int32]:
        last = self._last  # read and replaced as one, so that threads cannot mix a key with another's limits
        if last is None or last[0] != (bound, use_l1):
            last = (bound, use_l1), self._cut(coefficient_limits(self._reach[use_l1], self._shares, bound))
            self._last = last
        return last[1]


def unit_bounds(bound: int, records: Records) -> Integers:
    """Return each row's share of its unit's bound: B for a record, B // k for one of a person's k rows."""
    return np.full(records.n_rows, bound) if records.shares is None else bound // records.shares


_TILE_BYTES = 1 << 18
MOST_TILE_ROWS = 2048


def _tiled(tile_rows: int, column: Array) -> Array:
    """Return a row vector in tiles, the last one padded with zeros."""
    count = -(-len(column) // tile_rows)
    padded = np.zeros(count * tile_rows, dtype=column.dtype)
    padded[: len(column)] = column
    return padded.reshape(count, tile_rows)


class Tiles(NamedTuple):
    """The rows, and what belongs to them, cut into tiles; the last one is padded with null records."""

    cells: Array
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
        if tile_rows is None:  # a tile fits the second-level cache: a power of two between 64 and 2048
            fitting = max(64, min(MOST_TILE_ROWS, _TILE_BYTES // (records.n_columns * records.rows.itemsize)))
            needed = max(64, 1 << (records.n_rows - 1).bit_length()) if records.n_rows > 0 else 64
            tile_rows = min(1 << (fitting.bit_length() - 1), needed)
        self._tile_rows = tile_rows
        self.cells_shape = -(-len(self.rows) // self._tile_rows), self.rows.shape[1], self._tile_rows
        """Tiles, columns, and rows per tile."""
        self.tiled = partial(_tiled, self._tile_rows)
        """Cuts a row vector like the tiles, padded with zeros: null records."""
        self._margins: tuple[bytes, Floats] | None = None

    def margins(self, w: Floats) -> Floats:
        """Return exact integer margins, tile by tile, as doubles, to be read only; those of the last weights are kept.

        The choice of a coordinate and the entry of the gradient that follows are asked at the same weights.
        """
        weights = w.tobytes()
        if self._margins is None or self._margins[0] != weights:
            self._margins = weights, self.tiles.margins(w)
        return self._margins[1]

    @cached_property
    def tiles(self) -> Tiles:
        """The rows in tiles, cut when they are first asked for."""
        return self._tiles_of(self.cells)

    def tiles_of(self, columns: Integers) -> Tiles:
        """Return tiles of some columns alone; limits stay those of whole rows."""
        cells = np.zeros((self.cells_shape[0], len(columns), self._tile_rows), self.rows.dtype)
        cut_tiles(np.ascontiguousarray(self.rows[:, columns]), cells)
        return self._tiles_of(cells)

    def _tiles_of(self, cells: Array) -> Tiles:
        records = self.records
        shares = None if records.shares is None else np.maximum(self.tiled(records.shares), 1)
        limits = Limits(records.norms, records.sums, records.shares, cut=self.tiled)
        return Tiles(cells, self.tiled(records.targets), self.tiled(self.weights), limits, shares)

    @cached_property
    def cells(self) -> Array:
        """The rows' entries in tiles, where the records are kept; the last tile ends with null records."""
        cells = self.records.storage.zeros(self.cells_shape, self.rows.dtype)
        self.cut_into(cells)
        return cells

    def cut_into(self, cells: Array) -> None:
        """Fill tiles with the rows."""
        rows, size = self.rows, self._tile_rows

        def part(first: int, last: int) -> None:
            cut_tiles(rows[first * size : last * size], cells[first:last])

        self.workers.each(part, len(cells), rows.size)

    @cached_property
    def smooth(self) -> DenseSmooth:
        tiles = self.tiles
        norms = self.tiled(self.records.norms)
        return DenseSmooth(self.records, self.workers, tiles.cells, tiles.targets, tiles.weights, norms)


class SparseEngine(LocalEngine):
    """Records as a sparse integer matrix: ``rows`` are (indptr, indices, data)."""

    def __init__(self, records: Records, *, threads: int | None = None) -> None:
        assert records.sparse is not None
        super().__init__(records, threads=threads)
        self.rows = records.sparse

    @cached_property
    def columns(self) -> tuple[Integers, NDArray[np.uint32], Array]:
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
    def smooth(self) -> SparseSmooth:
        return SparseSmooth(self.records, self.workers, self.weights)


def engine_for(records: Records, *, threads: int | None = None) -> LocalEngine:
    """Return tiles for dense records, compressed rows for sparse ones."""
    return (DenseEngine if records.sparse is None else SparseEngine)(records, threads=threads)


def opened(records: Records) -> Engine:
    """Return what a curator asks of its records: one engine where memory holds copies of them, parts where not."""
    if records.storage.on_disk or not records.storage.holds_copies:
        return PartedEngine(records)
    return engine_for(records)


class PartedEngine(Engine):
    """Records at hand, asked part by part, each on one thread.

    ``placement`` recodes each part on the way through. Without one, and with records on disk, the layout that full
    passes read is cut once and kept on disk, too.
    """

    def __init__(self, records: Records, *, threads: int | None = None, placement: Placement | None = None) -> None:
        self._records, self._placement = records, placement
        self.grid = records.grid if placement is None else placement.grid
        self.n_columns = records.n_columns if placement is None else placement.n_columns
        self.n_units = records.n_units
        self.is_sparse, self.is_grouped = records.sparse is not None, records.shares is not None
        self._keeps_tiles = placement is None and not self.is_sparse and records.storage.on_disk
        self._workers = Workers(threads)
        self._edges = _edges(records, self._workers.threads)
        self._cut: set[int] = set()

    def total(self, question: ExactSum) -> Integers:
        if self._keeps_tiles:
            _ = self._store  # made before threads ask for it: two of them might make two, and one would be read empty
        work = self.n_columns * len(self._records.targets)
        return self._workers.sum(partial(self._answers, question), len(self._edges) - 1, work)

    def _answers(self, question: ExactSum, first: int, last: int) -> Integers:
        """Return the sum over parts ``first`` to ``last - 1``."""
        total: Integers | None = None
        for at in range(first, last):
            begin, end = self._edges[at], self._edges[at + 1]
            part = self._records.part(begin, end)
            if self._keeps_tiles:
                engine: LocalEngine = self._kept_engine(at, part)
            else:
                seen = part if self._placement is None else self._placement.of(part, threads=1)
                engine = engine_for(seen, threads=1)
            answer = question.of_units(begin, end).over(engine)
            total = answer if total is None else np.add(total, answer, out=total)
        assert total is not None
        return total

    def _kept_engine(self, at: int, part: Records) -> DenseEngine:
        """Return an engine of a part whose tiles are on disk, cut when they are first read."""
        engine = DenseEngine(part, threads=1)
        count, columns, size = engine.cells_shape
        first, starts = self._edges[at], self._records.starts
        start = ((first if starts is None else int(starts[first])) + at * MOST_TILE_ROWS) * columns
        cells = self._store[start : start + count * columns * size].reshape(engine.cells_shape)
        if at not in self._cut:
            engine.cut_into(cells)
            self._cut.add(at)
        engine.cells = cells
        return engine

    @cached_property
    def _store(self) -> Array:
        """Room for the tiles of every part: its rows, and less than one tile to fill the last one up."""
        rows = self._records.n_rows + MOST_TILE_ROWS * len(self._edges)
        return self._records.storage.zeros(rows * self.n_columns, self.grid.dtype)

    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        if once or not self._records.storage.holds_copies:
            return PartedEngine(self._records, threads=self._workers.threads, placement=placement)
        return PartedEngine(placement.of(self._records), threads=self._workers.threads)

    def whole(self) -> LocalEngine:
        return self._whole

    @cached_property
    def _whole(self) -> LocalEngine:
        records = self._records if self._placement is None else self._placement.of(self._records)
        return engine_for(records, threads=self._workers.threads)


_LEAST_ROWS = 1 << 12


def _edges(records: Records, threads: int) -> list[int]:
    """Return where parts begin and end, in units; a table without records is one empty part.

    In memory parts have so many rows that every thread gets as many parts as the others.
    """
    rows = rows_per_part(records.n_columns)
    if not records.storage.on_disk:
        rounds = max(1, -(-records.n_rows // (rows * threads)))
        rows = min(rows, max(_LEAST_ROWS, -(-records.n_rows // (rounds * threads))))
    if records.starts is None:
        return [*range(0, max(1, records.n_units), rows), records.n_units]
    edges, starts = [0], records.starts
    while edges[-1] < records.n_units:
        reached = int(np.searchsorted(starts, starts[edges[-1]] + rows, side="right")) - 1
        edges.append(min(records.n_units, max(edges[-1] + 1, reached)))
    return edges if len(edges) > 1 else [0, 0]
