"""The kinds of columns that a schema may declare, each with what is publicly known of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from discreet.bounds import Range
from discreet.schema.cell_meaning import (
    BLANKS,
    MAX_LABELS,
    UNKNOWN,
    Label,
    are_numbers,
    check_count,
    check_length,
    holds_several,
    number_of,
)
from discreet.schema.cell_meaning import SchemaError as SchemaError

PRIVATE = "private"
LEAST_WIDTH = 1e-290
LINEAR, CURVE = TERMS = ("linear", "curve")
INCREASING, DECREASING = "increasing", "decreasing"
KNOTS, FEWEST_KNOTS, MOST_KNOTS, LEAST_STEP = 8, 2, 100, 2e-3
"""A curve's knots, unless declared; the fewest and the most; the least distance of two, where the range is 2 long."""
TRUE, FALSE = ("true", "yes", "y", "t", "1"), ("false", "no", "n", "f", "0")


@dataclass(frozen=True)
class Number:
    """Column of numbers.

    Parameters
    ----------
    range : tuple of float or "private"
        The least and the largest number that anybody could have, as is publicly known. Values beyond are clipped.
        ``"private"``: estimated with the fit's budget, as private quantiles within ``within``.
    within : tuple of float, default=None
        For a private range: limits that are wide and certain, such as (0, 1e7).
    missing : float or str, default="middle"
        What stands for a missing value: ``"middle"`` of the range, a number, ``"flag"`` (the middle, and a further
        feature that says so), or ``"record"`` (the whole record counts as null).
    knots : int or tuple of float, default=()
        How many evenly spaced knots a curve has on the range, its ends counted; or public places within the range at
        which the effect may bend: a piecewise linear spline, and with ``term="curve"`` a cubic one.
    term : {"linear", "curve"}, default=None
        The form of the effect. A curve is a cubic spline, on 8 knots unless ``knots`` says otherwise. None: a curve
        where ``knots`` is a number; else the model's ``terms`` decide.
    unit : float, default=1.0
        What effects are shown per, such as 10 for ten years. The fit does not change.
    monotone : {"increasing", "decreasing"}, default=None
        That the effect never falls, or never rises: the nearest such curve replaces what was released.

    Examples
    --------
    >>> from discreet.schema import Number
    >>> Number((18, 110), knots=(65,)).limits
    (18.0, 110.0)
    >>> Number((18, 110), term="curve") == Number((18, 110), term="curve", knots=8)
    True
    """

    range: Range | str
    within: Range | None = None
    missing: float | str = "middle"
    knots: int | tuple[float, ...] = ()
    term: str | None = None
    unit: float = 1.0
    monotone: str | None = None
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        if isinstance(self.range, str) and self.range == PRIVATE:
            if self.within is None:
                raise SchemaError("a private range needs limits that are certain: write within = [0, 1e7], say")
            object.__setattr__(self, "within", checked_range(self.within, "within"))
            if not isinstance(self.knots, int) and self.knots:
                raise SchemaError("places of knots need a declared range: for a private one write knots = 8, say")
        else:
            object.__setattr__(self, "range", checked_range(self.range, "range"))
            if self.within is not None:
                raise SchemaError("within belongs to a private range: leave it out")
        self._check_term()
        low, high = self.limits
        object.__setattr__(self, "unit", _number(self.unit, "unit"))
        if not 0 < self.unit / (high / 2 - low / 2) < math.inf:
            raise SchemaError("unit must be a positive number, such as unit = 10 for effects per 10")
        if isinstance(self.missing, str):
            _one_of(self.missing, ("middle", "flag", "record"), "a number")
        else:
            object.__setattr__(self, "missing", _number(self.missing, "missing"))
            if not low <= self.missing <= high:
                raise SchemaError("what stands for a missing value must lie within the range")

    def _check_term(self) -> None:
        chosen = self.monotone
        if chosen is not None and (not isinstance(chosen, str) or chosen not in (INCREASING, DECREASING)):
            raise SchemaError(f"monotone must be {INCREASING!r} or {DECREASING!r}")
        if self.term is not None and (not isinstance(self.term, str) or self.term not in TERMS):
            raise SchemaError(f"term must be one of {', '.join(TERMS)}")
        knots = self.knots.item() if isinstance(self.knots, np.integer) else self.knots
        if isinstance(knots, (int, float)):
            if not isinstance(knots, int) or isinstance(knots, bool) or not FEWEST_KNOTS <= knots <= MOST_KNOTS:
                raise SchemaError(f"knots must be a count from {FEWEST_KNOTS} to {MOST_KNOTS}, or places: [45, 65]")
        else:
            knots = tuple(sorted(_number(knot, "a knot") for knot in _listed(knots, "knots")))
            if not all(are_apart(*pair) for pair in pairwise((self.limits[0], *knots, self.limits[1]))):
                raise SchemaError("knots must differ and lie strictly within the range, not too close to each other")
        if self.term == LINEAR and knots:
            raise SchemaError("a linear effect has no knots: leave them out, or write term = 'curve'")
        object.__setattr__(self, "knots", knots or (KNOTS if self.term == CURVE else ()))
        if self.monotone is not None and self.is_bent:
            raise SchemaError("a monotone effect is a line or a curve: write term = 'curve', or leave monotone out")
        if self.is_curve and min(right - left for left, right in pairwise(self.scaled_knots)) < LEAST_STEP:
            raise SchemaError("knots of a curve must lie at least a thousandth of the range apart")
        check_count(len(self.scaled_knots) if self.is_curve else 0, MOST_KNOTS, "knots of a curve")

    @property
    def is_curve(self) -> bool:
        """Whether the effect is a cubic spline."""
        return self.term == CURVE or isinstance(self.knots, int)

    @property
    def is_bent(self) -> bool:
        """Whether the effect is piecewise linear between places."""
        return bool(self.knots) and not self.is_curve

    @property
    def scaled_knots(self) -> tuple[float, ...]:
        """Where the knots lie on the range from -1 to 1, its ends among them."""
        if isinstance(self.knots, int):
            return _even_places(self.knots)
        low, high = self.limits
        half = high / 2 - low / 2
        return (-1.0, *(min(max((knot - low / 2 - high / 2) / half, -1.0), 1.0) for knot in self.knots), 1.0)

    @property
    def is_private(self) -> bool:
        """Whether the range is estimated with privacy budget."""
        return self.range == PRIVATE

    @property
    def limits(self) -> Range:
        """The range, or the limits within which it is estimated."""
        ends = self.within if self.range == PRIVATE else self.range
        assert isinstance(ends, tuple)
        return ends


@dataclass(frozen=True)
class Category:
    """Column of names: one cell for each declared one, and one for any other.

    Parameters
    ----------
    categories : tuple
        The names (or numbers) that are publicly known to occur.
    other : bool, default=True
        Whether all other values share one category "(other)"; else all their cells are 0.
    missing : str, default="other"
        ``"other"``, ``"flag"`` (a cell of its own), ``"record"`` (the record counts as null), or a category.
    base : str, default=None
        A category without a cell: the others' coefficients then say how they differ from it. None: every category has
        a cell, and only differences between cells mean something, since their level is the intercept's too.

    Examples
    --------
    >>> from discreet.schema import Category
    >>> Category(["north", "south"], base="north").categories
    ('north', 'south')
    """

    categories: tuple[Label, ...]
    other: bool = True
    missing: Label = "other"
    base: Label | None = None
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", checked_labels(self.categories, "categories", least=1))
        _truth(self.other, "other")
        object.__setattr__(self, "missing", _plain(self.missing))
        object.__setattr__(self, "base", _plain(self.base))
        _stands_for(self.missing, ("other", "flag", "record"), self.categories)
        if self.base is not None and (
            holds_several(self.base) or self.base not in self.categories or isinstance(self.base, bool)
        ):
            raise SchemaError("the base is one of the categories: the one that the others are compared with")


@dataclass(frozen=True)
class Ordinal:
    """Column of levels in their order, which become evenly spaced numbers.

    Parameters
    ----------
    levels : tuple
        The levels, from the lowest to the highest.
    missing : str, default="middle"
        ``"middle"``, ``"flag"``, ``"record"`` or a level; a value that is no level counts as missing too.

    Examples
    --------
    >>> from discreet.schema import Ordinal
    >>> Ordinal(("low", "medium", "high"), missing="low").levels
    ('low', 'medium', 'high')
    """

    levels: tuple[Label, ...]
    missing: Label = "middle"
    kind: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", checked_labels(self.levels, "levels", least=2))
        _stands_for(self.missing, ("middle", "flag", "record"), self.levels)


@dataclass(frozen=True)
class Boolean:
    """Column that is true or false, in these words; capitals do not matter.

    Parameters
    ----------
    true, false : tuple of str
        The words for it; unless given, yes, no and the like.
    missing : bool or str, default="middle"
        ``"middle"``, ``"flag"``, ``"record"``, True or False; a word that is neither counts as missing too.

    Examples
    --------
    >>> from discreet.schema import Boolean
    >>> Boolean(true="ja", false="nein").true
    ('ja',)
    """

    true: tuple[str, ...] = TRUE
    false: tuple[str, ...] = FALSE
    missing: bool | str = "middle"
    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        for name in ("true", "false"):
            words = getattr(self, name)
            words = [words] if isinstance(words, str) else words
            if not isinstance(words, Sequence) or not words or not all(isinstance(word, str) for word in words):
                raise SchemaError(f'{name} lists the words for it, such as {name} = ["{getattr(type(self), name)[0]}"]')
            object.__setattr__(self, name, tuple(dict.fromkeys(word.strip(BLANKS).lower() for word in words)))
        if set(self.true) & set(self.false):
            raise SchemaError("a word cannot be both true and false")
        if not isinstance(self.missing, bool):
            _one_of(self.missing, ("middle", "flag", "record"), "true or false")


ColumnKind = Number | Category | Ordinal | Boolean


@dataclass(frozen=True)
class Target:
    """Column to predict: its classes in order, or its range.

    Parameters
    ----------
    column : str
        Its name.
    classes : tuple, default=None
        The labels to tell apart.
    range : tuple of float, default=None
        The least and the largest number, instead of classes.
    ordered : bool, default=False
        Whether the classes are listed from the lowest to the highest, so that a model may use their order.

    Examples
    --------
    >>> from discreet.schema import Target
    >>> Target("days", range=(0, 60)).range
    (0.0, 60.0)
    """

    column: str
    classes: tuple[Label, ...] | None = None
    range: Range | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        _truth(self.ordered, "ordered")
        if self.ordered and len(self.classes or ()) < 3:
            raise SchemaError("ordered is for three or more classes, listed from the lowest to the highest")
        if not (isinstance(self.column, str) and self.column):
            raise SchemaError('the target has no column: write column = "income", say')
        if (self.classes is None) == (self.range is None):
            raise SchemaError(
                "the target needs either classes (the labels to tell apart) or a range (the least and the largest)"
            )
        if self.classes is not None:
            object.__setattr__(self, "classes", checked_labels(self.classes, "classes", least=2))
        if self.range is not None:
            if isinstance(self.range, str):
                raise SchemaError("the target's range cannot be estimated: declare it")
            object.__setattr__(self, "range", checked_range(self.range, "the target's range"))


@dataclass(frozen=True)
class Weight:
    """Column of weights: how much each row counts.

    Parameters
    ----------
    column : str
        Its name.
    range : tuple of float
        The least and the largest weight, at least 0, as is publicly known. Weights beyond are clipped; a row whose
        weight is missing or 0 counts as null. Noise is scaled for the largest one.

    Examples
    --------
    >>> from discreet.schema import Weight
    >>> Weight("survey_weight", (0, 20)).range
    (0.0, 20.0)
    """

    column: str
    range: Range

    def __post_init__(self) -> None:
        _named(self.column, "weight")
        object.__setattr__(self, "range", checked_range(self.range, "the range of weights"))
        if self.range[0] < 0:
            raise SchemaError("weights are not negative: declare a range such as [0, 20]")


@dataclass(frozen=True)
class Offset:
    """Column that is added to the linear predictor with the coefficient 1, or whose logarithm is: an exposure.

    Parameters
    ----------
    column : str
        Its name.
    range : tuple of float
        The least and the largest number, as is publicly known. Numbers beyond are clipped; a row in which none is there
        counts as null.
    log : bool, default=False
        Whether the column is an exposure (days, persons, kilometers), whose logarithm is the offset.

    Examples
    --------
    >>> from discreet.schema import Offset
    >>> low, high = Offset("days", (1, 365), log=True).limits
    >>> low, round(high, 3)
    (0.0, 5.9)
    """

    column: str
    range: Range
    log: bool = False

    def __post_init__(self) -> None:
        _named(self.column, "offset")
        object.__setattr__(self, "range", checked_range(self.range, "the range of offsets"))
        _truth(self.log, "log")
        if self.log and self.range[0] <= 0:
            raise SchemaError("an exposure is positive: declare a range such as [1, 365], or leave log out")

    @property
    def limits(self) -> Range:
        """The least and the largest offset."""
        low, high = self.range
        return (math.log(low), math.log(high)) if self.log else (low, high)


def _named(column: object, role: str) -> None:
    if not (isinstance(column, str) and column):
        raise SchemaError(f'the {role} has no column: below [{role}] write column = "name"')


@cache
def _even_places(count: int) -> tuple[float, ...]:
    """Return so many evenly spaced places from -1 to 1."""
    return tuple((2 * j - count + 1) / (count - 1) for j in range(count))


def checked_range(pair: object, what: str) -> Range:
    """Return two finite numbers, the first the smaller."""
    is_list = hasattr(pair, "tolist") or (isinstance(pair, Sequence) and not isinstance(pair, (str, bytes)))
    ends = _listed(pair, what) if is_list else ()
    if len(ends) != 2:
        raise SchemaError(f"{what} needs two numbers, the least and the largest, such as [0, 120]")
    low, high = (_number(end, what) for end in ends)
    if not low < high:
        raise SchemaError(f"{what} needs its smaller number first; a column that never changes can be ignored")
    if not are_apart(low, high):
        raise SchemaError(f"{what} is too narrow for double precision: give the column in another unit")
    return low, high


def are_apart(low: float, high: float) -> bool:
    """Return whether a distance can be divided by."""
    return high / 2 - low / 2 >= LEAST_WIDTH


def checked_labels(labels: object, what: str, least: int) -> tuple[Label, ...]:
    """Different labels, all texts or all numbers."""
    values = tuple(map(_plain, _listed(labels, what)))
    for label in values:
        check_length(label, "a label")
    if len(values) < least:
        raise SchemaError(f"{what} must name at least {least}, such as [{', '.join(repr(n) for n in 'abc'[:least])}]")
    if not (are_numbers(values) or all(isinstance(label, str) for label in values)):
        raise SchemaError(f"{what} must be all texts or all numbers: write ['1', 'a'], or ['false', 'true']")
    if any(UNKNOWN in label or not label for label in values if isinstance(label, str)):
        raise SchemaError(f"{what} may not be empty: missing values have a treatment of their own")
    if are_numbers(values) and any(math.isnan(number_of(label)) for label in values):
        raise SchemaError(f"{what} must be finite numbers")
    if len(set(values)) < len(values):
        raise SchemaError(f"{what} must differ from each other")
    return values


def _plain(label: object) -> Any:
    """Return a label without blanks around it, and without a numpy type."""
    return label.strip(BLANKS) if isinstance(label, str) else label.item() if isinstance(label, np.generic) else label


def _listed(values: object, what: str) -> Sequence[Any]:
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise SchemaError(f"{what} must be a list, such as [0, 120] or ['a', 'b']")
    check_count(len(values), MAX_LABELS, what)
    return values


def _number(value: object, what: str) -> float:
    number = math.nan if isinstance(value, (str, bytes, bool)) else number_of(value)
    if math.isnan(number):
        raise SchemaError(f"{what} must be a finite number")
    return number


def _truth(value: object, what: str) -> None:
    if not isinstance(value, bool):
        raise SchemaError(f"{what} must be true or false")


def _one_of(value: object, words: Sequence[str], otherwise: str) -> None:
    if not isinstance(value, str) or value not in words:
        raise SchemaError(f"missing must be one of {', '.join(words)}, or {otherwise}")


def _stands_for(value: object, words: Sequence[str], labels: Sequence[Label]) -> None:
    if holds_several(value) or value not in (*words, *labels) or isinstance(value, bool):
        raise SchemaError(f"missing must be one of {', '.join(words)}, or one of the declared names")
