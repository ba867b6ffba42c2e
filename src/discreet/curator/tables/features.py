"""What each kind of column becomes: features within known bounds, computed row by row.

    number     one feature in [-1, 1], the range's middle at 0
    bends      a number with knots at given places: hat functions in [0, 1] that sum to 1
    curve      a number's feature, and as many bends in [-1, 1] as it has knots, from smooth to rough (``curves.py``)
    category   cells in {0, 1}, of which at most one is 1
    ordinal    one feature in [-1, 1], evenly spaced
    boolean    one feature in {-1, 1}
    missing    as declared: a value, a further cell in {0, 1} (the others are then 0), or NaN for a null record
    product    every product of the features of its columns; of a curve, its line

Bound of a row. The features of one column have Euclidean norm at most 1: a lone number is within [-1, 1]; hat functions
are not negative and sum to 1, so their squares sum to at most 1; of cells at most one is 1; where a flag is 1 the rest
is 0. Those of a curve have norm at most ``Curve.norm``, sqrt(2) at most. A product of columns has at most the norms'
product, since the squares of all products of u and v sum to ||u||^2 ||v||^2; a curve's line and flag, which are its
part of a product, have norm at most 1: so again at most 1. The squared norm of a row is at most the sum of these over
columns and products, up to rounding in the last bits.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from discreet.bounds import Range
from discreet.curator.tables import cells
from discreet.curator.tables.cell_states import ABSENT, NOT_ASKED, STRANGE, States, states_of_labels, states_of_numbers
from discreet.curator.tables.cells import Column
from discreet.curator.tables.curves import bend_column, curve_on
from discreet.curator.tables.scale_column import scale_column
from discreet.schema.cell_meaning import MISSING, Label
from discreet.schema.columns import Boolean, Category, ColumnKind, Number, Ordinal
from discreet.typing import Floats, Integers

SYMMETRIC, CELL = (-1.0, 1.0), (0.0, 1.0)
NO_CELL = -1


@dataclass(frozen=True)
class Feature:
    """One encoded feature: its name, the columns it comes from, its range, and what 1 of it means.

    ``scale`` is what a coefficient is multiplied by for a coefficient in the column's own unit, and ``origin`` the
    value of the column, in that unit, that is encoded as 0, where the feature is linear in it; ``unit`` says it in
    words.
    """

    name: str
    column: str
    range: Range
    unit: str
    scale: float = 1.0
    origin: float = 0.0


class Encoding(Protocol):
    """How one column becomes features: those of which products are made, and the largest norm of all."""

    features: tuple[Feature, ...]
    factors: tuple[Feature, ...]
    norm: float

    def encode(self, column: Column, out: Floats, states: States = NOT_ASKED) -> None:
        """Fill ``out`` (rows, features) from the column's cells, and ``states`` (rows) with what each cell holds."""
        ...


def encoding_of(name: str, kind: ColumnKind, missing: frozenset[str]) -> Encoding:
    """The encoding of a declared column; a private range stands for its limits until it is estimated."""
    if isinstance(kind, Category):
        return CellEncoding(name, kind, missing)
    if isinstance(kind, Number) and kind.is_curve:
        return CurveEncoding(name, kind, missing)
    if isinstance(kind, Number) and kind.knots:
        return SplineEncoding(name, kind, missing)
    return LinearEncoding(name, kind, missing)


class LinearEncoding:
    """Numbers, levels and truth: one feature that is linear in the column, and perhaps a flag."""

    def __init__(self, name: str, kind: Number | Ordinal | Boolean, missing: frozenset[str]) -> None:
        self._kind, self._missing = kind, missing
        self._low, self._high, unit, step = _axis(kind)
        self._middle = self._low / 2 + self._high / 2
        self._half = self._high / 2 - self._low / 2
        self._flag = kind.missing == "flag"
        linear = Feature(name, name, SYMMETRIC, unit, step / self._half, self._middle / step)
        self.features: tuple[Feature, ...] = (linear, _flag(name)) if self._flag else (linear,)
        self.factors: tuple[Feature, ...] = self.features
        self.norm = 1.0

    def encode(self, column: Column, out: Floats, states: States = NOT_ASKED) -> None:
        """(x - middle) / half, within [-1, 1]."""
        is_number = isinstance(self._kind, Number)
        found = _located(column, self._kind, self._missing, states)
        asked = states if is_number else NOT_ASKED
        scale_column(found, self._low, self._high, self._middle, self._half, self._absent(), out[:, 0], asked)
        if self._flag:
            out[:, 1] = ~np.isfinite(found)

    def _absent(self) -> float:
        value = self._kind.missing
        if value == "record":
            return math.nan
        if value in ("middle", "flag"):
            return 0.0
        place = self._kind.levels.index(value) if isinstance(self._kind, Ordinal) else float(value)
        return min(1.0, max(-1.0, (place - self._middle) / self._half))


class SplineEncoding:
    """Hat functions on the knots and the range's ends: a piecewise linear effect."""

    def __init__(self, name: str, kind: Number, missing: frozenset[str]) -> None:
        low, high = kind.limits
        assert not isinstance(kind.knots, int)
        self._kind, self._missing = kind, missing
        self._places = np.array([low, *kind.knots, high])
        self._flag = kind.missing == "flag"
        places = [_shown(place) for place in self._places.tolist()]
        hats = [Feature(f"{name} at {place}", name, CELL, f"at {place}") for place in places]
        self.features: tuple[Feature, ...] = (*hats, _flag(name)) if self._flag else tuple(hats)
        self.factors: tuple[Feature, ...] = self.features
        self.norm = 1.0

    def encode(self, column: Column, out: Floats, states: States = NOT_ASKED) -> None:
        """Between two knots, the distances to them as shares; beyond the ends, the end."""
        found = cells.numbers(column, self._missing)
        absent, places = ~np.isfinite(found), self._places
        low, high = places[0], places[-1]
        stand_in = low / 2 + high / 2 if isinstance(self._kind.missing, str) else self._kind.missing
        x = np.clip(np.where(absent, stand_in, found), low, high)
        left = np.clip(np.searchsorted(places, x, side="right") - 1, 0, len(places) - 2)
        width = places[left + 1] / 2 - places[left] / 2
        share = np.clip((x / 2 - places[left] / 2) / width, 0.0, 1.0)
        rows = np.arange(len(x))
        out[:] = 0.0
        out[rows, left], out[rows, left + 1] = 1.0 - share, share
        if self._flag:
            out[absent] = 0.0
            out[:, -1] = absent
        elif self._kind.missing == "record":
            out[absent] = math.nan
        if states.size:
            states[:] = states_of_numbers(found, low, high)


class CurveEncoding:
    """A number's line and its bends, and perhaps a flag."""

    def __init__(self, name: str, kind: Number, missing: frozenset[str]) -> None:
        self._line, self._curve = LinearEncoding(name, kind, missing), curve_on(kind.scaled_knots)
        line, *flag = self._line.features
        count = len(kind.scaled_knots)
        bends = [Feature(f"{name} bend {j}", name, SYMMETRIC, f"bend {j} of {count}") for j in range(1, count + 1)]
        self.factors: tuple[Feature, ...] = (replace(line, unit=f"trend {line.unit}"), *flag)
        self.features: tuple[Feature, ...] = (self.factors[0], *bends, *flag)
        self.norm = self._curve.norm

    def encode(self, column: Column, out: Floats, states: States = NOT_ASKED) -> None:
        """Scale as a line does, then add what bends there."""
        line = np.empty((len(out), len(self.factors)), order="F")
        self._line.encode(column, line, states)
        last = 1 + self._curve.controls.shape[2]
        out[:, 0] = line[:, 0]
        bend_column(line[:, 0], self._curve.knots, self._curve.controls, out[:, 1:last])
        if len(self.factors) > 1:
            out[line[:, 1] == 1.0, :last] = 0.0
            out[:, last] = line[:, 1]


class CellEncoding:
    """One cell a category but the base, one for any other, one for nothing where it is flagged."""

    def __init__(self, name: str, kind: Category, missing: frozenset[str]) -> None:
        self._kind, self._missing = kind, missing
        extra = (["other"] if kind.other else []) + (["missing"] if kind.missing == "flag" else [])
        celled = [label for label in kind.categories if label != kind.base]
        names = [f"{name} = {label}" for label in celled] + [f"{name} ({word})" for word in extra]
        unit = "cell" if kind.base is None else f"against {kind.base}"
        self.features: tuple[Feature, ...] = tuple(Feature(cell, name, CELL, unit) for cell in names)
        self.factors: tuple[Feature, ...] = self.features
        self.norm = 1.0
        other = len(celled) if kind.other else NO_CELL
        of = {label: i for i, label in enumerate(celled)}
        places = [of.get(label, NO_CELL) for label in kind.categories]
        absent = {"other": other, "record": NO_CELL, "flag": len(names) - 1}
        if kind.missing in kind.categories:
            absent[kind.missing] = places[kind.categories.index(kind.missing)]  # type: ignore[index]
        self._places = np.array([*places, other, absent[kind.missing]])  # type: ignore[index]

    def encode(self, column: Column, out: Floats, states: States = NOT_ASKED) -> None:
        """A 1 in the row's cell."""
        found = cells.positions(column, self._kind.categories, self._missing)
        place = self._places[found]  # the last one is that of a missing cell, whose position is -1
        rows = np.flatnonzero(place != NO_CELL)
        out[:] = 0.0
        out[rows, place[rows]] = 1.0
        if self._kind.missing == "record":
            out[found == MISSING] = math.nan
        if states.size:
            states[:] = states_of_labels(found, len(self._kind.categories))


def products(groups: Sequence[str], features: Mapping[str, Sequence[Feature]]) -> list[tuple[Feature, ...]]:
    """Every combination of one feature of each column."""
    found: list[tuple[Feature, ...]] = [()]
    for column in groups:
        found = [(*before, feature) for before in found for feature in features[column]]
    return found


def product_feature(factors: Sequence[Feature]) -> Feature:
    """The feature that is the product of these."""
    low, high = CELL if all(factor.range == CELL for factor in factors) else SYMMETRIC
    name = " x ".join(factor.name for factor in factors)
    return Feature(name, " x ".join(factor.column for factor in factors), (low, high), "product")


def _axis(kind: Number | Ordinal | Boolean) -> tuple[float, float, str, float]:
    """The ends of the axis that a column lies on, what one step along it means, and its length."""
    if isinstance(kind, Number):
        return (*kind.limits, f"per {kind.unit:g}", kind.unit)
    if isinstance(kind, Ordinal):
        return 0.0, float(len(kind.levels) - 1), "per level", 1.0
    return 0.0, 1.0, "true against false", 1.0


def _located(column: Column, kind: Number | Ordinal | Boolean, missing: frozenset[str], states: States) -> Floats:
    """Return where on its axis each cell lies, not finite for nowhere; for labels, also tell what each cell holds."""
    if isinstance(kind, Number):
        return cells.raw_numbers(column, missing)
    labels: tuple[Label, ...] = kind.levels if isinstance(kind, Ordinal) else (*kind.false, *kind.true)
    column = cells.coded(column)
    places = cells.positions(cells.lowered(column) if isinstance(kind, Boolean) else column, labels, missing)
    if states.size:
        states[:] = states_of_labels(places, len(labels))
        absent = cells.positions(column, labels, missing) == MISSING  # "NA" means nothing, and "na" is no word
        states[absent & (states == STRANGE)] = ABSENT
    found = _place(places, len(labels))
    if isinstance(kind, Ordinal):
        return found
    return np.where(np.isnan(found), found, (found >= len(kind.false)).astype(np.float64))


def _place(found: Integers, count: int) -> Floats:
    return np.where((found == MISSING) | (found == count), math.nan, found)


def _shown(number: float) -> str:
    """Short, and no two numbers alike."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


def _flag(name: str) -> Feature:
    return Feature(f"{name} (missing)", name, CELL, "cell")


def row_norm(norms: Iterable[float]) -> float:
    """The bound of the module's docstring, with room for the rounding of squares and sums."""
    return math.sqrt(math.fsum(norm * norm for norm in norms)) * (1.0 + 2.0**-40)
