"""What a penalty is: a NamedTuple with a value, a proximal operator and its strong convexity.

``prox_coordinate(penalty, x, step, j)`` is the proximal operator of one coordinate, for the separable
penalties; it is dispatched on the penalty's class in plain Python and inside compiled loops alike.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.numba_dispatch import scalar_function

prox_coordinate = scalar_function("prox_coordinate")


class Penalty(Protocol):
    """psi in F(w) = (1/n) sum of losses + psi(w), a function of the coefficients alone, of shape (p,) or (p, K)."""

    @property
    def strong_convexity(self) -> float:
        """The largest mu for which psi(w) - (mu/2) ||w||**2 is convex; 0.0 where there is none."""

    @property
    def separable(self) -> bool:
        """Whether psi is a sum over coordinates, so that ``prox_coordinate`` is defined."""

    def value(self, w: NDArray[np.float64]) -> float:
        """psi(w); inf outside a constraint."""

    def prox(self, w: NDArray[np.float64], step: float) -> NDArray[np.float64]:
        """The minimizer over v of psi(v) + ||v - w||**2 / (2 step), a new array."""
