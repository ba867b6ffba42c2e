"""Small fits with clips that bite, for the replay tests."""

from collections.abc import Callable
from typing import Any

from discreet.solvers import GradientDescent, StochasticGradientDescent
from tests.solvers.perturbation.cases import DELTA, bounds_of, table
from tests.solvers.perturbation.cases import fit_of as fit_with

__all__ = ["bounds_of", "fit_of", "table"]

CLIP = 0.05
SGD = StochasticGradientDescent(n_steps=3, sampling_probability=0.5, clip=CLIP, step_size=2.0)
GD = GradientDescent(n_steps=3, clip=CLIP, step_size=2.0, momentum="nesterov")


def fit_of(name: str, kind: str = "gd", relation: str = "replace_one", **settings: Any) -> Callable[..., Any]:
    """A fit for replay: a new estimator each time."""
    solver = settings.pop("solver", None) or (SGD if kind == "sgd" else GD)
    return fit_with(name, solver, relation, 0.0 if kind == "pure" else DELTA, **settings)
