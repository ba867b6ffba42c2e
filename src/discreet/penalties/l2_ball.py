"""Coefficients held inside a ball."""

from typing import NamedTuple, Self

import numpy as np

from discreet.parameters import Positive, checked
from discreet.penalties.base import Penalty, register_penalty
from discreet.typing import Floats

_ROUNDING = 1e-12
"""How far outside, relatively, a projected point may come to lie."""


class _Fields(NamedTuple):
    radius: float


@register_penalty("l2_ball")
class L2Ball(_Fields, Penalty):
    """psi(w) = 0 where ||w|| <= radius, else inf; the prox shrinks longer w onto the sphere and moves no other.

    A point inside is never stretched: a projection onto the sphere would be expansive.

    Parameters
    ----------
    radius : float
        Of the ball around 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import L2Ball
    >>> L2Ball(1.0).prox(np.array([3.0, 4.0]), step=1.0)
    array([0.6, 0.8])
    """

    __slots__ = ()

    @checked
    def __new__(cls, radius: Positive) -> Self:
        return super().__new__(cls, float(radius))

    def value(self, w: Floats) -> float:
        """Return 0 inside, inf outside."""
        return 0.0 if float(np.sqrt(np.sum(np.square(w)))) <= self.radius * (1.0 + _ROUNDING) else float("inf")

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the nearest point of the ball."""
        norm = float(np.sqrt(np.sum(np.square(w))))
        return np.array(w, dtype=np.float64) if norm <= self.radius else np.asarray(w * (self.radius / norm))
