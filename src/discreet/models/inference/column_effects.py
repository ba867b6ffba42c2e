"""Effects of whole columns: tests of several coefficients, contrasts, curves with a band, tests of a straight line."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import Unsupported
from discreet.models.inference.combinations import Combinations
from discreet.models.inference.hypotheses import Blocks, Vocabulary
from discreet.models.inference.quantiles import WaldTest, band_quantile, checked_level, joint_p_value
from discreet.models.inference.structure import Spline, Structure, splines_of
from discreet.typing import Floats

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

POINTS = 61
"""Evenly spaced places of a curve, in addition to its knots."""
DEPENDENT = 1e-10
"""A hypothesis of which less than this part (squared) is not said by the others says nothing new."""


class ColumnEffects:
    """What a ``Summary`` reports on columns of several coefficients."""

    names: tuple[str, ...]
    level: float
    blocks: Blocks
    structure: Structure
    combinations: Combinations

    @property
    def hidden(self) -> "NDArray[np.bool_]":
        """Which effects are not shown: they lie in directions that noise hides."""
        return self.combinations.hidden(np.eye(len(self.names)))

    @property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.names, self.blocks, self.structure)

    def wald_test(
        self,
        hypotheses: str | Sequence[str] | Sequence[Sequence[float]] | Floats,
        values: float | Sequence[float] | Floats = 0.0,
    ) -> WaldTest:
        """Test linear hypotheses at once: a whole column, effects, contrasts, or R coef = values.

        Parameters
        ----------
        hypotheses : str, sequence of str, or array of shape (k, n_features)
            Each text is a column (all of its effects are 0: cells, knots, products with other columns, all classes), a
            product of columns (``"age x ward"``), an effect, or a combination of effects: ``"a - b"``, ``"a = b"``,
            ``"2 * a + b = 1"``. ``"age = 0"`` is about the effect ``age`` alone, where ``age`` is in products, too. Put
            a name that contains such signs between backticks. Or the matrix R, in the order of ``names``.
        values : float or array of shape (k,), default=0.0
            What R coef is under the hypotheses.

        Returns
        -------
        WaldTest
            The statistic, its degrees of freedom and its p-value; of a whole column ``left_out`` lists the effects that
            noise hides, which are not tested.

        Raises
        ------
        Unsupported
            If a name is unknown, hypotheses repeat each other, or noise hides a combination or all of a column.

        Examples
        --------
        >>> summary.wald_test(["x0", "x1"]).df
        2
        >>> summary.wald_test("x0 - x1 = 1").p > 1e-6
        True
        """
        asked = self._vocabulary.hypotheses(hypotheses, self.hidden.tolist())
        return self._joint_test(asked.rows, asked.values + np.asarray(values, dtype=float), asked.left_out)

    def _joint_test(self, rows: Floats, values: Floats, left_out: tuple[str, ...] = ()) -> WaldTest:
        found = self.combinations.values(rows)
        if np.isnan(found).any():
            raise Unsupported("noise hides one of these combinations: test others, or raise epsilon")
        if not len(rows):
            raise Unsupported("there is nothing to test: name at least one effect")
        if np.linalg.eigvalsh(_correlations(rows @ rows.T))[0] < DEPENDENT:
            raise Unsupported("these hypotheses repeat each other: leave out those that follow from the others")
        covariance = self.combinations.covariance(rows)
        if np.linalg.eigvalsh(_correlations(covariance))[0] < DEPENDENT:
            raise Unsupported("noise hides a combination of these effects: test fewer at once, or raise epsilon")
        gap = found - np.broadcast_to(values, len(rows))
        statistic = float(gap @ np.linalg.solve(covariance, gap))
        degrees = min(self.combinations.freedom(row) for row in rows)
        return WaldTest(statistic, len(rows), joint_p_value(statistic, len(rows), degrees), left_out)

    def contrast(self, combinations: str | Sequence[str], level: float | None = None) -> "pd.DataFrame":
        """Return combinations of effects, such as differences, with standard errors and intervals.

        Parameters
        ----------
        combinations : str or sequence of str
            Such as ``"a - b"``, ``"ward = b - ward = c"`` or ``"0.5 * a + 0.5 * b"``, of names in ``names``. Cells that
            others are against count as 0. Put a name that contains such signs between backticks.
        level : float, default=None
            That of the intervals, one by one; None: the summary's.

        Returns
        -------
        DataFrame
            The columns of ``frame`` per combination; NaN where noise hides it.

        Raises
        ------
        Unsupported
            If a name is unknown, or a text can be read in two ways.

        Examples
        --------
        >>> list(summary.contrast("x0 - x1").index)
        ['x0 - x1']
        """
        import pandas as pd

        texts = [combinations] if isinstance(combinations, str) else list(combinations)
        rows = np.array([self._vocabulary.combination(text) for text in texts]).reshape(-1, len(self.names))
        level = checked_level(self.level if level is None else level)
        return pd.DataFrame(self.combinations.columns(rows, level), index=pd.Index(texts, name="contrast"))

    def nonlinearity_test(self, column: str) -> WaldTest:
        """Test whether the effect of a column with knots is a straight line, in every class and every product.

        Parameters
        ----------
        column : str
            A column with knots.

        Returns
        -------
        WaldTest
            Of no bend at any knot.

        Raises
        ------
        Unsupported
            If the column has no knots, or noise hides a part of its effect.

        Examples
        --------
        >>> summary.nonlinearity_test("x0")
        Traceback (most recent call last):
        discreet.errors.Unsupported: x0 has no knots: only columns with knots in the schema have a curve
        """
        rows = np.vstack([spline.bends(len(self.names)) for spline in self._splines(column)])
        return self._joint_test(rows, np.zeros(len(rows)))

    def curve(
        self,
        column: str,
        *,
        at: Sequence[float] | Floats | None = None,
        reference: float | None = None,
        level: float | None = None,
    ) -> "pd.DataFrame":
        """Return the effect of a column with knots over its range, with a band for the whole curve.

        Of columns that are in products, the curve is at 0 (the base) of the others.

        Parameters
        ----------
        column : str
            A column with knots.
        at : sequence of float, default=None
            Values of the column; None: evenly spaced ones and the knots.
        reference : float, default=None
            The value that effects are against; None: the lowest one.
        level : float, default=None
            About how often the interval covers the effect at one value, and the band the whole curve. None: the
            summary's.

        Returns
        -------
        DataFrame
            ``x``, ``effect``, ``se``, ``low`` and ``high`` (at one value), ``band_low`` and ``band_high`` (the whole
            curve); with several classes, by class. NaN between two places one of which noise hides.

        Raises
        ------
        Unsupported
            If the column has no knots, or a value lies outside its range.

        Examples
        --------
        >>> summary.curve("x0")
        Traceback (most recent call last):
        discreet.errors.Unsupported: x0 has no knots: only columns with knots in the schema have a curve
        """
        import pandas as pd

        level = checked_level(self.level if level is None else level)
        found = []
        for spline in self._splines(column):
            if spline.partners:
                continue
            places = np.array(spline.places)
            x = np.union1d(np.linspace(places[0], places[-1], POINTS), places) if at is None else np.asarray(at, float)
            origin = places[0] if reference is None else float(reference)
            if not all(places[0] <= value <= places[-1] for value in (*x.ravel(), origin)):
                raise Unsupported(f"values of {column} lie between {places[0]:g} and {places[-1]:g}, as declared")
            made = pd.DataFrame(self._curve(spline, x.ravel(), origin, level))
            found.append(made.assign(**{"class": spline.group}).set_index("class") if self.blocks else made)
        return pd.concat(found)

    def _splines(self, column: str) -> list[Spline]:
        return splines_of(self.structure, [group for group, _ in self.blocks] or [""] * len(self.names), column)

    def _curve(self, spline: Spline, x: Floats, origin: float, level: float) -> dict[str, Floats]:
        """Return the columns of a curve; a value is shown where the corners on both of its sides are."""
        count, known = len(self.names), self.combinations
        start = spline.rows(np.array([origin]), count)
        corners = np.union1d(spline.places, [origin])
        ends = spline.rows(corners, count) - start
        shown = np.logical_not(known.hidden(ends))
        inside = np.interp(x, corners, shown.astype(float)) >= 1.0
        rows = spline.rows(x, count) - start
        value, low, high = known.interval(rows, level)
        se = known.deviations(rows)
        width = self._band_width(ends, shown, level, parted=origin in spline.places) * se
        columns = {"effect": value, "se": se, "low": low, "high": high}
        columns |= {"band_low": value - width, "band_high": value + width}
        return {"x": x, **{name: np.where(inside, column, np.nan) for name, column in columns.items()}}

    def _band_width(self, ends: Floats, shown: "NDArray[np.bool_]", level: float, *, parted: bool) -> float:
        """Return the half-width of a band, in standard errors, from the combinations at a curve's corners.

        Between two corners a combination moves on a straight line, so its standardized path is an arc of a great circle
        whose angle is the arc cosine of the corners' correlation. Next to the reference, where the effect is 0, the
        direction does not change. A hidden place parts the path, and so does a reference at a place (``parted``).
        """
        known, moving = self.combinations, np.any(ends != 0, axis=1)
        se = known.deviations(ends)
        path, pieces, open_ = 0.0, 0, False
        for i in range(len(ends) - 1):
            if not (shown[i] and shown[i + 1]):
                open_ = False
                continue
            if moving[i] and moving[i + 1]:
                cross = float(known.covariance(ends[i : i + 2])[0, 1] / (se[i] * se[i + 1]))
                path += math.acos(min(1.0, max(-1.0, cross)))
            pieces += not open_ or (parted and not moving[i])
            open_ = True
        visible = ends[shown & moving]
        if not len(visible):
            return math.nan
        degrees = min(known.freedom(row) for row in visible)
        return band_quantile(level, path, max(pieces, 1), int(np.linalg.matrix_rank(visible)), degrees)


def _correlations(matrix: Floats) -> Floats:
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    return np.asarray(matrix / np.outer(scale, scale))
