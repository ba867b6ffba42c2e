"""No penalty at all."""

from typing import NamedTuple

import numpy as np

from discreet.penalties.base import Penalty, prox_coordinate, register_penalty
from discreet.typing import Floats


class _Fields(NamedTuple):
    strength: float  # numba types a tuple better with a field


@register_penalty("none")
class NoPenalty(_Fields, Penalty):
    """psi(w) = 0; the prox is the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import NoPenalty
    >>> NoPenalty().prox(np.array([3.0, -0.5]), step=1.0)
    array([ 3. , -0.5])
    """

    __slots__ = ()
    separable = True
    ridge = True
    l1_l2 = (0.0, 0.0)

    def __new__(cls) -> "NoPenalty":
        return super().__new__(cls, 0.0)

    def __getnewargs__(self) -> tuple[()]:
        """What a copy is made from."""
        return ()

    def value(self, w: Floats) -> float:
        """Return 0."""
        return 0.0

    def prox(self, w: Floats, step: float) -> Floats:
        """Return a copy of w."""
        return np.array(w, dtype=np.float64)


@prox_coordinate.of(NoPenalty)
def _prox_coordinate(penalty, x, step, j):  # type: ignore[no-untyped-def]
    return x
