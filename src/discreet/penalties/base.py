"""What a penalty is: a NamedTuple with a value, a proximal operator and its strong convexity.

``prox_coordinate(penalty, x, step, j)`` is the proximal operator of one coordinate, for the separable
penalties; it is dispatched on the penalty's class in plain Python and inside compiled loops alike.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Unsupported
from discreet.numba_dispatch import scalar_function
from discreet.registry import Registry

P = TypeVar("P", bound="Penalty")

prox_coordinate = scalar_function("prox_coordinate")


class Penalty(Protocol):
    """psi in F(w) = (1/n) sum of losses + psi(w), a function of the coefficients alone, of shape (p,) or (p, K)."""

    @property
    def strong_convexity(self) -> float:
        """The largest mu for which psi(w) - (mu/2) ||w||**2 is convex; 0.0 where there is none."""

    @property
    def separable(self) -> bool:
        """Whether psi is a sum over coordinates, so that ``prox_coordinate`` is defined."""

    @property
    def ridge(self) -> bool:
        """Whether psi(w) is (strong_convexity/2) ||w||**2, which may be 0."""

    @property
    def l1_l2(self) -> tuple[float, float] | None:
        """(l1, l2) where psi(w) is l1 ||w||_1 + (l2/2) ||w||**2, else None."""

    def value(self, w: NDArray[np.float64]) -> float:
        """Return psi(w); inf outside a constraint."""

    def prox(self, w: NDArray[np.float64], step: float) -> NDArray[np.float64]:
        """Return the minimizer over v of psi(v) + ||v - w||**2 / (2 step), a new array."""


class BasePenalty:
    """What most penalties say of themselves; one's own states what differs, and has ``value`` and ``prox`` at least."""

    __slots__ = ()
    separable = False
    ridge = False

    @property
    def strong_convexity(self) -> float:
        """None."""
        return 0.0

    @property
    def l1_l2(self) -> tuple[float, float] | None:
        """Another function."""
        return None


PENALTIES: Registry[type[Penalty]] = Registry("penalty", "discreet.penalties", "register_penalty")


def register_penalty(name: str) -> Callable[[type[P]], type[P]]:
    """Declare a penalty's short name, by which saved models know it."""

    def declare(cls: type[P]) -> type[P]:
        if not issubclass(cls, tuple) or not hasattr(cls, "_fields"):
            raise Unsupported(f"{cls.__name__} must be a NamedTuple, so that compiled loops can take it")
        PENALTIES.register(name)(cls)
        return cls

    return declare
