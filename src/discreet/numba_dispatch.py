"""What numba has to know of functions that dispatch on a NamedTuple's class (``scalar_functions``).

Numba resolves such a call while compiling, so that it costs what a direct call costs, and caches it.

Numba's disk cache names types by their classes' import paths, and knows nothing of their source. That is well for the
package's own classes. One from outside would make the cache unreadable for every process that cannot import it, and
would run yesterday's code after an edit. So such a class gets a numba type of its own, known to the cache by its name
and the hash of its module: where the class is not loaded its entries are skipped, and an edited file is compiled again.
"""

import hashlib
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import types
from numba.core.datamodel.models import TupleModel
from numba.extending import overload, register_model, typeof_impl

from discreet.scalar_functions import is_ours

UNCALLED = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
"""What Python does not call needs no entrances."""
_outside: dict[str, type] = {}


class OutsideTuple(types.NamedTuple):
    """The numba type of a NamedTuple from outside the package."""

    def __init__(self, fields: tuple[object, ...], mark: str) -> None:
        super().__init__(fields, _outside[mark])
        self.mark, self.name = mark, f"{mark}({', '.join(str(field) for field in fields)})"

    @property
    def key(self) -> str:
        """What two types are compared by."""
        return str(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.types, self.mark)


class MissingTuple(types.Opaque):
    """Stand for an ``OutsideTuple`` whose class is not loaded: it equals no type of a value, and is kept as it is."""

    def __init__(self, fields: tuple[object, ...], mark: str) -> None:
        super().__init__(f"{mark}{fields}, not loaded")
        self.fields, self.mark = fields, mark

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.fields, self.mark)


def _restored(fields: tuple[object, ...], mark: str) -> Any:
    """Return the type that the cache's index names."""
    return (OutsideTuple if mark in _outside else MissingTuple)(fields, mark)


register_model(OutsideTuple)(TupleModel)


def _register(cls: type) -> None:
    """Give a class from outside the package a numba type of its own, once."""
    if not is_ours(cls) and cls not in _outside.values():
        mark = f"{cls.__name__}_{_digest_of_source(cls)}"
        mark = f"{mark}_{os.urandom(8).hex()}" if mark in _outside else mark  # defined again: another class
        _outside[mark] = cls
        typeof_impl.register(cls)(
            lambda value, context, mark=mark: OutsideTuple(tuple(typeof_impl(field, context) for field in value), mark)
        )


def _digest_of_source(cls: type) -> str:
    """Return the hash of the module that defines a class; where it is no file (a notebook), what no cache will find.

    Its name counts: compiled code imports the module by the name that it had, and one file may be loaded under two.
    """
    try:
        content = Path(inspect.getfile(cls)).read_bytes()
    except (OSError, TypeError):
        content = os.urandom(16)
    return hashlib.sha256(cls.__module__.encode() + b"\0" + content).hexdigest()[:16]


def overload_for(cls: type, call: Callable[..., Any], func: Callable[..., Any]) -> None:
    """Compile ``call`` as ``func`` where its first argument is a ``cls``."""
    _register(cls)
    code = func.__code__
    arguments = code.co_varnames[: code.co_argcount]

    def matches(kind: object) -> bool:
        return isinstance(kind, types.BaseNamedTuple) and kind.instance_class is cls

    # numba compares the argument names of the overload with those of the implementation
    source = f"lambda {', '.join(arguments)}: func if matches({arguments[0]}) else None"
    overload(call, jit_options=UNCALLED)(eval(source, {"func": func, "matches": matches}))
