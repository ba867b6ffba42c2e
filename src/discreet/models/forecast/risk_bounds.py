"""What theory says of a fit before there is data: bounds on the excess risk E F - F*, in units of the loss.

*A bound* holds in expectation for the run as it is configured: output and objective perturbation, gradient and
coordinate descent have one, and only where nothing is clipped, since no theorem here counts the bias of a clip. It is
shown where it says something, which is where it is below what a model of zeros is certain to have
(``excess_of_zeros``). Noise is not bounded, so a larger bound must not be cut down to that: the released coefficients
can be far worse than zeros.

*An order*, without its constant: on the worst data nobody does better than L D sqrt(p) / (n epsilon), pure:
L D p / (n epsilon) (Bassily, Smith & Thakurta 2014), for gradients of norm at most L, best coefficients within a ball
of radius D, and p coordinates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound
from discreet.penalties.base import Penalty
from discreet.solvers.cd import CoordinateDescent
from discreet.solvers.gd import GradientDescent
from discreet.solvers.perturbation_base import OneShot
from discreet.solvers.risk_bound import excess_of_zeros
from discreet.solvers.sgd import StochasticGradientDescent
from discreet.typing import Floats


def mean_length(several: Sequence[Floats]) -> float:
    """Return the mean length of several coefficients."""
    return math.fsum(float(np.linalg.norm(w)) for w in several) / len(several)


@dataclass(frozen=True)
class Theory:
    """What is proven of one run: ``bound`` (None: nothing that says anything), ``order``, and ``zeros``."""

    bound: float | None
    order: float
    zeros: float


def theory_of(
    solver: Any, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, diameter: float, n: int
) -> Theory:
    """Return what is proven for best coefficients of length at most ``diameter``.

    ``n`` is the number of records; where it is private, ``domain`` does not know it, and no bound holds.
    """
    zeros = excess_of_zeros(loss, domain, diameter)
    p = domain.n_features * domain.n_outputs
    size = gradient_bound(loss, domain, diameter) * diameter * (p if budget.is_pure else math.sqrt(p))
    found = _own_bound(solver, domain, loss, penalty, budget, diameter)
    return Theory(found if found < zeros else None, min(size / (n * budget.epsilon), zeros), zeros)


def _own_bound(solver: Any, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, diameter: float) -> float:
    """Return the solver's own bound on the mean loss without the penalty; inf where there is none."""
    try:
        if isinstance(solver, OneShot):  # the penalty's strong convexity is part of its regularization
            whole: Any = replace(solver, regularization=solver.strength(penalty))
            return float(whole.bound(domain, loss, budget, radius=diameter).upper)
        if isinstance(solver, CoordinateDescent):  # the penalized minimizer is no longer than the best coefficients
            found = solver.bound(domain, loss, budget, radius=diameter, penalty=penalty)
            return found.upper + penalty.strong_convexity * diameter**2 / 2
        if isinstance(solver, GradientDescent | StochasticGradientDescent):
            covered = penalty.ridge and penalty.strong_convexity == 0 and (solver.radius or 0.0) >= diameter
            return solver.bound(domain, loss, budget).upper if covered else math.inf
    except Unsupported:
        return math.inf  # a setting that its theorem does not cover
    return math.inf
