"""Records on the workers of a Dask cluster: which cluster a fit uses, its tables, and exact sums over its parts.

Parts are ordinary futures: the results of pure functions of the rows, so that the scheduler may move, spill and make
them again: a lost worker costs time, and no bit of an answer. No row is scattered (it could not be made again) and no
task is pinned to a worker. Noise, entropy and the ledger stay in this process; a question that is sent holds public and
released values. Of arrays, frames and files on a cluster this process holds public facts only.
"""

from __future__ import annotations

import ipaddress
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from discreet.curator.clusters import calls, persons, tasks
from discreet.curator.clusters.calls import call, pack, packed_each, unpack
from discreet.curator.clusters.remote import (
    NO_WORKERS,
    OUT_OF_REACH,
    Held,
    OfPersons,
    OfRows,
    RemoteParts,
    SourceElsewhere,
    StreamElsewhere,
    Work,
    add_all,
    probed,
    silenced,
)
from discreet.curator.clusters.tasks import ArrayRows, Failed, FileTable, TableRows, Tally, describe
from discreet.curator.records import admission
from discreet.curator.tables.files import current_client
from discreet.curator.tables.frames import FrameSource
from discreet.errors import ClusterFailed, Unsupported, unquoted

if TYPE_CHECKING:
    from discreet.losses.base import Loss
    from discreet.schema.schema import Schema


_CONNECT = 30


def _distributed() -> Any:
    with unquoted("records on a cluster need Dask: install discreet[dask]", ImportError):
        import distributed
    return distributed


@contextmanager
def cluster(address: Any, *, security: Any = None, insecure: bool = False) -> Iterator[Any]:
    """Fit on a Dask cluster inside the block: workers read, encode and keep the rows.

    Dask collections, and the paths that ``TableModel.fit`` is given, are read by the cluster's workers. Noise is drawn,
    and budgets are charged, in this process only.

    Parameters
    ----------
    address : str or distributed.Client
        The scheduler's address, such as ``"tls://host:8786"``, or a client that is connected.
    security : distributed.Security or None, default=None
        Certificates and keys for ``tls://``. None: those of Dask's own configuration.
    insecure : bool, default=False
        Permit an address outside of this machine without TLS: rows and exact sums then travel in the clear, and anyone
        who reaches the scheduler can run code on the workers.

    Yields
    ------
    distributed.Client
        The client.

    Raises
    ------
    Unsupported
        If the address is outside of this machine and not encrypted.
    ClusterFailed
        If the scheduler cannot be reached.

    Examples
    --------
    >>> from discreet.scale import cluster
    >>> with cluster("tcp://192.0.2.1:8786"):
    ...     pass
    Traceback (most recent call last):
    discreet.errors.Unsupported: tcp://192.0.2.1:8786 is outside of this machine and not encrypted: ...
    """
    given = None if isinstance(address, str) else address
    check_address(address if given is None else given.scheduler.address, insecure=insecure)
    client = _connected(address, security) if given is None else given
    token = current_client.set(client)
    try:
        yield client
    finally:
        current_client.reset(token)
        if given is None:
            client.close()


@contextmanager
def local_cluster(n_workers: int = 2, **settings: Any) -> Iterator[Any]:
    """Start a cluster on this machine for the block: one process of one thread per worker, reachable from here only.

    Parameters
    ----------
    n_workers : int, default=2
        How many processes.
    **settings : dict
        Those of ``distributed.LocalCluster``, such as ``memory_limit`` and ``local_directory``.

    Yields
    ------
    distributed.Client
        The client; Dask's own collections use it, too.

    Examples
    --------
    >>> from discreet.scale import local_cluster
    >>> with local_cluster(n_workers=2):  # doctest: +SKIP
    ...     model.fit(dask_frame, "ill")
    """
    host = {"host": "127.0.0.1"} if settings.get("processes", True) else {}
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", **host, **settings}
    distributed = _distributed()
    with (
        distributed.LocalCluster(n_workers=n_workers, **options) as started,
        distributed.Client(started) as client,
        cluster(client),
    ):
        yield client


def _connected(address: str, security: Any) -> Any:
    distributed = _distributed()
    try:
        return distributed.Client(address, security=security, timeout=_CONNECT)
    except (OSError, TimeoutError, ValueError, RuntimeError):
        reason = f"the scheduler at {address} cannot be reached: is it running, and are the certificates right?"
    raise ClusterFailed(reason)


def check_address(address: str, *, insecure: bool) -> None:
    """Refuse an address outside of this machine that is not encrypted."""
    way, host = urlsplit(address).scheme or "tcp", urlsplit(address if "://" in address else f"//{address}").hostname
    if way in ("tls", "inproc") or insecure or _is_here(host or ""):
        return
    raise Unsupported(
        f"{address} is outside of this machine and not encrypted: use tls:// (docs/how-to/scale.md has the steps), or "
        "discreet.scale.cluster(..., insecure=True) on a network where everyone may see the rows"
    )


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def client_for_collections() -> Any:
    """Return the client that Dask collections are computed with: the block's, else Dask's current one."""
    found = current_client.get()
    if found is not None:
        return found
    try:
        client = _distributed().Client.current()
    except ValueError:
        client = None
    if client is None:
        raise Unsupported(
            "a Dask collection is fitted on a cluster: connect a distributed.Client, or write "
            "with discreet.scale.local_cluster(): model.fit(...)"
        )
    check_address(client.scheduler.address, insecure=False)
    return client


_RETRIES = 3
_GATHERED = 64
_FEW, _PACE = 16, 0.01
"""Of so many parts messages are better sent together, as Dask does, this many seconds apart."""
_ANSWERS, _SHORT = 64, 0.05
"""How many answers are kept on the cluster, and of passes of how many seconds: a lost worker's are made again."""
_LOOKS = 5.0
_PATIENCE = 60.0
"""Seconds between looks at the cluster, and how long it may be without a worker."""

Value = TypeVar("Value")


class DaskHeld(Held):
    """Parts that workers keep, as futures in the order of their numbers.

    A pass is a message to the scheduler, one from it to a worker, and their answers. Dask sends messages together: a
    client waits 10 ms between two, and a scheduler 5 ms between two to one worker, of which giving up the answers of a
    pass is one. So where parts are few this client's go at once, and answers of short passes are given up when there
    are many.
    """

    def __init__(self, client: Any, futures: Sequence[Any]) -> None:
        self._client, self._futures = client, list(futures)
        self._answered: list[Any] = []
        with suppress(AttributeError):  # a client of another kind keeps its pace
            client.scheduler_comm.interval = 0.0 if len(self._futures) < _FEW else _PACE

    def map(self, task: Callable[..., Any], asked: Sequence[Any] | None = None, **words: Any) -> DaskHeld:
        return DaskHeld(self._client, self._called(calls.made, task, asked, words))

    def told(
        self, task: Callable[..., Any], tally: Tally[Value], asked: Sequence[Any] | None = None, **words: Any
    ) -> list[Value]:
        start, futures = monotonic(), self._called(calls.told, task, asked, words)
        answers = _collected(self._client, futures, tally)
        pending = [*self._answered, *futures]
        self._answered = pending if len(pending) < _ANSWERS and monotonic() - start < _SHORT else []
        return answers

    def _called(
        self, run: Callable[..., Any], task: Callable[..., Any], asked: Sequence[Any] | None, words: Mapping[str, Any]
    ) -> list[Any]:
        message, each = call(task, **words), packed_each(asked)
        columns = [[message] * len(self._futures), self._futures]
        return _mapped(self._client, run, *columns, *([] if each is None else [each]))


class DaskParts(RemoteParts):
    """Rows on the workers of a cluster.

    ``pieces`` holds one tuple per part: delayed blocks of a collection, or what names a part of a file. ``sizes`` are
    the parts' numbers of rows where a container declares them. ``files`` are those that every worker must see.
    """

    def __init__(
        self,
        client: Any,
        rows: Any,
        pieces: Sequence[tuple[Any, ...]],
        sizes: Sequence[int] | None = None,
        *,
        has_persons: bool = False,
        files: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(rows, has_persons=has_persons)
        self._client, self._pieces, self._files = client, list(pieces), dict(files or {})
        self._units = None if sizes is None or has_persons else sum(sizes)
        self.kept = {"kept": "dask workers", "parts": len(self._pieces)}

    def _probed(self, loss: Loss, *, sampled: bool) -> dict[str, Any]:
        message, run = call(tasks.probe, loss, sampled, self._files), self._client.run
        reports = silenced(lambda: run(calls.told, message, on_error="return"), OUT_OF_REACH)
        return {
            worker: probed(report) for worker, report in reports.items() if not isinstance(report, OSError)
        }  # who are gone

    def count(self) -> int:
        """Return the number of rows, as declared or counted by workers; of persons, where there are any."""
        if self._units is None:
            self._units = super().count()
        return self._units

    def _told(self, work: Work) -> list[Any]:
        return _collected(self._client, self._futures(calls.told, work), self._tally())

    def _made(self, work: Work) -> Held:
        return DaskHeld(self._client, self._futures(calls.made, work))

    def _futures(self, run: Callable[..., Any], work: Work) -> list[Any]:
        if isinstance(work, OfPersons):
            return self._gathered(run, work)
        return self._submitted(run, work)

    def _tally(self) -> Tally[Any]:
        return Tally(dict.fromkeys(range(len(self._pieces))))

    def _gathered(self, run: Callable[..., Any], work: OfPersons) -> list[Any]:
        """Return one future per new part, each of some persons with all their rows: as many as were read."""
        from dask import delayed

        count = len(self._pieces)
        dealing = persons.Dealing(count, secrets.token_bytes(16))
        dealt, gathered = call(persons.deal, self._rows, dealing, work.columns), call(persons.gather, work.finish)
        deal, piece, gather = (delayed(task, pure=False) for task in (calls.made, persons.piece_of, run))
        hands = [deal(dealt, number, *given) for number, given in enumerate(self._pieces)]
        parts = [gather(gathered, part, *(piece(hand, part) for hand in hands)) for part in range(count)]
        return silenced(lambda: list(self._client.compute(parts, retries=_RETRIES)))

    def _submitted(self, run: Callable[..., Any], work: OfRows) -> list[Any]:
        """Return one future per part; rows of a collection are read in the same graph, and are not kept."""
        from dask import delayed

        message, task = call(work.task, self._rows, *work.words), delayed(run, pure=False)
        tasks = [task(message, number, *piece) for number, piece in enumerate(self._pieces)]
        return silenced(lambda: list(self._client.compute(tasks, retries=_RETRIES)))


def outcome_of(client: Any, task: Callable[..., Any], *words: Any) -> Any:
    """Return what one task on some worker returns; a failure is raised in its own words, which name no value."""
    message = call(task, *words)
    reply = unpack(silenced(lambda: client.submit(calls.told, message, pure=False).result(), OUT_OF_REACH))
    if isinstance(reply, Failed):
        raise Unsupported(reply.reason)
    return reply


def _mapped(client: Any, task: Callable[..., Any], *columns: Sequence[Any], **words: Any) -> list[Any]:
    """Return one future per part, of a name of its own: no two passes, and no two fits, share an answer."""
    return silenced(lambda: list(client.map(task, *columns, pure=False, retries=_RETRIES, **words)))


def _collected(client: Any, futures: Sequence[Any], tally: Tally[Value]) -> list[Value]:
    """Return every part's answer, once each; exact sums that an error keeps names of are given up at once."""
    try:
        _wait(client, futures)
        for some in _runs(futures):
            add_all(tally, silenced(lambda some=some: client.gather(some)))  # type: ignore[misc]
        return tally.complete()
    except BaseException:
        for future in futures:
            future.release()
        raise


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


_UNLIKE = "y must be a Dask column that is partitioned as X is, or the name of a column of X"


class DaskRows(StreamElsewhere):
    """Dask arrays or frames of features and targets; ``y`` may name a column of the frame.

    ``groups``, ``weights`` and ``offsets`` are Dask columns that are partitioned as X is.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        classes: Sequence[Any] | None,
        groups: Any = None,
        weights: Any = None,
        offsets: Any = None,
    ) -> None:
        sample, pieces, sizes = _blocks(X)
        self.is_named, target = hasattr(sample, "columns"), None
        if self.is_named and isinstance(y, str):
            target = y
            if list(sample.columns).count(y) != 1:
                raise Unsupported(f"X has no column {y!r}, or has it twice")
            self.target_kinds = admission.kinds_of(sample[y])
            sample = sample.drop(columns=[y])
        else:
            self.target_kinds = [admission.kind_of(y.dtype)] if hasattr(y, "dtype") else []
            pieces = [(*piece, other) for piece, other in zip(pieces, _targets(X, y, len(pieces)), strict=True)]
        given = {"groups": groups, "weights": weights, "offsets": offsets}
        beside = {name: column for name, column in given.items() if column is not None}
        for name, column in beside.items():
            if not admission.is_dask(column) or getattr(column, "ndim", 1) != 1:
                raise Unsupported(f"{name} must be a Dask column that is partitioned as X is, one value for each row")
            pieces = [(*piece, part) for piece, part in zip(pieces, _targets(X, column, len(pieces)), strict=True)]
        self.has_persons = groups is not None
        self.columns_beside = tuple(name for name in beside if name != "groups")
        self.sample = admission.two_dimensional(sample)
        n_columns = int(self.sample.shape[1])
        self.columns = [str(name) for name in sample.columns] if self.is_named else [""] * n_columns
        self._pieces, self._sizes = pieces, sizes
        self._rows = ArrayRows(n_columns, classes, target, tuple(beside))

    @cached_property
    def elsewhere(self) -> DaskParts:  # type: ignore[override]
        """The rows on the cluster."""

        client = client_for_collections()
        return DaskParts(client, self._rows, self._pieces, self._sizes, has_persons=self.has_persons)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows, which workers count if nothing declares them, and columns."""
        return self.elsewhere.count(), len(self.columns)


def _blocks(X: Any) -> tuple[Any, list[tuple[Any, ...]], list[int] | None]:
    """Return an empty table of the same types, one delayed block per part, and the parts' sizes where declared."""
    if not hasattr(X, "chunks"):
        return empty_like(X), [(part,) for part in _parts_of(X)], None
    from dask.array.utils import meta_from_array

    if X.ndim != 2 or math.isnan(X.shape[1]):
        raise Unsupported("X must have two dimensions, one row per record, and a known number of columns")
    if not isinstance(meta_from_array(X), np.ndarray):
        raise Unsupported("blocks of a Dask array must be dense: X.map_blocks(lambda block: block.toarray())")
    whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    sizes = None if any(map(math.isnan, whole.chunks[0])) else [int(size) for size in whole.chunks[0]]
    return np.empty((0, X.shape[1]), dtype=X.dtype), [(part,) for part in whole.to_delayed().ravel()], sizes


def _parts_of(frame: Any) -> list[Any]:
    """Return a frame's partitions as they are: Dask's optimizer puts those of few columns together."""
    return list(frame.to_delayed(optimize_graph=False))


def _targets(X: Any, y: Any, parts: int) -> list[Any]:
    """Return one delayed block of targets per part."""
    if not admission.is_dask(y):
        raise Unsupported(_UNLIKE)
    if hasattr(y, "chunks"):
        if y.ndim == 2 and y.numblocks[1] > 1:
            raise Unsupported("y must be one column of targets: several outputs are not supported")
        is_sized = hasattr(X, "chunks") and not any(map(math.isnan, (*X.chunks[0], *y.chunks[0])))
        if is_sized and sum(X.chunks[0]) != sum(y.chunks[0]):
            raise Unsupported("y must hold one target for each row of X")
        columns: list[Any] = (y.rechunk({0: X.chunks[0]}) if is_sized else y).to_delayed().ravel().tolist()
    else:
        columns = _parts_of(y)
    if len(columns) != parts:
        raise Unsupported(_UNLIKE)
    return columns


def empty_like(frame: Any) -> Any:
    """Return a pandas frame of the same columns and types as a Dask frame, without rows."""
    from dask.dataframe.dispatch import make_meta

    return make_meta(frame).iloc[:0]


class RemoteSource(SourceElsewhere):
    """A table whose rows workers read: a Dask frame, or files."""

    files: Mapping[str, int] = MappingProxyType({})
    """Files that every worker must see, with their sizes."""

    def __init__(self, client: Any, pieces: Sequence[tuple[Any, ...]], sizes: Sequence[int] | None) -> None:
        self._client, self._pieces, self._sizes = client, list(pieces), sizes
        self._count: int | None = None

    def parts(self, schema: Schema, *, checks: bool) -> DaskParts:
        """Return the rows on the cluster, as this schema reads them."""

        rows, has_persons = TableRows(schema, checks), schema.person is not None
        return DaskParts(self._client, rows, self._pieces, self._sizes, has_persons=has_persons, files=self.files)


class DaskSource(RemoteSource):
    """A Dask frame."""

    def __init__(self, frame: Any) -> None:
        super().__init__(client_for_collections(), [(part,) for part in frame.to_delayed()], None)
        self._sample = FrameSource(empty_like(frame))
        self.names = self._sample.names

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored."""
        return self._sample.stored(column)


class WorkersFiles(RemoteSource):
    """Files that workers open: this process need not see them."""

    def __init__(self, client: Any, paths: Any, separator: str | None) -> None:
        given = [str(path) for path in (paths if isinstance(paths, (list, tuple)) else [paths])]
        table = outcome_of(client, describe, given, separator)
        if not isinstance(table, FileTable):
            raise ClusterFailed("a worker cannot look at the files: nothing was charged")
        super().__init__(client, [(pack(part),) for part in table.parts], table.rows)
        self.names, self.files = table.names, table.sizes
        self._stored = [pa.ipc.read_schema(pa.py_buffer(types)) for types in table.stored]

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored in each file."""
        return [types.field(column).type for types in self._stored]
