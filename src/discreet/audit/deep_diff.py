"""Deep comparison of two fitted objects, bit for bit: where do they differ?"""

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from discreet.accounting.certificate import Certificate

_PLAIN = (str, bytes, int, Enum, type, range, Fraction, ModuleType, BuiltinFunctionType, frozenset, set, slice)


def differences(first: Any, second: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, what) for each place in which the two objects differ; a certificate's date is left out.

    What cannot be compared counts as different: an object without attributes and without an equality of
    its own could hide anything.
    """
    yield from _walk(first, second, path, {})


def _walk(a: Any, b: Any, path: str, seen: dict[tuple[int, int], tuple[Any, Any]]) -> Iterator[tuple[str, str]]:
    if a is b or (id(a), id(b)) in seen:
        return
    seen[id(a), id(b)] = (a, b)  # holding both keeps their ids from being used again
    if type(a) is not type(b):
        yield path, f"{type(a).__name__} against {type(b).__name__}"
    elif isinstance(a, Certificate):
        yield from _walk(_undated(a), _undated(b), path, seen)
    elif isinstance(a, (np.ndarray, np.generic)):
        yield from _arrays(np.asarray(a), np.asarray(b), path, seen)
    elif isinstance(a, (float, complex)):
        if repr(a) != repr(b):  # as bits: -0.0 is not 0.0, NaN is NaN
            yield path, f"{a!r} against {b!r}"
    elif isinstance(a, _PLAIN):
        if a != b:
            yield path, f"{a!r} against {b!r}"
    elif isinstance(a, Mapping):
        yield from _mappings(a, b, path, seen)
    elif isinstance(a, (list, tuple)):
        yield from _sequences(a, b, path, seen)
    else:
        yield from _objects(a, b, path, seen)


def _undated(certificate: Certificate) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(certificate.to_json())
    del stored["created"]
    return stored


def _arrays(a: Any, b: Any, path: str, seen: Any) -> Iterator[tuple[str, str]]:
    if a.dtype != b.dtype or a.shape != b.shape:
        yield path, f"array of {a.dtype} {a.shape} against {b.dtype} {b.shape}"
    elif a.dtype.hasobject:
        yield from _sequences(a.ravel().tolist(), b.ravel().tolist(), path, seen)
    elif a.tobytes() != b.tobytes():
        yield path, f"the values of the array {a.shape}"


def _mappings(a: Any, b: Any, path: str, seen: Any) -> Iterator[tuple[str, str]]:
    if list(a) != list(b):
        yield path, f"keys {list(a)} against {list(b)}"
        return
    for key in a:
        yield from _walk(a[key], b[key], f"{path}.{key}".lstrip("."), seen)


def _sequences(a: Any, b: Any, path: str, seen: Any) -> Iterator[tuple[str, str]]:
    if len(a) != len(b):
        yield path, f"{len(a)} items against {len(b)}"
        return
    for index, (one, other) in enumerate(zip(a, b, strict=True)):
        yield from _walk(one, other, f"{path}[{index}]", seen)


def _objects(a: Any, b: Any, path: str, seen: Any) -> Iterator[tuple[str, str]]:
    inside, other = _contents(a), _contents(b)
    if hasattr(a, "equals"):  # data frames and their kin keep their contents out of sight
        if not a.equals(b):
            yield path, f"two different {type(a).__name__}"
    elif inside is not None and other is not None:
        yield from _mappings(inside, other, path, seen)
    elif not bool(np.all(a == b)):
        yield path, f"two {type(a).__name__} that differ, or cannot be compared"


def _contents(thing: Any) -> dict[str, Any] | None:
    """What an object consists of; None where it does not tell."""
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return {"code": thing.__code__.co_code, "defaults": thing.__defaults__, "closure": cells}
    if isinstance(thing, MethodType):
        return {"function": thing.__func__, "self": thing.__self__}
    names = [_mangled(name, kind) for kind in type(thing).__mro__ for name in _slots(kind)]
    slots = {name: getattr(thing, name) for name in names if hasattr(thing, name)}
    if hasattr(thing, "__dict__") or slots:
        return {**slots, **getattr(thing, "__dict__", {})}
    return None


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _mangled(name: str, kind: type) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{kind.__name__.lstrip('_')}{name}" if private else name
