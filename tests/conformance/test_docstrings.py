"""Every public thing says what it is, and every paid answer says why it is private."""

import ast
import inspect
from pathlib import Path

import pytest

import discreet
from discreet.curator import Curator
from tests.public_names import callables

SRC = Path(discreet.__file__).parent
PAID = ("noisy_", "select_", "sample_", "perturbed_")
MODULES = sorted(SRC.rglob("*.py"))


def answers():
    return [name for name, _ in inspect.getmembers(Curator, inspect.isfunction) if name.startswith(PAID)]


def test_there_are_answers():
    assert {"noisy_gradient", "noisy_count"} <= set(answers())


@pytest.mark.parametrize("name", answers())
def test_every_answer_has_its_proof(name):
    text = inspect.getdoc(getattr(Curator, name))
    assert "\nPrivacy\n-------\n" in text
    proof = text.split("\nPrivacy\n-------\n")[1]
    for part in ("Sensitivity:", "Mechanism:", "Event:", "Conditions:"):
        assert part in proof


@pytest.mark.parametrize("name", callables())
def test_public_names_have_docstrings(name):
    thing = callables()[name]
    assert thing.__doc__
    # a NamedTuple's or a dataclass's generated text says nothing
    assert not thing.__doc__.startswith(f"{name}(")
    if inspect.isclass(thing):
        own = [item for item in vars(thing).items() if not item[0].startswith("_")]
        for attribute, value in own:
            if inspect.isfunction(value) or isinstance(value, property):
                assert inspect.getdoc(value), f"{name}.{attribute} has no docstring"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_modules_have_docstrings(path):
    assert ast.get_docstring(ast.parse(path.read_text()))
