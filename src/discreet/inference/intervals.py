"""Intervals and p-values: of coefficients for the privacy noise alone, and of effects for a population.

**For the noise.** An estimator's ``coef_noise_`` is the standard deviation of what the noise did to a coefficient.
Gaussian noise stays Gaussian through linear steps, so Gauss's quantile turns it into an interval. Pure budgets add
Laplace noise or noise of Gamma length: sums and images of these have symmetric log-concave densities (Prekopa), for
which ``log_concave_quantile`` is never too small.

**For a population.** ``Combinations`` has linear combinations of coefficients: values, covariance, and whether noise
hides them. Their variance is itself noisy: quantiles are Student's with Satterthwaite's freedom.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import chdtrc, chdtri, fdtrc, fdtri, ndtr, ndtri, stdtr, stdtrit

from discreet.errors import Unsupported
from discreet.solvers.base import Effects
from discreet.typing import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


def all_noise(estimates: Iterable[tuple[float, float]]) -> bool:
    """Return whether each of some values, and there are some, is within its half-width of 0."""
    within = [abs(value) <= half_width for value, half_width in estimates]
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


COLUMNS = ("coef", "se", "se_privacy", "z", "p", "low", "high", "inflation")
HIDDEN = 0.1
"""A combination of which more than this part lies in directions that noise hides is not shown."""
LIMITED = 0.01
"""The same part for what it would be without privacy, where columns go farther than rows count in full."""
OFF = 1.2
"""A standard error without privacy that is so many times what is not noise in the one with privacy is not known."""


@dataclass(frozen=True, repr=False)
class Combinations:
    """All coefficients and their covariances; what leaves is of combinations that noise does not hide.

    The sum of two collinear columns' effects may be visible where neither of them is.
    """

    _values: Floats
    _effects: Effects
    _alone: bool = True

    @property
    def jointly(self) -> "Combinations":
        """The same for a smooth curve, whose coefficients mean nothing one by one: each value is judged as a whole."""
        return replace(self, _alone=False)

    def hidden(self, rows: Floats) -> "NDArray[np.bool_]":
        """Say of each combination whether too much of it lies in directions below the noise.

        So does one whose part of hidden coefficients does, however small that part is: the rest could be subtracted.
        """
        hidden = self._hidden(rows)
        if not self._alone:
            return hidden
        return np.asarray(hidden | self._hidden(np.where(self._hidden_alone, rows, 0.0)))

    @cached_property
    def _hidden_alone(self) -> "NDArray[np.bool_]":
        return np.asarray(np.diag(self._effects.blind) > HIDDEN * np.diag(self._effects.metric))

    def _hidden(self, rows: Floats) -> "NDArray[np.bool_]":
        return np.asarray(_squares(rows, self._effects.blind) > HIDDEN * _squares(rows, self._effects.metric))

    def values(self, rows: Floats) -> Floats:
        """Return the combinations; NaN for those that noise hides."""
        return np.where(self.hidden(rows), np.nan, rows @ self._values)

    def deviations(self, rows: Floats) -> Floats:
        """Return their standard errors; NaN for those that noise hides."""
        variances = np.maximum(_squares(rows, self._effects.covariance), 0.0)
        return np.where(self.hidden(rows), np.nan, np.sqrt(variances))

    def privacy(self, rows: Floats) -> Floats:
        """Return the part of their standard errors that is privacy noise; NaN for those that noise hides."""
        variances = np.maximum(_squares(rows, self._effects.privacy), 0.0)
        return np.where(self.hidden(rows), np.nan, np.sqrt(variances))

    def sampling(self, rows: Floats) -> Floats:
        """Return about their standard errors without privacy: neither noise, nor what it leaves open, nor bias counts.

        NaN where noise hides them, or rows that carry much of them count less, so that it is not known.
        """
        variances = np.maximum(_squares(rows, self._effects.sampling), 1e-300)
        limited = _squares(rows, self._effects.limited) > LIMITED * _squares(rows, self._effects.metric)
        return np.where(self.hidden(rows) | limited, np.nan, np.sqrt(variances))

    def covariance(self, rows: Floats) -> Floats:
        """Return their covariance; NaN for those that noise hides."""
        hidden = self.hidden(rows)
        return np.where(hidden[:, None] | hidden, np.nan, rows @ self._effects.covariance @ rows.T)

    def neighbor_correlations(self, rows: Floats) -> Floats:
        """Return the correlation of each combination with the next one; NaN next to those that noise hides."""
        se = self.deviations(rows)
        return np.asarray(((rows[:-1] @ self._effects.covariance) * rows[1:]).sum(axis=1) / (se[:-1] * se[1:]))

    def interval(self, rows: Floats, level: float) -> tuple[Floats, Floats, Floats]:
        """Return them with the ends of their intervals, each of this level; NaN for those that noise hides."""
        values, se = self.values(rows), self.deviations(rows)
        ends = np.array([self.ends(row, level) for row in rows]).reshape(len(rows), 2)
        return values, values - ends[:, 1] * se, values - ends[:, 0] * se

    def columns(self, rows: Floats, level: float) -> dict[str, Floats]:
        """Return the columns of a table of them; NaN for those that noise hides."""
        values, low, high = self.interval(rows, level)
        se, privacy = self.deviations(rows), self.privacy(rows)
        z = values / np.where(se > 0, se, np.nan)
        p = np.array([self.p_value(row, statistic) for row, statistic in zip(rows, z, strict=True)])
        plain, rest = self.sampling(rows), np.sqrt(np.maximum(se**2 - privacy**2, 0.0))
        inflation = np.where(plain > OFF * rest, np.nan, np.maximum(1.0, se / plain))
        return dict(zip(COLUMNS, (values, se, privacy, z, p, low, high, inflation), strict=True))

    def ends(self, row: Floats, level: float) -> tuple[float, float]:
        """Return the quantiles of (estimate - effect) / se that make the interval: Student's."""
        half = quantile(level, self.freedom(row))
        return -half, half

    def p_value(self, row: Floats, statistic: float) -> float:
        """Return the two-sided p-value of a combination's estimate over its standard error; NaN for NaN."""
        return p_value(statistic, self.freedom(row))

    def freedom(self, row: Floats) -> float:
        """Return the degrees of freedom of a combination's variance."""
        effects = self._effects
        total, noise = float(row @ effects.covariance @ row), float(row @ effects.privacy @ row)
        scores = effects.wobble * noise / total if total > 0 else 0.0
        return freedom(math.hypot(scores, 2.0 * self._doubt(row)))

    def _doubt(self, row: Floats) -> float:
        """Return the relative noise of the Hessian in the direction of a combination."""
        bread = float(row @ self._effects.design @ row)
        return self._effects.count * float(row @ self._effects.doubt @ row) / bread if bread > 0 else 0.0


def _squares(rows: Floats, matrix: Floats) -> Floats:
    """Return each row's quadratic form."""
    return np.asarray(((rows @ matrix) * rows).sum(axis=1))
