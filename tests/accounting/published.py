"""Published theorems and calibrations to compare with; nothing is calibrated with them.

Those of objective perturbation are for J(w) = sum_i f_i + (lambda/2) ||w||^2 + b.w.
L bounds a record's gradient, beta its curvature.
"""

import math
from dataclasses import dataclass

from scipy.special import log_ndtr

from discreet.accounting import gaussian


def lecture_scale(epsilon: float, delta: float) -> float:
    """sigma/L under replace_one, from the density of the noise alone: sqrt(8 ln(1.25/delta))/epsilon. *Not private*.

    It leaves out the determinant of the change of variables; the tests show what is lost.
    """
    return math.sqrt(8 * math.log(1.25 / delta)) / epsilon


def kifer_scale(epsilon: float, delta: float) -> float:
    """sigma/L of Kifer, Smith, Thakurta (2012): sqrt(8 ln(2/delta) + 4 epsilon)/epsilon; lambda >= 2 beta/epsilon."""
    return math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon


def redberg_delta(epsilon: float, noise_multiplier: float, curvature: float) -> float:
    """The delta of Redberg, Koskela and Wang (2023) for linear models under add_remove; 1 unless beta < lambda.

    The determinant is bounded by -log(1 - beta/lambda), the noise by mu^2/2 + mu |Z|.
    """
    if curvature >= 1:
        return 1.0
    mu, left = 1 / noise_multiplier, epsilon + math.log1p(-curvature)
    if left >= 0.5 * mu * mu:
        return min(1.0, 2 * gaussian.delta_of(left, mu))
    return -math.expm1(math.log(2) + left + float(log_ndtr(-mu)))


@dataclass(frozen=True)
class Chaudhuri:
    """What is left of epsilon for the noise, and the regularization to add (of the mean)."""

    epsilon: float
    added: float


def chaudhuri(epsilon: float, smoothness: float, n: int, regularization: float) -> Chaudhuri:
    """Pure epsilon of Chaudhuri, Monteleoni and Sarwate (2011), rows of norm at most 1, replace_one.

    ``regularization`` is that of the mean. The determinant is bounded by 2 log(1 + c/(n Lambda)).
    """
    left = epsilon - 2 * math.log1p(smoothness / (n * regularization))
    if left > 0:
        return Chaudhuri(left, 0.0)
    return Chaudhuri(0.5 * epsilon, smoothness / (n * math.expm1(0.25 * epsilon)) - regularization)


@dataclass(frozen=True)
class Iyengar:
    """Regularization of the sum and the two noises of the mean, of approximate minima perturbation."""

    regularization: float
    inner_scale: float
    outer_scale: float


def iyengar(
    epsilon: float,
    delta: float,
    n: int,
    *,
    lipschitz: float = 1.0,
    smoothness: float = 1.0,
    noise_share: float | None = None,
) -> Iyengar:
    """The hyper-parameter-free setting of Iyengar et al. (2019), gradient tolerance 1/n^2.

    ``noise_share`` is the part of the inner epsilon that goes to the noise; by default their fitted curve.
    """
    outer, outer_delta = 0.01 * epsilon, 0.01 * delta
    inner, inner_delta = epsilon - outer, delta - outer_delta
    fitted = max(min(0.88671 + 0.0186607 / epsilon**0.372906, 0.99), 1 - 1 / epsilon + 0.001)
    noise = (fitted if noise_share is None else noise_share) * inner
    regularization = 2 * smoothness / (inner - noise)
    inner_scale = 2 * lipschitz / n * (1 + math.sqrt(2 * math.log(1 / inner_delta))) / noise
    outer_scale = 1 / (n * regularization) * (1 + math.sqrt(2 * math.log(1 / outer_delta))) / outer
    return Iyengar(regularization, inner_scale, outer_scale)


def basic(epsilon: float, count: int, delta: float = 0.0) -> tuple[float, float]:
    """Basic composition: (count epsilon, count delta)."""
    return count * epsilon, min(1.0, count * delta)


def advanced(epsilon: float, count: int, slack: float, delta: float = 0.0) -> tuple[float, float]:
    """Advanced composition (Dwork, Rothblum and Vadhan 2010), with an additional delta of ``slack``.

    epsilon sqrt(2 T ln(1/slack)) + T epsilon (e^epsilon - 1), and T delta + slack.
    """
    total = epsilon * math.sqrt(2 * count * math.log(1 / slack)) + count * epsilon * math.expm1(epsilon)
    return total, min(1.0, count * delta + slack)


def loose_epsilon_of_zcdp(rho: float, delta: float) -> float:
    """The textbook conversion rho + 2 sqrt(rho ln(1/delta)): a baseline for comparison only."""
    return rho + 2 * math.sqrt(rho * -math.log(delta))
