"""Compiled loops that Python calls; where they are checked, their own source runs in their place.

Functions that only other kernels call stay numba's: a ``Kernel`` is what Python sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, update_wrapper
from pathlib import Path
from pickle import PickleError  # noqa: TID251 (what numba raises; nothing is unpickled here)
from types import FunctionType
from typing import Any

from numba import njit
from numba.core.dispatcher import Dispatcher

from discreet.scalar_functions import tell_compiler

tell_compiler()

_UNREADABLE = (PickleError, ImportError, AttributeError, EOFError, ValueError, TypeError, LookupError, MemoryError)
"""What reading a file of numba's cache may raise, whatever is in it; compiled loops raise none of these."""

_is_plain: ContextVar[bool] = ContextVar("discreet_plain_kernels", default=False)


class Kernel:
    """A compiled loop. Inside ``plain_python``, in its context alone, a call runs the loop's source."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self._options = options
        self.compiled = njit(cache=True, nogil=True, **options)(function)
        self.py_func = function
        update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        if _is_plain.get():
            return _interpreted(self.py_func)(*args)
        try:
            return self.compiled(*args)
        except _UNREADABLE:
            self._forget_cache()
            return self.compiled(*args)

    def _forget_cache(self) -> None:
        """Delete this loop's index on disk, so that it is compiled again; keep what is compiled to this process if not.

        The index names classes of losses and penalties by their modules, and numba reads all of it before it compares
        its date with the source's: one that another version of the package wrote may name a module that is gone, and
        one that was cut short, or that another program wrote over, holds anything.
        """
        name = f"{Path(self.py_func.__code__.co_filename).stem}.{self.py_func.__qualname__}"
        try:
            for index in Path(self.compiled.stats.cache_path).glob(f"{name}-*.nbi"):
                index.unlink(missing_ok=True)
        except OSError:  # a cache that may be read only
            self.compiled = njit(nogil=True, **self._options)(self.py_func)


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator of loops that Python calls: compiled without the interpreter's lock, and cached on disk."""
    return lambda function: Kernel(function, **options)


@contextmanager
def plain_python() -> Iterator[None]:
    """Run the source of kernels, and of what they call, inside the block."""
    token = _is_plain.set(True)
    try:
        yield
    finally:
        _is_plain.reset(token)


@cache
def _interpreted(function: Any) -> Any:
    """Return a kernel's source as a plain function whose names mean the source of every kernel that it calls."""
    names = dict(function.__globals__)
    plain = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    for name in function.__code__.co_names:
        if isinstance(names.get(name), Dispatcher):
            names[name] = _interpreted(names[name].py_func)
    return plain
