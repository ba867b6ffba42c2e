"""What workers of a cluster are called with: a message that names a task of ours, with what it needs.

Functions of this file are all that a scheduler is given to run, next to the user's own graph. What a task reports comes
back as a message, too; what it makes, a part of the records, stays where it is, and is moved by the cluster as its
workers' memory asks.
"""

from __future__ import annotations

import os
import pickle
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from discreet.curator.clusters import persons, tasks
from discreet.curator.clusters.messages import Misfit, pack, unpack
from discreet.curator.clusters.tasks import Failed, guarded

_TASKS = {
    task.__name__: task
    for task in (
        persons.deal,
        persons.gather,
        persons.ranks_of,
        tasks.answer,
        tasks.count_cells,
        tasks.count_rows,
        tasks.describe,
        tasks.encode,
        tasks.encode_chosen,
        tasks.probe,
        tasks.read,
        tasks.recode,
        tasks.score,
        tasks.seen_of,
    )
}


def call(task: Callable[..., Any], *words: Any, **named: Any) -> bytes:
    """Return the message that calls a task."""
    assert task.__name__ in _TASKS
    return pack((task.__name__, words, named))


def packed_each(asked: Sequence[Any] | None) -> list[bytes] | None:
    """Return what is asked of each part as messages; parts that are asked the same share one."""
    if asked is None:
        return None
    packed: dict[int, bytes] = {}
    for question in asked:
        if id(question) not in packed:
            packed[id(question)] = pack(question)
    return [packed[id(question)] for question in asked]


@guarded
def made(message: bytes, *given: Any) -> Any:
    """Return what a task makes of what it is given: a part, or the number of one and its rows, or its pieces.

    What is asked of a part, and what names a part of a file, come as messages.
    """
    name, words, named = unpack(message)
    if name not in _TASKS:
        raise Misfit("a worker was called for a task that it does not know")
    rest = (unpack(one) if isinstance(one, bytes) else one for one in given[1:])
    return _TASKS[name](*given[:1], *words, *rest, **named)


def told(message: bytes, *given: Any) -> bytes:
    """Return what a task reports, as a message; what does not fit one is a failure."""
    return packed(made(message, *given))


def packed(found: Any) -> bytes:
    """Return a report as a message."""
    try:
        return pack(found)
    except Exception:
        return pack(Failed("a worker could not do its part"))


# The same for Spark, in the shapes that it asks for.

PACKED = "outcome binary"
"""The columns of what a call on batches returns, in Spark's words."""


def on_batches(message: bytes, types: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a call as Spark's ``mapInArrow`` takes it; ``types`` are those of the table's columns, in their order."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        found = outcome(message, context.partitionId(), types, batches)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(found, protocol=5)], pa.binary())], names=["outcome"])

    return run


@guarded
def outcome(message: bytes, number: int, types: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Any:
    """Return what a call makes of a partition; one without rows comes without batches."""
    held = list(batches)
    table = pa.Table.from_batches(held) if held else types.empty_table()
    return made(message, number, table.rename_columns(types.names))


def unpickled(row: Any) -> Any:
    """Return what a call on batches made, in the next process of the same job."""
    return pickle.loads(row[0])


def asked_by_number(part: Any, *, message: bytes, asked: Sequence[bytes] | None, tells: bool) -> Any:
    """Return what a call makes or reports of a part, asked by the number that it has had since it was encoded."""
    each = () if isinstance(part, Failed) or asked is None else (asked[part.number],)
    return (told if tells else made)(message, part, *each)


def pieces_by_number(number: int, pieces: Iterable[tuple[int, Any]], *, finish: bytes, parts: int) -> list[Any]:
    """Make a new part of the pieces that came to it."""
    return persons.gather_addressed(number, pieces, finish=unpack(finish), parts=parts)


def look(_: int, *, message: bytes) -> tuple[str, bytes]:
    """Check compiled code, and return where this process is and what it runs."""
    return f"{platform.node()}:{os.getpid()}", told(message)
