"""Functions that dispatch on a NamedTuple's class, in plain Python and inside compiled kernels.

``f = scalar_function("f")`` makes ``f(obj, ...)``; ``@f.of(cls)`` says what it means for ``cls``. Plain Python needs no
compiler: numba learns what it has to know (``numba_dispatch``) when it is loaded, so that a model can be configured,
printed, priced and used to predict without it.
"""

import sys
from collections.abc import Callable
from typing import Any

from discreet.errors import Unsupported

_registered: dict[str, type] = {}
_PACKAGE = __name__.partition(".")[0]
_waiting: list[Callable[[], object]] = []


def when_compiling(register: Callable[[], object]) -> Callable[[], object]:
    """Tell numba something: now if it is loaded, else when the first kernel is imported (``tell_compiler``)."""
    _waiting.append(register)
    if "numba" in sys.modules:
        tell_compiler()
    return register


def tell_compiler() -> None:
    """Tell numba what is waiting for it, in the order of registration."""
    while _waiting:
        _waiting.pop(0)()


def is_ours(cls: type) -> bool:
    """Say whether a class belongs to this package."""
    return cls.__module__.partition(".")[0] == _PACKAGE


def _claim(cls: type) -> None:
    """Numba's symbols tell NamedTuples apart by name and field types: a namesake would run the first one's code."""
    namesake = _registered.setdefault(cls.__name__, cls) if is_ours(cls) else _registered.get(cls.__name__, cls)
    if namesake is not cls:
        raise TypeError(f"another class named {cls.__name__!r} is registered already: rename one of the two")


def scalar_function(name: str) -> Any:
    """Make a function that each class gives its own meaning."""
    table: dict[type, Callable[..., Any]] = {}

    def call(obj, *args):  # type: ignore[no-untyped-def]
        function = table.get(type(obj))
        if function is None:
            kind = type(obj).__name__
            raise Unsupported(f"{kind} does not say what its {name} is: define it with @{name}.of({kind})")
        return function(obj, *args)

    def of(cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        _claim(cls)

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            def overload() -> None:
                from discreet.numba_dispatch import overload_for  # brings the compiler

                overload_for(cls, call, func)

            table[cls] = func
            when_compiling(overload)
            return func

        return register

    call.__name__ = call.__qualname__ = name
    call.of = of  # type: ignore[attr-defined]
    call.table = table  # type: ignore[attr-defined]
    return call
