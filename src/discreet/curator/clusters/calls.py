"""What workers of a cluster are called with: messages of arrays and plain values, in a format of our own.

A message is four bytes that name the format and its version, the length of a text, the text (JSON), and the bytes of
arrays, one after the other. The text holds plain values, and in their place nodes: an array, by its type and shape; a
tuple, a mapping, bytes; or an object, by the name of its class and its fields. Classes are those of ``_KINDS`` below,
which are made of such values; nothing else is read or written. No message runs code: reading one makes values, through
the constructors of these classes, which check them.

A message that is not of this version, is cut short, has bytes left over, names another class or other fields, or holds
an array of another kind of type than numbers and texts is refused (``Misfit``).

A call is a message that names a task of ours, with what it needs. Functions of this file are all that a scheduler is
given to run, next to the user's own graph. What a task reports comes back as a message, too; what it makes, a part of
the records, stays where it is, and is moved by the cluster as its workers' memory asks.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import platform
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet import losses
from discreet.curator.clusters import persons, tasks
from discreet.curator.clusters.tasks import Failed, guarded
from discreet.errors import ClusterFailed, Unsupported
from discreet.losses.base import Loss

VERSION = 1
_HEAD = struct.Struct("<3sBQ")
_NAME = b"dsm"
_ARRAYS = "biufUS"
"""Kinds of types of arrays: truth, whole numbers, numbers, texts and bytes of fixed length."""
_MISFIT = "a message between this process and a worker does not fit its format: install the same version everywhere"
_FOREIGN = (
    "a cluster is sent discreet's own losses, questions and schemas only, and this needs another object: use one of "
    "discreet's losses, or fit on one machine"
)
_KINDS: Mapping[str, str] = {
    "bounds": "Bounds",
    "schema.columns": "Number Category Ordinal Boolean Target Weight Offset",
    "schema.schema": "Schema",
    "curator.lattice": "Grid Weights",
    "curator.records.admission": "Scaling TargetScaling",
    "curator.records.recoding": "Recoding Placement",
    "curator.records.row_sketches": "RowSketch",
    "curator.records.stream": "Encoding",
    "curator.metrics.row_values": "Released Groups Scoring ShareCells PairCells MomentCells MarginCells RankCells",
    "curator.queries.choices": "ValueQuery WrongSign WrongClass ClippedError",
    "curator.queries.counts": "WeightQuery",
    "curator.queries.effects": ("Edges WeightedGradientQuery CurvatureQuery ScoreQuery SlopeQuery ShellQuery"),
    "curator.queries.gradients": "GradientQuery CoordinateQuery ShareQuery",
    "curator.queries.moments": "MagnitudeQuery MomentQuery SquareQuery TargetQuery",
    "curator.clusters.tasks": "Answer ArrayRows CellEncoding Chosen Failed FilePart FileTable Seal Seen TableRows",
    "curator.clusters.persons": (
        "CountCells CountPersons Dealing EncodePersons EncodedRows KeepPersons NoColumns RangeCells ReadRows ScoredRows"
    ),
}
"""Classes whose objects travel, by their modules; discreet's losses do, too."""


class Misfit(ClusterFailed):
    """A message that does not fit the format."""


@cache
def _modules() -> dict[str, str]:
    modules = {name: f"discreet.{module}" for module, names in _KINDS.items() for name in names.split()}
    for module in iter_modules(losses.__path__, "discreet.losses."):
        for name, kind in vars(import_module(module.name)).items():
            if isinstance(kind, type) and issubclass(kind, Loss) and hasattr(kind, "_fields"):
                modules[name] = kind.__module__
    return modules


@cache
def _kind(name: str) -> type:
    if name not in _modules():
        raise Misfit(_MISFIT)
    kind: type = getattr(import_module(_modules()[name]), name)
    return kind


def pack(value: Any) -> bytes:
    """Return a value as a message; what it cannot hold is refused."""
    arrays: list[NDArray[Any]] = []
    text = json.dumps(_written(value, arrays), separators=(",", ":"), allow_nan=False).encode()
    return b"".join([_HEAD.pack(_NAME, VERSION, len(text)), text, *(array.tobytes() for array in arrays)])


def unpack(message: bytes) -> Any:
    """Return the value of a message, or refuse it."""
    try:
        return _unpacked(bytes(message))
    except (ValueError, TypeError, KeyError, struct.error, RecursionError, AttributeError):
        pass
    raise Misfit(_MISFIT)


def _unpacked(message: bytes) -> Any:
    name, version, length = _HEAD.unpack_from(message)
    if (name, version) != (_NAME, VERSION):
        raise Misfit(_MISFIT)
    reader = _Reader(message, _HEAD.size + length)
    value = reader.read(json.loads(message[_HEAD.size : _HEAD.size + length]))
    if reader.at != len(message):
        raise Misfit(_MISFIT)
    return value


def _written(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """Return a value as JSON holds it; arrays are put aside in their order."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray | np.generic):
        return _array_node(np.asarray(value), arrays, is_scalar=isinstance(value, np.generic))
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if type(value) is list:
        return [_written(item, arrays) for item in value]
    if type(value) is tuple:
        return {"tuple": [_written(item, arrays) for item in value]}
    if isinstance(value, Mapping):
        return {"map": [[_written(key, arrays), _written(item, arrays)] for key, item in value.items()]}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"type": np.dtype(value).str}
    name = type(value).__name__
    if _modules().get(name) != type(value).__module__:
        raise Unsupported(_FOREIGN)
    return {"is": name, "of": {field: _written(item, arrays) for field, item in _fields(value)}}


def _array_node(array: NDArray[Any], arrays: list[NDArray[Any]], *, is_scalar: bool) -> dict[str, Any]:
    if array.dtype.kind not in _ARRAYS:
        raise Unsupported(_FOREIGN)
    arrays.append(array)
    return {"scalar" if is_scalar else "array": [array.dtype.str, list(array.shape)]}


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    kind: type = type(value)
    for name in _field_names(kind):
        yield name, getattr(value, name)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind) if field.init)
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return names


class _Reader:
    """Reads nodes, and the arrays of a message in their order."""

    def __init__(self, message: bytes, at: int) -> None:
        self._message, self.at = message, at

    def read(self, node: Any) -> Any:
        """Return the value of a node."""
        if isinstance(node, list):
            return [self.read(item) for item in node]
        if not isinstance(node, dict):
            return node
        if set(node) == {"is", "of"}:
            return self._object(node["is"], node["of"])
        ((tag, given),) = node.items()
        return getattr(self, f"_{tag}")(given) if tag in _TAGS else self._refuse()

    def _object(self, name: str, values: dict[str, Any]) -> Any:
        kind = _kind(name)
        if tuple(values) != _field_names(kind):
            self._refuse()
        fields = {field: self.read(item) for field, item in values.items()}
        return kind(**fields) if is_dataclass(kind) else kind._make(fields.values())  # type: ignore[attr-defined]

    def _refuse(self) -> Any:
        raise Misfit(_MISFIT)

    def _float(self, text: str) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text]

    def _bytes(self, text: str) -> bytes:
        return bytes.fromhex(text)

    def _tuple(self, nodes: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.read(item) for item in nodes)

    def _map(self, pairs: Sequence[Any]) -> dict[Any, Any]:
        return {self.read(key): self.read(item) for key, item in pairs}

    def _type(self, text: str) -> type:
        return np.dtype(text).type

    def _array(self, given: Sequence[Any]) -> NDArray[Any]:
        dtype, shape = np.dtype(given[0]), tuple(given[1])
        if dtype.kind not in _ARRAYS or any(type(size) is not int or size < 0 for size in shape):
            self._refuse()
        count = math.prod(shape)
        end = self.at + count * dtype.itemsize
        if end > len(self._message):
            self._refuse()
        array = np.frombuffer(self._message, dtype, count, self.at).reshape(shape).copy()
        self.at = end
        return array

    def _scalar(self, given: Sequence[Any]) -> Any:
        return self._array(given)[()]


_TAGS = ("float", "bytes", "tuple", "map", "type", "array", "scalar")


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


def packed_each(questions: Sequence[Any] | None) -> list[bytes] | None:
    """Return what is asked of each part as messages; parts that are asked the same share one."""
    if questions is None:
        return None
    packed: dict[int, bytes] = {}
    for question in questions:
        if id(question) not in packed:
            packed[id(question)] = pack(question)
    return [packed[id(question)] for question in questions]


@guarded
def made(message: bytes, *given: Any) -> Any:
    """Return what a task makes of what it is given: a part, or the number of one and its rows, or its pieces.

    What is asked of a part, and what names a part of a file, come as messages.
    """
    name, words, named = unpack(message)
    if name not in _TASKS:
        raise Misfit("a worker was called for a task that it does not know")
    rest = (unpack(content) if isinstance(content, bytes) else content for content in given[1:])
    return _TASKS[name](*given[:1], *words, *rest, **named)


def told(message: bytes, *given: Any) -> bytes:
    """Return what a task reports, as a message; what does not fit one is a failure."""
    return packed(made(message, *given))


def packed(outcome: Any) -> bytes:
    """Return a report as a message."""
    try:
        return pack(outcome)
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
        reply = outcome(message, context.partitionId(), types, batches)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(reply, protocol=5)], pa.binary())], names=["outcome"])

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
