"""Linear combinations of coefficients: their values, covariance and laws, and whether noise hides them."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.models.inference.quantiles import freedom, p_value, quantile
from discreet.solvers.base import Effects
from discreet.typing import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = ("coef", "se", "se_privacy", "z", "p", "low", "high", "inflation")
HIDDEN = 0.1
"""A combination of which more than this part lies in directions that noise hides is not shown."""


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
        found, se = self.values(rows), self.deviations(rows)
        ends = np.array([self.ends(row, level) for row in rows]).reshape(len(rows), 2)
        return found, found - ends[:, 1] * se, found - ends[:, 0] * se

    def columns(self, rows: Floats, level: float) -> dict[str, Floats]:
        """Return the columns of a table of them; NaN for those that noise hides."""
        found, low, high = self.interval(rows, level)
        se, privacy = self.deviations(rows), self.privacy(rows)
        z = found / np.where(se > 0, se, np.nan)
        p = np.array([self.p_value(row, statistic) for row, statistic in zip(rows, z, strict=True)])
        sampling = np.sqrt(np.maximum(se**2 - privacy**2, 1e-300))
        return dict(zip(COLUMNS, (found, se, privacy, z, p, low, high, se / sampling), strict=True))

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
