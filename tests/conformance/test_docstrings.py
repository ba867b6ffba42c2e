"""Every public thing says what it is, and every paid answer says why it is private."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import discreet
from discreet.curator import Curator
from tests.public_names import callables

SRC = Path(discreet.__file__).parent
PRIVACY = "\nPrivacy\n-------\n"
PAID = ("noisy_", "select_", "sample_", "perturbed_")
MODULES = sorted(SRC.rglob("*.py"))


def answers():
    return [name for name, _ in inspect.getmembers(Curator, inspect.isfunction) if name.startswith(PAID)]


def test_there_are_answers():
    assert {"noisy_gradient", "noisy_count"} <= set(answers())


@pytest.mark.parametrize("name", answers())
def test_every_answer_has_its_proof(name):
    """What leaves is said at the curator's method, why it is private where the question is answered."""
    claim = inspect.getdoc(getattr(Curator, name)).split(PRIVACY)[1]
    module, function = re.search(r"\bProof:\s``queries\.(\w+)\.(\w+)``\.$", claim).groups()
    assert function == name
    assert len(claim.split("Proof:")[0].split()) >= 5
    question = getattr(import_module(f"discreet.curator.queries.{module}"), function)
    proof = inspect.getdoc(question).split(PRIVACY)[1]
    for part in ("Sensitivity:", "Mechanism:", "Event:", "Conditions:"):
        assert part in proof


@pytest.mark.whole
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


@pytest.mark.whole
@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_modules_have_docstrings(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_files_that_are_named_exist():
    named = {name: path for path in SRC.rglob("*.py") for name in re.findall(r"``([\w/]+\.py)``", path.read_text())}
    files = [f"/{path.relative_to(SRC)}" for path in SRC.rglob("*.py")]
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []
