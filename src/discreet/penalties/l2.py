"""The squared Euclidean norm."""

from typing import NamedTuple, Self

import numpy as np

from discreet.parameters import NonNegative, checked
from discreet.penalties.base import Penalty, prox_coordinate, register_penalty
from discreet.typing import Floats


class _Fields(NamedTuple):
    strength: float


@register_penalty("l2")
class L2(_Fields, Penalty):
    """psi(w) = (strength/2) ||w||**2: v + step strength v = w gives the prox w / (1 + step strength).

    Parameters
    ----------
    strength : float
        The weight of the squared norm, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import L2
    >>> L2(1.0).prox(np.array([3.0, -0.5]), step=1.0)
    array([ 1.5 , -0.25])
    """

    __slots__ = ()
    separable = True
    ridge = True

    @checked
    def __new__(cls, strength: NonNegative) -> Self:
        return super().__new__(cls, float(strength))

    @property
    def strong_convexity(self) -> float:
        """The strength: psi is that quadratic."""
        return self.strength

    @property
    def l1_l2(self) -> tuple[float, float]:
        """No absolute values, and the strength."""
        return 0.0, self.strength

    def value(self, w: Floats) -> float:
        """Return (strength/2) ||w||**2."""
        return 0.5 * self.strength * float(np.sum(np.square(w)))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the shrunken w."""
        return np.asarray(w, dtype=np.float64) / (1.0 + step * self.strength)


@prox_coordinate.of(L2)
def _prox_coordinate(penalty, x, step, j):  # type: ignore[no-untyped-def]
    return x / (1.0 + step * penalty.strength)
