"""Records that come in blocks: what a table looks like to the curator, on disk or in arrays.

A ``RecordStream`` can be passed as ``X``. Its shape and column names are public; its blocks are read only inside the
curator, and can be read repeatedly. It brings its own targets and persons, so ``y`` and ``groups`` are left out.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.plan import Plan, Release
from discreet.curator.kernels import encode
from discreet.curator.kernels.kernel import turn_to_rows
from discreet.curator.records import admission
from discreet.curator.records.admission import Table
from discreet.curator.records.row_sketches import RowSketch
from discreet.curator.records.storage import Storage, storage_for, within_memory
from discreet.errors import Unsupported
from discreet.json_schemas import Json
from discreet.losses.base import Loss
from discreet.typing import Array, Booleans, Floats, Integers, Words

if TYPE_CHECKING:
    from discreet.curator.metrics.row_values import Cells, Scoring

_ORDERED_ROWS = 1 << 16
TURNED_VALUES = 1 << 16
"""Values of a block that are turned at once: they stay in the second cache until they are encoded."""

Watch = Callable[[int, int, Floats], None]
"""Shown the features of rows first to last as they are read."""

Count = Callable[[slice, Integers], None]
"""Given the rows of a block and the cells of the stream's checks that they are in."""

Reading = Callable[[int, int], None]
"""Called with (rows read, rows in all) as blocks are read: only where the number of rows is public."""


@dataclass(frozen=True, repr=False)
class Block:
    """Some rows: features (rows, columns), targets, and the persons behind the rows where there are any.

    A target is a class's position among the declared ones, or a number; NaN makes its record null, as a feature that
    is not finite does. Equal persons have equal entries, within a block and across blocks. ``checks`` are the cells of
    the stream's ``Checks`` that each row is in, where it has any; without persons, rows in no cell may be left out.
    """

    features: Floats
    targets: Floats
    persons: Integers | None = None
    checks: Integers | None = None
    weights: Floats | None = None
    offsets: Floats | None = None


class Counts(Protocol):
    """Counts of cells that a stream asks for, with noise, in one release next to the plan's.

    A row is in ``per_row`` of the cells below ``size``, -1 for none. ``names`` are the columns that it is about.
    """

    names: tuple[str, ...]
    size: int
    per_row: int

    def release(self, plan: Plan, *, pure: bool) -> Release:
        """Return the release next to a plan, with its share of the budget."""
        ...


class Estimates(Counts, Protocol):
    """What is counted before the stream's blocks can be made."""

    def cells(self) -> Iterator[Integers]:
        """Yield each row's cells, block by block, in the order of the rows."""
        ...

    def settled(self, counts: Floats, noise: float, n: int | None) -> "RecordStream":
        """Return the stream that the noisy counts allow; ``noise`` is their deviation, ``n`` public or None."""
        ...


class Checks(Counts, Protocol):
    """What is counted while blocks are read: each block brings its rows' cells."""

    def described(self, counts: Floats, noise: float) -> Json:
        """Return the noisy counts by name, for the certificate; ``noise`` is their standard deviation."""
        ...


@dataclass(frozen=True, repr=False)
class Encoding:
    """How rows become records: declared facts; words for hashes of rows, where a ledger recognizes them; counts."""

    scaling: admission.Scaling
    targets: admission.TargetScaling
    secrets: Words | None = None
    counts: bool = False


class Elsewhere(Protocol):
    """Rows that this process does not read: workers of a cluster encode them, in parts, and keep them."""

    @property
    def kept(self) -> Mapping[str, object]:
        """Where parts are kept, for certificates of fits whose number of rows is public."""
        ...

    def check(self, plan: Plan, loss: Loss) -> None:
        """Refuse, before anything is charged, what these rows cannot be asked, and workers that run other code."""
        ...

    def count(self) -> int:
        """Return the number of records, or of persons, counted where they are."""
        ...

    def cells(self) -> Mapping[int, Integers]:
        """Return how many rows are in each cell that ranges are estimated from, by how many rows persons have."""
        ...

    def encoded(self, how: Encoding) -> Any:
        """Encode all rows, and return what a curator asks, with what was seen of the rows."""
        ...

    def scored(self, scoring: "Scoring", secrets: Words | None) -> "ValuesElsewhere":
        """Read all rows, and keep there what a score needs of each; ``secrets`` are words for hashes of rows."""
        ...

    def read(self, secrets: Words | None) -> "RowsElsewhere":
        """Read all rows, and keep their features and targets there as doubles, for what must cut them into parts."""
        ...


class RowsElsewhere(Protocol):
    """Features and targets, kept in parts where the rows are; ``sketch`` are the hashes of the rows."""

    sketch: RowSketch

    @property
    def n_units(self) -> int:
        """The number of records, or of persons."""
        ...

    def chosen(self, units: Booleans, stream: "RecordStream") -> "RecordStream":
        """Return some units, by their numbers in memory, of the columns of the stream that they were read from."""
        ...


class ValuesElsewhere(Protocol):
    """What a score needs of each row, kept in parts where the rows are; ``sketch`` are the hashes of the rows."""

    sketch: RowSketch

    @property
    def n_units(self) -> int:
        """The number of records, or of persons."""
        ...

    def table(self, cells: "Cells") -> "RecordStream":
        """Return the cells of these rows as a table, made there when it is asked."""
        ...


class Cone(NamedTuple):
    """What is declared of the shape of an effect: its coefficients are sums of generators with weights of at least 0.

    ``columns`` are the features' places, ``generators`` (features, generators), and ``features`` their values at even
    places of the declared range.
    """

    columns: Integers
    generators: Floats
    features: Floats


class RecordStream(ABC):
    """A table that is read in blocks.

    What a row becomes must depend on that row and on declared (or released) facts only, never on other rows: not on
    its block's, nor on a type that was guessed from all of them. ``facts`` are declarations for the certificate.
    A stream that can be read only ``once`` has the number of rows that is declared of it.
    """

    shape: tuple[int, int]
    columns: list[str]
    has_persons: bool = False
    once: bool = False
    is_sparse: bool = False
    facts: Mapping[str, object] = MappingProxyType({})
    is_checked = False  # whether the facts were looked at where the stream was made
    estimates: Estimates | None = None
    checks: Checks | None = None
    reading: Reading | None = None
    elsewhere: Elsewhere | None = None
    """Where the rows are, where this process does not read them: ``blocks`` refuses then."""
    target_kinds: Sequence[str] = ()
    """The kind of type that targets are declared to have, where their container declares one."""
    columns_beside: tuple[str, ...] = ()
    """Which of "weights" and "offsets" each block brings."""
    cones: Sequence[Cone] = ()
    """What is declared of the shape of effects."""
    indicators: tuple[tuple[int, ...], ...] = ()
    """The columns of which at most one is on in a row: yes/no columns, and the values of a category."""
    curves: Sequence[Integers] = ()
    """The places of lines, each with its bends after it, of effects that are curves by the model's choice."""
    together: Sequence[slice] = ()
    """The places of several features that make one effect of a number."""
    is_named: bool = True
    """Whether ``columns`` are names that declarations may use."""
    rows_per_record: int = 1
    """How many rows of a block, next to each other, a record becomes; the first has its features, and zeros."""
    sample: Any = None
    """A table without rows, of the same columns and types, where the container has one."""

    @property
    def unit(self) -> str:
        """Whom a guarantee protects: a record, or a person with several."""
        return "person" if self.has_persons else "record"

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks, from the start."""

    @abstractmethod
    def persons(self) -> Integers:
        """The person behind each row, in the order of the rows."""


class ArrayRows(RecordStream):
    """Arrays or a data frame of records, with what stands next to them, as a stream: only containers are looked at.

    Its ``blocks`` are for targets of declared ``classes``; whole arrays are admitted at once (``admission.admit``).
    """

    def __init__(
        self,
        X: Table,
        y: Table,
        groups: Table = None,
        weights: Table = None,
        offsets: Table = None,
        *,
        classes: Sequence[object] | None = None,
    ) -> None:
        self.X, self.y, self.groups = admission.two_dimensional(X), admission.one_dimensional(y), groups
        self.shape, self.is_sparse = (int(self.X.shape[0]), int(self.X.shape[1])), admission.is_sparse(self.X)
        given = {"weights": weights, "offsets": offsets}
        self.beside = {name: admission.one_dimensional(column) for name, column in given.items() if column is not None}
        if len(self.y) != self.shape[0]:
            raise Unsupported("y must hold one target for each row of X")
        if groups is not None and not (hasattr(groups, "__len__") and len(groups) == self.shape[0]):
            raise Unsupported("groups must name one person for each row of X")
        for name, column in self.beside.items():
            if len(column) != self.shape[0]:
                raise Unsupported(f"{name} must hold one number for each row of X")
        names, self.target_kinds = admission.column_names(self.X), admission.kinds_of(y)
        if classes is not None:
            admission.check_targets(self.target_kinds, classes)
        self.is_named, self.columns = names is not None, names or [""] * self.shape[1]
        self.sample = self.X.iloc[:0] if hasattr(self.X, "iloc") else np.empty((0, self.shape[1]))
        self.has_persons, self.columns_beside, self._classes = groups is not None, tuple(self.beside), classes

    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks, from the start."""
        assert self._classes is not None
        persons = self.persons() if self.has_persons else None
        targets = admission.class_indices(self.y, self._classes)
        beside = {name: admission.numbers(column) for name, column in self.beside.items()}
        for first, last, features in admission.blocks(self.X, *self.shape):
            part = slice(first, last)
            cut = {name: column[part] for name, column in beside.items()}
            numbers = None if persons is None else persons[part]
            yield Block(features, targets[part], numbers, weights=cut.get("weights"), offsets=cut.get("offsets"))

    def persons(self) -> Integers:
        """The person behind each row, as numbers."""
        order, starts, _ = admission.grouping(self.groups, self.shape[0])
        numbers = np.empty(self.shape[0], dtype=np.int64)
        numbers[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        return numbers


def is_stream(X: object) -> TypeGuard[RecordStream]:
    """Whether X is read in blocks."""
    return isinstance(X, RecordStream)


def in_place(stream: RecordStream) -> Iterator[tuple[slice, Block]]:
    """Yield all blocks with the rows that they are; a stream that is not as long as it says is refused."""
    (n, n_columns), first = stream.shape, 0
    for block in stream.blocks():
        last = first + len(block.targets)
        if last > n or block.features.shape != (last - first, n_columns):
            raise Unsupported(CHANGED)
        yield slice(first, last), block
        first = last
    if first != n:
        raise Unsupported(CHANGED)


def gathered(stream: RecordStream, classes: Sequence[object] | None) -> tuple[Floats, Array, Integers | None]:
    """Read a stream into arrays as a fit takes them: features, targets (labels of ``classes``), and persons or None.

    For what must cut the rows into parts. All of them are held as doubles: call it after the charge.
    """
    return within_memory(lambda: _gathered(stream, classes))


def _gathered(stream: RecordStream, classes: Sequence[object] | None) -> tuple[Floats, Array, Integers | None]:
    n, n_columns = stream.shape
    features, targets = np.empty((n, n_columns)), np.empty(n)
    persons = np.empty(n, dtype=np.int64) if stream.has_persons else None
    for rows, block in in_place(stream):
        features[rows], targets[rows] = block.features, block.targets
        if persons is not None and block.persons is not None:
            persons[rows] = block.persons
    return features, targets if classes is None else _labels(targets, classes), persons


def _labels(positions: Floats, classes: Sequence[object]) -> NDArray[np.object_]:
    """Return the classes at these positions, None where there is none."""
    named = np.empty(len(classes) + 1, dtype=object)
    for i, label in enumerate(classes):
        named[i] = label
    return named[np.where(np.isfinite(positions), positions, len(classes)).astype(np.int64)]


def by_rows(features: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield a block in pieces whose rows are contiguous, which kernels read several times as fast.

    A piece lives until the next one: a block that stands column by column is turned in memory that is used again.
    """
    n, width = features.shape
    if features.flags.c_contiguous:
        yield slice(0, n), features
        return
    size = max(1, min(n, TURNED_VALUES // width))
    turned = np.empty((size, width))
    for first in range(0, n, size):
        piece = slice(first, min(n, first + size))
        turn_to_rows(features[piece], turned[: piece.stop - first])
        yield piece, turned[: piece.stop - first]


def admit_stream(
    stream: RecordStream,
    target_scaling: admission.TargetScaling,
    scaling: admission.Scaling,
    watch: Watch | None = None,
    count: Count | None = None,
    storage: Storage | None = None,
) -> admission.Records:
    """Admit a stream as ``admission.admit`` does: one pass, and never more than a block of it as numbers.

    ``watch`` is shown the features, and ``count`` the cells of the stream's checks, as blocks are read.
    ``storage`` is where the encoded rows are kept; None: where there is room.
    """
    n, n_columns = stream.shape
    declared, width = admission.encoding_of(scaling), scaling.width
    if n_columns != len(scaling.scale):
        raise Unsupported(CHANGED)
    storage = storage or storage_for(n, width, scaling.grid)
    rows = storage.zeros((n, width), scaling.grid.dtype)
    targets, norms, sums = (storage.zeros(n, dtype) for dtype in (np.float64, np.int64, np.int64))
    weights: Floats | None = None
    persons = np.empty(n, dtype=np.int64) if stream.has_persons else None

    for part, block in in_place(stream):
        placed, weight = target_scaling.placed(block.targets, block.weights, block.offsets)
        valid = np.isfinite(placed)
        targets[part] = np.where(valid, placed, 0.0)
        if weight is not None:
            weights = storage.zeros(n, np.float64) if weights is None else weights
            weights[part] = weight
        for at, features in by_rows(block.features):
            here = slice(part.start + at.start, part.start + at.stop)
            encode.encode_rows(scaling.centered(features), valid[at], *declared, rows[here], norms[here], sums[here])
            if watch is not None:
                watch(here.start, here.stop, features)
        if persons is not None:
            if block.persons is None:
                raise Unsupported("a stream that has persons names one for each row of each block")
            persons[part] = block.persons
        if count is not None and block.checks is not None:
            count(part, block.checks)
        if stream.reading is not None:
            stream.reading(part.stop, n)
    if persons is None:
        return admission.Records(rows, None, targets, norms, sums, None, None, width, scaling.grid, storage, weights)
    order, starts, shares = admission.grouping(persons, n)
    rows, targets, norms, sums = (_ordered(column, order, storage) for column in (rows, targets, norms, sums))
    weights = None if weights is None else _ordered(weights, order, storage)
    return admission.Records(rows, None, targets, norms, sums, starts, shares, width, scaling.grid, storage, weights)


def _ordered(column: Array, order: Integers, storage: Storage) -> Array:
    """Return rows in another order, a block at a time."""
    out = storage.zeros(column.shape, column.dtype)
    for first in range(0, len(order), _ORDERED_ROWS):
        out[first : first + _ORDERED_ROWS] = column[order[first : first + _ORDERED_ROWS]]
    return out


def rows_of_each(persons: Integers) -> Integers:
    """For each row, how many rows its person has."""
    _, member, counts = np.unique(persons, return_inverse=True, return_counts=True)
    return counts[member].astype(np.int64)


CHANGED = "the table changed its size while it was being read: copy it, and read the copy"
PRIVATE_ROWS = (
    "the number of rows is private under add_remove, and a stream of record batches that is read once does not know "
    "it: write it to a Parquet file, or pass it as a table (read_all())"
)
