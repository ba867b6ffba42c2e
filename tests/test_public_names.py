"""The public interface: what is promised exists, is listed once, and is what type checkers read."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import discreet
from tests.public_names import PACKAGES, callables, names, public

LISTED = [(package, name) for package in PACKAGES for name in names(package)]


def test_public_names_exist():
    for package, name in LISTED:
        home = importlib.import_module(package)
        thing = getattr(home, name)
        assert thing is getattr(home, name)  # the same thing each time
        assert name in dir(home)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__name__ == name


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "discreet.datasets"])  # one module, no list
def test_there_is_one_list(package):
    """What the line parser of ``lazy_names`` reads is what a type checker reads, and what is imported."""
    source = ast.parse(Path(importlib.import_module(package).__file__).read_text())
    blocks = [node for node in source.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body]
    assert imports
    homes = {}
    for node in imports:
        for alias in node.names:
            assert alias.asname == alias.name  # "as" itself: a re-export
            homes[alias.name] = node.module
    listed = importlib.import_module(package).__all__
    assert sorted(homes) == [name for name in listed if name != "__version__"]
    assert set(names(package)) <= set(listed)
    for name, module in homes.items():
        if module != package:
            assert getattr(importlib.import_module(module), name) is getattr(importlib.import_module(package), name)


def test_a_name_means_one_thing():
    """A name in several packages is the same thing; ``audit.replay`` and ``testing.replay`` alone differ."""
    for package, name in LISTED:
        if (package, name) != ("discreet.testing", "replay") and name in public():
            assert getattr(importlib.import_module(package), name) is public()[name]


def test_every_error_is_discreets_own():
    found = [*callables().values(), *vars(importlib.import_module("discreet.errors")).values()]
    errors = [thing for thing in found if inspect.isclass(thing)]
    errors = [
        thing for thing in errors if issubclass(thing, Exception) and not issubclass(thing, Warning | AssertionError)
    ]
    assert len(errors) > 5
    assert all(issubclass(thing, discreet.DiscreetError) for thing in errors)
