"""Functions that dispatch on a NamedTuple's class, in plain Python and inside compiled kernels.

``f = scalar_function("f")`` makes ``f(obj, ...)``; ``@f.of(cls)`` says what it means for ``cls``.
Numba resolves the call while compiling, so that it costs what a direct call costs, and caches it.
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import overload

_registered: dict[str, type] = {}


def _claim_name(cls: type) -> None:
    """Numba tells NamedTuples apart by name and field types: a namesake would run the first one's code."""
    if _registered.setdefault(cls.__name__, cls) is not cls:
        raise TypeError(f"another class named {cls.__name__!r} is registered already: rename one of the two")


def scalar_function(name: str) -> Any:
    """Make a function that each class gives its own meaning."""
    table: dict[type, Callable[..., Any]] = {}

    def call(obj, *args):  # type: ignore[no-untyped-def]
        return table[type(obj)](obj, *args)

    def of(cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        _claim_name(cls)

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            table[cls] = func
            code = func.__code__
            arguments = code.co_varnames[: code.co_argcount]

            def matches(kind: Any) -> bool:
                return isinstance(kind, types.BaseNamedTuple) and kind.instance_class is cls

            # numba compares the argument names of the overload with those of the implementation
            source = f"lambda {', '.join(arguments)}: func if matches({arguments[0]}) else None"
            overload(call)(eval(source, {"func": func, "matches": matches}))
            return func

        return register

    call.__name__ = call.__qualname__ = name
    call.of = of  # type: ignore[attr-defined]
    call.table = table  # type: ignore[attr-defined]
    return call
