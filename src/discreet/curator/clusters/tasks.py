"""What workers of a cluster run: they read and encode parts of the records, and answer exact sums over them.

This file, and what it imports, knows no noise, no entropy and no ledger: a test runs these tasks in a new process and
looks. A task returns its failure instead of raising it: an exception would be logged with its arguments, and travel
with a text that may quote a cell. What a row becomes is what it becomes in memory: the same streams, cells and kernels
read it.

**Each part once.** A task that a scheduler repeats may answer twice, a worker that comes late may run other code, and a
part that is made again from a file that has changed holds other records. A sum over parts has the sensitivity of a sum
over records only if every record is in it once, and the same records in every pass. So every answer names its part and
what the part was when it was encoded; a second answer of a part is dropped; anything else that does not fit ends the
fit (``Tally``).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.curator.engines import ExactSum, LocalEngine, engine_for
from discreet.curator.kernels.moments import add_counts
from discreet.curator.known_answers import (
    check_count_kernel,
    check_kernels,
    check_question,
    check_recoding_kernels,
    known_sum,
)
from discreet.curator.records import admission
from discreet.curator.records.row_sketches import RowHashes, RowSketch
from discreet.curator.records.storage import MEMORY
from discreet.curator.records.stream import Block, Encoding, RecordStream, admit_stream, in_place
from discreet.curator.tables.files import CsvSource, ParquetSource, open_table, read_row_groups
from discreet.curator.tables.frames import BATCH_ROWS, Batch, FrameSource, Source
from discreet.curator.tables.stream import TableStream
from discreet.errors import ClusterFailed, DiscreetError, Unsupported
from discreet.typing import Booleans, Floats, Integers, Words

if TYPE_CHECKING:
    from discreet.curator.metrics.row_values import Cells, Scoring
    from discreet.curator.records.admission import Records
    from discreet.curator.records.recoding import Placement
    from discreet.losses.base import Loss
    from discreet.schema.schema import Schema


CHANGED = (
    "a part of the records was made again, and is not what it was: files must not change while a model is fitted. "
    "What was charged stays charged"
)
LOST = "the cluster did not answer for every part of the records, once each; what was charged stays charged"
UNREAD = "it cannot read the files of the table, or sees others: every worker must see the same files at the same paths"
OTHER_CODE = (
    "a worker runs other code than this process: install the same versions of discreet, numba and numpy everywhere. "
    "What was charged stays charged"
)

Told = TypeVar("Told")


@dataclass(frozen=True, repr=False)
class Seal:
    """What a part was when it was encoded: its units (records, or persons), and the checksum of its bytes.

    As private as the rows are.
    """

    units: int
    checksum: bytes


@dataclass(frozen=True, repr=False)
class Answer(Generic[Told]):
    """What a worker says of one part, with the part's seal and what the worker runs."""

    part: int
    seal: Seal | None
    software: tuple[str, ...]
    told: Told


class Tally(Generic[Told]):
    """Answers by part. ``seals`` is the plan: the parts there are, with what they were (None: not encoded yet)."""

    def __init__(self, seals: Mapping[int, Seal | None], code: tuple[str, ...] | None = None) -> None:
        self._seals, self._software = seals, software() if code is None else code
        self._told: dict[int, Told] = {}

    def add(self, answer: Any) -> None:
        """Take an answer; one of a part that has answered before is dropped."""
        if not isinstance(answer, Answer) or answer.part not in self._seals:
            raise ClusterFailed(LOST)
        if answer.software != self._software:
            raise ClusterFailed(OTHER_CODE)
        seal = self._seals[answer.part]
        if seal is not None and answer.seal != seal:
            raise ClusterFailed(CHANGED)
        self._told.setdefault(answer.part, answer.told)

    def complete(self) -> list[Told]:
        """Return the answers, in the order of the parts, once every part has answered."""
        if self._told.keys() != self._seals.keys():
            raise ClusterFailed(LOST)
        return [self._told[part] for part in sorted(self._told)]


def added(parts: Sequence[Integers]) -> Integers:
    """Return the exact sum: of integers whose total fits 62 bits, as the lattice was made for."""
    total: Integers = np.zeros_like(parts[0])
    for part in parts:
        if part.shape != total.shape or part.dtype != total.dtype:
            raise ClusterFailed(LOST)
        total += part
    return total


_NAMED = (MemoryError, ImportError, FileNotFoundError, PermissionError)
_RUN = (
    "curator/clusters",
    "curator/kernels",
    "curator/metrics",
    "curator/engines.py",
    "curator/queries",
    "curator/records",
    "curator/tables",
    "losses",
)
"""Folders and files whose code decides what a worker answers."""


@dataclass(frozen=True)
class Failed:
    """A task that failed: our own words, which name no value, or the kind of a few errors; nothing else of it."""

    reason: str


Ranks = tuple[Integers, NDArray[Any] | None]
"""Where in the table each person's first row is, and the persons' names where they can be sorted."""


@dataclass(frozen=True, repr=False)
class Seen:
    """What was seen of a part's rows while they were encoded.

    ``sketch`` are hashes for a fingerprint, ``cells`` counts of cells by the number of rows that a person has (1 for
    records). ``sources`` tells what a part of persons was gathered from, ``ranks`` what they are numbered by.
    """

    sketch: RowSketch | None = None
    cells: dict[int, Integers] | None = None
    sources: bytes = b""
    ranks: Ranks | None = None


UNSEEN = Seen()


@dataclass(frozen=True, repr=False)
class Values:
    """Numbers of each row, in place of its record: what a score needs of it, or features and the target.

    Persons' rows are together, as those of records are.
    """

    rows: Floats
    starts: Integers | None = None
    shares: Integers | None = None

    @property
    def n_units(self) -> int:
        """The number of records, or of persons."""
        return len(self.rows) if self.starts is None else len(self.starts) - 1


@dataclass(frozen=True, repr=False)
class CellEncoding:
    """Makes records of what a score needs of each row: its cells, encoded."""

    cells: Cells
    how: Encoding

    def of(self, values: Values, *, threads: int | None = None) -> Records:
        """Return the records; each row's depends on that row and on public or released values alone."""
        with np.errstate(all="ignore"):  # a warning is an answer
            table = self.cells(values.rows)
        targets, weights = self.how.targets.placed(np.zeros(len(values.rows)))
        persons = None if values.starts is None else np.repeat(np.arange(values.n_units), np.diff(values.starts))
        return admission.admit(table, targets, self.how.scaling, persons, storage=MEMORY, weights=weights)


class Part:
    """Some of the records, encoded, on a worker; the layout that passes read is kept next to them.

    Or numbers of each row, of which records are made later.
    """

    def __init__(self, number: int, records: Records | Values, seal: Seal, seen: Seen = UNSEEN) -> None:
        self.number, self.records, self.seal, self.seen = number, records, seal, seen
        self._engine: LocalEngine | None = None

    @property
    def engine(self) -> LocalEngine:
        """The records on one thread: a worker runs as many tasks as it has threads."""
        if self._engine is None:  # no cached_property: its lock is one for all parts
            assert not isinstance(self.records, Values)
            self._engine = engine_for(self.records, threads=1)
        return self._engine

    def __reduce__(self) -> Any:
        return Part, (self.number, self.records, self.seal, self.seen)

    def __sizeof__(self) -> int:
        """Return the bytes of the records: by them a worker decides when to spill."""
        return object.__sizeof__(self) + sum(int(array.nbytes) for array in _arrays(self.records))


def sealed(number: int, records: Records | Values, seen: Seen = UNSEEN) -> Part:
    """Return records as a part, with the checksum of their bytes."""
    checksum = hashlib.blake2b(digest_size=16)
    ranks = [] if seen.ranks is None else [array for array in seen.ranks if array is not None]
    updated(checksum, [*_arrays(records), *ranks])
    return Part(number, records, Seal(records.n_units, checksum.digest()), seen)


def updated(checksum: Any, arrays: Iterable[NDArray[Any]]) -> None:
    """Add arrays to a checksum, with their types and shapes."""
    for array in arrays:
        checksum.update(f"{array.dtype.str}{array.shape}".encode())
        checksum.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")


def _arrays(records: Records | Values) -> list[Any]:
    if isinstance(records, Values):
        return [array for array in (records.rows, records.starts, records.shares) if array is not None]
    rows = [records.rows] if records.sparse is None else list(records.sparse)
    units = (records.starts, records.shares, records.weights)
    return [array for array in (*rows, records.targets, records.norms, records.sums, *units) if array is not None]


def guarded(task: Callable[..., Any]) -> Callable[..., Any]:
    """Return a task that hands on a failure that it is given, and returns its own instead of raising it."""

    @wraps(task)
    def run(*given: Any, **words: Any) -> Any:
        for argument in given:
            if isinstance(argument, Failed):
                return argument
        try:
            return task(*given, **words)
        except DiscreetError as error:  # its words name no value
            return Failed(str(error))
        except _NAMED as error:
            return Failed(f"a worker could not do its part ({type(error).__name__})")
        except Exception:
            return Failed("a worker could not do its part")

    return run


@guarded
def answer(part: Part, question: ExactSum, *, placement: Placement | CellEncoding | None) -> Answer[Integers]:
    """Return a question's exact sum over one part; its records are made, or recoded, on the way by a placement."""
    if placement is None:
        total = _asked(question, part.engine)
    elif isinstance(placement, CellEncoding):
        assert isinstance(part.records, Values)
        total = _asked(question, engine_for(placement.of(part.records), threads=1))
    else:
        assert not isinstance(part.records, Values)
        check_recoding_kernels(sparse=part.records.sparse is not None)
        total = _asked(question, engine_for(placement.of(part.records, threads=1), threads=1))
    return Answer(part.number, part.seal, software(), total)


def _asked(question: ExactSum, engine: LocalEngine) -> Integers:
    check_question(question, sparse=engine.is_sparse)
    return question.over(engine)


@guarded
def recode(part: Part, *, placement: Placement) -> Part:
    """Return a part through a map; its seal stays that of the records as they were admitted."""
    assert not isinstance(part.records, Values)
    check_recoding_kernels(sparse=part.records.sparse is not None)
    return Part(part.number, placement.of(part.records, threads=1), part.seal)


@guarded
def seen_of(part: Part) -> Answer[tuple[Seal, Seen]]:
    """Return what a part is, and what was seen of its rows, but nothing of a single person."""
    return Answer(part.number, part.seal, software(), (part.seal, replace(part.seen, ranks=None)))


@guarded
def probe(loss: Loss, sampled: bool, files: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Check the kernels that a fit of this loss runs, and what files are here, and return what this process runs."""
    for path, size in (files or {}).items():
        if not Path(path).is_file() or not os.access(path, os.R_OK) or Path(path).stat().st_size != size:
            raise ClusterFailed(UNREAD)
    for some in {False, sampled}:
        check_kernels(loss, sparse=False, sampled=some)
    return *software(), str(known_sum(loss))


@cache
def software() -> tuple[str, ...]:
    """Return versions, and a checksum of the code that decides what a worker answers."""
    import numba

    import discreet

    root = Path(__file__).parents[2]
    code = hashlib.blake2b(digest_size=16)
    for folder in _RUN:
        for file in sorted((root / folder).glob("*.py")) or [root / folder]:
            code.update(f"{folder}/{file.name}".encode())
            code.update(file.read_bytes())
    return discreet.__version__, numba.__version__, np.__version__, code.hexdigest()


class Rows(Protocol):
    """How what a part is made of becomes a stream: public facts only, sent to workers."""

    def stream(self, *given: Any) -> Any:
        """Return the rows of one part, a ``RecordStream``."""
        ...

    def names(self, stream: Any) -> NDArray[Any]:
        """Return the name of the person behind each row of such a stream."""
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Features and targets side by side: blocks of arrays, or partitions of frames, with the target's column or not."""

    n_columns: int
    classes: Sequence[Any] | None
    target: Any = None
    beside: tuple[str, ...] = ()
    """Which of "groups", "weights" and "offsets" follow the features and targets of a part, in this order."""

    def stream(self, *given: Any) -> _ArrayStream:
        """Return the rows of one part: features, targets unless they are a column of them, and what belongs to them."""
        size = len(given) - len(self.beside)
        given, columns = given[:size], dict(zip(self.beside, given[size:], strict=True))
        X, y = given if len(given) == 2 else (given[0].drop(columns=[self.target]), given[0][self.target])
        table, targets = admission.two_dimensional(X), admission.one_dimensional(y)
        if table.shape[1] != self.n_columns or table.shape[0] != len(targets):
            raise Unsupported("X and y must be partitioned alike, with the same columns in every part")
        groups = columns.pop("groups", None)
        names = None if groups is None else admission.names_of(groups)
        numbers = {name: admission.numbers(admission.one_dimensional(column)) for name, column in columns.items()}
        if any(len(column) != len(targets) for column in (*numbers.values(), *([] if names is None else [names]))):
            raise Unsupported("groups, weights and offsets must be partitioned as X is, with one value for each row")
        return _ArrayStream(table, targets, self.classes, names, numbers)

    def names(self, stream: _ArrayStream) -> NDArray[Any]:
        """Return the name of the person behind each row."""
        assert stream.names is not None
        return stream.names


class _ArrayStream(RecordStream):
    def __init__(
        self,
        table: Any,
        targets: Any,
        classes: Sequence[Any] | None,
        names: NDArray[Any] | None,
        numbers: Mapping[str, Floats],
    ) -> None:
        self._table, self._targets, self._classes = table, targets, classes
        self.names, self._numbers = names, (numbers.get("weights"), numbers.get("offsets"))
        self.shape = int(table.shape[0]), int(table.shape[1])

    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks."""
        targets, classes = self._targets, self._classes
        placed = admission.numbers(targets) if classes is None else admission.class_indices(targets, classes)
        for first, last, features in admission.blocks(self._table, *self.shape):
            weights, offsets = (None if column is None else column[first:last] for column in self._numbers)
            yield Block(features, placed[first:last], weights=weights, offsets=offsets)

    def persons(self) -> Integers:
        """Refuse: there are none."""
        raise Unsupported("these rows name no persons")


@dataclass(frozen=True)
class TableRows:
    """A part of a table, by its schema: a data frame, or what names a part of a file."""

    schema: Schema
    checks: bool

    def stream(self, *given: Any) -> TableStream:
        """Return the rows of one part."""
        (table,) = given
        source = table.source() if isinstance(table, FilePart) else FrameSource(self._by_doubles(table))
        return TableStream(source, self.schema, checks=self.checks)

    def _by_doubles(self, frame: Any) -> Any:
        """Return a frame whose persons are doubles where they are whole numbers.

        A missing number makes doubles of a part, so that a person beyond 2^53 would have two names.
        """
        person = self.schema.person
        if person is None or person not in frame or getattr(frame[person].dtype, "kind", "O") not in "iu":
            return frame
        return frame.assign(**{person: frame[person].to_numpy(dtype="float64", na_value=np.nan)})

    def names(self, stream: TableStream) -> NDArray[Any]:
        """Return the name of the person behind each row."""
        return stream.names()


@guarded
def encode(number: int, rows: Rows, how: Encoding, *given: Any) -> Part:
    """Read and encode one part; nothing is kept of its rows but the integers, and what was seen on the way."""
    stream = rows.stream(*given)
    n = stream.shape[0]
    hashes = row_hashes(how.secrets, n)
    counts = None if stream.checks is None or not how.counts else CellCounts(stream.checks.size)
    watch, count = (
        None if hashes is None else hashes.see,
        None if counts is None else lambda _, cells: counts.add(cells),
    )
    records = admit_stream(stream, how.targets, how.scaling, watch, count, storage=MEMORY)
    seen = Seen(None if hashes is None else hashes.sketch(), None if counts is None else {1: counts.total})
    return sealed(number, records, seen)


@guarded
def read(number: int, rows: Rows, secrets: Words | None, *given: Any) -> Part:
    """Read one part, and keep its rows as they are: features, and the target last."""
    values, sketch = read_rows(rows.stream(*given), secrets)
    return sealed(number, Values(values), Seen(sketch))


def read_rows(stream: RecordStream, secrets: Words | None) -> tuple[Floats, RowSketch | None]:
    """Return features with the target last, and the hashes of rows where they are asked for."""
    hashes = row_hashes(secrets, stream.shape[0])
    blocks = [np.empty((0, stream.shape[1] + 1))]
    for part, block in in_place(stream):
        blocks.append(np.column_stack([block.features, block.targets]))
        if hashes is not None:
            hashes.see(part.start, part.stop, block.features)
    return np.concatenate(blocks), None if hashes is None else hashes.sketch()


@dataclass(frozen=True, repr=False)
class Chosen:
    """Some units of a part that was read, and what the part was."""

    seal: Seal
    units: Booleans


@guarded
def encode_chosen(part: Part, chosen: Chosen, *, how: Encoding) -> Part:
    """Encode some units of a part that was read, if it is what it was."""
    values = part.records
    if part.seal != chosen.seal or not isinstance(values, Values):
        raise ClusterFailed(CHANGED)
    persons, rows = None, chosen.units
    if values.starts is not None:
        sizes = np.diff(values.starts)
        persons, rows = np.repeat(np.arange(len(sizes)), sizes), np.repeat(rows, sizes)
    table = np.ascontiguousarray(values.rows[rows])
    targets, weights = how.targets.placed(np.ascontiguousarray(table[:, -1]))
    groups = None if persons is None else persons[rows]
    features = np.ascontiguousarray(table[:, :-1])
    return sealed(part.number, admission.admit(features, targets, how.scaling, groups, storage=MEMORY, weights=weights))


@guarded
def score(number: int, rows: Rows, scoring: Scoring, secrets: Words | None, *given: Any) -> Part:
    """Read one part, and keep of its rows what a score needs of each."""
    values, sketch = scored(rows.stream(*given), scoring, secrets)
    return sealed(number, Values(values), Seen(sketch))


def scored(stream: RecordStream, scoring: Scoring, secrets: Words | None) -> tuple[Floats, RowSketch | None]:
    """Return what a score needs of each row, and the hashes of rows where they are asked for."""
    hashes = row_hashes(secrets, stream.shape[0])
    with np.errstate(all="ignore"):  # a warning is an answer
        values, _ = scoring.over(stream, None if hashes is None else hashes.see)
    return values, None if hashes is None else hashes.sketch()


def row_hashes(secrets: Words | None, n: int) -> RowHashes | None:
    """Return what hashes n rows as they are read, where a ledger recognizes them."""
    return None if secrets is None else RowHashes(secrets, n)


@guarded
def count_rows(number: int, rows: Rows, *given: Any) -> Answer[int]:
    """Return how many rows a part has."""
    return Answer(number, None, software(), rows.stream(*given).shape[0])


@guarded
def count_cells(number: int, rows: Rows, *given: Any) -> Answer[Integers]:
    """Return how many rows of a part are in each cell of what its stream asks for before blocks can be made."""
    estimates = rows.stream(*given).estimates
    assert estimates is not None
    counts = CellCounts(estimates.size)
    for cells in estimates.cells():
        counts.add(cells)
    return Answer(number, None, software(), counts.total)


class CellCounts:
    """How many rows are in each cell; a row that names one twice is in it once."""

    def __init__(self, size: int) -> None:
        check_count_kernel()
        self.total, self._seen, self._rows = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), 0

    def add(self, cells: Integers) -> None:
        """Count some rows, by the cells that each is in."""
        add_counts(np.ascontiguousarray(cells), np.ones(len(cells), dtype=np.int64), self._rows, self._seen, self.total)
        self._rows += len(cells)


_PART_ROWS = 1 << 18
"""Groups of rows of one file are put together up to this many."""


@dataclass(frozen=True)
class FilePart:
    """A file, or some groups of rows of one."""

    path: str
    separator: str | None = None
    groups: tuple[int, ...] | None = None

    def source(self) -> Source:
        """Return the rows as a source."""
        if self.groups is None:
            return CsvSource([Path(self.path)], self.separator)
        return _RowGroups(Path(self.path), self.groups)


@dataclass(frozen=True, repr=False)
class FileTable:
    """What the files say of a table: its columns, how they are stored, and its parts with their rows where known."""

    names: list[str]
    stored: list[bytes]
    """For each file, the types of its columns, as Arrow writes a schema."""
    parts: list[FilePart]
    rows: list[int] | None
    sizes: dict[str, int]


class _RowGroups(ParquetSource):
    """Some groups of rows of one Parquet file."""

    def __init__(self, file: Path, groups: Sequence[int]) -> None:
        super().__init__([file])
        self._groups = list(groups)
        self._rows = sum(rows for group, rows in enumerate(read_row_groups(file)) if group in set(groups))

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Generator[Batch, None, None]:
        """All rows of these columns, group after group."""
        yield from self._read(self._files[0], columns, rows, row_groups=self._groups)


@guarded
def describe(paths: Any, separator: str | None) -> FileTable:
    """Look at a table's files, as a worker sees them: headers and footers, no rows."""
    source = open_table(paths, separator)
    names = source.names
    assert isinstance(source, CsvSource | ParquetSource)
    sizes = {str(file): file.stat().st_size for file in source.files}
    if isinstance(source, CsvSource):
        return FileTable(names, [], [FilePart(str(file), separator) for file in source.files], None, sizes)
    parts, rows = [], []
    for file in source.files:
        for groups, count in _grouped(read_row_groups(file)):
            parts.append(FilePart(str(file), groups=groups))
            rows.append(count)
    stored = [pa.schema(list(types.items())).serialize().to_pybytes() for types in source.types]
    return FileTable(names, stored, parts, rows, sizes)


def _grouped(sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield runs of groups of rows, each with its number of rows; a file without any is one empty run."""
    run: list[int] = []
    count = 0
    for group, size in enumerate(sizes):
        if run and count + size > _PART_ROWS:
            yield tuple(run), count
            run, count = [], 0
        run.append(group)
        count += size
    yield tuple(run), count
