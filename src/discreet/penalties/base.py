"""What a penalty is: a NamedTuple with a value, a proximal operator and its strong convexity.

``prox_coordinate(penalty, x, step, j)`` is the proximal operator of one coordinate, for the separable
penalties; it is dispatched on the penalty's class in plain Python and inside compiled loops alike.
"""

from discreet.registry import BUILT_IN_PENALTIES, Registry, not_a_tuple
from discreet.scalar_functions import scalar_function
from discreet.typing import Floats

prox_coordinate = scalar_function("prox_coordinate")
Strength = float | Floats


class Penalty:
    """psi in F(w) = (1/n) sum of losses + psi(w), a function of the coefficients alone, of shape (p,) or (p, K).

    One's own has ``value`` and ``prox`` at least, and states where the other answers differ.

    Attributes
    ----------
    separable : bool
        Whether psi is a sum over coordinates, so that ``prox_coordinate`` is defined.
    ridge : bool
        Whether psi(w) is (strong_convexity/2) ||w||**2, which may be 0.

    Examples
    --------
    >>> from discreet.penalties import L2, Penalty
    >>> isinstance(L2(0.1), Penalty), L2(0.1).ridge
    (True, True)
    """

    __slots__ = ()
    separable = False
    ridge = False

    @property
    def strong_convexity(self) -> float:
        """The largest mu for which psi(w) - (mu/2) ||w||**2 is convex; 0.0 where there is none."""
        return 0.0

    @property
    def l1_l2(self) -> tuple[Strength, Strength] | None:
        """(l1, l2) where psi(w) is l1 ||w||_1 + (l2/2) ||w||**2, else None; arrays for one number per coordinate."""
        return None

    @property
    def hessian(self) -> Floats | None:
        """The Hessian where psi is a quadratic that Newton steps add to their own, with ``gradient``; else None."""
        return None

    def gradient(self, w: Floats) -> Floats:
        """Return psi's gradient, where there is a ``hessian``."""
        raise NotImplementedError

    def value(self, w: Floats) -> float:
        """Return psi(w); inf outside a constraint."""
        raise NotImplementedError

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the minimizer over v of psi(v) + ||v - w||**2 / (2 step), a new array."""
        raise NotImplementedError


PENALTIES: Registry[type[Penalty]] = Registry("penalty", BUILT_IN_PENALTIES, not_a_tuple)
register_penalty = PENALTIES.register
