"""From rows on a worker to a part: what is read there, counted there and encoded there.

Workers of a cluster import this file. What a row becomes is what it becomes in memory: the same streams, cells and
kernels read it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.curator.engines.part_tasks import Part, Seen, guarded, sealed, software
from discreet.curator.engines.tally import Answer
from discreet.curator.kernels.moments import add_counts
from discreet.curator.records import admission, containers
from discreet.curator.records.row_sketches import RowHashes
from discreet.curator.records.storage import MEMORY
from discreet.curator.records.stream import Block, RecordStream, admit_stream
from discreet.errors import Unsupported
from discreet.typing import Integers, Words

if TYPE_CHECKING:
    from discreet.schema.schema import Schema


class Rows(Protocol):
    """How what a part is made of becomes a stream: public facts only, sent to workers."""

    def stream(self, *given: Any) -> RecordStream:
        """Return the rows of one part."""
        ...


@dataclass(frozen=True, repr=False)
class Encoding:
    """How rows become records: declared facts; words for hashes of rows, where a ledger recognizes them; counts."""

    scaling: admission.Scaling
    targets: admission.TargetScaling
    secrets: Words | None = None
    counts: bool = False


@dataclass(frozen=True)
class ArrayRows:
    """Features and targets side by side: blocks of arrays, or partitions of frames, with the target's column or not."""

    n_columns: int
    classes: Sequence[Any] | None
    target: Any = None

    def stream(self, *given: Any) -> RecordStream:
        """Return the rows of one part."""
        X, y = given if len(given) == 2 else (given[0].drop(columns=[self.target]), given[0][self.target])
        table, targets = containers.two_dimensional(X), containers.one_dimensional(y)
        if table.shape[1] != self.n_columns or table.shape[0] != len(targets):
            raise Unsupported("X and y must be partitioned alike, with the same columns in every part")
        return _ArrayStream(table, targets, self.classes)


class _ArrayStream(RecordStream):
    def __init__(self, table: Any, targets: Any, classes: Sequence[Any] | None) -> None:
        self._table, self._targets, self._classes = table, targets, classes
        self.shape = int(table.shape[0]), int(table.shape[1])

    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks."""
        placed = _positions(self._targets, self._classes)
        for first, last, features in admission.blocks(self._table, *self.shape):
            yield Block(features, placed[first:last])

    def persons(self) -> Integers:
        """Refuse: there are none."""
        raise Unsupported("these rows name no persons")


def _positions(targets: Any, classes: Sequence[Any] | None) -> Any:
    return admission.numbers(targets) if classes is None else admission.class_indices(targets, classes)


@dataclass(frozen=True)
class TableRows:
    """A part of a table, by its schema: a data frame, or what names a part of a file."""

    schema: Schema
    checks: bool

    def stream(self, *given: Any) -> RecordStream:
        """Return the rows of one part."""
        from discreet.curator.tables.file_parts import FilePart
        from discreet.curator.tables.sources import FrameSource
        from discreet.curator.tables.table_stream import TableStream

        (table,) = given
        source = table.source() if isinstance(table, FilePart) else FrameSource(table)
        return TableStream(source, self.schema, checks=self.checks)


@guarded
def encode(number: int, rows: Rows, how: Encoding, *given: Any) -> Part:
    """Read and encode one part; nothing is kept of its rows but the integers, and what was seen on the way."""
    stream = rows.stream(*given)
    n = stream.shape[0]
    hashes = None if how.secrets is None else RowHashes(how.secrets, n)
    found: list[Integers] = []

    def drive(blocks: Iterator[Block]) -> None:
        checks = stream.checks
        if how.counts and checks is not None:
            found.append(counted((b.checks for b in blocks if b.checks is not None), checks.size))
        deque(blocks, maxlen=0)  # to their end

    watch = None if hashes is None else hashes.see
    records = admit_stream(stream, how.targets, how.scaling, watch, drive, storage=MEMORY)
    seen = Seen(None if hashes is None else hashes.sketch(), found[0] if found else None)
    return sealed(number, records, seen)


@guarded
def count_rows(number: int, rows: Rows, *given: Any) -> Answer[int]:
    """Return how many rows a part has."""
    return Answer(number, None, software(), rows.stream(*given).shape[0])


@guarded
def count_cells(number: int, rows: Rows, *given: Any) -> Answer[Integers]:
    """Return how many rows of a part are in each cell of what its stream asks for before blocks can be made."""
    estimates = rows.stream(*given).estimates
    assert estimates is not None
    return Answer(number, None, software(), counted(estimates.cells(), estimates.size))


def counted(cells: Iterable[Integers], size: int) -> Integers:
    """Return how many rows are in each cell; a row that names one twice is in it once."""
    from discreet.curator.known_answers.moments import check_count_kernel

    check_count_kernel()
    total, seen, rows = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), 0
    for block in cells:
        add_counts(np.ascontiguousarray(block), np.ones(len(block), dtype=np.int64), rows, seen, total)
        rows += len(block)
    return total
