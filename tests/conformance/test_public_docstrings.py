"""Public docstrings have numpydoc's sections, with what the signature says, and their examples run."""

import doctest
import inspect

import pytest

from discreet.solvers.base import Solver
from discreet.solvers.registry import Chooses
from tests.conformance.doctests import failures, methods, run
from tests.conformance.numpydoc_sections import described, problems, sections, summary_problems
from tests.public_names import PACKAGES, callables

FOR_USERS = ("Curator", "PrivateData", "Problem", "Recoding")
"""Of the curator's names, those that authors of solvers meet. The others are what our own packages may ask of it (the
import contracts let them import nothing else from there); their docstrings say what is private, not how to call them.
"""

CHECKED = callables(*(package for package in PACKAGES if package != "discreet.curator"))
CHECKED |= {name: callables("discreet.curator")[name] for name in FOR_USERS}
WHOLE = ("Bounds", "Budget", "Certificate", "Ledger", "Schema", "SchemaEncoder", "TableModel", "TableSearch")
"""Classes whose methods are checked too, as are the estimators'."""
INSIDE = {"Certificate.of", "Ledger.abandon", "Ledger.key", "Ledger.recognize", "Ledger.settle"}
"""Methods that discreet's own code calls, and users do not: a summary says enough."""

IN_ONE_LINE = callables("discreet.losses", "discreet.penalties", "discreet.solvers") | {
    name: CHECKED[name] for name in FOR_USERS
}
"""Classes whose methods need a line only: the protocols say once what each solver's methods take and return."""


@pytest.mark.whole
@pytest.mark.parametrize("name", CHECKED)
def test_sections(name):
    thing = CHECKED[name]
    found = problems(thing, name)
    if name in WHOLE or name.startswith("DP"):
        called = {f"{name}.{key}": method for key, method in methods(thing)}
        found += [problem for key in called.keys() - INSIDE for problem in problems(called[key], key)]
    assert found == []


@pytest.mark.parametrize("name", [name for name, thing in IN_ONE_LINE.items() if inspect.isclass(thing)])
def test_methods_have_a_line(name):
    assert [
        problem for key, method in methods(IN_ONE_LINE[name]) for problem in summary_problems(method, f"{name}.{key}")
    ] == []


@pytest.mark.parametrize("protocol", [Solver, Chooses])
def test_what_every_solver_has_is_described_once(protocol):
    """The protocol's methods have all sections but an example: a protocol cannot be called."""
    found = dict(methods(protocol))
    assert set(found) == ({"plan", "solve", "settings"} if protocol is Solver else {"defaults", "filled", "audit_case"})
    told = [problem for key, method in found.items() for problem in problems(method, key)]
    assert told == [f"{key}: no Examples" for key in found]


@pytest.mark.few(30)
@pytest.mark.parametrize("name", callables())
def test_examples_run(name):
    assert failures(callables()[name], name) == []


def test_methods_inside_are_those_of_a_class():
    found = {f"{name}.{key}": method for name in WHOLE for key, method in methods(CHECKED[name])}
    assert found.keys() >= INSIDE
    assert all(inspect.getdoc(found[name]) for name in INSIDE)


def test_methods_are_found():
    """Inherited, wrapped and class methods; not those that scikit-learn makes."""
    found = dict(methods(CHECKED["DPRidge"]))
    assert {"fit", "predict", "score", "quote", "forecast", "save"} <= set(found)
    assert "set_fit_request" not in found
    assert {"create", "grant"} <= set(dict(methods(CHECKED["Ledger"])))


# --- a docstring that lacks something is found ------------------------------------------------------


def wrong(first, second=2):
    """Do something.

    Parameters
    ----------
    first
        One.

    Examples
    --------
    >>> 1 + 1
    3
    """
    if first:
        raise ValueError
    return second


def test_what_is_missing_is_found():
    told = " ".join(problems(wrong, "wrong"))
    for part in ("first has no type", "['first', 'second']", "no Returns", "no Raises"):
        assert part in told
    assert "Expected:\n    3\nGot:\n    2" in run(wrong, "wrong")[1]
    assert "no Examples" in " ".join(problems(inspect.cleandoc, "cleandoc"))
    assert problems(doctest.DocTest, "DocTest")


def test_sections_are_told_apart():
    found = sections(inspect.getdoc(wrong))
    assert set(found) == {"", "Parameters", "Examples"}
    assert described("one, two : int\n    Numbers.\n**rest : dict\n    More.") == {
        "one": "int",
        "two": "int",
        "rest": "dict",
    }
