"""The cases: every entry, container and hostile value, each at a place and between neighbors of its own."""

import hashlib
import itertools
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.budget import Neighbors
from tests.promises.surface.containers import Container, NotHeld
from tests.promises.surface.entries import Entry, Task
from tests.promises.surface.files import CsvFile, ParquetFile
from tests.promises.surface.observing import BROKE, RICH, Observed, WatchedLedger, compared, observed
from tests.promises.surface.rows import ANSWER, ROWS, WHO, Cells, Place, base, neighbor, rows_of
from tests.promises.surface.values import Hostile

_LEDGER_LIFE = 500
_PLACES = (0, ROWS // 2, ROWS - 1)


@dataclass(frozen=True)
class Case:
    """One pair of neighbors, handed in at one entry in one container."""

    entry: Entry
    container: Container
    value: Hostile
    place: Place
    purse: str

    def __str__(self) -> str:
        purse = ", budget spent" if self.purse == BROKE else ""
        return f"{self.entry.name}; {self.container.name}; {self.value.name}; {self.place}{purse}"


@dataclass(frozen=True)
class Difference:
    """One thing that tells two neighbors apart."""

    case: Case
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.case}: {self.what}"


@dataclass(frozen=True)
class Outcome:
    """A case that was run: what it showed, and whether the request was served at all."""

    case: Case
    differences: tuple[Difference, ...]
    served: bool


def cases(
    entries: Sequence[Entry], containers: Sequence[Container], values: Sequence[Hostile], *, seed: int = 0
) -> Iterator[Case]:
    """Every combination that makes sense, again and again at other places."""
    for turn in itertools.count():
        for entry, container, value in _product(entries, containers, values):
            yield _placed(entry, container, value, f"{seed} {turn}")


def count(entries: Sequence[Entry], containers: Sequence[Container], values: Sequence[Hostile]) -> int:
    """How many combinations make sense."""
    return sum(1 for _ in _product(entries, containers, values))


def _product(
    entries: Sequence[Entry], containers: Sequence[Container], values: Sequence[Hostile]
) -> Iterator[tuple[Entry, Container, Hostile]]:
    for entry, container in itertools.product(entries, containers):
        fitting = [value for value in values if _fits(entry, container, value)]
        for value in fitting[_word(entry.name, container.name) % entry.every :: entry.every]:
            yield entry, container, value


def _fits(entry: Entry, container: Container, value: Hostile) -> bool:
    if not (entry.files if container.is_file else entry.memory):
        return False
    if value.whole == "line":
        return isinstance(container, CsvFile)
    if value.whole == "pages":  # persons are counted before the charge, where their number is public
        return isinstance(container, ParquetFile) and not entry.persons and (entry.pays or not entry.reads)
    return entry.persons or value.whole != "rows"


def _placed(entry: Entry, container: Container, value: Hostile, salt: str) -> Case:
    """A place by lot, the same for the same seed."""
    word = _word(salt, entry.name, container.name, value.name)

    def one_of(choices: Sequence[Any]) -> Any:
        nonlocal word
        word, index = divmod(word, len(choices))
        return choices[index]

    relation = one_of(entry.relations)
    if value.whole in ("line", "pages", "rows") and relation is Neighbors.ADD_REMOVE:
        relation = Neighbors.REPLACE_ONE
    column, row = one_of(entry.places), one_of(_PLACES)
    purse = one_of((RICH, BROKE)) if entry.pays and relation is Neighbors.REPLACE_ONE else RICH
    if value.whole == "pages" and entry.reads:  # nobody may notice, where nothing may be read
        purse = BROKE
    if relation is Neighbors.ZERO_OUT:  # where the blank record stands: one table without the value serves for all
        row = _PLACES[_word(salt, entry.name, container.name) % len(_PLACES)]
    return Case(entry, container, value, Place(row, column, relation), purse)


def _word(*names: str) -> int:
    """A number by lot, the same for the same names."""
    return int.from_bytes(hashlib.sha256(" ".join(names).encode()).digest(), "little")


class Workshop:
    """A folder to work in, a ledger, and what was observed of tables without a hostile record."""

    def __init__(self, folder: Path) -> None:
        self._in, self._out = folder / "in", folder / "out"
        self._ledger, self._age = WatchedLedger(), 0
        self._bases: dict[tuple[Any, ...], Observed | None] = {}
        self._marks: dict[tuple[str, str], list[str]] = {}
        self._warm: set[str] = set()

    def run(self, case: Case) -> Outcome | None:
        """Both neighbors, compared; None where the container cannot hold the value."""
        first = self._base(case)
        if first is None and case.place.relation is Neighbors.ZERO_OUT:  # there is no blank record in it
            case = replace(case, place=replace(case.place, relation=Neighbors.REPLACE_ONE))
            first = self._base(case)
        if first is None:
            return None
        marked = self._marked(case)
        try:
            cells = neighbor(case.entry.cells(), case.place, case.value, persons=case.entry.persons, marked=marked)
            second = self._observed(case, cells, first, case.value)
        except NotHeld:
            return None
        found = compared(first, second, tuple(case.entry.shows))
        differences = tuple(Difference(case, kind, what) for kind, what in dict.fromkeys(found))
        return Outcome(case, differences, not first.refused)

    def _base(self, case: Case) -> Observed | None:
        place = case.place
        blank = place.row if place.relation is Neighbors.ZERO_OUT else None
        key = (case.entry.name, case.container.name, place.relation, case.purse, blank)
        if key not in self._bases:
            cells = base(case.entry.cells(), place, persons=case.entry.persons)
            try:
                if case.entry.name not in self._warm:  # imports and compilers speak on a first run only
                    self._observed(case, cells)
                self._bases[key] = self._observed(case, cells)
                self._warm.add(case.entry.name)
            except NotHeld:
                self._bases[key] = None
        return self._bases[key]

    def _marked(self, case: Case) -> list[str]:
        """The columns beside the hostile one that hold sentinels, where their types can."""
        found = []
        for name in case.entry.places:
            if name not in (case.place.column, WHO) and self._holds(case, name):
                found.append(name)
        return found

    def _holds(self, case: Case, column: str) -> bool:
        from tests.promises.surface.values import VALUES

        cells = case.entry.cells()
        key = (f"{case.entry.name} {case.container.name}", column)
        if key not in self._marks:
            names = {"sentinel text"} if column in cells.texts else {"sentinel number"}
            value = next(value for value in VALUES if value.name in names)
            place = Place(0, column, Neighbors.REPLACE_ONE)
            try:
                tried = neighbor(cells, place, value, persons=False, marked=())
                self._given(case, tried)
                self._marks[key] = [column]
            except NotHeld:
                self._marks[key] = []
        return bool(self._marks[key])

    def _given(self, case: Case, cells: Cells) -> Task:
        """The table in its container."""
        for folder in (self._in, self._out):
            _emptied(folder)
        entry, relation = case.entry, case.place.relation
        table = case.container.table(cells, list(entry.features), self._in)
        return Task(
            table=table,
            y=case.container.column(cells, ANSWER) if entry.targets else None,
            groups=_persons(case, cells) if entry.persons and entry.targets else None,
            relation=relation,
            ledger=self._ledger,
            dataset=entry.dataset(relation, case.purse),
            out=self._out,
            n=entry.declared_n(relation),
            purse=case.purse,
        )

    def _observed(
        self, case: Case, cells: Cells, before: Observed | None = None, hostile: Hostile | None = None
    ) -> Observed:
        if self._age >= _LEDGER_LIFE:
            self._ledger, self._age = WatchedLedger(), 0
        self._age += 1
        task = self._given(case, cells)
        if hostile is not None and hostile.whole == "line" and isinstance(case.container, CsvFile):
            for row in rows_of(cells, case.place.row, case.entry.persons):
                case.container.with_line(task.table, row, hostile.make())
        if hostile is not None and hostile.whole == "pages" and isinstance(case.container, ParquetFile):
            case.container.without_pages(task.table)
        return observed(
            lambda: case.entry.run(task),
            out=self._out,
            ledger=self._ledger,
            forced=() if before is None else before.released,
            pays=case.entry.pays and case.place.column != WHO,  # persons are counted, where their number is public
            reads=case.entry.reads,
        )


def _emptied(folder: Path) -> None:
    """An empty folder of this name."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


_EXACT = ("int64", "object", "list of lists", "list of tuples")
"""Containers that hold large whole numbers as they are."""


def _persons(case: Case, cells: Cells) -> Any:
    """Names of persons; as numbers in containers that hold no words."""
    try:
        if WHO not in cells.texts and not case.container.name.lower().endswith(_EXACT):
            raise NotHeld  # doubles would round them into one
        return case.container.column(cells, WHO)
    except NotHeld:
        if case.place.column == WHO:
            raise
        codes: dict[Any, int] = {}
        numbers = [codes.setdefault(name, len(codes)) for name in cells.columns[WHO]]
        return case.container.column(Cells({WHO: numbers}, frozenset()), WHO)


@contextmanager
def workshop() -> Iterator[Workshop]:
    """A place for cases, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="discreet-surface-") as folder:
        yield Workshop(Path(folder))
