"""Proximal steps in a metric: what a penalty makes of the point that a noisy quadratic suggests. Post-processing."""

import numpy as np

from discreet.penalties.base import Penalty, prox_coordinate
from discreet.typing import Floats

SWEEPS, TOLERANCE = 2000, 1e-9


def metric_prox(point: Floats, metric: Floats, units: Floats, penalty: Penalty) -> Floats:
    """argmin (w - point)^T metric (w - point) / 2 + penalty(units * w), for a separable penalty, by coordinate descent.

    ``metric`` is positive definite. Each coordinate is minimized exactly in turn, until nothing moves.
    """
    hessian = metric / np.multiply.outer(units, units)
    target = units * point
    w = target.copy()
    slope = np.zeros(w.size)  # of the quadratic at w
    for _ in range(SWEEPS):
        largest = 0.0
        for j in range(w.size):
            step = 1.0 / hessian[j, j]
            moved = float(prox_coordinate(penalty, w[j] - step * slope[j], step, j)) - w[j]
            if moved != 0.0:
                slope += moved * hessian[:, j]
                w[j] += moved
                largest = max(largest, abs(moved))
        if largest <= TOLERANCE * max(1.0, float(np.abs(w).max(initial=0.0))):
            break
    return np.asarray(w / units)
