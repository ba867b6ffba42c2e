"""Messages between the coordinator and workers: arrays and plain values, in a format of our own.

A message is four bytes that name the format and its version, the length of a text, the text (JSON), and the bytes of
arrays, one after the other. The text holds plain values, and in their place nodes: an array, by its type and shape; a
tuple, a mapping, bytes; or an object, by the name of its class and its fields. Classes are those of ``_KINDS`` below,
which are made of such values; nothing else is read or written. No message runs code: reading one makes values, through
the constructors of these classes, which check them.

A message that is not of this version, is cut short, has bytes left over, names another class or other fields, or holds
an array of another kind of type than numbers and texts is refused (``Misfit``).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import losses
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
    "curator.lattice.lattice": "Grid Weights",
    "curator.records.admission": "Scaling TargetScaling",
    "curator.records.recoding": "Recoding Placement",
    "curator.records.row_sketches": "RowSketch",
    "curator.records.stream": "Encoding",
    "curator.metrics.row_values": "Released Groups Scoring ShareCells PairCells MomentCells MarginCells RankCells",
    "curator.queries.choices": "ValueQuery WrongSign WrongClass ClippedError",
    "curator.queries.coordinates": "CoordinateQuery ShareQuery",
    "curator.queries.counts": "WeightQuery",
    "curator.queries.effects": ("Edges WeightedGradientQuery CurvatureQuery ScoreQuery SlopeQuery ShellQuery"),
    "curator.queries.gradients": "GradientQuery",
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
    found = {name: f"discreet.{module}" for module, names in _KINDS.items() for name in names.split()}
    for module in iter_modules(losses.__path__, "discreet.losses."):
        for name, kind in vars(import_module(module.name)).items():
            if isinstance(kind, type) and issubclass(kind, Loss) and hasattr(kind, "_fields"):
                found[name] = kind.__module__
    return found


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
        return [_written(one, arrays) for one in value]
    if type(value) is tuple:
        return {"tuple": [_written(one, arrays) for one in value]}
    if isinstance(value, Mapping):
        return {"map": [[_written(key, arrays), _written(one, arrays)] for key, one in value.items()]}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"type": np.dtype(value).str}
    name = type(value).__name__
    if _modules().get(name) != type(value).__module__:
        raise Unsupported(_FOREIGN)
    return {"is": name, "of": {field: _written(one, arrays) for field, one in _fields(value)}}


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
            return [self.read(one) for one in node]
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
        found = {field: self.read(one) for field, one in values.items()}
        return kind(**found) if is_dataclass(kind) else kind._make(found.values())  # type: ignore[attr-defined]

    def _refuse(self) -> Any:
        raise Misfit(_MISFIT)

    def _float(self, text: str) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text]

    def _bytes(self, text: str) -> bytes:
        return bytes.fromhex(text)

    def _tuple(self, nodes: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.read(one) for one in nodes)

    def _map(self, pairs: Sequence[Any]) -> dict[Any, Any]:
        return {self.read(key): self.read(one) for key, one in pairs}

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
        found = np.frombuffer(self._message, dtype, count, self.at).reshape(shape).copy()
        self.at = end
        return found

    def _scalar(self, given: Sequence[Any]) -> Any:
        return self._array(given)[()]


_TAGS = ("float", "bytes", "tuple", "map", "type", "array", "scalar")
