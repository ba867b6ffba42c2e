"""Intervals for coefficients from the size of the privacy noise: post-processing of what was released.

An estimator's ``coef_noise_`` is the standard deviation of what the noise did to a coefficient. Gaussian noise stays
Gaussian through linear steps, so Gauss's quantile turns it into an interval. Pure budgets add Laplace noise or noise
of Gamma length: sums and images of these have symmetric log-concave densities (Prekopa), for which
``log_concave_quantile`` is never too small.
"""

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Unsupported

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel


class Interval(NamedTuple):
    """Two arrays of the same shape."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Intervals(NamedTuple):
    """For each coefficient, and for the intercept."""

    coef: Interval
    intercept: Interval


def intervals(model: "DPLinearModel", level: float) -> Intervals:
    """The intervals of a fitted model; see ``DPLinearModel.intervals``."""
    if not 0 < level < 1:
        raise Unsupported("level is a probability between 0 and 1, such as 0.95")
    coef_noise, intercept_noise = getattr(model, "coef_noise_", None), getattr(model, "intercept_noise_", None)
    if coef_noise is None or intercept_noise is None:
        raise Unsupported(
            "what the noise did to these coefficients is not known (this solver makes noisy choices, or the model was "
            "saved by an earlier version): fit with solver='auto', 'gd', 'cd', 'output' or 'objective'"
        )
    width = log_concave_quantile(level) if model.certificate_.delta == 0 else NormalDist().inv_cdf(0.5 + 0.5 * level)
    coef, intercept = model.coef_, model.intercept_
    return Intervals(
        Interval(np.asarray(coef - width * coef_noise), np.asarray(coef + width * coef_noise)),
        Interval(np.asarray(intercept - width * intercept_noise), np.asarray(intercept + width * intercept_noise)),
    )


def log_concave_quantile(level: float) -> float:
    """t with P(|X| > t) <= 1 - level for every symmetric X of variance 1 with a log-concave density.

    S(u) = P(|X| > u) is log-concave with S(0) = 1, so S(u) >= S(t)^(u/t) up to t. With S(t) = exp(-k) the variance is
    at least the integral of 2 u exp(-k u / t) from 0 to t, which is 2 t^2 (1 - (1 + k) exp(-k)) / k^2. It is 1.
    """
    k = -math.log1p(-level)
    if k < 1e-3:  # where the difference below would cancel: t = 1 + k/3 + ...
        return 1.0 + k
    return k / math.sqrt(2.0 * (1.0 - (1.0 + k) * math.exp(-k)))
