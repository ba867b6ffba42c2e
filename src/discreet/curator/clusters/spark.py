"""Records on the executors of Spark: one encoded part per partition, kept there, and exact sums over them.

A part is made by a narrow map from its partition, so that Spark may drop, spill and make it again; it carries the
number and the seal that it got when it was encoded, and one that is made again and differs ends the fit. Answers are
collected, one per part, and never summed by Spark: accumulators may apply an update twice. Noise, entropy and the
ledger stay in this process. Of a data frame, names and types are known here; rows stay on the executors.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.curator.clusters import calls, persons, tasks
from discreet.curator.clusters.calls import call, pack, packed_each
from discreet.curator.clusters.remote import (
    Held,
    OfPersons,
    RemoteParts,
    SourceElsewhere,
    Value,
    Work,
    add_all,
    counted,
    probed,
    silenced,
)
from discreet.curator.clusters.tasks import TableRows, Tally
from discreet.errors import Unsupported

if TYPE_CHECKING:
    from discreet.losses.base import Loss
    from discreet.schema.schema import Schema


_CANNOT_RUN = (
    "Spark does not run the tasks of discreet: is it installed where the executors run, and is the session alive? "
    "Nothing was charged for this"
)


class SparkHeld(Held):
    """Parts that executors keep in memory, and on their disks beyond it, for as long as this object lives."""

    def __init__(self, parts: Any) -> None:
        from pyspark import StorageLevel

        self.parts = silenced(lambda: parts.persist(StorageLevel.MEMORY_AND_DISK))
        weakref.finalize(self, _given_up, parts).atexit = False  # the session ends with this process

    def map(self, task: Callable[..., Any], asked: Sequence[Any] | None = None, **words: Any) -> SparkHeld:
        return SparkHeld(self._called(task, asked, words, tells=False))

    def told(
        self, task: Callable[..., Any], tally: Tally[Value], asked: Sequence[Any] | None = None, **words: Any
    ) -> list[Value]:
        return _collected(self._called(task, asked, words, tells=True), tally)

    def _called(
        self, task: Callable[..., Any], asked: Sequence[Any] | None, words: Mapping[str, Any], *, tells: bool
    ) -> Any:
        message, each = call(task, **words), packed_each(asked)
        return self.parts.map(partial(calls.asked_by_number, message=message, asked=each, tells=tells))


def _given_up(parts: Any) -> None:
    with suppress(Exception):  # a session that has ended keeps nothing
        parts.unpersist()


class SparkParts(RemoteParts):
    """Rows in Spark: ``frame`` has the columns of ``types``, in their order."""

    def __init__(self, frame: Any, rows: tasks.Rows, types: pa.Schema, *, has_persons: bool = False) -> None:
        super().__init__(rows, has_persons=has_persons)
        self._frame, self._types = frame, types
        self.kept = {"kept": "spark executors"}

    def _probed(self, loss: Loss, *, sampled: bool) -> dict[str, Any]:
        look = partial(calls.look, message=call(tasks.probe, loss, sampled))

        def looked() -> dict[str, Any]:
            context = self._frame.sparkSession.sparkContext
            looks = context.defaultParallelism
            return dict(context.parallelize(range(looks), looks).map(look).collect())

        return {worker: probed(report) for worker, report in silenced(looked, _CANNOT_RUN).items()}

    def count(self) -> int:
        """Return the number of rows, counted by Spark; of persons, where there are any."""
        return super().count() if self._has_persons else int(counted(self._frame.count))

    def _told(self, work: Work) -> list[Any]:
        return _collected(self._planned(work).map(calls.packed), self._tally())

    def _made(self, work: Work) -> Held:
        return SparkHeld(self._planned(work))

    def _planned(self, work: Work) -> Any:
        return self._gathered(work) if isinstance(work, OfPersons) else self._read(work.task, *work.words)

    def _read(self, task: Callable[..., Any], *words: Any) -> Any:
        """Return what a task makes of each partition, not computed yet; a frame without partitions is an empty one."""
        message = call(task, self._rows, *words)
        run = calls.on_batches(message, self._types)

        def planned() -> Any:
            parts = self._frame.mapInArrow(run, calls.PACKED).rdd.map(calls.unpickled)
            if parts.getNumPartitions():
                return parts
            nothing = calls.outcome(message, 0, self._types, iter(()))
            return self._frame.sparkSession.sparkContext.parallelize([nothing], 1)

        return silenced(planned)

    def _gathered(self, work: OfPersons) -> Any:
        """Return new parts, each of some persons with all their rows, as many as there are partitions.

        A hand of pieces is dealt from each partition, and the pieces move by Spark's own shuffle.
        """
        count = self._count_parts()
        dealing = persons.Dealing(count, secrets.token_bytes(16))
        hands = self._read(persons.deal, dealing, work.columns)
        pieces = hands.flatMap(partial(persons.addressed, parts=count)).partitionBy(count, persons.address)
        return pieces.mapPartitionsWithIndex(partial(calls.pieces_by_number, finish=pack(work.finish), parts=count))

    def _count_parts(self) -> int:
        return max(1, int(silenced(lambda: self._frame.rdd.getNumPartitions())))

    def _tally(self) -> Tally[Any]:
        return Tally(dict.fromkeys(range(self._count_parts())))


def _collected(answers: Any, tally: Tally[Any]) -> list[Any]:
    """Return every part's answer, once each."""
    add_all(tally, list(silenced(answers.collect)))
    return tally.complete()


_ELSEWHERE = (
    "these rows are in Spark, where fits, private scores and searches reach them: predict inside of mapInPandas "
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


class SparkSource(SourceElsewhere):
    """A data frame of a classic Spark session."""

    where = _ELSEWHERE

    def __init__(self, frame: Any) -> None:
        if ".connect." in type(frame).__module__:
            raise Unsupported(_CONNECT)
        fields = list(frame.schema.fields)
        self.names, self._types = [field.name for field in fields], [field.dataType for field in fields]
        self._frame = frame.toDF(*(f"c{place}" for place in range(len(fields))))  # names may hold dots and quotes

    def parts(self, schema: Schema, *, checks: bool) -> SparkParts:
        """Return the rows in Spark, as this schema reads them."""

        needed = list(schema.needed)
        places = [self.names.index(name) for name in needed]
        types = pa.schema([(name, self.stored(name)[0]) for name in needed])
        frame, has_persons = self._frame.select(*(f"c{place}" for place in places)), schema.person is not None
        return SparkParts(frame, TableRows(schema, checks), types, has_persons=has_persons)

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored."""
        kind = self._types[self.names.index(column)]
        if kind.typeName() == "decimal":
            return [pa.decimal128(kind.precision, kind.scale)]
        if kind.typeName() not in _TYPES:
            raise Unsupported(f"column {column!r} is stored as {kind.typeName()}: write it as a number or a text")
        return [_TYPES[kind.typeName()]]
