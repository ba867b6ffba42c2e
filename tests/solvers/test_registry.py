"""Every built-in solver brings its name, its defaults, its audit case and its card."""

from pathlib import Path

import pytest

from discreet.audit.guessing import solver_case
from discreet.registry import BUILT_IN_SOLVERS as BUILT_IN
from discreet.solvers.base import SOLVERS, settings_class

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_solver_brings_what_others_ask(name):
    cls = SOLVERS[name]
    assert cls.name == name
    assert SOLVERS.class_named(cls.__name__) is cls
    assert solver_case(name).level in ("transcript", "model")
    assert (ROOT / "docs" / "solvers" / f"{name}.md").exists()
    assert f"solvers/{name}.md" in (ROOT / "mkdocs.yml").read_text()


def test_parts_of_settings_are_found_by_their_public_names_alone():
    for name in ("Geometry", "AdaptiveClip", "Preconditioned", "Shares", "Limits", "Sandwich", "GradientDescent"):
        assert settings_class(name).__name__ == name
    for name in ("compare_bounds", "register", "Path", "Curator", "__all__"):
        assert settings_class(name) is None


def test_a_name_that_there_is_not():
    with pytest.raises(Exception, match="there are"):
        SOLVERS["newton"]
    assert SOLVERS.class_named("Newton") is None
