"""The sum of absolute values."""

from typing import NamedTuple, Self

import numpy as np

from discreet.parameters import NonNegative, checked
from discreet.penalties.base import Penalty, prox_coordinate, register_penalty
from discreet.typing import Floats


class _Fields(NamedTuple):
    strength: float


@register_penalty("l1")
class L1(_Fields, Penalty):
    """psi(w) = strength ||w||_1: 0 in v - w + step strength d|v| gives the prox soft(w, step strength), per entry.

    soft(x, a) moves x towards zero by a, and stops there.

    Parameters
    ----------
    strength : float
        The weight of the sum of absolute values, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import L1
    >>> L1(1.0).prox(np.array([3.0, -0.5]), step=1.0).round(3)
    array([ 2., -0.])
    """

    __slots__ = ()
    separable = True

    @checked
    def __new__(cls, strength: NonNegative) -> Self:
        return super().__new__(cls, float(strength))

    @property
    def l1_l2(self) -> tuple[float, float]:
        """The strength, and no squares."""
        return self.strength, 0.0

    def value(self, w: Floats) -> float:
        """Return strength times the sum of |w_j|."""
        return self.strength * float(np.sum(np.abs(w)))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return soft(w, step strength)."""
        return np.asarray(np.copysign(np.maximum(np.abs(w) - step * self.strength, 0.0), w), dtype=np.float64)


@prox_coordinate.of(L1)
def _prox_coordinate(penalty, x, step, j):  # type: ignore[no-untyped-def]
    size = abs(x) - step * penalty.strength
    size = size if size > 0.0 else 0.0
    return size if x > 0.0 else -size
