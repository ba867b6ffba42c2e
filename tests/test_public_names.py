"""The public interface: what is promised exists, and is what type checkers are told it is."""

import ast
import importlib
import inspect
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import discreet

TREE = ast.parse(Path(discreet.__file__).read_text())


def told_to_type_checkers():
    """name -> module, from the imports under TYPE_CHECKING."""
    [block] = [node for node in TREE.body if isinstance(node, ast.If)]
    return {alias.name: node.module for node in block.body for alias in node.names}


@pytest.mark.parametrize("name", discreet.__all__)
def test_public_names_exist(name):
    thing = getattr(discreet, name)
    assert thing is getattr(discreet, name)  # the same thing each time
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert thing.__name__ == name


def test_all_lists_each_name_once():
    assert len(set(discreet.__all__)) == len(discreet.__all__)
    assert set(discreet.__all__) - {"__version__"} == set(discreet._HOME)


def test_type_checkers_are_told_the_same():
    told = told_to_type_checkers()
    assert set(told) == set(discreet._HOME)
    for name, module in told.items():
        assert getattr(importlib.import_module(module), name) is getattr(discreet, name)


def test_star_import():
    names = {}
    exec("from discreet import *", names)
    assert set(discreet.__all__) <= set(names)


def test_other_names_do_not_exist():
    with pytest.raises(AttributeError, match="has no attribute 'DPMagic'"):
        _ = discreet.DPMagic
    assert not hasattr(discreet, "seed")


def test_every_error_is_discreets_own():
    errors = [thing for name in discreet.__all__ if inspect.isclass(thing := getattr(discreet, name))]
    errors = [thing for thing in errors if issubclass(thing, Exception) and not issubclass(thing, Warning)]
    assert len(errors) > 5
    assert all(issubclass(thing, discreet.DiscreetError) for thing in errors)


def test_the_version_is_the_packages():
    try:
        installed = version("discreet")
    except PackageNotFoundError:
        pytest.skip("run from the sources, not installed")
    assert installed == discreet.__version__


@pytest.mark.parametrize("name", sorted({name for name in discreet.__all__ if name.startswith("DP")} - {"DPSelectCV"}))
def test_estimators_share_their_first_parameters(name):
    parameters = inspect.signature(getattr(discreet, name)).parameters
    assert list(parameters)[:3] == ["epsilon", "delta", "bounds"]
    assert {"solver", "neighbors", "fit_intercept", "verbose"} <= set(parameters)
    kinds = {parameter.kind for key, parameter in parameters.items() if key not in ("epsilon", "delta")}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    assert "random_state" not in parameters
    for method in ("fit", "predict", "save", "get_params", "score"):
        assert callable(getattr(getattr(discreet, name), method))
