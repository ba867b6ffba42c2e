"""Public names that are imported when they are first used, listed once: in a package's ``__init__.pyi``.

Type checkers and editors read the stub; at run time a package says::

    __getattr__, __dir__, __all__ = lazy_names(__spec__)

so that ``import discreet`` costs nothing: no numpy, no compiler, no accountant. A line of the stub is
``from module import Name as Name``; a subpackage ``sub`` of ``package`` is ``from package import sub as sub``.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(spec: Any) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of the package of ``spec``, from its stub."""
    package: str = spec.name
    stub: str = spec.loader.get_data(spec.origin + "i").decode()
    lines = (line.split() for line in stub.splitlines() if line.startswith("from "))
    homes = {words[3]: words[1] for words in lines}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)

    return find, lambda: sorted({*vars(sys.modules[package]), *homes}), sorted(homes)
