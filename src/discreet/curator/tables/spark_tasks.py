"""What Spark's executors run: batches of a partition become one part, and parts answer exact sums.

These are the tasks that every cluster runs, in the shapes that Spark asks for. This file, and what it imports, knows no
noise, no entropy and no ledger. A task returns its failure instead of raising it: Spark logs what is raised.

What a task on batches returns is one binary cell. It is unpacked by the next task of the same job, and Spark moves it
as it moves everything of Python's: pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.curator.engines.part_tasks import Failed, Part, answer, guarded, probe
from discreet.curator.engines.tally import Answer
from discreet.typing import Integers

if TYPE_CHECKING:
    from discreet.curator.engines.base import ExactSum
    from discreet.curator.records.part_rows import Rows
    from discreet.curator.records.recoding import Placement
    from discreet.losses.base import Loss

PACKED = "outcome binary"
"""The columns of what a task on batches returns, in Spark's words."""


def on_batches(
    task: Callable[..., Any], rows: Rows, words: Sequence[Any], types: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a task as Spark's ``mapInArrow`` takes it; ``types`` are those of the table's columns, in their order."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        found = outcome(task, context.partitionId(), rows, words, types, batches)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(found, protocol=5)], pa.binary())], names=["outcome"])

    return run


@guarded
def outcome(
    task: Callable[..., Any],
    number: int,
    rows: Rows,
    words: Sequence[Any],
    types: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Any:
    """Return what a task makes of a partition; one without rows comes without batches."""
    held = list(batches)
    table = pa.Table.from_batches(held) if held else types.empty_table()
    return task(number, rows, *words, table.rename_columns(types.names))


def unpacked(row: Any) -> Any:
    """Return what a task on batches returned."""
    return pickle.loads(row[0])


@guarded
def ask(part: Part, *, questions: Sequence[ExactSum], placement: Placement | None) -> Answer[Integers] | Failed:
    """Return the exact sum of a part's own question, by the number that the part has had since it was encoded."""
    found: Answer[Integers] | Failed = answer(part, questions[part.number], placement=placement)
    return found


def look(_: int, *, loss: Loss, sampled: bool) -> Any:
    """Check compiled code, and return what this process runs."""
    return probe(loss, sampled)
