"""Published theorems and calibrations to compare with; nothing is calibrated with them.

Those of objective perturbation are for J(w) = sum_i f_i + (lambda/2) ||w||^2 + b.w.
L bounds a record's gradient, beta its curvature.
"""

import math

from scipy.special import log_ndtr

from discreet.accounting import gaussian


def lecture_scale(epsilon: float, delta: float) -> float:
    """sigma/L under replace_one, from the density of the noise alone: sqrt(8 ln(1.25/delta))/epsilon. *Not private*.

    It leaves out the determinant of the change of variables; the tests show what is lost.
    """
    return math.sqrt(8 * math.log(1.25 / delta)) / epsilon


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


def loose_epsilon_of_zcdp(rho: float, delta: float) -> float:
    """The textbook conversion rho + 2 sqrt(rho ln(1/delta)): a baseline for comparison only."""
    return rho + 2 * math.sqrt(rho * -math.log(delta))
