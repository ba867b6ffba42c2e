"""Every paid answer says why it is private, and the examples of every public thing run."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import discreet
from discreet import Ledger
from discreet.curator import Curator
from tests.public_names import PACKAGES, callables

SRC = Path(discreet.__file__).parent
PRIVACY = "\nPrivacy\n-------\n"
ANSWERS = ("noisy_", "select_", "sample_", "perturbed_", "exact_")
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def test_every_answer_has_its_proof():
    """The method is the query: its docstring has the proof."""
    answers = [name for name, _ in inspect.getmembers(Curator, inspect.isfunction) if name.startswith(ANSWERS)]
    assert {"noisy_gradient", "noisy_count"} <= set(answers)
    for name in answers:
        query = inspect.unwrap(getattr(Curator, name))
        assert query.__module__.startswith("discreet.curator.queries.")
        assert query.__name__ == name
        proof = inspect.getdoc(query).split(PRIVACY)[1]
        assert all(part in proof for part in ("Sensitivity:", "Mechanism:", "Event:", "Conditions:")), name


def test_files_that_are_named_exist():
    names = {name: path for path in SRC.rglob("*.py") for name in re.findall(r"``([\w/]+\.py)``", path.read_text())}
    files = [f"/{path.relative_to(SRC)}" for path in SRC.rglob("*.py")]
    assert [name for name in names if not any(file.endswith(f"/{name}") for file in files)] == []


def methods(cls):
    """Yield the public methods of a class that this library wrote, inherited ones among them."""
    for name, _ in inspect.getmembers_static(cls):
        function = inspect.unwrap(getattr(cls, name)) if callable(getattr(cls, name)) else None
        if name.startswith("_") or function is None or inspect.isclass(function):
            continue
        routing = name.startswith("set_") and name.endswith("_request")  # scikit-learn makes these
        if str(getattr(function, "__module__", "")).startswith("discreet") and not routing:
            yield name, function


# --- examples ---------------------------------------------------------------------------------------


def run(thing, name, names=None):
    """Run one docstring's examples; return the names that it leaves, and what went wrong."""
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", dict(names or {}), name, None, 0)
    wrong = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example, out=wrong.append, clear_globs=False)
    return example.globs, "".join(wrong)


OTHERWISE = {
    "DPOrdinalRegression": {"decision_function", "fit", "forecast", "forecast_effects", "intervals", "to_sklearn"}
}
"""Methods whose inherited examples have other shapes in a class, or are refused there, as its own docstring says."""


def failures(thing, name):
    """Run a callable's examples, and those of its methods, which continue them."""
    names, text = run(thing, name)
    wrong = [text]
    if inspect.isclass(thing):
        for key, method in methods(thing):
            if ">>>" in (inspect.getdoc(method) or "") and key not in OTHERWISE.get(name, ()):
                wrong.append(
                    run(method, f"{name}.{key}", run(thing, name)[0] if thing is Ledger else names)[1]
                )  # charges add up
    return [text for text in wrong if text]


@pytest.mark.parametrize(
    "package", [pytest.param(name, marks=pytest.mark.thorough if name == "discreet" else ()) for name in PACKAGES]
)
def test_examples_run(package):
    elsewhere = {} if package == "discreet" else callables("discreet")
    names = {name: thing for name, thing in callables(package).items() if name not in elsewhere}
    assert [text for name, thing in names.items() for text in failures(thing, name)] == []
