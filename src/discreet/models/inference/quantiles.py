"""Quantiles and p-values of effects whose variance is itself noisy: Student's law with Satterthwaite's freedom."""

import math
from numbers import Real
from typing import NamedTuple

from scipy.special import chdtrc, chdtri, fdtrc, fdtri, ndtr, ndtri, stdtr, stdtrit

from discreet.errors import Unsupported

LEAST_FREEDOM = 4.0
GAUSSIAN = 1e6
"""With so many degrees of freedom the law is Gauss's."""


class WaldTest(NamedTuple):
    """Test of linear hypotheses: the statistic, its degrees of freedom, the p-value, and what could not be tested.

    Parameters
    ----------
    statistic : float
        Wald's, chi-square over its degrees of freedom where they are many.
    df : int
        The number of hypotheses.
    p : float
        The p-value.
    left_out : tuple of str
        Effects of a tested column that noise hides: the test is of the others.

    Examples
    --------
    >>> from discreet.models import WaldTest
    >>> WaldTest(3.84, 1, 0.05).df
    1
    """

    statistic: float
    df: int
    p: float
    left_out: tuple[str, ...] = ()


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


def band_quantile(level: float, path: float, pieces: int, dimension: int, degrees: float) -> float:
    """Return the half-width, in standard errors, of a band that covers a whole curve of combinations with this level.

    ``path`` is the length of the curve of standardized combinations on the unit sphere, in radians, ``pieces`` the
    number of parts that it consists of. Naiman's inequality (1986; with Student's law as Sun and Loader, 1994) bounds
    the probability that the curve leaves the band anywhere by

        path / pi (1 + c^2 / v)^(-v / 2)  +  pieces P(|t_v| > c)

    for v degrees of freedom. Scheffe's band holds for all combinations of ``dimension`` coefficients: the narrower one.
    """
    miss = 1.0 - checked_level(level)

    def missed(c: float) -> float:
        tail = math.exp(-c * c / 2) if degrees > GAUSSIAN else (1 + c * c / degrees) ** (-degrees / 2)
        return path / math.pi * tail + pieces * p_value(c, degrees)

    gaussian = degrees > GAUSSIAN
    squared = chdtri(dimension, miss) if gaussian else dimension * fdtri(dimension, degrees, level)
    low, high = 0.0, math.sqrt(float(squared))
    if missed(high) >= miss:
        return high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) > miss else (low, middle)
    return high


def checked_level(level: float) -> float:
    """Return a level that is a probability."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise Unsupported("level is a probability between 0 and 1, such as 0.95")
    return level
