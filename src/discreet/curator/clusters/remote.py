"""What records on other machines have in common: what is asked of their parts, what is refused, whose words pass on.

The cluster's own words are not passed on: what a task of the user's own query raises may quote cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import accumulate, pairwise
from operator import add
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet.curator.clusters import persons, tasks
from discreet.curator.clusters.calls import Misfit, unpack
from discreet.curator.clusters.tasks import OTHER_CODE, CellEncoding, Failed, Seal, Seen, Tally, added
from discreet.curator.engines import Engine, ExactSum, LocalEngine
from discreet.curator.records import admission
from discreet.curator.records.row_sketches import EMPTY
from discreet.curator.records.stream import Block, RecordStream
from discreet.curator.tables.frames import BATCH_ROWS, Batch, Source
from discreet.errors import ClusterFailed, DiscreetError, Unsupported
from discreet.typing import Booleans, Integers, Words

if TYPE_CHECKING:
    from discreet.accounting.plan import Plan
    from discreet.curator.lattice import Grid
    from discreet.curator.metrics.row_values import Cells, Scoring
    from discreet.curator.records.recoding import Placement
    from discreet.curator.records.stream import Encoding
    from discreet.losses.base import Loss


WHOLE = (
    *("noisy_minimizer", "noisy_descent", "exact_minimizer"),
    *("perturb_objective", "perturbed_minimizer", "sample_minimizer"),
)
"""Releases that need all records at hand."""
NEEDS_WHOLE = (
    "this solver needs all records on one machine, and they are on a cluster: use an iterative one (solver='auto', "
    "'gd', 'sgd', 'svrg', 'agd', 'cd' or 'gcd'), or fit on one machine, with scratch files (discreet.scale.limited)"
)
BROKEN = "the cluster failed, or lost a part of the records for good; what was charged stays charged"
UNCOUNTED = (
    "the rows cannot be counted, since the collection's own tasks or the cluster failed: nothing was charged. Rows are "
    "counted before the charge where their number is public"
)
OUT_OF_REACH = "the cluster cannot be reached; nothing was charged for this"
NO_WORKERS = "the cluster has no workers"

Value = TypeVar("Value")


class Held(ABC):
    """Parts that other machines keep for as long as this object lives."""

    @abstractmethod
    def map(self, task: Callable[..., Any], asked: Sequence[Any] | None = None, **words: Any) -> Held:
        """Return what a task makes of each part, kept in its turn; ``asked`` holds something for each part."""

    @abstractmethod
    def told(
        self, task: Callable[..., Any], tally: Tally[Value], asked: Sequence[Any] | None = None, **words: Any
    ) -> list[Value]:
        """Return what a task answers of each part, once each; ``asked`` holds something for each part."""


class RemoteEngine(Engine):
    """Encoded parts on other machines; ``seals`` are the plan, one per part in the order of their numbers.

    ``placement`` makes records of each part on the way through a pass. ``places`` says where among the units of all
    parts the persons are that samples number by their first rows; None where units are records, which are numbered as
    they stand.
    """

    is_sparse = runs_programs = False

    def __init__(
        self,
        held: Held,
        seals: Sequence[Seal],
        grid: Grid,
        n_columns: int,
        *,
        placement: Placement | CellEncoding | None = None,
        places: Callable[[], Integers] | None = None,
    ) -> None:
        self._held, self._seals, self._places = held, list(seals), places
        self._placement, self.grid, self.n_columns = placement, grid, n_columns
        self.is_grouped = places is not None
        self._edges = list(accumulate((seal.units for seal in seals), initial=0))
        self.n_units = self._edges[-1]

    def total(self, question: ExactSum) -> Integers:
        questions = self.asked(question)
        return added(self._held.told(tasks.answer, self.tally(), questions, placement=self._placement))

    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        held = self._held if once else self._held.map(tasks.recode, placement=placement)
        facts = (self._seals, placement.grid, placement.n_columns)
        return RemoteEngine(held, *facts, placement=placement if once else None, places=self._places)

    def whole(self) -> LocalEngine:
        raise Unsupported(NEEDS_WHOLE)

    def asked(self, question: ExactSum) -> list[ExactSum]:
        """Return what to ask of each part: units are numbered over all parts, and so are samples of them."""
        if self._places is not None and question.is_sampled:
            question = question.with_units_at(self._places())
        return [question.of_units(first, last) for first, last in pairwise(self._edges)]

    def tally(self) -> Tally[Any]:
        """Return an empty tally of this plan."""
        return Tally(dict(enumerate(self._seals)))


@dataclass(frozen=True, repr=False)
class Opened:
    """Encoded parts as an engine, and what was seen of the rows of each."""

    engine: RemoteEngine
    seen: list[Seen]


@dataclass(frozen=True)
class OfRows:
    """A task on the rows of each part as it is read, and what it needs in addition."""

    task: Callable[..., Any]
    words: tuple[Any, ...] = ()


@dataclass(frozen=True)
class OfPersons:
    """What is kept of each row, and what becomes of a new part: of some persons with all their rows."""

    columns: Any
    finish: Any


Work = OfRows | OfPersons


class RemoteParts(ABC):
    """Rows on other machines, in parts that are not encoded yet: each is what ``rows`` makes a stream of there.

    ``has_persons``: rows of one person may be in several parts, and are brought together (``persons.py``).
    """

    kept: Mapping[str, Any]

    def __init__(self, rows: tasks.Rows, *, has_persons: bool) -> None:
        self._rows, self._has_persons = rows, has_persons

    @abstractmethod
    def _told(self, work: Work) -> list[Any]:
        """Return what work answers of each part, once each."""

    @abstractmethod
    def _made(self, work: Work) -> Held:
        """Return what work makes of each part, kept there."""

    @abstractmethod
    def _tally(self) -> Tally[Any]:
        """Return an empty tally of parts whose seals are not known yet."""

    @abstractmethod
    def _probed(self, loss: Loss, *, sampled: bool) -> Mapping[str, Any]:
        """Return what each worker says of itself, by its name."""

    def check(self, plan: Plan, loss: Loss) -> None:
        """Refuse what parts cannot answer, and a cluster whose workers run other code than this process."""
        refuse_whole(plan)
        check_probes(self._probed(loss, sampled=plan.is_sampled), loss, sampled=plan.is_sampled)

    def count(self) -> int:
        """Return the number of rows, or of persons where there are any, counted by workers."""
        if self._has_persons:
            return sum(counted(lambda: self._of_persons(OfPersons(persons.NoColumns(), persons.CountPersons()))))
        return sum(counted(lambda: self._told(OfRows(tasks.count_rows))))

    def cells(self) -> dict[int, Integers]:
        """Return how many rows are in each cell that ranges are estimated from, by how many rows persons have."""
        if not self._has_persons:
            return {1: added(self._told(OfRows(tasks.count_cells)))}
        total: dict[int, Integers] = {}
        for counts in self._of_persons(OfPersons(persons.RangeCells(), persons.CountCells())):
            for share, rows in counts.items():
                total[share] = total[share] + rows if share in total else rows
        return total

    def encoded(self, how: Encoding) -> Opened:
        """Encode every part where it is read, and keep it there, each person's rows in one part."""
        by_persons = OfPersons(persons.EncodedRows(how), persons.EncodePersons(how))
        held = self._made(by_persons if self._has_persons else OfRows(tasks.encode, (how,)))
        seals, seen, places = self._seen(held)
        engine = RemoteEngine(held, seals, how.scaling.grid, how.scaling.width, places=places)
        return Opened(engine, seen)

    def scored(self, scoring: Scoring, secrets: Words | None) -> ScoredParts:
        """Read every part, and keep there what a score needs of each row, each person's in one part."""
        by_persons = OfPersons(persons.ScoredRows(scoring, secrets), persons.KeepPersons())
        held = self._made(by_persons if self._has_persons else OfRows(tasks.score, (scoring, secrets)))
        return ScoredParts(held, *self._seen(held))

    def read(self, secrets: Words | None) -> ReadParts:
        """Read every part, and keep its rows there as doubles, each person's in one part."""
        by_persons = OfPersons(persons.ReadRows(secrets), persons.KeepPersons())
        held = self._made(by_persons if self._has_persons else OfRows(tasks.read, (secrets,)))
        return ReadParts(held, *self._seen(held))

    def _seen(self, held: Held) -> tuple[list[Seal], list[Seen], Callable[[], Integers] | None]:
        """Return the seals of parts, what was seen of their rows, and a function for where persons are among all."""
        answers = held.told(tasks.seen_of, self._tally())
        _check_sources(seen.sources for _, seen in answers)
        seals = [seal for seal, _ in answers]

        @cache
        def places() -> Integers:
            tally: Tally[tasks.Ranks] = Tally(dict(enumerate(seals)))
            return persons.places_of(held.told(persons.ranks_of, tally))

        return seals, [seen for _, seen in answers], places if self._has_persons else None

    def _of_persons(self, work: OfPersons) -> list[Any]:
        """Return what parts of persons report, if all of them were made of the same rows."""
        answers = self._told(work)
        _check_sources(sources for sources, _ in answers)
        return [answer for _, answer in answers]


def _check_sources(sources: Iterable[bytes]) -> None:
    """Refuse parts that were gathered from different readings of a table: a row might be in two of them, or none."""
    if len(set(sources)) > 1:
        raise ClusterFailed(tasks.CHANGED)


class ValueParts:
    """Numbers of each row, in parts on other machines."""

    def __init__(
        self, held: Held, seals: Sequence[Seal], seen: Sequence[Seen], places: Callable[[], Integers] | None
    ) -> None:
        self._held, self._seals, self._places = held, list(seals), places
        self.sketch = reduce(add, (part.sketch for part in seen if part.sketch is not None), EMPTY)

    @property
    def n_units(self) -> int:
        """The number of records, or of persons."""
        return sum(seal.units for seal in self._seals)

    @property
    def has_persons(self) -> bool:
        """Whether a person may have several rows."""
        return self._places is not None


class ScoredParts(ValueParts):
    """What a score needs of each row."""

    def table(self, cells: Cells) -> ScoredTable:
        """Return the cells of these rows as a table, made there when it is asked."""
        return ScoredTable(self, cells)

    def opened(self, cells: Cells, how: Encoding) -> Opened:
        """Return what a curator asks of that table: each part becomes records on the way through a pass."""
        placement, scaling = CellEncoding(cells, how), how.scaling
        facts = (self._seals, scaling.grid, scaling.width)
        return Opened(RemoteEngine(self._held, *facts, placement=placement, places=self._places), [])


class ReadParts(ValueParts):
    """Features and the target of each row."""

    def chosen(self, units: Booleans, stream: RecordStream) -> ChosenRows:
        """Return some of the units, by their numbers in memory, as a stream whose rows stay there."""
        return ChosenRows(self, units, stream)

    def opened(self, units: Booleans, how: Encoding) -> Opened:
        """Encode some units of each part, and keep them there."""
        chosen, order = np.flatnonzero(units), None if self._places is None else self._places()
        here = units.copy()
        if order is not None:
            here[:] = False
            here[order[chosen]] = True
        edges = list(accumulate((seal.units for seal in self._seals), initial=0))
        chosen_units = [
            tasks.Chosen(seal, here[a:b]) for seal, (a, b) in zip(self._seals, pairwise(edges), strict=True)
        ]
        held = self._held.map(tasks.encode_chosen, chosen_units, how=how)
        tally: Tally[tuple[Seal, Seen]] = Tally(dict.fromkeys(range(len(chosen_units))))
        seals = [seal for seal, _ in held.told(tasks.seen_of, tally)]
        places = None if order is None else (np.cumsum(here) - 1)[order[chosen]]
        facts = (seals, how.scaling.grid, how.scaling.width)
        return Opened(RemoteEngine(held, *facts, places=None if places is None else lambda: places), [])


class StreamElsewhere(RecordStream):
    """Rows that do not come here (``RecordStream.elsewhere``)."""

    def blocks(self) -> Iterator[Block]:
        """Refuse."""
        raise Unsupported(admission.ELSEWHERE)

    def persons(self) -> Integers:
        """Refuse."""
        raise Unsupported(admission.ELSEWHERE)


class SourceElsewhere(Source):
    """A table whose rows other machines read and count."""

    where = admission.ELSEWHERE

    def count(self) -> int:
        """Refuse."""
        raise Unsupported(self.where)

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """Refuse."""
        raise Unsupported(self.where)


class _RowsThere(StreamElsewhere):
    """Rows that were read on other machines, after its workers were checked, and stay there."""

    kept: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, values: ValueParts) -> None:
        self.has_persons, self.elsewhere = values.has_persons, self

    @abstractmethod
    def encoded(self, how: Encoding) -> Opened:
        """Return what a curator asks."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of records, or of persons."""

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Records, or persons, and columns."""
        return self.count(), len(self.columns)

    def check(self, plan: Plan, loss: Loss) -> None:
        """Refuse what parts cannot answer."""
        refuse_whole(plan)

    def cells(self) -> dict[int, Integers]:
        """Refuse: no ranges are estimated of these rows."""
        raise Unsupported(admission.ELSEWHERE)

    def scored(self, scoring: Scoring, secrets: Words | None) -> ScoredParts:
        """Refuse: these rows are not scored by their predictions."""
        raise Unsupported(admission.ELSEWHERE)

    def read(self, secrets: Words | None) -> ReadParts:
        """Refuse: these rows were read."""
        raise Unsupported(admission.ELSEWHERE)


class ScoredTable(_RowsThere):
    """The cells of scored rows: a table of numbers between 0 and 1, of which one sum is asked."""

    is_named = False

    def __init__(self, values: ScoredParts, cells: Cells) -> None:
        super().__init__(values)
        self._values, self._cells, self.columns = values, cells, [""] * cells.size

    def count(self) -> int:
        """Return the number of records, or of persons."""
        return self._values.n_units

    def encoded(self, how: Encoding) -> Opened:
        """Return what a curator asks."""
        return self._values.opened(self._cells, how)


class ChosenRows(_RowsThere):
    """Some units of rows that were read, with the columns of the stream that they were read from."""

    def __init__(self, values: ReadParts, units: Booleans, stream: RecordStream) -> None:
        super().__init__(values)
        self._values, self._units = values, units
        self.columns, self.is_named, self.sample = stream.columns, stream.is_named, stream.sample
        self.target_kinds = stream.target_kinds

    def count(self) -> int:
        """Return the number of records, or of persons."""
        return int(np.count_nonzero(self._units))

    def encoded(self, how: Encoding) -> Opened:
        """Return what a curator asks."""
        return self._values.opened(self._units, how)


def refuse_whole(plan: Plan) -> None:
    """Refuse a plan with a release that parts cannot answer."""
    if any(release.query in WHOLE for release in plan.releases):
        raise Unsupported(NEEDS_WHOLE)


def check_probes(reports: Mapping[str, Any], loss: Loss, *, sampled: bool) -> None:
    """Refuse, before anything is charged, a cluster without workers, or whose workers run other code than this one."""
    if not reports:
        raise ClusterFailed(f"{NO_WORKERS}: nothing was charged")
    mine = tasks.probe(loss, sampled)
    for worker, report in reports.items():
        if isinstance(report, Failed):
            raise ClusterFailed(f"worker {worker}: {report.reason}: nothing was charged")
        if report != mine:  # or None, where there is no discreet
            reason = OTHER_CODE.replace("a worker", f"worker {worker}", 1)
            raise ClusterFailed(reason.replace("What was charged stays charged", "Nothing was charged"))


def add_all(tally: Tally[Any], answers: Iterable[Any]) -> None:
    """Take answers, which are messages, into a tally; a part that failed ends the fit, in the words of its task."""
    for message in answers:
        answer = message if isinstance(message, Failed) else unpack(message)
        if isinstance(answer, Failed):
            raise ClusterFailed(f"{answer.reason}; what was charged stays charged")
        tally.add(answer)


def probed(message: Any) -> Any:
    """Return what a worker says of itself; None if it does not speak as this process does."""
    try:
        return unpack(message)
    except (Misfit, TypeError):
        return None


def counted(call: Callable[[], Value]) -> Value:
    """Return what counting rows returns: it runs before the charge, and its failures say so."""
    try:
        return call()
    except (Exception, CancelledError):
        pass
    raise ClusterFailed(UNCOUNTED)


def silenced(call: Callable[[], Value], reason: str = BROKEN) -> Value:
    """Return what a call of the cluster returns; its errors in our words, and not even attached to them."""
    try:
        return call()
    except DiscreetError:
        raise
    except (Exception, CancelledError):
        pass
    raise ClusterFailed(reason)
