"""``discreet.curator`` offers what others need, and loads it when it is used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from discreet import curator


def test_checkers_see_what_runs():
    """The names that type checkers are shown are those that are loaded, from the same modules."""
    shown = {}
    for node in ast.walk(ast.parse(Path(curator.__file__ + "i").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            shown |= {alias.name: getattr(import_module(node.module), alias.name) for alias in node.names}
    assert set(shown) == set(curator.__all__)
    assert all(getattr(curator, name) is thing for name, thing in shown.items())


@pytest.mark.whole
@pytest.mark.parametrize("name", dir(curator))
def test_every_name_is_there(name):
    assert getattr(curator, name) is not None


FOR_SOLVERS = {
    "Curator",
    "Problem",
    "Recoding",
    "Edges",
    "Shells",
    "ONE_ROW",
    "STEPS_NEED_N",
    "LEAST_ACCEPTANCE",
    "expected_acceptance",
}


def test_solvers_take_noisy_answers_and_public_facts_only():
    """The facade also opens data and sets randomness, for models, audits and tests: not for solvers."""
    taken = set()
    for path in (Path(curator.__file__).parents[1] / "solvers").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "discreet.curator":
                taken |= {alias.name for alias in node.names}
    assert {"Curator", "Recoding"} <= taken <= FOR_SOLVERS


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="no attribute 'admit'"):
        curator.admit  # noqa: B018


def test_the_facade_itself_loads_nothing():
    code = "import sys, discreet.curator; print([m for m in ('numpy', 'numba', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
