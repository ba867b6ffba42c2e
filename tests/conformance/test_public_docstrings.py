"""Public docstrings have numpydoc's sections, with what the signature says, and their examples run."""

import doctest
import inspect

import pytest

from tests.conformance.doctests import failures, methods, run
from tests.conformance.numpydoc_sections import described, problems, sections
from tests.public_names import PACKAGES, callables

LATER = ("discreet.curator", "discreet.losses", "discreet.penalties", "discreet.solvers")
"""Packages whose docstrings have no sections yet."""

CHECKED = callables(*(package for package in PACKAGES if package not in LATER))
WHOLE = ("Bounds", "Budget", "Certificate", "Ledger", "Schema", "SchemaEncoder", "TableModel", "TableSearch")
"""Classes whose methods are checked too, as are the estimators'."""


@pytest.mark.whole
@pytest.mark.parametrize("name", CHECKED)
def test_sections(name):
    thing = CHECKED[name]
    found = problems(thing, name)
    if name in WHOLE or name.startswith("DP"):
        found += [problem for key, method in methods(thing) for problem in problems(method, f"{name}.{key}")]
    assert found == []


@pytest.mark.few(30)
@pytest.mark.parametrize("name", callables())
def test_examples_run(name):
    assert failures(callables()[name], name) == []


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
