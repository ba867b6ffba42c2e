"""Bring the rows of one person together on a cluster: what workers run for it.

Parts as they are read hold rows of persons whose other rows are elsewhere. Each is dealt into as many pieces as there
are parts, by a keyed hash of the person's name, and each new part is gathered from one piece of every part that was
read. A hash only says where a name goes: equal names have equal hashes, and which rows are one person's is decided
there, by the names themselves, as in memory. The key, drawn again for each fit, keeps names from being chosen so that
all of them meet in one part; no sum depends on it.

**Each row once.** Every piece names the part that it comes from and what that whole part was, names included. A new
part takes one piece of each, and tells what all of them were: new parts that were made from different readings of a
table do not agree on it, and end the fit.

Persons are numbered as in memory (``admission.grouping``), over all parts: samples of them do not depend on the parts.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.clusters.tasks import (
    CHANGED,
    LOST,
    Answer,
    CellCounts,
    Failed,
    Part,
    Ranks,
    Seen,
    Values,
    guarded,
    read_rows,
    row_hashes,
    scored,
    sealed,
    software,
    updated,
)
from discreet.curator.records import admission
from discreet.curator.records.admission import Records
from discreet.curator.records.row_sketches import RowSketch
from discreet.curator.records.storage import MEMORY
from discreet.curator.records.stream import Block, Encoding, RecordStream, admit_stream
from discreet.errors import ClusterFailed
from discreet.schema.cell_meaning import is_name, is_nothing, real_number
from discreet.typing import Integers, Words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discreet.curator.clusters.tasks import Rows
    from discreet.curator.metrics.row_values import Scoring


_ROW_BITS = 40
"""A row's place in the table: the number of its part, then its own within the part."""
_TEXT_ENDS = "surrogatepass"
Columns = Mapping[str, NDArray[Any]]
"""What is kept of each row."""
Kept = tuple[Columns, RowSketch | None, int]
"""Columns, the hashes of rows where they are asked for, and the number of cells that rows are counted in."""


@dataclass(frozen=True, repr=False)
class Dealing:
    """How many new parts there are, and the key of the hash that says where a name goes."""

    parts: int
    key: bytes

    def targets(self, names: NDArray[Any]) -> Integers:
        """Return the new part of each row."""
        first, second = np.frombuffer(self.key, dtype=np.uint64)
        with np.errstate(over="ignore"):
            mixed = _words(names, self.key) ^ first
            for shift in (30, 27):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * (second | np.uint64(1))
            targets: Integers = ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(self.parts)).astype(np.int64)
        return targets


def _words(names: NDArray[Any], key: bytes) -> Words:
    """Return a word for each name, equal for equal names: of numbers by their value, whatever their type."""
    if names.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            values = names.astype(np.float64) + 0.0  # no negative zero
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    distinct, places = (names, None) if names.dtype.kind in "OT" else np.unique(names, return_inverse=True)
    memory: dict[Any, int] = {}
    words = np.array([_word(name, key, memory) for name in distinct.tolist()], dtype=np.uint64)
    return words if places is None else words[places]


def _word(name: Any, key: bytes, memory: dict[Any, int]) -> int:
    """Return a name's word; those that are no numbers, texts, bytes or UUIDs share one, as do those of nobody."""
    if type(name) is str or isinstance(name, np.str_):
        if name not in memory:
            memory[name] = _digest(str.encode(name, "utf-8", _TEXT_ENDS), key)
        return memory[name]
    if type(name) is bytes:
        return _digest(name, key)
    if type(name) is uuid.UUID:
        return _digest(name.bytes, key)
    is_nobody = not is_name(name) or is_nothing(name)
    value = np.nan if is_nobody else real_number(name.real if isinstance(name, complex) else name)
    return int(np.array(value + 0.0 if value == value else np.nan).view(np.uint64))


def _digest(name: bytes, key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(name, key=key, digest_size=8).digest(), "little")


@dataclass(frozen=True, repr=False)
class Piece:
    """Rows of one part that was read, on their way to a new part; ``source`` is what the whole part was."""

    number: int
    source: bytes
    names: NDArray[Any]
    places: Integers
    columns: Columns
    sketch: RowSketch | None
    n_cells: int

    def __sizeof__(self) -> int:
        """Return the bytes of the rows: by them a worker decides when to spill."""
        arrays = (self.names, self.places, *self.columns.values())
        return object.__sizeof__(self) + sum(int(array.nbytes) for array in arrays)


@guarded
def deal(
    number: int, rows: Rows, dealing: Dealing, columns_of: Callable[[RecordStream], Kept], *given: Any
) -> list[Piece]:
    """Read a part, and deal its rows into one piece per new part; piece ``number`` takes the hashes of rows along."""
    stream = rows.stream(*given)
    names = rows.names(stream)
    if names.dtype.kind == "M":  # parts may have other units
        names = names.astype("M8[ns]")
    columns, sketch, n_cells = columns_of(stream)
    if any(len(column) != len(names) for column in columns.values()):
        raise ClusterFailed(CHANGED)
    source = hashlib.blake2b(digest_size=16)
    updated(source, [*columns.values()])
    _update_names(source, names)
    places = (number << _ROW_BITS) + np.arange(len(names), dtype=np.int64)
    targets = dealing.targets(names)
    order = np.argsort(targets, kind="stable")
    edges = np.searchsorted(targets[order], np.arange(dealing.parts + 1))
    pieces = []
    for part in range(dealing.parts):
        mine = order[edges[part] : edges[part + 1]]
        some = {name: column[mine] for name, column in columns.items()}
        seen = sketch if part == number else None
        pieces.append(Piece(number, source.digest(), names[mine], places[mine], some, seen, n_cells))
    return pieces


def _update_names(checksum: Any, names: NDArray[Any]) -> None:
    if names.dtype.kind in "OT":
        for name in names.tolist():
            checksum.update(f"{type(name).__name__} {name!r}\n".encode("utf-8", _TEXT_ENDS) if is_name(name) else b"\n")
    else:
        updated(checksum, [names])


@guarded
def piece_of(pieces: list[Piece], part: int) -> Piece:
    """Return what goes to one new part."""
    return pieces[part]


def addressed(hand: list[Piece] | Failed, *, parts: int) -> list[tuple[int, Piece | Failed]]:
    """Return a hand's pieces, each under the number of its new part; a failure goes to all of them."""
    return list(enumerate([hand] * parts if isinstance(hand, Failed) else hand))


def address(number: int) -> int:
    """Return where a piece goes."""
    return number


def gather_addressed(
    number: int, pieces: Iterable[tuple[int, Piece | Failed]], *, finish: Callable[[Persons], Any], parts: int
) -> list[Any]:
    """Make a new part of the pieces that came to it, in any order: one of each part that was read."""
    pieces_of: dict[int, Piece | Failed] = {}
    for _, piece in pieces:
        if isinstance(piece, Failed):
            return [piece]
        pieces_of.setdefault(piece.number, piece)
    if pieces_of.keys() != set(range(parts)):
        return [Failed(LOST)]
    return [gather(number, finish, *(pieces_of[part] for part in range(parts)))]


@dataclass(frozen=True, repr=False)
class Persons:
    """Rows of a new part, in the order of the table, each person's together: ``order`` puts them so."""

    number: int
    order: Integers
    starts: Integers
    shares: Integers
    ranks: Ranks
    columns: Columns
    sketch: RowSketch | None
    n_cells: int
    sources: bytes

    def ordered(self, name: str) -> NDArray[Any]:
        """Return a column with each person's rows together."""
        return np.ascontiguousarray(self.columns[name][self.order])


@guarded
def gather(number: int, finish: Callable[[Persons], Any], *pieces: Piece) -> Any:
    """Make a new part of one piece of every part that was read, and return what ``finish`` makes of it."""
    if [piece.number for piece in pieces] != list(range(len(pieces))):
        raise ClusterFailed(LOST)
    places = np.concatenate([piece.places for piece in pieces])
    names = _joined([piece.names for piece in pieces])
    order, starts, shares = admission.grouping(names, len(places))
    some = [piece for piece in pieces if len(piece.places)] or pieces[:1]  # a part without rows knows no weights
    columns = {name: np.concatenate([piece.columns[name] for piece in some]) for name in some[0].columns}
    sources = hashlib.blake2b(b"".join(piece.source for piece in pieces), digest_size=16).digest()
    firsts = order[starts[:-1]]
    ranks = places[firsts], None if names.dtype.kind in admission.UNSORTED else names[firsts]
    mine = pieces[number]
    return finish(Persons(number, order, starts, shares, ranks, columns, mine.sketch, mine.n_cells, sources))


def _joined(names: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return names of several pieces in one array that tells them apart as one of them would.

    A piece of whole numbers next to one of doubles, as a missing name makes it, is one column of doubles: a person
    whose number is beyond 2^53 is one in both.
    """
    some = [each for each in names if len(each)] or [np.empty(0, dtype=np.int64)]
    kinds = {each.dtype.kind for each in some}
    if "f" in kinds and kinds <= set("fiub"):
        return np.concatenate([each.astype(np.float64) for each in some])
    if len({each.dtype for each in some}) == 1 or kinds <= set("US"):
        return np.concatenate(some)
    out = np.empty(sum(map(len, some)), dtype=object)
    out[:] = [name for each in some for name in each.tolist()]
    return out


class _Rows(RecordStream):
    """A stream's rows as if each were a record of its own, in their order."""

    def __init__(self, stream: RecordStream) -> None:
        self._stream, self.shape, self.columns = stream, stream.shape, []

    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks."""
        return self._stream.blocks()

    def persons(self) -> Integers:
        """Return the stream's."""
        return self._stream.persons()


@dataclass(frozen=True)
class NoColumns:
    """Keep nothing of rows but their persons."""

    def __call__(self, _: RecordStream) -> Kept:
        return {}, None, 0


@dataclass(frozen=True)
class RangeCells:
    """Keep the cells that ranges are estimated from."""

    def __call__(self, stream: RecordStream) -> Kept:
        assert stream.estimates is not None
        nothing = np.empty((0, stream.estimates.per_row), dtype=np.int64)
        return {"cells": np.concatenate([nothing, *stream.estimates.cells()])}, None, stream.estimates.size


@dataclass(frozen=True)
class EncodedRows:
    """Keep encoded rows, and the cells that checks count."""

    how: Encoding

    def __call__(self, stream: RecordStream) -> Kept:
        how, n_cells = self.how, 0
        cells: list[Integers] = []
        hashes = row_hashes(how.secrets, stream.shape[0])
        watch = None if hashes is None else hashes.see
        records = admit_stream(
            _Rows(stream), how.targets, how.scaling, watch, lambda _, block: cells.append(block), storage=MEMORY
        )
        columns = {name: getattr(records, name) for name in ("rows", "targets", "norms", "sums", "weights")}
        if how.counts and stream.checks is not None:
            nothing = np.empty((0, stream.checks.per_row), dtype=np.int64)
            columns["cells"], n_cells = np.concatenate([nothing, *cells]), stream.checks.size
        present = {name: column for name, column in columns.items() if column is not None}
        return present, None if hashes is None else hashes.sketch(), n_cells


@dataclass(frozen=True)
class ScoredRows:
    """Keep what a score needs of each row."""

    scoring: Scoring
    secrets: Words | None

    def __call__(self, stream: RecordStream) -> Kept:
        values, sketch = scored(stream, self.scoring, self.secrets)
        return {"values": values}, sketch, 0


@dataclass(frozen=True)
class ReadRows:
    """Keep rows as they are."""

    secrets: Words | None

    def __call__(self, stream: RecordStream) -> Kept:
        values, sketch = read_rows(stream, self.secrets)
        return {"values": values}, sketch, 0


@dataclass(frozen=True)
class KeepPersons:
    """Make a new part of numbers of each row."""

    def __call__(self, persons: Persons) -> Part:
        values = Values(persons.ordered("values"), persons.starts, persons.shares)
        return sealed(persons.number, values, Seen(persons.sketch, None, persons.sources, persons.ranks))


@dataclass(frozen=True)
class CountPersons:
    """Count a new part's persons."""

    def __call__(self, persons: Persons) -> Answer[tuple[bytes, int]]:
        return Answer(persons.number, None, software(), (persons.sources, len(persons.starts) - 1))


@dataclass(frozen=True)
class CountCells:
    """Count the rows in each cell, by how many rows their persons have."""

    def __call__(self, persons: Persons) -> Answer[tuple[bytes, dict[int, Integers]]]:
        counts = counts_by_share(persons)
        return Answer(persons.number, None, software(), (persons.sources, counts))


def counts_by_share(persons: Persons) -> dict[int, Integers]:
    """Return how many rows are in each cell, for each number of rows that a person has."""
    cells, counts = persons.ordered("cells"), {}
    for share in np.unique(persons.shares).tolist():
        counting = CellCounts(persons.n_cells)
        counting.add(cells[persons.shares == share])
        counts[share] = counting.total
    return counts


@dataclass(frozen=True)
class EncodePersons:
    """Make a new part of encoded rows."""

    how: Encoding

    def __call__(self, persons: Persons) -> Part:
        columns = {name: persons.ordered(name) for name in persons.columns if name != "cells"}
        width, grid = self.how.scaling.width, self.how.scaling.grid
        records = Records(
            columns["rows"],
            None,
            columns["targets"],
            columns["norms"],
            columns["sums"],
            persons.starts,
            persons.shares,
            width,
            grid,
            weights=columns.get("weights"),
        )
        counts = counts_by_share(persons) if "cells" in persons.columns else None
        seen = Seen(persons.sketch, counts, persons.sources, persons.ranks)
        return sealed(persons.number, records, seen)


@guarded
def ranks_of(part: Part) -> Answer[Ranks]:
    """Return what persons are numbered by."""
    if part.seen.ranks is None:
        raise ClusterFailed(LOST)
    return Answer(part.number, part.seal, software(), part.seen.ranks)


def places_of(ranks: Sequence[Ranks]) -> Integers:
    """Return where each person is among those of all parts, in the order of memory."""
    names = [some for firsts, some in ranks if len(firsts) and some is not None]
    is_sorted = len(names) == sum(len(firsts) > 0 for firsts, _ in ranks)
    if names and is_sorted and len({some.dtype.kind for some in names}) == 1:
        return np.argsort(np.concatenate(names), kind="stable")
    return np.argsort(np.concatenate([firsts for firsts, _ in ranks]), kind="stable")
