"""A table as the curator reads it: batches of a source through the schema's encoding, block by block."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from discreet.accounting.cell_counts import ESTIMATED_RANGES
from discreet.curator.records.stream import Block, Elsewhere, RecordStream
from discreet.curator.tables import cells
from discreet.curator.tables.arrow_streams import TWICE
from discreet.curator.tables.cell_checks import TableChecks
from discreet.curator.tables.cell_states import NOT_ASKED
from discreet.curator.tables.layout import Layout
from discreet.curator.tables.range_estimates import RangeEstimates
from discreet.curator.tables.sources import BATCH_ROWS, Source
from discreet.errors import Unsupported
from discreet.schema.schema import Schema
from discreet.schema.stored_types import check_types
from discreet.typing import Booleans, Floats, Integers

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
        Whether there is a target to read; without one, targets are 0 and persons are not read.
    checks
        Whether cells that do not hold what is declared are counted, with noise, when a model is fitted.
    """

    def __init__(self, source: Source, schema: Schema, *, with_target: bool = True, checks: bool = False) -> None:
        schema.check()
        self._source, self._schema, self._with_target = source, schema, with_target
        self._needed = schema.needed if with_target else tuple(schema.columns)
        source.check(self._needed)
        check_types(schema, source.stored, self._needed)
        if source.once and with_target and (schema.private_columns or schema.person is not None):
            raise Unsupported(TWICE)
        self._layout, self._declared = Layout(schema), schema
        self._estimated: dict[str, Any] | None = None
        self._person = schema.person if with_target else None
        self._persons: Integers | None = None
        self._count: int | None = None
        self.columns = [feature.name for feature in self._layout.features]
        self.once, self.has_persons = source.once, self._person is not None
        self.bounds = self._layout.bounds
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
    def facts(self) -> dict[str, Any]:  # type: ignore[override]
        """The declarations that the guarantee rests on, for the certificate."""
        found: dict[str, Any] = {"schema": self._declared.to_dict(), FEATURES: self.columns}
        return found if self._estimated is None else {**found, ESTIMATED_RANGES: self._estimated}

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
        """All rows, in blocks, from the start."""
        rows = min(BATCH_ROWS, max(256, _BLOCK_VALUES // len(self.columns)))
        done = 0
        for batch in self._source.read_ahead(self._needed, rows):
            asked = self._checks is not None
            states = np.empty((batch.rows, len(self._schema.columns) + 1), dtype=np.int8, order="F") if asked else None
            features = self._layout.encode(batch.columns, batch.rows, states)
            targets = np.zeros(batch.rows)
            if self._with_target and self._schema.target is not None:
                told = NOT_ASKED if states is None else states[:, -1]
                targets = self._layout.targets(batch.columns[self._schema.target.column], told)
            persons = self.persons()[done : done + batch.rows] if self.has_persons else None
            done += batch.rows
            checks = None
            if self._checks is not None and states is not None:
                checks = self._checks.cells(states, _are_null(features, targets), all_rows=self.has_persons)
            yield Block(features, targets, persons, checks)

    def persons(self) -> Integers:
        """The person behind each row, as numbers; rows that name nobody belong to one person."""
        if self._persons is None:
            assert self._person is not None
            missing, seen = frozenset(self._schema.missing_texts), dict[str | None, int]()
            found = [np.empty(0, dtype=np.int64)]
            for batch in self._source.read_ahead([self._person]):
                names, codes = cells.coded_names(batch.columns[self._person], missing)
                known = np.empty(len(names), dtype=np.int64)
                used, first = np.unique(codes, return_index=True)
                for code in used[np.argsort(first)].tolist():  # numbers in the order of rows, however names are stored
                    known[code] = seen.setdefault(names[code], len(seen))
                found.append(known[codes])
            self._persons = np.concatenate(found)
        return self._persons


def _are_null(features: Floats, targets: Floats) -> Booleans:
    """Return which rows count as null, each for itself."""
    found = ~np.isfinite(targets)
    for j in range(features.shape[1]):
        found |= np.isnan(features[:, j])
    return found
