"""Every built-in solver brings its name, its defaults, its audit case and its card."""

from pathlib import Path

import pytest

from discreet.audit.solver_cases import solver_case
from discreet.models.solver_choice import solver_names
from discreet.registry import declared_in
from discreet.solvers.registry import PACKAGES, PARTS, SOLVERS

ROOT = Path(__file__).parents[2]
BUILT_IN = tuple(name for package in PACKAGES for name in declared_in(package, "register"))


def test_the_names():
    assert set(BUILT_IN) >= {"recipe", "gd", "sgd", "svrg", "cd", "gcd", "agd", "output", "objective", "exponential"}
    assert solver_names()[: len(BUILT_IN) + 1] == ("auto", *BUILT_IN)
    assert {"Geometry", "AdaptiveClip"} <= set(PARTS.class_names())


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_solver_brings_what_others_ask(name):
    cls = SOLVERS[name]
    assert cls.name == name
    assert SOLVERS.class_named(cls.__name__) is cls
    assert solver_case(name).level in ("transcript", "model")
    assert (ROOT / "docs" / "solvers" / f"{name}.md").exists()
    assert f"solvers/{name}.md" in (ROOT / "mkdocs.yml").read_text()


def test_a_name_that_there_is_not():
    with pytest.raises(Exception, match="there are"):
        SOLVERS["newton"]
    assert SOLVERS.class_named("Newton") is None
