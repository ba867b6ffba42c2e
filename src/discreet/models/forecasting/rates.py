"""What theory says of a fit before there is data: explicit bounds on the excess risk, in units of the loss.

For a convex loss with gradients of norm at most L, the best coefficients within a ball of radius D, p coordinates, and
a budget of mu (Gaussian DP; a = 2 under replace_one, else 1):

=====================  ==========================================================================================
averaged projected GD  E F - F* <= a L D sqrt(p) / (n mu), as the number of steps grows
exponential mechanism  E F - F* <= sqrt(2) a L D sqrt(p) / (n mu); pure: 2 L D p / (n epsilon)
others                 their own ``bound``: output and objective perturbation, coordinate descent
nobody                 does better than the order of L D sqrt(p) / (n epsilon), pure: L D p / (n epsilon), on the worst
                       data (Bassily, Smith & Thakurta 2014)
=====================  ==========================================================================================

These are for the worst data with these constants, every record as long as declared and pulling the same way. Usual
tables are far from it: expect bounds that are ten to a thousand times what happens, and often above what the zero
model already has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.constants import gradient_bound
from discreet.solvers.base import RiskBound

YARDSTICK = "averaged projected gradient descent"


@dataclass(frozen=True)
class Lengths:
    """How long the best coefficients are assumed to be, in training coordinates, in three norms."""

    euclidean: float
    largest: float
    absolute: float

    @classmethod
    def of(cls, coefficients: NDArray[np.float64]) -> "Lengths":
        """Those of given coefficients."""
        sizes = np.abs(coefficients)
        return cls(float(np.linalg.norm(sizes)), float(sizes.max()), float(sizes.sum()))

    @classmethod
    def mean(cls, several: "Sequence[Lengths]") -> "Lengths":
        """The mean of several, norm by norm."""
        columns = zip(*(vars(lengths).values() for lengths in several), strict=True)
        return cls(*(math.fsum(column) / len(several) for column in columns))

    @classmethod
    def within(cls, radius: float, coordinates: int) -> "Lengths":
        """The largest that a ball of this radius allows."""
        return cls(radius, radius, radius * math.sqrt(coordinates))


@dataclass(frozen=True)
class Rate:
    """A bound on the excess risk and whose it is; ``lower`` is an order, without its constant."""

    upper: float
    lower: float
    explicit: bool
    source: str
    lipschitz: float
    diameter: float


def risk_bound(solver: Any, domain: Domain, loss: Any, budget: Budget, lengths: Lengths) -> Rate:
    """The solver's own bound where it has one that holds here, else gradient descent's, as a yardstick."""
    lipschitz = gradient_bound(loss, domain, lengths.euclidean)
    name = str(getattr(solver, "name", ""))
    radius = {"cd": lengths.largest, "gcd": lengths.absolute}.get(name, lengths.euclidean)
    found, source = _gradient_descent(domain, budget, lipschitz, lengths.euclidean), YARDSTICK
    if budget.is_pure:
        source = "the exponential mechanism"
    elif name == "exponential":
        found, source = replace(found, upper=math.sqrt(2) * found.upper), "the exponential mechanism"
    if hasattr(solver, "bound"):
        try:
            own = solver.bound(domain, loss, budget, radius=radius)
            found, source = replace(own, lower=found.lower), name
        except Unsupported:
            pass  # a setting that its theorem does not cover
    return Rate(found.upper, found.lower, found.explicit, source, lipschitz, lengths.euclidean)


def _gradient_descent(domain: Domain, budget: Budget, lipschitz: float, diameter: float) -> RiskBound:
    assert domain.n is not None
    p, most = domain.n_features * domain.n_outputs, lipschitz * diameter
    if budget.is_pure:
        order = most * p / (domain.n * budget.epsilon)
        return RiskBound(2 * order, min(most, order), explicit=True)
    mu = mu_of(budget.epsilon, budget.delta)
    upper = budget.neighbors.sum_factor * most * math.sqrt(p) / (domain.n * mu)
    return RiskBound(upper, min(most, most * math.sqrt(p) / (domain.n * budget.epsilon)), explicit=True)
