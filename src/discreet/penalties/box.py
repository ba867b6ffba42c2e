"""Coefficients held between two numbers."""

from typing import NamedTuple, Self

import numpy as np

from discreet.errors import Unsupported
from discreet.parameters import checked
from discreet.penalties.base import Penalty, prox_coordinate, register_penalty
from discreet.typing import Floats


class _Fields(NamedTuple):
    low: float
    high: float


@register_penalty("box")
class Box(_Fields, Penalty):
    """psi(w) = 0 where low <= w_j <= high for every j, else inf; the prox clips, whatever the step.

    Parameters
    ----------
    low, high : float
        The ends of the interval that every coefficient stays in.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import Box
    >>> Box(0.0, 1.0).prox(np.array([3.0, -0.5]), step=1.0)
    array([1., 0.])
    """

    __slots__ = ()
    separable = True

    @checked
    def __new__(cls, low: float, high: float) -> Self:
        if not low <= high:
            raise Unsupported("a box needs low <= high, such as Box(0.0, 1.0)")
        return super().__new__(cls, float(low), float(high))

    def value(self, w: Floats) -> float:
        """Return 0 inside, inf outside."""
        return 0.0 if bool(np.all((w >= self.low) & (w <= self.high))) else float("inf")

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the nearest point of the box."""
        return np.clip(np.asarray(w, dtype=np.float64), self.low, self.high)


@prox_coordinate.of(Box)
def _prox_coordinate(penalty, x, step, j):  # type: ignore[no-untyped-def]
    x = x if x > penalty.low else penalty.low
    return x if x < penalty.high else penalty.high
