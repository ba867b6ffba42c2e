"""Curves on the scale of a column: a line and its bends, which make every cubic spline on given knots.

On knots t_0 < ... < t_m of [-1, 1], the ends among them, cubic B-splines B_1 ... B_{m+3} (their outer knots continue
the first and the last distance) make every function that is a cubic polynomial between knots and twice differentiable.
It is straight where the second divided differences D c of its coefficients c are 0. With the singular value
decomposition D = U S V^T,

    f(u) = constant + b_0 u + sum_j b_j z_j(u),    z(u) = S^{-1/2} V^T B(u) / r,    j = 1 ... m + 1,

bend by bend from the smoothest (an arch) to the roughest, each with a smaller z: noise and shrinkage take rough bends
before smooth ones, and bends before the line. S^0 would treat all bends alike, S^{-1} is a smoothing spline's penalty,
too smooth where values crowd a part of the range. The sign of a bend is that of its coefficient at the high end.

Bound of a row. Between two knots the vector (u, z) is a polynomial of degree 3 in the share s of the way, so it is

    (1 - s)^3 P_0 + 3 s (1 - s)^2 P_1 + 3 s^2 (1 - s) P_2 + s^3 P_3

with control points P_0 ... P_3 that depend on the knots alone. The weights are not negative and sum to 1: the vector is
a convex combination of them, so its norm is at most that of the longest control point (``Curve.norm``), and each of its
entries at most the largest of theirs. r makes the longest of the bends' control points 1; as |u| <= 1, norm^2 <= 2.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit

from discreet.typing import Floats

DEGREE = 3
_THIRDS = np.arange(DEGREE + 1) / DEGREE
_WEIGHTS = np.stack(
    [(1 - _THIRDS) ** 3, 3 * _THIRDS * (1 - _THIRDS) ** 2, 3 * _THIRDS**2 * (1 - _THIRDS), _THIRDS**3], axis=1
)
"""The control points' weights at 0, 1/3, 2/3 and 1 of the way between two knots."""


@dataclass(frozen=True)
class Curve:
    """The bends of a curve on [-1, 1]: their control points (intervals, 4, bends), and the norm with the line's."""

    knots: Floats
    controls: Floats
    norm: float

    def bends(self, u: Floats) -> Floats:
        """Return the bends at places of [-1, 1], NaN where that is NaN."""
        out = np.empty((len(u), self.controls.shape[2]), order="F")
        bend_column(u, self.knots, self.controls, out)
        return out


@lru_cache(maxsize=256)
def curve_on(knots: tuple[float, ...]) -> Curve:
    """Return the curve on knots that rise from -1 to 1."""
    from scipy.interpolate import BSpline

    inner = np.array(knots)
    steps = np.arange(1, DEGREE + 1)
    before, after = (inner[1] - inner[0]) * steps[::-1], (inner[-1] - inner[-2]) * steps
    outer = np.concatenate([inner[0] - before, inner, inner[-1] + after])
    straight = _second_differences(np.array([outer[j + 1 : j + 1 + DEGREE].mean() for j in range(len(inner) + 2)]))
    nodes = inner[:-1, np.newaxis] + _THIRDS * np.diff(inner)[:, np.newaxis]
    nodes[:, -1] = inner[1:]
    splines = BSpline.design_matrix(nodes.ravel(), outer, DEGREE).toarray()
    _, sizes, directions = np.linalg.svd(straight, full_matrices=False)  # the largest first
    directions = directions[::-1] * np.sign(directions[::-1, -1:])
    bends = splines @ (directions.T / np.sqrt(sizes[::-1]))
    controls = np.linalg.inv(_WEIGHTS) @ bends.reshape(*nodes.shape, -1)
    controls = np.ascontiguousarray(controls / np.sqrt(np.square(controls).sum(axis=2).max()))
    norm = np.sqrt((nodes**2 + np.square(controls).sum(axis=2)).max())  # a line's control points are its own nodes
    for fixed in (inner, controls):
        fixed.flags.writeable = False
    return Curve(inner, controls, float(norm))


def _second_differences(places: Floats) -> Floats:
    """Return the matrix of second divided differences at these places."""
    slopes = np.diff(np.eye(len(places)), axis=0) / np.diff(places)[:, np.newaxis]
    return np.diff(slopes, axis=0) / ((places[2:] - places[:-2]) / 2)[:, np.newaxis]


@njit(cache=True, nogil=True)
def bend_column(scaled, knots, controls, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (rows, bends) from places of [-1, 1], each row for itself; NaN where a place is NaN."""
    last = controls.shape[0] - 1
    for i in range(scaled.size):
        u = scaled[i]
        k = 0
        while k < last and u >= knots[k + 1]:
            k += 1
        s = min(max((u - knots[k]) / (knots[k + 1] - knots[k]), 0.0), 1.0) if u == u else u
        t = 1.0 - s
        first, second, third, fourth = t * t * t, 3.0 * s * t * t, 3.0 * s * s * t, s * s * s
        for j in range(out.shape[1]):
            value = first * controls[k, 0, j] + second * controls[k, 1, j]
            value += third * controls[k, 2, j] + fourth * controls[k, 3, j]
            out[i, j] = min(max(value, -1.0), 1.0) if u == u else u
