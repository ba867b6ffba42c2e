"""Predictions of numbers brought back to the target's mean, by one more noisy gradient in two coordinates.

Clipped residuals draw a model toward the median: on a skewed target its intercept is too low and its slopes are too
flat. With m the prediction, mu and s its mean and deviation by the released second moment,

    u = (m - mu) / s;    theta = argmin of the mean loss of theta_1 u + theta_2

is a problem in two unknowns instead of p: at the same clip, a gradient of it has the noise of rows of length sqrt(2)
instead of sqrt(p), so its clip may be wide. One gradient g at theta_0 = (s, mu) tells how far off theta_0 is. (u, 1)
has the second moment 1, so theta = theta_0 - g, weighed against theta ~ N(theta_0, T), what clipping usually does:
where the noise is large, theta stays theta_0. Rows are shrunk as those of the steps, so that s is about right.

Privacy: the gradient is one of the plan's noisy gradients, on records recoded by released values; the rest is
post-processing.

RAND health, a skewed target, 30 seeds, gap at epsilon .1 / .5 / 1: .60 / .09 / .02 without and .42 / .04 / .01 with
(zero_out), .85 / .23 / .09 and .66 / .17 / .04 (replace_one). Normal targets lose up to .006 at epsilon .1.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.curator import Recoding
from discreet.penalties.base import Penalty
from discreet.solvers.probability_calibration import Calibrated, coordinates
from discreet.solvers.stage import SecondMoment
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

REACH = 8.0
"""Predictions this many deviations out are drawn in: it bounds the lattice, and hardly happens."""
SLOPE_SPREAD, MIDDLE_SPREAD = 0.2, 0.15
"""How far clipping usually leaves slopes and intercept off, in deviations of the prediction and of the target."""
LEAST_SPREAD = 0.01
"""Predictions vary by at least this much, in deviations of the target."""
NOISE_IN_SPREAD = 0.25
"""The edge of the second moment's noise that is added to it: a spread that is too small would overshoot."""
MOST = 2.0
"""Slopes become at most this many times as steep, and at most as many times as flat."""


def calibrate_numbers(
    curator: "Curator",
    recoding: Recoding,
    v: Floats,
    moment: SecondMoment,
    penalty: Penalty,
    n: float,
    clip: float,
    deviation: float,
) -> Calibrated:
    """Coefficients v of recoded rows, their predictions rescaled and shifted.

    ``deviation`` is that of the noise in a sum of contributions of norm 1, ``clip`` in deviations of the target.
    """
    middle = float(moment.matrix[-1] @ v) / recoding.constant
    square = float(v @ moment.matrix @ v) + NOISE_IN_SPREAD * moment.edge * float(v @ v)
    spread = math.sqrt(max(square - middle**2, LEAST_SPREAD**2))
    two = replace(coordinates(recoding, v, middle, spread), row_norm=recoding.row_norm, reach=REACH)
    curator.recode(two, once=True)
    theta, noise = np.array([spread, middle]), deviation * clip / n
    gradient = curator.noisy_gradient(theta, clip=clip) / n
    offset = two.coefficients(np.zeros(2))
    linear = (two.coefficients(np.eye(2)).T - offset).T
    strength = penalty.strong_convexity / recoding.target_scale**2
    gradient = gradient + strength * (linear.T @ (linear @ theta + offset))
    hessian = np.eye(2) + strength * (linear.T @ linear)
    usual = np.array([SLOPE_SPREAD * spread, MIDDLE_SPREAD])
    weigh = np.linalg.solve(hessian @ hessian + np.diag((noise / usual) ** 2), hessian)
    found = theta - weigh @ gradient
    found[0] = min(max(found[0], spread / MOST), spread * MOST)
    moved = np.sqrt(np.square(linear @ weigh).sum(axis=1)) * noise
    return Calibrated(two.coefficients(found), float(found[0] / spread), moved)
