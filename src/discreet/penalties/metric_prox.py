"""Proximal steps in a metric: what a penalty makes of the point that a noisy quadratic suggests. Post-processing."""

import numpy as np
from numba import njit

from discreet.penalties.base import Penalty, prox_coordinate
from discreet.typing import Floats

SWEEPS, TOLERANCE = 2000, 1e-12


def metric_prox(point: Floats, metric: Floats, units: Floats, penalty: Penalty) -> Floats:
    """argmin (w - point)^T metric (w - point) / 2 + penalty(units * w), for a separable penalty, by coordinate descent.

    ``metric`` is positive definite. Each coordinate is minimized exactly in turn, until nothing moves.
    """
    hessian = np.ascontiguousarray(metric / np.multiply.outer(units, units))
    w = units * point
    _descend(w, hessian, penalty)
    return np.asarray(w / units)


@njit(cache=True)
def _descend(w: Floats, hessian: Floats, penalty: Penalty) -> None:
    """Move w in place to where no coordinate moves any more."""
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
            break
