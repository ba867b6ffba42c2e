"""Every solver as a subject of audits: public settings under which a canary shows all it can, and two neighbors.

One feature, a handful of records, and steps so short that the weights stay near 0: there the canary's gradient is
longer than the clip, whatever the noise did before, so that it contributes the whole sensitivity to every answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.bounds import Bounds
from discreet.budget import Neighbors
from discreet.models.classification import DPLogisticRegression
from discreet.solvers.agd import AdaptiveDescent
from discreet.solvers.cd import CoordinateDescent
from discreet.solvers.coordinate_geometry import Geometry
from discreet.solvers.gcd import GreedyCoordinateDescent
from discreet.solvers.gd import GradientDescent
from discreet.solvers.sgd import StochasticGradientDescent
from discreet.solvers.svrg import VarianceReducedDescent
from discreet.solvers.whitened import Whitened

CLIP = 0.25
_SHORT = 1e-4
ROWS = 2
BOUNDS = Bounds(features=1.0, classes=(0, 1), n=None)


@dataclass(frozen=True)
class Subject:
    """A solver, and how it is audited.

    ``effort`` is the share of the asked runs that a subject gets: some fits take longer.
    """

    name: str
    solver: Any
    level: str = "transcript"
    alpha: float = 0.0
    effort: float = 1.0

    def fit(self, epsilon: float, delta: float, relation: Neighbors) -> Callable[..., Any]:
        """A fit function at this claim."""
        return partial(_fit, self, epsilon, delta, relation)


def _fit(
    subject: Subject, epsilon: float, delta: float, relation: Neighbors, X: Any, y: Any, groups: Any = None
) -> Any:
    bounds = BOUNDS if relation.n_is_public else BOUNDS.with_facts(n=ROWS)
    model = DPLogisticRegression(
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        penalty="l2" if subject.alpha else None,
        alpha=subject.alpha,
        solver=subject.solver,
        neighbors=str(relation),
        fit_intercept=False,
        ledger=False,
    )
    return model.fit(X, y, groups)


SUBJECTS = (
    Subject("whitened", Whitened(GradientDescent(n_steps=4, momentum=0.7, relative_step=_SHORT))),
    Subject("gd", GradientDescent(n_steps=5, clip=CLIP, step_size=_SHORT)),
    Subject(
        "sgd",
        StochasticGradientDescent(n_steps=5, clip=CLIP, step_size=_SHORT, sampling_probability=0.5),
        "model",
    ),
    Subject(
        "svrg",
        VarianceReducedDescent(n_epochs=2, n_inner=2, clip=CLIP, step_size=_SHORT, sampling_probability=0.5),
        "model",
    ),
    Subject("cd", CoordinateDescent(n_outer=1, n_inner=5, geometry=Geometry(clip=CLIP), relative_step=_SHORT)),
    Subject("gcd", GreedyCoordinateDescent(n_steps=4, geometry=Geometry(clip=CLIP), relative_step=_SHORT)),
    Subject("agd", AdaptiveDescent(n_rounds=5, clip=CLIP, loss_bound=0.25), effort=0.1),
    Subject("output", "output", alpha=0.5),
    Subject("objective", "objective", "model", alpha=0.5, effort=0.5),
    Subject("exponential", "exponential", "model", alpha=0.5),
)


def neighbors_of(relation: Neighbors) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Two tables of one feature: a canary's label is exchanged, or it is blanked, or there is one more."""
    X, y = np.ones((ROWS, 1)), np.ones(ROWS, dtype=int)
    if relation is Neighbors.REPLACE_ONE:
        other = y.copy()
        other[0] = 0
        return (X, y), (X, other)
    if relation is Neighbors.ZERO_OUT:
        blank = X.copy()
        blank[0] = np.nan
        return (X, y), (blank, y)
    return (X, y), (np.ones((ROWS + 1, 1)), np.ones(ROWS + 1, dtype=int))
