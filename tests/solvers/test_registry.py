"""Every built-in solver brings its name, its defaults, its audit case and its card."""

from pathlib import Path

import pytest

from discreet.audit.guessing import solver_case
from discreet.registry import BUILT_IN_SOLVERS as BUILT_IN
from discreet.solvers.base import SOLVERS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_solver_brings_what_others_ask(name):
    cls = SOLVERS[name]
    assert cls.name == name
    assert SOLVERS.class_named(cls.__name__) is cls
    assert solver_case(name).level in ("transcript", "model")
    assert (ROOT / "docs" / "solvers" / f"{name}.md").exists()
    assert f"solvers/{name}.md" in (ROOT / "mkdocs.yml").read_text()
