"""Margins brought back to the logistic law, by one more noisy gradient in two coordinates.

Clipped gradients make a logistic model too sure: a record that is badly predicted pulls less than its loss would, so
coefficients, and all margins with them, come out half as large again to twice as large as those of the best model.
Which way they point is hardly touched. With m the margin, mu and s its mean and deviation by the released moments,

    u = (m - mu) / s, rows (u, 1) no longer than 3.2;    theta = argmin of the mean logistic loss of theta_1 u + theta_2

is a problem in two unknowns, and one gradient at theta_0 = 0.55 (s, mu), clipped at its bound and so not at all, tells
how far off theta_0 is. The answer g = H (theta_0 - theta) + noise is weighed against theta ~ N(theta_0, T), what
clipping usually does: where the noise is large, theta stays theta_0. H is that of Gaussian margins.

Privacy: the gradient is one of the plan's noisy gradients, on records recoded by released values; the rest is
post-processing.

Where there is too little signal for a gradient more, margins are brought to where clipping usually leaves them, without
any release (``usual``): 0.55 s for their deviation, and for their mean the root of what clipped steps settle at. For a
constant margin -m < 0 and slopes clipped at 1/2, the share pi of positives pulls pi / 2 and the others (1 - pi) p, with
p = sigmoid(-m): so pi = p / (1/2 + p).

Measured (logarithmic loss on held-out rows, epsilon 0.2 / 0.5 / 1 / 4): ``docs/solvers/whitened.md``.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from discreet.curator import Recoding
from discreet.penalties.base import Penalty
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


REACH = 3.2
"""Rows (u, 1) up to three deviations out are not shrunk."""
SHARE, SHARE_SPREAD, MIDDLE_SPREAD = 0.55, 0.15, 0.3
"""What clipping usually leaves to take of the margins, how much that varies, and the intercept next to it."""
SLOPE = 0.45
"""A typical entry of a record's gradient in these coordinates: what a sample of records adds to the noise."""
POINTS, WEIGHTS = (part.copy() for part in np.polynomial.hermite_e.hermegauss(61))


@dataclass(frozen=True)
class Calibrated:
    """Coefficients in admitted coordinates; what they are of those before; what the gradient's noise did to them."""

    coefficients: Floats
    share: float
    deviations: Floats


def calibrate(
    curator: "Curator",
    recoding: Recoding,
    v: Floats,
    middle: float,
    spread: float,
    penalty: Penalty,
    n: float,
    deviation: float,
    fraction: float = 1.0,
) -> Calibrated:
    """Coefficients v of recoded rows, their margins rescaled and shifted.

    ``middle`` and ``spread`` are the margins' mean and deviation, ``deviation`` that of the noise in a sum of
    contributions of norm 1; ``fraction`` is the probability with which a record joins the sum.
    """
    two = coordinates(recoding, v, middle, spread)
    curator.recode(two, once=True)
    theta = SHARE * np.array([spread, middle])
    noise, sampled = deviation * REACH / (fraction * n), SLOPE * math.sqrt((1.0 - fraction) / (fraction * n))
    gradient = curator.noisy_gradient(theta, clip=REACH) / (fraction * n)
    hessian = _hessian(theta)
    offset = two.coefficients(np.zeros(2))
    linear = (two.coefficients(np.eye(2)).T - offset).T
    if penalty.ridge:
        gradient = gradient + penalty.strong_convexity * linear.T @ (linear @ theta + offset)
        hessian = hessian + penalty.strong_convexity * linear.T @ linear
    usual = np.array([SHARE_SPREAD * spread, SHARE_SPREAD * abs(middle) + MIDDLE_SPREAD])
    weigh = np.linalg.solve(hessian @ hessian + np.diag((math.hypot(noise, sampled) / usual) ** 2), hessian)
    found = theta - weigh @ gradient
    found[0] = max(found[0], 0.1 * theta[0])
    moved = np.sqrt(np.square(linear @ weigh).sum(axis=1)) * noise
    return Calibrated(two.coefficients(found), float(found[0] / spread), moved)


def usual(recoding: Recoding, v: Floats, middle: float, spread: float) -> Floats:
    """Return coefficients in admitted coordinates with margins as clipping usually leaves them: post-processing."""
    return coordinates(recoding, v, middle, spread).coefficients(np.array([SHARE * spread, unclipped(middle)]))


def unclipped(margin: float) -> float:
    """Return the logistic margin of a share of positives at which steps with slopes clipped at 1/2 settle here."""
    rarer = float(expit(-abs(margin)))
    return math.copysign(math.log(0.5 / rarer), margin)


def coordinates(recoding: Recoding, v: Floats, middle: float, spread: float) -> Recoding:
    """The map to (u, 1): no row is shrunk before it has become two numbers."""
    direction = v if recoding.matrix is None else recoding.matrix @ v
    matrix = np.column_stack([direction / spread, np.zeros(len(direction))])
    matrix[-1] += np.array([-middle / spread, 1.0]) / recoding.constant
    return replace(recoding, row_norm=math.inf, matrix=matrix, reach=REACH)


def _hessian(theta: Floats) -> Floats:
    """Of the mean logistic loss where u is standard normal."""
    rows = np.stack([np.clip(POINTS, -3.0, 3.0), np.ones_like(POINTS)])
    chance = expit(theta @ rows)
    return np.asarray((rows * (chance * (1.0 - chance) * WEIGHTS / WEIGHTS.sum())) @ rows.T)
