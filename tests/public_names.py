"""The public names: those that the packages list, which users may import from there."""

from importlib import import_module
from types import GenericAlias, ModuleType
from typing import Any

PACKAGES = (
    *("discreet", "discreet.accounting", "discreet.audit", "discreet.curator", "discreet.datasets"),
    *("discreet.default", "discreet.ledger", "discreet.losses", "discreet.models", "discreet.penalties"),
    *("discreet.scale", "discreet.schema", "discreet.solvers", "discreet.testing"),
)


OF_THE_CURATOR = ["Curator", "PrivateData", "Problem", "Recoding"]
"""Those that authors of solvers meet; the others are what our own packages may ask of it (the import contracts)."""


def names(package: str) -> list[str]:
    """Return the public names of a package."""
    return OF_THE_CURATOR if package == "discreet.curator" else list(import_module(package).__all__)


def public(*packages: str) -> dict[str, Any]:
    """Return name -> thing for the packages (None: all), without modules and ``__version__``; the first home counts."""
    found: dict[str, Any] = {}
    for package in packages or PACKAGES:
        for name in names(package):
            thing = getattr(import_module(package), name)
            if not name.startswith("__") and not isinstance(thing, ModuleType):
                found.setdefault(name, thing)
    return found


def callables(*packages: str) -> dict[str, Any]:
    """Return the public classes and functions; names of types, such as ``Words``, are neither."""
    found = public(*packages).items()
    return {name: thing for name, thing in found if callable(thing) and not isinstance(thing, GenericAlias)}
