"""Records on the workers of a Dask cluster: ordinary futures of encoded parts, and exact sums over them.

Parts are the results of pure functions of the rows, so that the scheduler may move, spill and make them again: a lost
worker costs time, and no bit of an answer. No row is scattered (it could not be made again) and no task is pinned to a
worker. Noise, entropy and the ledger stay in this process; a question that is sent holds public and released values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.curator.engines import part_tasks
from discreet.curator.engines.base import Engine, ExactSum
from discreet.curator.engines.part_tasks import Failed, Seen
from discreet.curator.engines.remote import (
    NO_WORKERS,
    OUT_OF_REACH,
    Opened,
    RemoteEngine,
    add_all,
    check_probes,
    counted,
    refuse_whole,
    silenced,
)
from discreet.curator.engines.tally import Seal, Tally, added
from discreet.curator.records import part_rows
from discreet.errors import ClusterFailed, Unsupported
from discreet.typing import Integers

if TYPE_CHECKING:
    from discreet.accounting.plan import Plan
    from discreet.curator.lattice.lattice import Grid
    from discreet.curator.records.recoding import Placement
    from discreet.losses.base import Loss

_RETRIES = 3
_GATHERED = 64
_LOOKS = 5.0
_PATIENCE = 60.0
"""Seconds between looks at the cluster, and how long it may be without a worker."""

Value = TypeVar("Value")


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

    @property
    def kept(self) -> dict[str, Any]:
        """Where parts are kept, for the certificate."""
        return {"kept": "dask workers", "parts": self.parts}

    def check(self, plan: Plan, loss: Loss) -> None:
        """Refuse what parts cannot answer, and a cluster whose workers run other code than this process."""
        refuse_whole(plan)
        run = self._client.run
        found = silenced(lambda: run(part_tasks.probe, loss, plan.is_sampled, on_error="return"), OUT_OF_REACH)
        told = [one for one in found.values() if not isinstance(one, OSError)]  # of workers that are gone
        check_probes(told, loss, sampled=plan.is_sampled)

    def count(self) -> int:
        """Return the number of rows: as declared, or counted by workers."""
        if self._sizes is None:
            self._sizes = counted(lambda: self._told(part_rows.count_rows))
        return sum(self._sizes)

    def cells(self) -> Integers:
        """Return how many rows are in each cell of what the stream asks for before blocks can be made."""
        return added(self._told(part_rows.count_cells))

    def encoded(self, how: Any) -> Opened:
        """Encode every part where it is read, and keep it there."""
        futures = self._submitted(part_rows.encode, how)
        tally: Tally[tuple[Seal, Seen]] = Tally(dict.fromkeys(range(self.parts)), self._software)
        told = _collected(self._client, _mapped(self._client, part_tasks.seen_of, futures), tally)
        scaling = how.scaling
        engine = DaskEngine(
            self._client, futures, [seal for seal, _ in told], self._software, scaling.grid, scaling.width
        )
        return Opened(engine, [seen for _, seen in told])

    def _told(self, task: Callable[..., Any]) -> list[Any]:
        tally: Tally[Any] = Tally(dict.fromkeys(range(self.parts)), self._software)
        return _collected(self._client, self._submitted(task), tally)

    def _submitted(self, task: Callable[..., Any], *words: Any) -> list[Any]:
        """Return one future per part; rows of a collection are read in the same graph, and are not kept."""
        from dask import delayed

        made = delayed(task, pure=False)
        asked = [made(number, self._rows, *words, *piece) for number, piece in enumerate(self._pieces)]
        return silenced(lambda: list(self._client.compute(asked, retries=_RETRIES)))


class DaskEngine(RemoteEngine):
    """Encoded parts on workers, and exact sums over all of them.

    ``placement`` recodes each part on the way through a pass.
    """

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
        super().__init__(seals, software)
        self._client, self._parts = client, list(parts)
        self._placement, self.grid, self.n_columns = placement, grid, n_columns

    def total(self, question: ExactSum) -> Integers:
        asked = self.asked(question)
        futures = _mapped(self._client, part_tasks.answer, self._parts, asked, placement=self._placement)
        return added(_collected(self._client, futures, self.tally()))

    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        parts, on_the_way = self._parts, placement
        if not once:
            parts = _mapped(self._client, part_tasks.recode, self._parts, placement=placement)
        facts = (self._seals, self._software, placement.grid, placement.n_columns)
        return DaskEngine(self._client, parts, *facts, placement=on_the_way if once else None)


def outcome_of(client: Any, task: Callable[..., Any], *words: Any) -> Any:
    """Return what one task on some worker returns; a failure is raised in its own words, which name no value."""
    found = silenced(lambda: client.submit(task, *words, pure=False).result(), OUT_OF_REACH)
    if isinstance(found, Failed):
        raise Unsupported(found.reason)
    return found


def _mapped(client: Any, task: Callable[..., Any], *columns: Sequence[Any], **words: Any) -> list[Any]:
    """Return one future per part, of a name of its own: no two passes, and no two fits, share an answer."""
    return silenced(lambda: list(client.map(task, *columns, pure=False, retries=_RETRIES, **words)))


def _collected(client: Any, futures: Sequence[Any], tally: Tally[Value]) -> list[Value]:
    """Return every part's answer, once each; the futures, which hold exact sums, are given up in any case."""
    try:
        _wait(client, futures)
        for some in _runs(futures):
            add_all(tally, silenced(lambda some=some: client.gather(some)))  # type: ignore[misc]
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
    while not silenced(looked):
        if silenced(client.nthreads):
            last = monotonic()
        elif monotonic() - last > _PATIENCE:
            raise ClusterFailed(f"{NO_WORKERS} any more; what was charged stays charged")
