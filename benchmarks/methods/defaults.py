"""Solvers with their default settings, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.budget import Budget
from discreet.solvers.agd import AdaptiveDescent


@dataclass(frozen=True)
class Method:
    """A name, what to call it, and the solver for a budget."""

    name: str
    label: str
    solver: Callable[[Budget], Any]


def _named(name: str) -> Callable[[Budget], Any]:
    return lambda budget: name


METHODS = (
    Method("agd", "agd", _named("agd")),
    Method("agd-paper", "agd, the authors' split", AdaptiveDescent.paper),
    Method("gd", "gd", _named("gd")),
    Method("sgd", "sgd", _named("sgd")),
    Method("svrg", "svrg", _named("svrg")),
    Method("objective", "objective", _named("objective")),
    Method("output", "output", _named("output")),
    Method("auto", "auto, the default", _named("auto")),
)
