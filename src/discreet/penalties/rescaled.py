"""Penalties in other coordinates: what a penalty on w is for v, where w = Q v + c."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet.penalties.base import Penalty, prox_coordinate
from discreet.penalties.l2 import L2
from discreet.typing import Floats


class _Fields(NamedTuple):
    penalty: Penalty
    units: Floats
    weight: float = 1.0


class Rescaled(_Fields, Penalty):
    """psi(v) = penalty(units * v) / weight, for a separable penalty: each coordinate on its own scale.

    With x = u v the prox is prox_penalty(x, step u^2 / weight) / u, coordinate by coordinate. ``weight`` is what the
    losses are divided by where a target is on another scale.
    """

    __slots__ = ()
    separable = True

    @property
    def l1_l2(self) -> tuple[Floats, Floats] | None:
        """One number per coordinate: each has its own units."""
        strengths = self.penalty.l1_l2
        if strengths is None:
            return None
        l1, l2 = strengths
        return np.asarray(l1 * self.units / self.weight), np.asarray(l2 * np.square(self.units) / self.weight)

    @property
    def strong_convexity(self) -> float:
        """That of the penalty, where its units are smallest."""
        return float(self.penalty.strong_convexity * np.square(self.units).min(initial=np.inf) / self.weight)

    def value(self, w: Floats) -> float:
        """Return the penalty at units * w, over the weight."""
        return float(self.penalty.value((w.T * self.units).T) / self.weight)

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the minimizer, coordinate by coordinate; in closed form for squares."""
        if type(self.penalty) is L2:
            return np.asarray((w.T / (1.0 + step * self.penalty.strength / self.weight * self.units**2)).T)
        units = self.units.reshape(-1, *[1] * (w.ndim - 1))
        return np.asarray(self.penalty.prox(units * w, step * units**2 / self.weight) / units)  # type: ignore[arg-type]


@prox_coordinate.of(Rescaled)
def _prox_coordinate(penalty, x, step, j):  # type: ignore[no-untyped-def]
    unit = penalty.units[j % len(penalty.units)]
    return prox_coordinate(penalty.penalty, x * unit, step * unit * unit / penalty.weight, j) / unit


class _Parts(NamedTuple):
    slopes: Floats
    curvatures: Floats


class Parabolas(_Parts, Penalty):
    """psi(v) = sum of slopes_j v_j + curvatures_j v_j^2 / 2: one parabola per coordinate."""

    __slots__ = ()
    separable = True

    def value(self, w: Floats) -> float:
        """Return the sum."""
        return float(self.slopes @ w + 0.5 * (self.curvatures @ np.square(w)))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the minimizer, coordinate by coordinate."""
        return np.asarray((w - step * self.slopes) / (1.0 + step * self.curvatures))


@prox_coordinate.of(Parabolas)
def _prox_parabola(penalty, x, step, j):  # type: ignore[no-untyped-def]
    k = j % len(penalty.slopes)
    return (x - step * penalty.slopes[k]) / (1.0 + step * penalty.curvatures[k])


class Quadratic(Penalty):
    """psi(v) = (strength/2) ||Q v + c||^2: an L2 penalty on w = Q v + c. Not separable.

    A gradient step would diverge where a feature in a range that is much too wide has a large Q: the prox is exact.
    """

    def __init__(self, linear: Floats, offset: Floats, strength: float) -> None:
        self.linear, self.offset, self.strength = linear, offset, strength
        self._solved = lru_cache(maxsize=2)(self._solve)

    @property
    def hessian(self) -> Floats:
        """strength Q^T Q."""
        return np.asarray(self.strength * (self.linear.T @ self.linear))

    def value(self, w: Floats) -> float:
        """Return (strength/2) ||Q w + c||^2."""
        return 0.5 * self.strength * float(np.sum(np.square((self.linear @ w).T + self.offset)))

    def gradient(self, w: Floats) -> Floats:
        """Return strength Q^T (Q w + c)."""
        return np.asarray(self.strength * (self.linear.T @ ((self.linear @ w).T + self.offset).T))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return (I + step strength Q^T Q)^{-1} (w - step strength Q^T c)."""
        inverse, shift = self._solved(step)
        return np.asarray(inverse @ (w.T - shift).T)

    def _solve(self, step: float) -> tuple[Floats, Floats]:
        pull = step * self.strength
        inverse = np.linalg.inv(np.eye(len(self.linear.T)) + pull * (self.linear.T @ self.linear))
        return np.asarray(inverse, dtype=np.float64), pull * (self.linear.T @ self.offset)


def parabolas_above(penalty: Penalty, w: Floats) -> Parabolas:
    """Return the separable quadratic that lies above a quadratic penalty and touches it at w, up to a constant.

    D_j = sum_k |H_jk| makes D - H diagonally dominant, hence positive semidefinite. Descent with it in place of the
    penalty, made again at each point reached, never goes up, and rests at the same optimum.
    """
    assert penalty.hessian is not None
    curvatures = np.abs(penalty.hessian).sum(axis=1)
    return Parabolas(penalty.gradient(w) - curvatures * w, curvatures)
