"""Records on the executors of Spark: one encoded part per partition, kept there, and exact sums over them.

A part is made by a narrow map from its partition, so that Spark may drop, spill and make it again; it carries the
number and the seal that it got when it was encoded, and one that is made again and differs ends the fit. Answers are
collected, one per part, and never summed by Spark: accumulators may apply an update twice. Noise, entropy and the
ledger stay in this process. Of a data frame, names and types are known here; rows stay on the executors.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.curator.clusters import tasks
from discreet.curator.clusters.remote import (
    Opened,
    RemoteEngine,
    add_all,
    check_probes,
    counted,
    refuse_whole,
    silenced,
)
from discreet.curator.clusters.tasks import Seal, TableRows, Tally, added
from discreet.curator.engines.base import Engine, ExactSum
from discreet.curator.records.containers import NO_WEIGHTS
from discreet.curator.tables.frames import BATCH_ROWS, Batch, Source
from discreet.errors import Unsupported
from discreet.typing import Integers

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.accounting.plan import Plan
    from discreet.curator.lattice.lattice import Grid
    from discreet.curator.records.recoding import Placement
    from discreet.losses.base import Loss
    from discreet.schema.schema import Schema


_NO_PERSONS = (
    "a person's rows may be in several partitions, and Spark does not bring them together: write the table to Parquet "
    "files, and fit them on a Dask cluster (discreet.scale.cluster) or on one machine"
)
_CANNOT_RUN = (
    "Spark does not run the tasks of discreet: is it installed where the executors run, and is the session alive? "
    "Nothing was charged for this"
)


class Kept:
    """Parts that executors keep in memory, and on their disks beyond it, for as long as this object lives."""

    def __init__(self, parts: Any) -> None:
        from pyspark import StorageLevel

        self.parts = silenced(lambda: parts.persist(StorageLevel.MEMORY_AND_DISK))
        weakref.finalize(self, _given_up, parts).atexit = False  # the session ends with this process


def _given_up(parts: Any) -> None:
    with suppress(Exception):  # a session that has ended keeps nothing
        parts.unpersist()


class SparkParts:
    """Rows in Spark that are not encoded yet: ``frame`` has the columns of ``types``, in their order."""

    def __init__(self, frame: Any, rows: tasks.Rows, types: pa.Schema) -> None:
        self._frame, self._rows, self._types = frame, rows, types
        self._software = tasks.software()
        self.kept = {"kept": "spark executors"}

    def check(self, plan: Plan, loss: Loss) -> None:
        """Refuse what parts cannot answer, and executors that run other code than this process."""
        refuse_whole(plan)
        look = partial(tasks.look, loss=loss, sampled=plan.is_sampled)

        def looked() -> list[Any]:
            context = self._frame.sparkSession.sparkContext
            looks = context.defaultParallelism
            return list(context.parallelize(range(looks), looks).map(look).collect())

        check_probes(silenced(looked, _CANNOT_RUN), loss, sampled=plan.is_sampled)

    def count(self) -> int:
        """Return the number of rows, counted by Spark."""
        return int(counted(self._frame.count))

    def cells(self) -> dict[int, Integers]:
        """Return how many rows are in each cell of what the stream asks for before blocks can be made."""
        made = self._made(tasks.count_cells)
        return {1: added(_collected(made, self._tally(made)))}

    def encoded(self, how: Any) -> Opened:
        """Encode every partition where it is read, and keep it there."""
        kept = Kept(self._made(tasks.encode, how))
        told = _collected(kept.parts.map(tasks.seen_of), self._tally(kept.parts))
        scaling = how.scaling
        engine = SparkEngine(kept, [seal for seal, _ in told], self._software, scaling.grid, scaling.width)
        return Opened(engine, [seen for _, seen in told])

    def _made(self, task: Callable[..., Any], *words: Any) -> Any:
        """Return what a task makes of each partition, not computed yet; a frame without partitions is an empty one."""
        run = tasks.on_batches(task, self._rows, words, self._types)

        def planned() -> Any:
            made = self._frame.mapInArrow(run, tasks.PACKED).rdd.map(tasks.unpacked)
            if made.getNumPartitions():
                return made
            nothing = tasks.outcome(task, 0, self._rows, words, self._types, iter(()))
            return self._frame.sparkSession.sparkContext.parallelize([nothing], 1)

        return silenced(planned)

    def _tally(self, parts: Any) -> Tally[Any]:
        return Tally(dict.fromkeys(range(silenced(parts.getNumPartitions))), self._software)


class SparkEngine(RemoteEngine):
    """Encoded parts on executors, and exact sums over all of them; ``placement`` recodes each on the way of a pass."""

    def __init__(
        self,
        kept: Kept,
        seals: Sequence[Seal],
        software: tuple[str, ...],
        grid: Grid,
        n_columns: int,
        *,
        placement: Placement | None = None,
    ) -> None:
        super().__init__(seals, software)
        self._kept, self._placement, self.grid, self.n_columns = kept, placement, grid, n_columns

    def total(self, question: ExactSum) -> Integers:
        ask = partial(tasks.ask, questions=self.asked(question), placement=self._placement)
        return added(_collected(self._kept.parts.map(ask), self.tally()))

    def recoded(self, placement: Placement, *, once: bool = False) -> Engine:
        facts = (self._seals, self._software, placement.grid, placement.n_columns)
        if once:
            return SparkEngine(self._kept, *facts, placement=placement)
        return SparkEngine(Kept(self._kept.parts.map(partial(tasks.recode, placement=placement))), *facts)


def _collected(answers: Any, tally: Tally[Any]) -> list[Any]:
    """Return every part's answer, once each."""
    add_all(tally, _gathered(answers))
    return tally.complete()


def _gathered(answers: Any) -> list[Any]:
    return list(silenced(answers.collect))


_ELSEWHERE = (
    "these rows are in Spark, where only fit reaches them: predict inside of mapInPandas "
    "(docs/how-to/scale.md shows it), or load the part that you need (.toPandas())"
)
_CONNECT = "a frame of Spark Connect does not reach the parts of a table: fit in a classic session, on the driver"
_TYPES = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "void": pa.null(),
}


class SparkSource(Source):
    """A data frame of a classic Spark session."""

    def __init__(self, frame: Any) -> None:
        if ".connect." in type(frame).__module__:
            raise Unsupported(_CONNECT)
        fields = list(frame.schema.fields)
        self.names, self._types = [field.name for field in fields], [field.dataType for field in fields]
        self._frame = frame.toDF(*(f"c{place}" for place in range(len(fields))))  # names may hold dots and quotes

    def parts(self, schema: Schema, *, checks: bool) -> SparkParts:
        """Return the rows in Spark, as this schema reads them."""

        if schema.person is not None:
            raise Unsupported(_NO_PERSONS)
        if schema.columns_beside:
            raise Unsupported(NO_WEIGHTS)
        needed = list(schema.needed)
        places = [self.names.index(name) for name in needed]
        types = pa.schema([(name, self.stored(name)[0]) for name in needed])
        return SparkParts(self._frame.select(*(f"c{place}" for place in places)), TableRows(schema, checks), types)

    def count(self) -> int:
        """Refuse: Spark counts (``RecordStream.elsewhere``)."""
        raise Unsupported(_ELSEWHERE)

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored."""
        kind = self._types[self.names.index(column)]
        if kind.typeName() == "decimal":
            return [pa.decimal128(kind.precision, kind.scale)]
        if kind.typeName() not in _TYPES:
            raise Unsupported(f"column {column!r} is stored as {kind.typeName()}: write it as a number or a text")
        return [_TYPES[kind.typeName()]]

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """Refuse: rows do not come here."""
        raise Unsupported(_ELSEWHERE)
