"""Effects of whole columns: tests of several coefficients, contrasts, curves with a band, tests of a straight line.

What a text means in a test: a column, an effect, a product, or a combination of effects such as ``a - b``.

    hypothesis   = combination [ "=" combination ]
    combination  = [ sign ] part { sign part }
    part         = number [ "*" name ]  |  name

A name may itself contain signs (``ward = b``), so all readings of a text are looked for. A text with two readings is
refused; backticks around a name settle it (a backtick within is doubled).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.errors import Unsupported
from discreet.inference.intervals import Combinations, WaldTest, band_quantile, checked_level, joint_p_value
from discreet.inference.text import data_frames
from discreet.inference.units import Curve, Structure, curves_of
from discreet.parameters import Finite, Share, checked
from discreet.typing import Floats

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

Blocks = tuple[tuple[str, str], ...]
"""The class and the feature of each coefficient, where there are several classes; else empty."""
Reading = tuple[tuple[float, str], ...]
"""Weights and names of a combination, all on the left of the equation; the empty name is the number 1."""
MOST_NAMES = 12
LONGEST = 2_000
"""Characters of a hypothesis."""
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`(?!`)")
_BLANK = re.compile(r"\s*")
_SIGNS = {"+": 1.0, "-": -1.0, "\N{MINUS SIGN}": -1.0}


def index_of(names: Sequence[str], blocks: Blocks) -> "pd.Index":
    """Return the index of a table of effects: by feature, or by class and feature."""
    pd = data_frames()

    if blocks:
        return pd.MultiIndex.from_tuples(blocks, names=["class", "feature"])
    return pd.Index(names, name="feature")


def numbers_of(values: object, name: str) -> Floats:
    """Return numbers as an array; refuse what is none."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise Unsupported(f"{name} must be numbers, of no more than double precision") from None


class Hypotheses(NamedTuple):
    """Linear hypotheses: rows of coefficients' weights, what they are equal to, and effects that are left out."""

    rows: Floats
    values: Floats
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vocabulary:
    """The names that a text may use: of effects, of classes' features, of columns and products."""

    names: tuple[str, ...]
    blocks: Blocks
    structure: Structure

    def hypotheses(
        self, texts: str | Sequence[str] | Sequence[Sequence[float]] | Floats, hidden: Sequence[bool]
    ) -> Hypotheses:
        """Return hypotheses as rows of a matrix; of a whole column, those of effects that noise hides are left out."""
        if isinstance(texts, str):
            texts = [texts]
        if not (isinstance(texts, Sequence) and all(isinstance(text, str) for text in texts)):
            return self._matrix(np.atleast_2d(numbers_of(texts, "hypotheses that are no texts")))
        if not texts:
            raise Unsupported(f"name at least one effect to test: {self._some()}")
        parts = [self._hypothesis(str(text), hidden) for text in texts]
        rows, values, left_out = zip(*parts, strict=True)
        return Hypotheses(np.vstack(rows), np.concatenate(values), tuple(dict.fromkeys(sum(left_out, ()))))

    def combination(self, text: str) -> Floats:
        """Return a combination of effects, or one effect, as a row of weights."""
        row, value = self._equation(text)
        if value:
            raise Unsupported(f"{text!r} compares with a number: use wald_test(), or leave the number out")
        return row

    def _matrix(self, rows: Floats) -> Hypotheses:
        if rows.ndim != 2 or rows.shape[1] != len(self.names) or not np.isfinite(rows).all():
            raise Unsupported(f"a hypothesis has one finite number for each of {len(self.names)} coefficients")
        return Hypotheses(rows, np.zeros(len(rows)))

    def _hypothesis(self, text: str, hidden: Sequence[bool]) -> Hypotheses:
        places = self.structure.of_column(text)
        if not places and text not in self.names:
            of_classes = [j for j, (_, name) in enumerate(self.blocks) if name == text]
            places = of_classes or self.structure.of_term(text)
        if not places:
            row, value = self._equation(text)
            return Hypotheses(row[None, :], np.array([value]))
        shown = [j for j in places if not hidden[j]]
        if not shown:
            raise Unsupported(f"every effect of {text} is hidden: the summary's line 'hidden' says why; test others")
        rows = np.eye(len(self.names))[shown]
        return Hypotheses(rows, np.zeros(len(shown)), tuple(self.names[j] for j in places if hidden[j]))

    def _equation(self, text: str) -> tuple[Floats, float]:
        """Return the weights of a combination of effects, and the number that it is compared with."""
        if text in self.names or text in self.structure.bases:
            reading: Reading = ((1.0, text),)
        else:
            candidates = readings(text[:LONGEST], (*self.names, *sorted(self.structure.bases - {*self.names})))
            if not candidates or len(text) > LONGEST:
                raise Unsupported(
                    f"there is no effect called {text[:80]}: choose among {self._some()}, or combine them, such as "
                    "'a - b', '2 * a + b' or 'a = 1'"
                )
            if len(candidates) > 1:
                raise Unsupported(f"{text!r} can be read in two ways: put names between backticks, as in '`a` - `b`'")
            reading = candidates[0]
        row, value = np.zeros(len(self.names)), 0.0
        for weight, name in reading:
            if name in self.names:
                if self.names.count(name) > 1:
                    raise Unsupported(f"several effects are called {name}: pass rows of numbers")
                row[self.names.index(name)] += weight
            elif not name:
                value -= weight
        if not np.isfinite([*row, value]).all():
            raise Unsupported(f"{text!r} has a number that is too large")
        if not row.any():
            raise Unsupported(f"{text!r} is 0 whatever the effects are: name an effect that is not a base")
        return row, value

    def _some(self) -> str:
        more = f" and {len(self.names) - MOST_NAMES} more" if len(self.names) > MOST_NAMES else ""
        return ", ".join(self.names[:MOST_NAMES]) + more


def readings(text: str, names: Sequence[str]) -> list[Reading]:
    """Return the ways to read a text as a linear equation, two at the most."""

    @cache
    def parts(at: int, side: float, sign: float) -> tuple[Reading, ...]:
        """Readings from a place on where a part begins; ``side`` is -1 on the right of the equation."""
        at = _after_blanks(text, at)
        candidates: list[Reading] = []
        number = _NUMBER.match(text, at)
        if number:
            weight, after = side * sign * float(number[0]), _after_blanks(text, number.end())
            candidates += [((weight, ""), *more) for more in rest(after, side)]
            if text[after : after + 1] == "*":
                candidates += [((weight, name), *more) for name, end in ends(after + 1) for more in rest(end, side)]
        candidates += [((side * sign, name), *more) for name, end in ends(at) for more in rest(end, side)]
        return tuple(dict.fromkeys(candidates))[:2]

    @cache
    def rest(at: int, side: float) -> tuple[Reading, ...]:
        """Readings after a part: the end, a sign and a further part, or the other side of the equation."""
        at = _after_blanks(text, at)
        if at == len(text):
            return ((),)
        if text[at] in _SIGNS:
            return parts(at + 1, side, _SIGNS[text[at]])
        return first(at + 1, -1.0) if text[at] == "=" and side > 0 else ()

    def first(at: int, side: float) -> tuple[Reading, ...]:
        at = _after_blanks(text, at)
        signed = parts(at + 1, side, _SIGNS[text[at]]) if text[at : at + 1] in _SIGNS and at < len(text) else ()
        return tuple(dict.fromkeys((*parts(at, side, 1.0), *signed)))[:2]

    def ends(at: int) -> list[tuple[str, int]]:
        """Return the names that stand at a place, each with where it ends."""
        at = _after_blanks(text, at)
        quoted = _QUOTED.match(text, at)
        if quoted:
            name = quoted[1].replace("``", "`")
            return [(name, quoted.end())] if name in names else []
        return [(name, at + len(name)) for name in names if name and text.startswith(name, at)]

    for at in reversed(range(len(text))):  # from the end on, so that no text is read by deep recursion
        rest(at, -1.0)
        rest(at, 1.0)
    return list(first(0, 1.0))


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANK.match(text, at)
    return blanks.end() if blanks else at


POINTS, STEPS = 61, 401
"""Evenly spaced values of a curve that are shown, and over which the length of its path is measured."""
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
            noise hides, which are not tested (of a smooth curve, its values at the knots that are shown are).

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
        tested = self._vocabulary.hypotheses(hypotheses, self.hidden.tolist())
        right = numbers_of(values, "values")
        if right.shape not in ((), (1,), (len(tested.rows),)) or not np.isfinite(right).all():
            raise Unsupported(f"values is a finite number, or one for each of {len(tested.rows)} hypotheses")
        if isinstance(hypotheses, str) and tested.left_out and self._is_smooth(hypotheses) and not right.any():
            return self._curve_test(hypotheses, tested.left_out)
        return self._joint_test(tested.rows, tested.values + right, tested.left_out)

    def _joint_test(
        self, rows: Floats, values: Floats, left_out: tuple[str, ...] = (), judged: Combinations | None = None
    ) -> WaldTest:
        combinations = judged or self.combinations
        estimates = combinations.values(rows)
        if np.isnan(estimates).any():
            raise Unsupported(
                "one of these combinations has a hidden effect: the summary's line 'hidden' says why; test others"
            )
        if not len(rows):
            raise Unsupported("there is nothing to test: name at least one effect that is shown")
        if np.linalg.eigvalsh(_correlations(rows @ rows.T))[0] < DEPENDENT:
            raise Unsupported("these hypotheses repeat each other: leave out those that follow from the others")
        covariance = combinations.covariance(rows)
        if np.linalg.eigvalsh(_correlations(covariance))[0] < DEPENDENT:
            raise Unsupported("noise hides a combination of these effects: test fewer at once, or raise epsilon")
        gap = estimates - np.broadcast_to(values, len(rows))
        statistic = float(gap @ np.linalg.solve(covariance, gap))
        degrees = min(combinations.freedom(row) for row in rows)
        return WaldTest(statistic, len(rows), joint_p_value(statistic, len(rows), degrees), left_out)

    def column_tests(self) -> dict[str, WaldTest | None]:
        """Test each column as a whole.

        Returns
        -------
        dict
            Column -> the test of ``wald_test(column)``; None where noise hides all of it.

        Examples
        --------
        >>> {column: test.df for column, test in summary.column_tests().items()}
        {'x0': 1, 'x1': 1}
        """
        tests: dict[str, WaldTest | None] = {}
        hidden = self.hidden
        for column in dict.fromkeys(name for factors in self.structure.terms for name, _ in factors):
            shown = [j for j in self.structure.of_column(column) if not hidden[j]]
            left_out = tuple(self.names[j] for j in self.structure.of_column(column) if hidden[j])
            try:
                if left_out and self._is_smooth(column):
                    tests[column] = self._curve_test(column, left_out)
                else:
                    tests[column] = self._joint_test(np.eye(len(self.names))[shown], np.zeros(len(shown)), left_out)
            except Unsupported:
                tests[column] = None
        return tests

    def _is_smooth(self, column: str) -> bool:
        return column in self.structure.shapes and self.structure.shapes[column].is_smooth

    def _curve_test(self, column: str, left_out: tuple[str, ...]) -> WaldTest:
        """Test a smooth curve some of whose coefficients noise hides by its values at those knots that are shown."""
        count, rows = len(self.names), []
        for curve in self._curves(column):
            if not curve.partners:
                values = curve.rows(np.array(curve.shape.references), count)
                values = values - curve.rows(np.array([self._reference(curve)]), count)
                shown = np.any(values != 0, axis=1) & ~self.combinations.jointly.hidden(values)
                rows.append(values[shown])
        return self._joint_test(np.vstack(rows), np.zeros(sum(map(len, rows))), left_out, self.combinations.jointly)

    @checked
    def contrast(self, combinations: str | Sequence[str], level: Share | None = None) -> "pd.DataFrame":
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
        pd = data_frames()

        texts = [combinations] if isinstance(combinations, str) else list(combinations)
        rows = np.array([self._vocabulary.combination(text) for text in texts]).reshape(-1, len(self.names))
        level = checked_level(self.level if level is None else level)
        return pd.DataFrame(self.combinations.columns(rows, level), index=pd.Index(texts, name="contrast"))

    @checked
    def nonlinearity_test(self, column: str) -> WaldTest:
        """Test whether the effect of a column with knots is a straight line, in every class and every product.

        Parameters
        ----------
        column : str
            A column with knots.

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
        rows = np.vstack([curve.bends(len(self.names)) for curve in self._curves(column)])
        return self._joint_test(rows, np.zeros(len(rows)))

    @checked
    def curve(
        self,
        column: str,
        *,
        at: Sequence[Finite] | Floats | None = None,
        reference: Finite | None = None,
        level: Share | None = None,
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
            The value that effects are against; None: the lowest one, and of a smooth curve the knot from which most of
            it is known best.
        level : float, default=None
            About how often the interval covers the effect at one value, and the band the whole curve. None: the
            summary's.

        Returns
        -------
        DataFrame
            ``x``, ``effect``, ``se``, ``low`` and ``high`` (at one value), ``band_low`` and ``band_high`` (the whole
            curve), ``reference``; with several classes, by class. NaN where noise hides it.

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
        pd = data_frames()

        parts = [
            pd.DataFrame(columns).assign(**{"class": group} if self.blocks else {})
            for group, columns in self.curve_columns(column, at=at, reference=reference, level=level).items()
        ]
        return pd.concat(parts).set_index("class") if self.blocks else parts[0]

    @checked
    def curve_columns(
        self,
        column: str,
        *,
        at: Sequence[Finite] | Floats | None = None,
        reference: Finite | None = None,
        level: Share | None = None,
    ) -> dict[str, dict[str, Floats]]:
        """Return the curve of a column as arrays; ``curve`` has it as a data frame.

        Parameters
        ----------
        column, at, reference, level
            As in ``curve``.

        Returns
        -------
        dict
            Class (empty for one output) -> name -> one number per value of the column.

        Examples
        --------
        >>> summary.curve_columns("x0")
        Traceback (most recent call last):
        discreet.errors.Unsupported: x0 has no knots: only columns with knots in the schema have a curve
        """
        level = checked_level(self.level if level is None else level)
        columns = {}
        for curve in self._curves(column):
            if curve.partners:
                continue
            low, high = curve.shape.range
            x = _grid(curve, POINTS) if at is None else np.ravel(numbers_of(at, "at"))
            origin = self._reference(curve) if reference is None else float(reference)
            if not all(low <= value <= high for value in (*x, origin)):
                raise Unsupported(f"values of {column} lie between {low:g} and {high:g}, as declared")
            columns[curve.group] = self._columns_of(curve, x, origin, level)
        return columns

    def _curves(self, column: str) -> list[Curve]:
        return curves_of(self.structure, [group for group, _ in self.blocks] or [""] * len(self.names), column)

    def _combinations_of(self, curve: Curve) -> Combinations:
        return self.combinations.jointly if curve.shape.is_smooth else self.combinations

    def _reference(self, curve: Curve) -> float:
        """Return the value from which most of a curve is shown; of several, with the least standard errors."""
        rows, combinations = curve.rows(_grid(curve, POINTS), len(self.names)), self._combinations_of(curve)

        def shown(origin: float) -> tuple[int, float]:
            se = combinations.deviations(rows - curve.rows(np.array([origin]), len(self.names)))
            return int(np.isfinite(se).sum()), -float(np.nansum(se))

        return max(curve.shape.references, key=shown)

    def _columns_of(self, curve: Curve, x: Floats, origin: float, level: float) -> dict[str, Floats]:
        count, combinations = len(self.names), self._combinations_of(curve)
        start = curve.rows(np.array([origin]), count)
        rows = curve.rows(x, count) - start
        value, low, high = combinations.interval(rows, level)
        se = combinations.deviations(rows)
        path = curve.rows(np.union1d(_grid(curve, STEPS), [origin]), count) - start
        width = _band_width(combinations, path, level) * se
        columns = {"x": x, "effect": value, "se": se, "low": low, "high": high}
        columns |= {"band_low": value - width, "band_high": value + width}
        return columns | {"reference": np.full(len(x), origin)}


def _band_width(combinations: Combinations, rows: Floats, level: float) -> float:
    """Return the half-width of a band, in standard errors, for a curve of combinations.

    Its standardized path on the unit sphere is measured in steps, by the angle between neighbors: the arc cosine of
    their correlation. Along a straight piece of an effect the path is an arc of a great circle, and steps add up to its
    length. At the reference the effect is 0; what lies on its two sides is joined by the shorter arc, since a band
    looks the same from both sides of the sphere. A hidden part of the curve parts the path.
    """
    rows = rows[np.any(rows != 0, axis=1)]
    shown = np.logical_not(combinations.hidden(rows))
    if not shown.any():
        return math.nan
    turns = np.abs(combinations.neighbor_correlations(rows))[shown[:-1] & shown[1:]]
    length = float(np.arccos(np.minimum(turns, 1.0)).sum())
    pieces = int(shown[0]) + int(np.sum(~shown[:-1] & shown[1:]))
    degrees = min(combinations.freedom(row) for row in rows[shown])
    return band_quantile(level, length, pieces, int(np.linalg.matrix_rank(rows[shown])), degrees)


def _grid(curve: Curve, steps: int) -> Floats:
    """Return evenly spaced values of a column, and the places at which its effect may bend."""
    low, high = curve.shape.range
    places = getattr(curve.shape, "places", ())
    return np.union1d(np.linspace(low, high, steps), places)


def _correlations(matrix: Floats) -> Floats:
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    return np.asarray(matrix / np.outer(scale, scale))
