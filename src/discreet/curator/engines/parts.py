"""Records at hand that are asked part by part: in memory, or mapped from scratch files that memory does not hold.

A sum over all records is the sum over their parts, each taken exactly once. A part is a run of units (records, or
persons with all their rows), so that no person is cut, and a sample of units is cut like the units. What a pass needs
for each row is made for one part at a time; with a map, its rows are recoded on the way.
"""

from __future__ import annotations  # nested functions would build their annotations on every call

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.engines.base import Engine, ExactSum, LocalEngine
from discreet.curator.engines.local import MOST_TILE_ROWS, DenseEngine, engine_for
from discreet.curator.engines.threads import Workers
from discreet.curator.records.storage import rows_per_part
from discreet.typing import Integers

if TYPE_CHECKING:
    from discreet.curator.records.admission import Records
    from discreet.curator.records.recoding import Placement


def answered(records: Records, placement: Placement | None, question: ExactSum) -> Integers:
    """Return a question's exact sum over one part of the records, on one thread; recoded on the way by a placement."""
    seen = records if placement is None else placement.of(records, threads=1)
    return question.over(engine_for(seen, threads=1))


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
        self._workers = Workers(threads)
        self._edges = _edges(records, _rows_per_part(records, self._workers.threads))
        self._cut: set[int] = set()

    def total(self, question: ExactSum) -> Integers:
        parts = list(pairwise(self._edges))
        if self._keeps_tiles:
            _ = self._store  # made before threads ask for it: two of them might make two, and one would be read empty

        def some(first: int, last: int) -> Integers:
            found = self._answer(first, question)
            for at in range(first + 1, last):
                found += self._answer(at, question)
            return found

        return self._workers.sum(some, len(parts), self.n_columns * len(self._records.targets))

    def _answer(self, at: int, question: ExactSum) -> Integers:
        first, last = self._edges[at], self._edges[at + 1]
        part, asked = self._records.part(first, last), question.of_units(first, last)
        if not self._keeps_tiles:
            return answered(part, self._placement, asked)
        return asked.over(self._kept_engine(at, part))

    @property
    def _keeps_tiles(self) -> bool:
        return self._placement is None and not self.is_sparse and self._records.storage.on_disk

    def _kept_engine(self, at: int, part: Records) -> DenseEngine:
        """Return an engine of a part whose tiles are on disk, cut when they are first read."""
        engine = DenseEngine(part, threads=1)
        count, columns, size = engine.cells_shape
        start = (self._first_row(at) + at * MOST_TILE_ROWS) * columns
        cells = self._store[start : start + count * columns * size].reshape(engine.cells_shape)
        if at not in self._cut:
            engine.cut_into(cells)
            self._cut.add(at)
        engine.cells = cells
        return engine

    @cached_property
    def _store(self) -> NDArray[Any]:
        """Room for the tiles of every part: its rows, and less than one tile to fill the last one up."""
        rows = self._records.n_rows + MOST_TILE_ROWS * len(self._edges)
        return self._records.storage.zeros(rows * self.n_columns, self.grid.dtype)

    def _first_row(self, at: int) -> int:
        first = self._edges[at]
        return first if self._records.starts is None else int(self._records.starts[first])

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


def _rows_per_part(records: Records, threads: int) -> int:
    """Return how many rows are asked at once; in memory, so many that every thread gets as many parts as the others."""
    rows = rows_per_part(records.n_columns)
    if records.storage.on_disk:
        return rows
    rounds = max(1, -(-records.n_rows // (rows * threads)))
    return min(rows, max(_LEAST_ROWS, -(-records.n_rows // (rounds * threads))))


def _edges(records: Records, rows: int) -> list[int]:
    """Return where parts of about so many rows begin and end, in units; a table without records is one empty part."""
    if records.starts is None:
        return [*range(0, max(1, records.n_units), rows), records.n_units]
    edges, starts = [0], records.starts
    while edges[-1] < records.n_units:
        reached = int(np.searchsorted(starts, starts[edges[-1]] + rows, side="right")) - 1
        edges.append(min(records.n_units, max(edges[-1] + 1, reached)))
    return edges if len(edges) > 1 else [0, 0]
