"""Penalties in other coordinates (what a penalty on w is for v, where w = Q v + c), and proximal steps in a metric.

    argmin over w of (w - point)^T metric (w - point) / 2 + penalty(w)

is what a penalty makes of the point that a noisy quadratic suggests: post-processing. Of a separable penalty each
coordinate is minimized exactly in turn, until nothing moves. Nearly collinear columns would take that forever, so what
does not settle is solved as bounded least squares, by an active set: a box as it is; an L1 norm by its dual, where
w = point - metric^{-1} u with |u_j| <= l1, and w_j is 0 where u_j is inside. Of any other penalty accelerated proximal
steps are taken.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.optimize import lsq_linear

from discreet.penalties.base import L2, Box, Penalty, prox_coordinate
from discreet.typing import Floats


class _RescaledFields(NamedTuple):
    penalty: Penalty
    units: Floats
    weight: float = 1.0


class Rescaled(_RescaledFields, Penalty):
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
def _rescaled_prox(penalty, x, step, j):  # type: ignore[no-untyped-def]
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


SWEEPS, PROXIMAL_STEPS, TOLERANCE = 200, 20_000, 1e-12


def metric_prox(point: Floats, metric: Floats, penalty: Penalty) -> Floats:
    """Return the minimizer; ``metric`` is positive definite, of the coefficients (p,) or, output by output, (p, K)."""
    origin = point.T.ravel()
    if not penalty.separable:
        return _accelerated(point, metric, penalty)
    w, hessian = origin.copy(), np.ascontiguousarray(metric)
    if not _descend(w, origin, hessian, penalty):
        if isinstance(penalty, Box):
            w = _within(origin, metric, penalty.low, penalty.high)
        elif penalty.l1_l2 is not None:
            w = _soft(origin, metric, *(np.broadcast_to(strength, point.shape).T.ravel() for strength in penalty.l1_l2))
    return np.ascontiguousarray(w.reshape(point.T.shape).T)


@njit(cache=True)
def _descend(w: Floats, origin: Floats, hessian: Floats, penalty: Penalty) -> bool:
    """Move w in place, coordinate by coordinate; say whether it arrived where none moves any more."""
    slope = np.zeros(w.size)  # of the quadratic at w
    for _ in range(SWEEPS):
        largest, size = 0.0, 1.0
        for j in range(w.size):
            step = 1.0 / hessian[j, j]
            moved = prox_coordinate(penalty, w[j] - step * slope[j], step, j) - w[j]
            if moved != 0.0:
                for k in range(w.size):
                    slope[k] += moved * hessian[k, j]
                w[j] += moved
                largest = max(largest, abs(moved))
            size = max(size, abs(w[j]))
        if largest <= TOLERANCE * size:
            return True
    return False


def _within(origin: Floats, metric: Floats, low: float, high: float) -> Floats:
    """Return the nearest point of a box."""
    root = np.linalg.cholesky(metric).T
    nearest = lsq_linear(root, root @ origin, (low, high), method="bvls", tol=TOLERANCE).x
    return np.asarray(np.clip(nearest, low, high), dtype=np.float64)


def _soft(origin: Floats, metric: Floats, l1: Floats, l2: Floats) -> Floats:
    """Return the minimizer for l1 |w| + l2 w^2 / 2, by its dual."""
    curved = metric + np.diag(l2)
    start = np.linalg.solve(curved, metric @ origin)
    root = np.linalg.cholesky(curved)
    penalized = l1 > 0
    if not penalized.any():
        return np.asarray(start, dtype=np.float64)
    back = np.linalg.inv(root)
    dual = lsq_linear(back[:, penalized], root.T @ start, (-l1[penalized], l1[penalized]), method="bvls", tol=TOLERANCE)
    pull = np.zeros_like(origin)
    pull[penalized] = dual.x
    w = start - back.T @ (back @ pull)
    w[np.flatnonzero(penalized)[dual.active_mask == 0]] = 0.0
    return np.asarray(w)


def _accelerated(point: Floats, metric: Floats, penalty: Penalty) -> Floats:
    """Return the minimizer for a penalty that is not separable, by Nesterov's steps with restarts."""
    step = 1.0 / float(np.linalg.eigvalsh(metric)[-1])
    w = ahead = point.copy()
    turn = 1.0
    for _ in range(PROXIMAL_STEPS):
        slope = (metric @ (ahead - point).T.ravel()).reshape(point.T.shape).T
        moved = penalty.prox(ahead - step * slope, step)
        change = moved - w
        if np.abs(change).max(initial=0.0) <= TOLERANCE * max(1.0, float(np.abs(moved).max(initial=0.0))):
            return moved
        turn = 1.0 if float(((ahead - moved) * change).sum()) > 0 else turn
        longer = (1.0 + (1.0 + 4.0 * turn**2) ** 0.5) / 2.0
        w, ahead, turn = moved, moved + (turn - 1.0) / longer * change, longer
    return w
