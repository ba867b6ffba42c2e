"""Intervals for coefficients from the size of the privacy noise: post-processing of what was released.

An estimator's ``coef_noise_`` is the standard deviation of what the noise did to a coefficient. Gaussian noise stays
Gaussian through linear steps, so Gauss's quantile turns it into an interval. Pure budgets add Laplace noise or noise
of Gamma length: sums and images of these have symmetric log-concave densities (Prekopa), for which
``log_concave_quantile`` is never too small.
"""

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.errors import Unsupported
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel


INTERCEPT = "(intercept)"
"""How commands and tables of coefficients call the intercept."""

LEVEL = 0.95
"""The level of the intervals that reports and commands show."""

COVERS = (
    "The number after ± is the half-width of a {level:.3g}% interval for the privacy noise, and for nothing else. It "
    "does not count the bias of clipping, shrinking and stopping early, nor the chance of which rows are in the table: "
    "an interval that leaves out 0 does not show an effect."
)

ALL_NOISE = (
    "No interval leaves out 0: noise alone may explain every coefficient. Check the types of the columns, the spelling "
    "of the categories, the declared ranges (too wide ones hide the values), the number of rows and epsilon."
)
"""What to say where the noise may explain everything."""


class Interval(NamedTuple):
    """Two arrays of the same shape."""

    low: Floats
    high: Floats


class Intervals(NamedTuple):
    """Intervals for the coefficients and for the intercept.

    Parameters
    ----------
    coef : Interval
        ``low`` and ``high``, of the shape of ``coef_``.
    intercept : Interval
        The same for ``intercept_``.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> model = DPRidge(bounds=1.0, target=(0, 1), solver="gd").fit(np.eye(3), np.ones(3))
    >>> model.intervals().coef.low.shape
    (3,)
    """

    coef: Interval
    intercept: Interval


def intervals(model: "DPLinearModel", level: float) -> Intervals:
    """The intervals of a fitted model; see ``DPLinearModel.intervals``."""
    if not 0 < level < 1:
        raise Unsupported("level is a probability between 0 and 1, such as 0.95")
    coef_noise, intercept_noise = getattr(model, "coef_noise_", None), getattr(model, "intercept_noise_", None)
    if coef_noise is None or intercept_noise is None:
        raise Unsupported(
            "what the noise did to these coefficients is not known (this solver makes noisy choices): fit with "
            "solver='auto', 'gd', 'cd', 'output' or 'objective'"
        )
    width = deviations(level, pure=model.certificate_.delta == 0)
    coef, intercept = model.coef_, model.intercept_
    return Intervals(
        Interval(np.asarray(coef - width * coef_noise), np.asarray(coef + width * coef_noise)),
        Interval(np.asarray(intercept - width * intercept_noise), np.asarray(intercept + width * intercept_noise)),
    )


def covers(level: float = LEVEL) -> str:
    """Return what an interval covers and what not, for wherever one is shown."""
    return COVERS.format(level=100 * level)


def deviations(level: float, *, pure: bool) -> float:
    """Return the half-width of an interval of this level, in standard deviations of the noise."""
    return log_concave_quantile(level) if pure else NormalDist().inv_cdf(0.5 + 0.5 * level)


def rounded(value: float, half_width: float | None) -> tuple[str, str]:
    """Return a value and its half-width as texts, with two digits of the half-width: the others are noise.

    Where the half-width is not known, the value has three digits, and the second text is empty.
    """
    if half_width is None or not math.isfinite(half_width) or not math.isfinite(value):
        return f"{value:.3g}", ""
    if half_width <= 0:
        return f"{value:.6g}", "0"
    places = 1 - math.floor(math.log10(float(f"{half_width:.2g}")))
    near = round(value, places) + 0.0
    if places <= 5:
        return f"{near:.{max(places, 0)}f}", f"{round(half_width, places):.{max(places, 0)}f}"
    digits = 1 if near == 0 else max(1, math.floor(math.log10(abs(near))) + places + 1)
    return f"{near:.{digits - 1}e}", f"{half_width:.1e}"


def all_noise(found: Iterable[tuple[float, float]]) -> bool:
    """Return whether each of some values, and there are some, is within its half-width of 0."""
    within = [abs(value) <= half_width for value, half_width in found]
    return bool(within) and all(within)


def log_concave_quantile(level: float) -> float:
    """t with P(|X| > t) <= 1 - level for every symmetric X of variance 1 with a log-concave density.

    S(u) = P(|X| > u) is log-concave with S(0) = 1, so S(u) >= S(t)^(u/t) up to t. With S(t) = exp(-k) the variance is
    at least the integral of 2 u exp(-k u / t) from 0 to t, which is 2 t^2 (1 - (1 + k) exp(-k)) / k^2. It is 1.
    """
    k = -math.log1p(-level)
    if k < 1e-3:  # where the difference below would cancel: t = 1 + k/3 + ...
        return 1.0 + k
    return k / math.sqrt(2.0 * (1.0 - (1.0 + k) * math.exp(-k)))
