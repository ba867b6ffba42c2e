"""Proximal steps in a metric: what a penalty makes of the point that a noisy quadratic suggests. Post-processing.

    argmin over w of (w - point)^T metric (w - point) / 2 + penalty(w)

Of a separable penalty each coordinate is minimized exactly in turn, until nothing moves. Nearly collinear columns would
take that forever, so what does not settle is solved as bounded least squares, by an active set: a box as it is; an L1
norm by its dual, where w = point - metric^{-1} u with |u_j| <= l1, and w_j is 0 where u_j is inside. Of any other
penalty accelerated proximal steps are taken.
"""

import numpy as np
from numba import njit
from scipy.optimize import lsq_linear

from discreet.penalties.base import Penalty, prox_coordinate
from discreet.penalties.box import Box
from discreet.typing import Floats

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
