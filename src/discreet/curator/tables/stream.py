"""A table as the curator reads it, block by block, and how much memory and disk a fit of it will take.

Files are read in blocks, and their encoded rows are kept in memory as long as it holds them, else in scratch files.
Measured on Parquet files of 5 10^5 to 4 10^6 rows with 5 and 40 features: a process takes about 350 MB before it has a
row. The rest is counted in ``records/storage.py``.

*Privacy.* The estimate is a function of declared facts, of the number of features, and of the number of rows only where
neighbors agree on it: it is not made where persons have several rows, nor under ``add_remove`` unless ``rows`` is
declared.

Which cells do not hold what the schema declares is counted with noise while the table is read (``TableChecks``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.cell_counts import CHECKS, ESTIMATED_RANGES, NULL
from discreet.accounting.plan import Plan, Release
from discreet.budget import Neighbors
from discreet.curator.records.admission import scaling_for
from discreet.curator.records.storage import (
    ON_DISK,
    available_memory,
    bytes_in_memory,
    bytes_of_rows,
    bytes_on_disk,
    current_limits,
    free_disk,
    storage_for,
)
from discreet.curator.records.stream import Block, Elsewhere, RecordStream
from discreet.curator.tables import cells
from discreet.curator.tables.cells import NOT_ASKED, States
from discreet.curator.tables.encode import Layout, mark_rows, number_cells
from discreet.curator.tables.frames import BATCH_ROWS, TWICE, Batch, Source
from discreet.curator.tables.ranges import RangeEstimates, release_for
from discreet.errors import Unsupported
from discreet.json_schemas import Json
from discreet.schema.columns import Number
from discreet.schema.schema import Schema, check_types
from discreet.typing import Booleans, Floats, Integers

SHARE = 0.02
"""Of the budget (of mu^2): a hundredth more noise in the model."""


class TableChecks:
    """The cells that are counted: 0 for a null record, then two for each column (nothing there; something else).

    A row is in at most one cell per column, of the features, the target, the weight and the offset, and in cell 0 if it
    counts as null. Which ones follows from that row, the schema, and ranges that were released before, so that the
    counts have the sensitivity that ``curator/queries/counts.py`` proves for ``per_row`` cells.
    """

    def __init__(self, schema: Schema) -> None:
        assert schema.target is not None
        kinds = dict(schema.columns)
        self._words = {name: _words(isinstance(kind, Number)) for name, kind in kinds.items()}
        self._words[schema.target.column] = _words(schema.target.classes is None)
        self._words |= dict.fromkeys(schema.columns_beside, _words(True))
        self.names = tuple(self._words)
        self.size, self.per_row = 1 + 2 * len(self._words), 1 + len(self._words)

    def release(self, plan: Plan, *, pure: bool) -> Release:
        """Return the counts' release next to a fit's plan."""
        return release_for(plan, pure=pure, share=SHARE, query=CHECKS)

    def cells(self, states: States, is_null: Booleans, *, all_rows: bool) -> Integers:
        """Return the cells of rows: ``states`` has a column per column in ``names``.

        Rows that are in no cell add nothing to any count, and most are: they are left out unless ``all_rows``.
        """
        wanted = np.full(len(states), True) if all_rows else is_null.copy()
        count = len(states) if all_rows else mark_rows(states, wanted)
        out = np.empty((count, self.per_row), dtype=np.int64)
        number_cells(states, is_null, wanted, out)
        return out

    def described(self, counts: Floats, noise: float) -> Json:
        """Return the counts by column, whole numbers, as a certificate keeps them."""
        pairs = np.rint(counts[1:]).astype(int).reshape(-1, 2).tolist()
        columns = {
            name: dict(zip(words, pair, strict=True))
            for (name, words), pair in zip(self._words.items(), pairs, strict=True)
        }
        return {NULL: round(float(counts[0])), "columns": columns, "noise": float(f"{noise:.4g}")}


def _words(is_number: bool) -> tuple[str, str]:
    return ("no_number", "outside") if is_number else ("empty", "unknown")


_BLOCK_VALUES = 1 << 21
FEATURES = "feature_names"
"""Among the public facts: the encoded features, in their order."""


class TableStream(RecordStream):
    """The rows of a source as encoded features, targets and persons.

    Parameters
    ----------
    source, schema
        The table, and what is declared of it.
    with_target
        Whether there is a target to read; without one, targets are 0, and persons and weights are not read.
    checks
        Whether cells that do not hold what is declared are counted, with noise, when a model is fitted.
    """

    def __init__(self, source: Source, schema: Schema, *, with_target: bool = True, checks: bool = False) -> None:
        schema.check()
        self._source, self._schema, self._with_target = source, schema, with_target
        self._needed = schema.needed if with_target else schema.predicted_from
        source.check(self._needed)
        check_types(schema, source.stored, self._needed)
        if source.once and with_target and (schema.private_columns or schema.person is not None):
            raise Unsupported(TWICE)
        self._layout, self._declared = Layout(schema), schema
        self._estimated: Json | None = None
        self._person = schema.person if with_target else None
        self._persons: Integers | None = None
        self._names: dict[str | None, int] = {}
        self._count: int | None = None
        self.columns = [feature.name for feature in self._layout.features]
        self.once, self.has_persons = source.once, self._person is not None
        self.bounds, self.cones = self._layout.bounds, self._layout.cones
        self._weight = schema.weight if with_target else None
        beside = {"weights": self._weight, "offsets": schema.offset}
        self.columns_beside = tuple(name for name, role in beside.items() if role is not None)
        self.estimates = RangeEstimates(self) if schema.private_columns else None
        self.checks = self._checks = TableChecks(schema) if checks and with_target else None
        self.notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows, counted when they are first asked for, and features."""
        if self._count is None:  # no cached_property: it would lock while workers count, which may be threads here
            away = self.elsewhere
            self._count = self._source.count() if away is None else away.count()
        return self._count, len(self.columns)

    @cached_property
    def elsewhere(self) -> Elsewhere | None:  # type: ignore[override]
        """The rows on a cluster, where this process does not read them."""
        parts = getattr(self._source, "parts", None)
        return None if parts is None else parts(self._schema, checks=self._checks is not None)

    @property
    def schema(self) -> Schema:
        """What is declared, with estimated ranges where there are any."""
        return self._schema

    @property
    def source(self) -> Source:
        """The table."""
        return self._source

    @property
    def facts(self) -> Json:  # type: ignore[override]
        """The declarations that the guarantee rests on, for the certificate."""
        facts: Json = {"schema": self._declared.to_dict(), FEATURES: self.columns}
        return facts if self._estimated is None else {**facts, ESTIMATED_RANGES: self._estimated}

    def declared_by(self, schema: Schema, note: str) -> "TableStream":
        """The same rows by another schema of the same columns, with a note for the certificate on why."""
        stream = TableStream(self._source, schema, checks=self._checks is not None)
        stream._persons, stream._count, stream.notes = self._persons, self._count, (*self.notes, note)
        return stream

    def settled(self, ranges: dict[str, tuple[float, float]]) -> "TableStream":
        """The same rows with estimated ranges."""
        stream = TableStream(self._source, self._schema.with_ranges(ranges), checks=self._checks is not None)
        stream._estimated, stream._declared = {name: list(ends) for name, ends in ranges.items()}, self._schema
        stream._persons, stream._count, stream.reading = self._persons, self._count, self.reading
        return stream

    def blocks(self) -> Iterator[Block]:
        rows = min(BATCH_ROWS, max(256, _BLOCK_VALUES // len(self.columns)))
        done = 0
        for batch in self._source.read_ahead(self._needed, rows):
            states = None
            if self._checks is not None:
                states = np.empty((batch.rows, len(self._checks.names)), dtype=np.int8, order="F")
            features = self._layout.encode(batch.columns, batch.rows, states)
            targets = np.zeros(batch.rows)
            if self._with_target and self._schema.target is not None:
                target_states = NOT_ASKED if states is None else states[:, len(self._schema.columns)]
                targets = self._layout.targets(batch.columns[self._schema.target.column], target_states)
            weights, offsets = self._beside(batch, states)
            persons = self.persons()[done : done + batch.rows] if self.has_persons else None
            done += batch.rows
            checks = None
            if self._checks is not None and states is not None:
                is_null = _are_null(features, *(column for column in (targets, weights, offsets) if column is not None))
                checks = self._checks.cells(states, is_null, all_rows=self.has_persons)
            yield Block(features, targets, persons, checks, weights, offsets)

    def _beside(self, batch: Batch, states: States | None) -> tuple[Floats | None, Floats | None]:
        """Return the weights and the offsets of a batch; ``states`` has their columns after the target's."""
        place, weights, offsets = len(self._schema.columns) + 1, None, None
        if self._weight is not None:
            cell_states = NOT_ASKED if states is None else states[:, place]
            weights, place = self._layout.weights(batch.columns[self._weight.column], cell_states), place + 1
        if self._schema.offset is not None:
            cell_states = NOT_ASKED if states is None else states[:, place]
            offsets = self._layout.offsets(batch.columns[self._schema.offset.column], cell_states)
        return weights, offsets

    def persons(self) -> Integers:
        """The person behind each row, as numbers; rows that name nobody belong to one person."""
        if self._persons is None:
            assert self._person is not None
            missing, seen = frozenset(self._schema.missing_texts), self._names
            parts = [np.empty(0, dtype=np.int64)]
            for batch in self._source.read_ahead([self._person]):
                names, codes = cells.coded_names(batch.columns[self._person], missing)
                number_of_code = np.empty(len(names), dtype=np.int64)
                used, first = np.unique(codes, return_index=True)
                for code in used[np.argsort(first)].tolist():  # numbers in the order of rows, however names are stored
                    number_of_code[code] = seen.setdefault(names[code], len(seen))
                parts.append(number_of_code[codes])
            self._persons = np.concatenate(parts)
        return self._persons

    def names(self) -> NDArray[np.object_]:
        """The name of the person behind each row, a text; None of those that name nobody."""
        persons, names = self.persons(), np.empty(len(self._names), dtype=object)
        names[:] = list(self._names)
        return names[persons]


def _are_null(features: Floats, *columns: Floats) -> Booleans:
    """Return which rows count as null, each for itself: of features, targets, weights and offsets."""
    is_null = np.full(len(features), False)
    for column in columns:
        is_null |= ~np.isfinite(column)
    for j in range(features.shape[1]):
        is_null |= np.isnan(features[:, j])
    return is_null


BASE = 350 << 20


@dataclass(frozen=True)
class Needs:
    """What a fit will take at most, and what this machine has left, in bytes.

    ``memory`` and ``disk`` are None where the number of rows is private.
    """

    memory: int | None
    disk: int | None
    available: int | None
    free: int | None
    folder: Path

    @property
    def fits(self) -> bool:
        """Whether there is room, as far as anything is known."""
        enough = [(self.memory, self.available)] if not self.disk else [(self.disk, self.free)]
        return all(needed is None or left is None or needed <= left for needed, left in enough)


def needs_of(schema: Schema, source: Source, neighbors: Neighbors) -> Needs:
    """Return about what a fit will take at most."""
    folder = current_limits().folder
    left = available_memory(), free_disk(folder)
    rows = source.count() if neighbors.n_is_public else schema.rows
    if rows is None or schema.person is not None:
        return Needs(None, None, *left, folder)
    layout = Layout(schema)
    grid = scaling_for(layout.bounds, len(layout.features), None, True).grid
    room = rows, len(layout.features) + 1, grid
    storage = storage_for(*room)
    if storage.on_disk:
        return Needs(BASE + ON_DISK, bytes_on_disk(*room), *left, folder)
    rows = bytes_in_memory(*room) if storage.holds_copies else bytes_of_rows(*room)
    return Needs(BASE + rows, 0, *left, folder)
