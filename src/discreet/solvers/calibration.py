"""Bring a linear predictor back to scale by few noisy gradients in two unknowns: one function for classes and numbers.

Clipped gradients leave the direction of the coefficients nearly right and their length wrong: a logistic model is too
sure of itself, a skewed target's slopes are too flat and its intercept too low. With m the predictor, mu and s its mean
and deviation by what was released,

    u = (m - mu) / s;    theta = argmin of the mean loss of theta_1 u + theta_2         (without intercept: u = m / s)

has two unknowns in place of p, so that next to nothing of the budget shows them. A gradient at theta tells
H (theta - theta*) up to noise, H being that of a normal u; each answer is weighed against what is known before it, a
normal prior about where clipping usually leaves theta, by Bayes' rule. theta_1 = 0 is the constant predictor, which a
direction that is only noise is drawn to, as far as the prior allows.

Privacy. The answers are noisy gradients of the plan, on records recoded by released values; the rest is
post-processing.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from discreet.curator import Recoding
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

FARTHEST = 50.0
"""Logarithms of means are taken to be within this: beyond, neither they nor their squares are numbers."""
POINTS, WEIGHTS = (part.copy() for part in np.polynomial.hermite_e.hermegauss(61))


@dataclass(frozen=True)
class Prior:
    """Where clipping usually leaves a predictor, and how surely.

    ``kept`` is what is usually to be kept of m's deviation (and of its mean, where the loss has a sigmoid), ``spread``
    the deviation of that, ``shift`` the deviation of the intercept next to it. Rows (u, 1) longer than ``length`` are
    shrunk.
    """

    kept: float
    spread: float
    shift: float
    length: float


CLASSES = Prior(kept=0.55, spread=0.15, shift=0.3, length=3.2)
"""Slopes clipped at half of their bound make margins about twice as large as those of the best model."""
NUMBERS = Prior(kept=1.0, spread=0.2, shift=0.15, length=8.0)
"""Residuals are clipped on both sides: little is lost but on skewed targets."""


@dataclass(frozen=True)
class Calibrated:
    """Coefficients before the map; what they are of those before; what the answers' noise did to each."""

    coefficients: Floats
    share: float
    deviations: Floats


def calibrate(
    curator: "Curator",
    loss: Loss,
    recoding: Recoding,
    v: Floats,
    *,
    mean: float,
    deviation: float,
    clip: float,
    noises: list[float],
    penalty: Penalty,
    n: float,
    likely: float = 1.0,
    start: float = 0.0,
) -> Calibrated:
    """Rescale and shift the predictor v of recoded rows; ``noises``: of each mean answer, per unit of its clip.

    ``mean`` and ``deviation`` are the predictor's own, ``likely`` is the part of its variance that is not noise,
    ``start`` the constant that steps began with.
    """
    is_regression = loss.task == "regression"
    prior = NUMBERS if is_regression else CLASSES
    intercept = len(v) > len(recoding.center)
    two = predictor_coordinates(recoding, v, mean, deviation, prior, intercept=intercept, shrinks=is_regression)
    curator.recode(two, loss=loss, once=True)
    offset = two.coefficients(np.zeros(1 + intercept))
    linear = (two.coefficients(np.eye(1 + intercept)).T - offset).T
    strength = penalty.strong_convexity / (recoding.target_scale**2 if is_regression else 1.0)
    doubt = (1.0 - likely) / 2.0  # halfway between all of it and the part that is not noise, as unsure as that
    theta = np.array([prior.kept * (1.0 - doubt) * deviation, start + prior.kept * (mean - start)])[: 1 + intercept]
    usual = np.array(
        [(prior.spread + doubt) * deviation, prior.shift + (0 if is_regression else prior.spread * abs(mean))]
    )
    precision = np.diag(1.0 / np.square(usual[: 1 + intercept]))
    weigh = np.zeros_like(precision)
    for noise in noises:
        gradient = curator.noisy_gradient(theta, clip=clip) / n + strength * (linear.T @ (linear @ theta + offset))
        bend = bend_of(loss, theta) + strength * (linear.T @ linear)
        variance = max((noise * clip) ** 2, 1e-100)  # 0 without noise
        precision = precision + bend @ bend / variance
        weigh = np.linalg.solve(precision, bend) / variance
        theta = theta - weigh @ gradient
        theta[0] = max(theta[0], 0.0)
    moved = np.sqrt(np.square(linear @ weigh).sum(axis=1)) * (noises[-1] * clip if noises else 0.0)
    return Calibrated(two.coefficients(theta), float(theta[0] / deviation), moved)


def predictor_coordinates(
    recoding: Recoding, v: Floats, mean: float, deviation: float, prior: Prior, *, intercept: bool, shrinks: bool
) -> Recoding:
    """Return the map to (u, 1); rows are shrunk as those of the steps where ``shrinks``, else not before they are u."""
    direction = v if recoding.matrix is None else recoding.matrix @ v
    matrix = (direction / deviation)[:, None]
    if intercept:
        matrix = np.column_stack([matrix, np.zeros(len(direction))])
        matrix[-1] += np.array([-mean / deviation, 1.0]) / recoding.constant
    return replace(recoding, row_norm=recoding.row_norm if shrinks else math.inf, matrix=matrix, reach=prior.length)


def bend_of(loss: Loss, theta: Floats) -> Floats:
    """Return the Hessian of a mean loss where u is standard normal."""
    if loss.log_link:
        rows = np.stack([POINTS, np.ones_like(POINTS)])[: len(theta)]
        means = loss.prediction(np.clip(theta @ rows, -FARTHEST, FARTHEST))
        bends = np.array([mean**2 / loss.variance(mean) for mean in means.tolist()])
        return np.asarray((rows * (bends * WEIGHTS / WEIGHTS.sum())) @ rows.T)
    return np.eye(len(theta)) if loss.movable_target else normal_hessian(theta)


def normal_hessian(theta: Floats) -> Floats:
    """Return the Hessian of the mean logistic loss where u is standard normal."""
    rows = np.stack([np.clip(POINTS, -3.0, 3.0), np.ones_like(POINTS)])[: len(theta)]
    chance = expit(theta @ rows)
    return np.asarray((rows * (chance * (1.0 - chance) * WEIGHTS / WEIGHTS.sum())) @ rows.T)


def mean_curvature(mean: float, deviation: float) -> float:
    """Return the mean curvature of the logistic loss at margins of this mean and deviation."""
    return float(normal_hessian(np.array([deviation, mean]))[1, 1])
