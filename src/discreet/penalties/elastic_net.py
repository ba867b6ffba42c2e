"""Absolute values and squares together."""

from typing import NamedTuple, Self

import numpy as np

from discreet.parameters import NonNegative, checked
from discreet.penalties.base import Penalty, prox_coordinate, register_penalty
from discreet.typing import Floats


class _Fields(NamedTuple):
    l1: float
    l2: float


@register_penalty("elasticnet")
class ElasticNet(_Fields, Penalty):
    """psi(w) = l1 ||w||_1 + (l2/2) ||w||**2: the prox is soft(w, step l1) / (1 + step l2), per entry.

    0 in (1 + step l2) v - w + step l1 d|v|: first the step of the absolute values, then the shrinkage of the squares.

    Parameters
    ----------
    l1, l2 : float
        The weights of the sum of absolute values and of the squared norm, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import ElasticNet
    >>> ElasticNet(1.0, 1.0).prox(np.array([3.0, -0.5]), step=1.0).round(3)
    array([ 1., -0.])
    """

    __slots__ = ()
    separable = True

    @checked
    def __new__(cls, l1: NonNegative, l2: NonNegative) -> Self:
        return super().__new__(cls, float(l1), float(l2))

    @property
    def strong_convexity(self) -> float:
        """l2: what the squares give."""
        return self.l2

    @property
    def l1_l2(self) -> tuple[float, float]:
        """Both strengths."""
        return self.l1, self.l2

    def value(self, w: Floats) -> float:
        """Return l1 ||w||_1 + (l2/2) ||w||**2."""
        return self.l1 * float(np.sum(np.abs(w))) + 0.5 * self.l2 * float(np.sum(np.square(w)))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return soft(w, step l1) / (1 + step l2)."""
        soft = np.copysign(np.maximum(np.abs(w) - step * self.l1, 0.0), w)
        return np.asarray(soft / (1.0 + step * self.l2), dtype=np.float64)


@prox_coordinate.of(ElasticNet)
def _prox_coordinate(penalty, x, step, j):  # type: ignore[no-untyped-def]
    size = abs(x) - step * penalty.l1
    size = (size if size > 0.0 else 0.0) / (1.0 + step * penalty.l2)
    return size if x > 0.0 else -size
