"""Public names that are imported when they are first used, listed once: in a package's ``__init__.py``.

Type checkers and editors read a block that never runs, and this module reads its lines::

    if TYPE_CHECKING:
        from module import Name as Name

    __getattr__, __dir__, __all__ = lazy_names(__spec__)

so that ``import discreet`` costs nothing: no numpy, no compiler, no accountant. A subpackage ``sub`` of ``package`` is
``from package import sub as sub``.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(spec: Any) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of the package of ``spec``, from its source."""
    package: str = spec.name
    source: str = spec.loader.get_data(spec.origin).decode()
    lines = (line.split() for line in source.splitlines() if line.startswith("    from "))
    homes = {words[3]: words[1] for words in lines if words[3:] == [words[3], "as", words[3]]}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)  # found by itself from now on
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *homes}), sorted(homes)
