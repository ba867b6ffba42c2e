"""What the library registers has a case in ``tests/registry.py``, and so is tested for every promise."""

import inspect

from discreet.curator import METRICS, Curator
from discreet.losses.base import LOSSES
from discreet.penalties.base import PENALTIES
from discreet.solvers.base import SOLVERS
from tests import registry

ANSWERS = ("noisy_", "select_", "sample_", "perturbed_", "exact_")


def ours(kinds):
    """Return the names that the library registers; examples register solvers and losses of their own."""
    return {name for name in kinds.names() if kinds[name].__module__.startswith("discreet.")}


def test_solvers():
    assert set(registry.SOLVERS) == ours(SOLVERS)
    for name, variants in registry.SOLVERS.items():
        used = [case.solver if isinstance(case.solver, str) else inner(case.solver) for case in variants.values()]
        assert any(solver == name or isinstance(solver, SOLVERS[name]) for solver in used)


def inner(solver):
    """Return the solver that a stage runs, or the solver itself."""
    return inner(solver.solver) if hasattr(solver, "solver") else solver


def test_losses():
    assert set(registry.LOSSES) == ours(LOSSES)
    assert all(isinstance(loss, LOSSES[name]) for name, loss in registry.LOSSES.items())


def test_penalties():
    assert set(registry.PENALTIES) == ours(PENALTIES)
    assert all(isinstance(penalty, PENALTIES[name]) for name, penalty in registry.PENALTIES.items())


def test_metrics():
    assert set(registry.METRICS) == set(METRICS)


def test_queries():
    answers = {name for name, _ in inspect.getmembers(Curator, inspect.isfunction) if name.startswith(ANSWERS)}
    assert answers == set(registry.QUERIES) | set(registry.NO_SUMS)
