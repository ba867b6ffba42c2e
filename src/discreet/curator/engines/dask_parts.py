"""Records on the workers of a Dask cluster: ordinary futures of encoded parts, and exact sums over them.

Parts are the results of pure functions of the rows, so that the scheduler may move, spill and make them again: a lost
worker costs time, and no bit of an answer. No row is scattered (it could not be made again) and no task is pinned to a
worker. Noise, entropy and the ledger stay in this process; a question that is sent holds public and released values.

The cluster's own words are not passed on: what a task of the user's graph raises may quote cells.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet.curator.engines import part_tasks
from discreet.curator.engines.base import Engine, ExactSum, LocalEngine
from discreet.curator.engines.part_tasks import Failed, Seen
from discreet.curator.engines.tally import LOST, OTHER_CODE, Seal, Tally
from discreet.curator.records import part_rows
from discreet.errors import ClusterFailed, DiscreetError, Unsupported
from discreet.typing import Integers

if TYPE_CHECKING:
    from discreet.accounting.plan import Plan
    from discreet.curator.lattice.lattice import Grid
    from discreet.curator.records.recoding import Placement
    from discreet.losses.base import Loss

WHOLE = ("noisy_minimizer", "noisy_descent", "perturb_objective", "perturbed_minimizer", "sample_minimizer")
"""Releases that need all records at hand."""
NEEDS_WHOLE = (
    "this solver needs all records on one machine, and they are on a cluster: use an iterative one (solver='auto', "
    "'gd', 'sgd', 'svrg', 'agd', 'cd' or 'gcd'), or fit on one machine, with scratch files (discreet.scale.limited)"
)
_BROKEN = "the cluster failed, or lost a part of the records for good; what was charged stays charged"
_OUT_OF_REACH = "the cluster cannot be reached; nothing was charged for this"
_NO_WORKERS = "the cluster has no workers"
_RETRIES = 3
_GATHERED = 64
_LOOKS = 5.0
_PATIENCE = 60.0
"""Seconds between looks at the cluster, and how long it may be without a worker."""

Value = TypeVar("Value")


@dataclass(frozen=True, repr=False)
class Opened:
    """Encoded parts as an engine, and what was seen of the rows of each."""

    engine: DaskEngine
    seen: list[Seen]


class DaskParts:
    """Rows on a cluster, in parts that are not encoded yet: each is what ``rows`` makes a stream of, once read there.

    ``pieces`` holds one tuple per part: delayed blocks of a collection, or what names a part of a file. ``sizes`` are
    the parts' numbers of rows where a container declares them.
    """

    def __init__(
        self, client: Any, rows: Any, pieces: Sequence[tuple[Any, ...]], sizes: Sequence[int] | None = None
    ) -> None:
        self._client, self._rows, self._pieces = client, rows, list(pieces)
        self._sizes = None if sizes is None else list(sizes)
        self._software = part_tasks.software()

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self._pieces)

    def check(self, plan: Plan, loss: Loss) -> None:
        """Refuse what parts cannot answer, and a cluster whose workers run other code than this process."""
        if any(release.query in WHOLE for release in plan.releases):
            raise Unsupported(NEEDS_WHOLE)
        sampled = plan.is_sampled
        run = self._client.run
        found = _silenced(lambda: run(part_tasks.probe, loss, sampled, on_error="return"), _OUT_OF_REACH)
        told = [one for one in found.values() if not isinstance(one, OSError)]  # of workers that are gone
        if not told:
            raise ClusterFailed(f"{_NO_WORKERS}: nothing was charged")
        mine = part_tasks.probe(loss, sampled)
        for one in told:
            if isinstance(one, Failed):
                raise ClusterFailed(f"{one.reason}: nothing was charged")
            if one != mine:  # or an exception, where there is no discreet
                raise ClusterFailed(OTHER_CODE.replace("What was charged stays charged", "Nothing was charged"))

    def count(self) -> int:
        """Return the number of rows: as declared, or counted by workers."""
        if self._sizes is None:
            self._sizes = self._told(part_rows.count_rows)
        return sum(self._sizes)

    def cells(self) -> Integers:
        """Return how many rows are in each cell of what the stream asks for before blocks can be made."""
        return _added(self._told(part_rows.count_cells))

    def encoded(self, how: Any) -> Opened:
        """Encode every part where it is read, and keep it there."""
        futures = self._submitted(part_rows.encode, how)
        tally: Tally[tuple[Seal, Seen]] = Tally(dict.fromkeys(range(self.parts)), self._software)
        told = _collected(self._client, _mapped(self._client, part_tasks.seen_of, futures), tally)
        grid, n_columns = how.scaling.grid, len(how.scaling.scale) + how.scaling.intercept
        engine = DaskEngine(self._client, futures, [seal for seal, _ in told], self._software, grid, n_columns)
        return Opened(engine, [seen for _, seen in told])

    def _told(self, task: Callable[..., Any]) -> list[Any]:
        tally: Tally[Any] = Tally(dict.fromkeys(range(self.parts)), self._software)
        return _collected(self._client, self._submitted(task), tally)

    def _submitted(self, task: Callable[..., Any], *words: Any) -> list[Any]:
        """Return one future per part; rows of a collection are read in the same graph, and are not kept."""
        from dask import delayed

        made = delayed(task, pure=False)
        asked = [made(number, self._rows, *words, *piece) for number, piece in enumerate(self._pieces)]
        return _silenced(lambda: list(self._client.compute(asked, retries=_RETRIES)))


class DaskEngine(Engine):
    """Encoded parts on workers, and exact sums over all of them.

    ``placement`` recodes each part on the way through a pass.
    """

    is_sparse = is_grouped = runs_programs = False

    def __init__(
        self,
        client: Any,
        parts: Sequence[Any],
        seals: Sequence[Seal],
        software: tuple[str, ...],
        grid: Grid,
        n_columns: int,
        *,
        placement: Placement | None = None,
    ) -> None:
        self._client, self._parts, self._seals, self._software = client, list(parts), list(seals), software
        self._placement, self.grid, self.n_columns = placement, grid, n_columns
        self._edges = list(accumulate((seal.rows for seal in seals), initial=0))
        self.n_units = self._edges[-1]

    def total(self, question: ExactSum) -> Integers:
        asked = [question.of_units(first, last) for first, last in pairwise(self._edges)]
        futures = _mapped(self._client, part_tasks.answer, self._parts, asked, placement=self._placement)
        return _added(_collected(self._client, futures, Tally(dict(enumerate(self._seals)), self._software)))

    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        parts, on_the_way = self._parts, placement
        if not once:
            parts = _mapped(self._client, part_tasks.recode, self._parts, placement=placement)
        facts = (self._seals, self._software, placement.grid, placement.n_columns)
        return DaskEngine(self._client, parts, *facts, placement=on_the_way if once else None)

    def whole(self) -> LocalEngine:
        raise Unsupported(NEEDS_WHOLE)


def outcome_of(client: Any, task: Callable[..., Any], *words: Any) -> Any:
    """Return what one task on some worker returns; a failure is raised in its own words, which name no value."""
    found = _silenced(lambda: client.submit(task, *words, pure=False).result(), _OUT_OF_REACH)
    if isinstance(found, Failed):
        raise Unsupported(found.reason)
    return found


def _mapped(client: Any, task: Callable[..., Any], *columns: Sequence[Any], **words: Any) -> list[Any]:
    """Return one future per part, of a name of its own: no two passes, and no two fits, share an answer."""
    return _silenced(lambda: list(client.map(task, *columns, pure=False, retries=_RETRIES, **words)))


def _added(told: Sequence[Integers]) -> Integers:
    """Return the exact sum: of integers whose total fits 62 bits, as the lattice was made for."""
    total: Integers = np.zeros_like(told[0])
    for part in told:
        if part.shape != total.shape or part.dtype != total.dtype:
            raise ClusterFailed(LOST)
        total += part
    return total


def _collected(client: Any, futures: Sequence[Any], tally: Tally[Value]) -> list[Value]:
    """Return every part's answer, once each; the futures, which hold exact sums, are given up in any case."""
    try:
        _wait(client, futures)
        for some in _runs(futures):
            for told in _silenced(lambda some=some: client.gather(some)):  # type: ignore[misc]
                if isinstance(told, Failed):
                    raise ClusterFailed(f"{told.reason}; what was charged stays charged")
                tally.add(told)
        return tally.complete()
    finally:
        for future in futures:
            future.release()


def _runs(futures: Sequence[Any]) -> Iterator[list[Any]]:
    for first in range(0, len(futures), _GATHERED):
        yield list(futures[first : first + _GATHERED])


def _wait(client: Any, futures: Sequence[Any]) -> None:
    """Wait for all answers, however long they take, as long as there is a worker who could give them."""
    from distributed import TimeoutError as Waiting
    from distributed import wait

    def looked() -> bool:
        try:
            wait(futures, timeout=_LOOKS)
        except Waiting:
            return False
        return True

    last = monotonic()
    while not _silenced(looked):
        if _silenced(client.nthreads):
            last = monotonic()
        elif monotonic() - last > _PATIENCE:
            raise ClusterFailed(f"{_NO_WORKERS} any more; what was charged stays charged")


def _silenced(call: Callable[[], Value], reason: str = _BROKEN) -> Value:
    """Return what a call of the cluster returns; its errors in our words, and not even attached to them."""
    try:
        return call()
    except DiscreetError:
        raise
    except (Exception, CancelledError):
        pass
    raise ClusterFailed(reason)
