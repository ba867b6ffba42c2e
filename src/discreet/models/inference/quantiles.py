"""Quantiles and p-values of effects whose variance is itself noisy: Student's law with Satterthwaite's freedom."""

import math

from scipy.special import chdtrc, fdtrc, ndtr, ndtri, stdtr, stdtrit

from discreet.errors import Unsupported

LEAST_FREEDOM = 4.0
GAUSSIAN = 1e6
"""With so many degrees of freedom the law is Gauss's."""


def freedom(wobble: float) -> float:
    """Return the degrees of freedom of a variance with this relative deviation, at least 4."""
    return max(LEAST_FREEDOM, 2.0 / wobble**2) if wobble > 0 else math.inf


def quantile(level: float, degrees: float) -> float:
    """Return the half-width of an interval of this level, in standard errors."""
    at = 0.5 + 0.5 * checked_level(level)
    return float(ndtri(at) if degrees > GAUSSIAN else stdtrit(degrees, at))


def p_value(statistic: float, degrees: float) -> float:
    """Return the two-sided p-value; NaN for NaN."""
    if math.isnan(statistic):
        return math.nan
    tail = ndtr(-abs(statistic)) if degrees > GAUSSIAN else stdtr(degrees, -abs(statistic))
    return float(2.0 * tail)


def joint_p_value(statistic: float, count: int, degrees: float) -> float:
    """Return the p-value of Wald's statistic of ``count`` hypotheses."""
    if degrees > GAUSSIAN:
        return float(chdtrc(count, statistic))
    return float(fdtrc(count, degrees, statistic / count))


def checked_level(level: float) -> float:
    """Return a level that is a probability."""
    if not 0 < level < 1:
        raise Unsupported("level is a probability between 0 and 1, such as 0.95")
    return level
