"""The Examples of public callables as doctests: a method's example continues that of its class."""

import doctest
import inspect
from collections.abc import Iterator
from typing import Any

FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods of a class that this library wrote, inherited ones among them."""
    for name, _ in inspect.getmembers_static(cls):
        function = inspect.unwrap(getattr(cls, name)) if callable(getattr(cls, name)) else None
        if name.startswith("_") or function is None or inspect.isclass(function):
            continue
        routing = name.startswith("set_") and name.endswith("_request")  # scikit-learn makes these
        if str(getattr(function, "__module__", "")).startswith("discreet") and not routing:
            yield name, function


def run(thing: Any, name: str, names: dict[str, Any] | None = None) -> tuple[dict[str, Any], str]:
    """Run one docstring's examples; return the names that it leaves, and what went wrong."""
    found = doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", dict(names or {}), name, None, 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(found, out=said.append, clear_globs=False)
    return found.globs, "".join(said)


def failures(thing: Any, name: str) -> list[str]:
    """Run a callable's examples, and those of its methods after them."""
    found = [run(thing, name)[1]]
    if inspect.isclass(thing):
        for key, method in methods(thing):
            if ">>>" in (inspect.getdoc(method) or ""):
                found.append(run(method, f"{name}.{key}", run(thing, name)[0])[1])
    return [one for one in found if one]
