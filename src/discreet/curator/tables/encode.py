"""Rows of a table as features within known bounds: each kind of column, curves, products, and where they stand.

    number     one feature in [-1, 1], the range's middle at 0
    bends      a number with knots at given places: hat functions in [0, 1] that sum to 1
    curve      a number's feature, and as many bends in [-1, 1] as it has knots, from smooth to rough
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

**Curves**: a line and its bends, which make every cubic spline on given knots.

On knots t_0 < ... < t_m of [-1, 1], the ends among them, cubic B-splines B_1 ... B_{m+3} (their outer knots continue
the first and the last distance) make every function that is a cubic polynomial between knots and twice differentiable.
It is straight where the second divided differences D c of its coefficients c are 0. With the singular value
decomposition D = U S V^T,

    f(u) = constant + b_0 u + sum_j b_j z_j(u),    z(u) = S^{-1/2} q(u) / r,    j = 1 ... m + 1,

where q are the functions V^T B, from the smoothest (an arch) to the roughest, each without its projections on the
constant, the line and the smoother ones, and of one mean square, over the range as if values were spread evenly. So
bends hardly repeat each other or the line, and what noise does to one is not offset by another. Rough bends have a
smaller z: noise and shrinkage take them before smooth ones, and bends before the line. S^0 would treat all bends alike,
S^{-1} is a smoothing spline's penalty, too smooth where values crowd a part of the range. The sign of a bend is that of
its coefficient at the high end.

Bound of a row. Between two knots the vector (u, z) is a polynomial of degree 3 in the share s of the way, so it is

    (1 - s)^3 P_0 + 3 s (1 - s)^2 P_1 + 3 s^2 (1 - s) P_2 + s^3 P_3

with control points P_0 ... P_3 that depend on the knots alone. The weights are not negative and sum to 1: the vector is
a convex combination of them, so its norm is at most that of the longest control point (``Curve.norm``), and each of its
entries at most the largest of theirs. r makes the longest of the bends' control points 1; as |u| <= 1, norm^2 <= 2.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from numba import njit

from discreet.bounds import Bounds, Range
from discreet.curator.records.stream import Cone
from discreet.curator.tables import cells
from discreet.curator.tables.cells import (
    ABSENT,
    FINE,
    NOT_ASKED,
    STRANGE,
    Column,
    States,
    states_of_labels,
    states_of_numbers,
)
from discreet.schema.cell_meaning import MAX_FEATURES, MISSING, Label, SchemaError, check_count, truth_labels
from discreet.schema.columns import INCREASING, Boolean, Category, ColumnKind, Number, Ordinal
from discreet.schema.schema import Schema
from discreet.typing import Floats, Integers

DEGREE = 3
_THIRDS = np.arange(DEGREE + 1) / DEGREE
_WEIGHTS = np.stack(
    [(1 - _THIRDS) ** 3, 3 * _THIRDS * (1 - _THIRDS) ** 2, 3 * _THIRDS**2 * (1 - _THIRDS), _THIRDS**3], axis=1
)
"""The control points' weights at 0, 1/3, 2/3 and 1 of the way between two knots."""
_PLACES = 201
"""Even places of a range at which the shape of an effect is looked at."""


@dataclass(frozen=True)
class Curve:
    """The bends of a curve on [-1, 1]: their control points (intervals, 4, bends), and the norm with the line's."""

    knots: Floats
    controls: Floats
    norm: float

    def bends(self, u: Floats) -> Floats:
        """Return the bends at places of [-1, 1], NaN where that is NaN."""
        out = np.empty((len(u), self.controls.shape[2]), order="F")
        bend_column(u, self.knots, self.controls, out)
        return out


@lru_cache(maxsize=256)
def curve_on(knots: tuple[float, ...]) -> Curve:
    """Return the curve on knots that rise from -1 to 1."""
    from scipy.interpolate import BSpline

    inner = np.array(knots)
    steps = np.arange(1, DEGREE + 1)
    before, after = (inner[1] - inner[0]) * steps[::-1], (inner[-1] - inner[-2]) * steps
    outer = np.concatenate([inner[0] - before, inner, inner[-1] + after])
    straight = _second_differences(np.array([outer[j + 1 : j + 1 + DEGREE].mean() for j in range(len(inner) + 2)]))
    nodes = inner[:-1, np.newaxis] + _THIRDS * np.diff(inner)[:, np.newaxis]
    nodes[:, -1] = inner[1:]
    splines = BSpline.design_matrix(nodes.ravel(), outer, DEGREE).toarray()
    _, sizes, directions = np.linalg.svd(straight, full_matrices=False)  # the largest first
    directions = directions[::-1] * np.sign(directions[::-1, -1:])
    bends = _orthonormal(directions.T, inner, outer, nodes.ravel(), splines) / np.sqrt(sizes[::-1])
    controls = np.linalg.inv(_WEIGHTS) @ bends.reshape(*nodes.shape, -1)
    controls = np.ascontiguousarray(controls / np.sqrt(np.square(controls).sum(axis=2).max()))
    norm = np.sqrt((nodes**2 + np.square(controls).sum(axis=2)).max())  # a line's control points are its own nodes
    for fixed in (inner, controls):
        fixed.flags.writeable = False
    return Curve(inner, controls, float(norm))


def _orthonormal(bends: Floats, inner: Floats, outer: Floats, nodes: Floats, at_nodes: Floats) -> Floats:
    """Return bends at nodes, orthogonal to 1, u and smoother bends over the even range, and of one size there.

    Products of cubic polynomials are integrated exactly, by four points between two knots. Signs stay.
    """
    from scipy.interpolate import BSpline

    points, weights = np.polynomial.legendre.leggauss(DEGREE + 1)
    half = np.diff(inner)[:, np.newaxis] / 2
    u = (inner[:-1, np.newaxis] + half * (1 + points)).ravel()
    splines = BSpline.design_matrix(u, outer, DEGREE).toarray()
    root = np.sqrt((half * weights).ravel())[:, np.newaxis]
    upper = np.linalg.qr(root * np.column_stack([np.ones_like(u), u, splines @ bends]), mode="r")
    functions = np.column_stack([np.ones_like(nodes), nodes, at_nodes @ bends])
    return np.asarray(functions @ (np.linalg.inv(upper) * np.sign(np.diag(upper))))[:, 2:]


def _second_differences(places: Floats) -> Floats:
    """Return the matrix of second divided differences at these places."""
    slopes = np.diff(np.eye(len(places)), axis=0) / np.diff(places)[:, np.newaxis]
    return np.diff(slopes, axis=0) / ((places[2:] - places[:-2]) / 2)[:, np.newaxis]


@njit(cache=True, nogil=True)
def bend_column(scaled, knots, controls, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (rows, bends) from places of [-1, 1], each row for itself; NaN where a place is NaN."""
    row = np.empty(out.shape[1])  # first here, since its places in ``out`` are far apart
    for i in range(scaled.size):
        u = scaled[i]
        k = 0
        for inner in range(1, controls.shape[0]):
            k += u >= knots[inner]
        s = min(max((u - knots[k]) / (knots[k + 1] - knots[k]), 0.0), 1.0)
        t = 1.0 - s
        first, second, third, fourth = t * t * t, 3.0 * s * t * t, 3.0 * s * s * t, s * s * s
        part = controls[k]
        for j in range(row.size):
            value = first * part[0, j] + second * part[1, j]
            value += third * part[2, j] + fourth * part[3, j]
            row[j] = min(max(value, -1.0), 1.0)
        for j in range(row.size):
            out[i, j] = row[j] if u == u else u


@njit(cache=True, nogil=True)
def scale_column(values, low, high, middle, half, absent, out, states):  # type: ignore[no-untyped-def]
    """(x - middle) / half with x clipped to [low, high], within [-1, 1]; ``absent`` where x is not finite.

    ``states``, where it has a place for each row, receives what each cell holds (``cells.py``).
    """
    has_states = states.size == values.size
    for i in range(values.size):
        x = values[i]
        if abs(x) < np.inf:  # False for NaN too
            scaled = (min(max(x, low), high) - middle) / half
            out[i] = min(max(scaled, -1.0), 1.0)
            if has_states:
                states[i] = FINE if low <= x <= high else STRANGE
        else:
            out[i] = absent
            if has_states:
                states[i] = ABSENT


@njit(cache=True, nogil=True)
def mark_rows(states, marked):  # type: ignore[no-untyped-def]
    """Set ``marked`` for the rows that have a cell which does not hold what was declared; return how many are set."""
    for j in range(states.shape[1]):
        column = states[:, j]
        for i in range(column.size):
            marked[i] |= column[i] != FINE
    return marked.sum()


@njit(cache=True, nogil=True)
def number_cells(states, is_null, wanted, out):  # type: ignore[no-untyped-def]
    """Fill one row of ``out`` per wanted row with its cells: 0 for a null row, two numbers per column, -1 for none."""
    k = 0
    for i in range(states.shape[0]):
        if wanted[i]:
            out[k, 0] = 0 if is_null[i] else -1
            for j in range(states.shape[1]):
                state = states[i, j]
                out[k, j + 1] = -1 if state == FINE else 2 * j + state
            k += 1


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
        cells_read = _located(column, self._kind, self._missing, states)
        counted = states if is_number else NOT_ASKED
        scale_column(cells_read, self._low, self._high, self._middle, self._half, self._absent(), out[:, 0], counted)
        if self._flag:
            out[:, 1] = ~np.isfinite(cells_read)

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
        cells_read = cells.numbers(column, self._missing)
        absent, places = ~np.isfinite(cells_read), self._places
        low, high = places[0], places[-1]
        stand_in = low / 2 + high / 2 if isinstance(self._kind.missing, str) else self._kind.missing
        x = np.clip(np.where(absent, stand_in, cells_read), low, high)
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
            states[:] = states_of_numbers(cells_read, low, high)


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
        cells_read = cells.positions(column, self._kind.categories, self._missing)
        place = self._places[cells_read]  # the last one is that of a missing cell, whose position is -1
        rows = np.flatnonzero(place != NO_CELL)
        out[:] = 0.0
        out[rows, place[rows]] = 1.0
        if self._kind.missing == "record":
            out[cells_read == MISSING] = math.nan
        if states.size:
            states[:] = states_of_labels(cells_read, len(self._kind.categories))


def products(groups: Sequence[str], features: Mapping[str, Sequence[Feature]]) -> list[tuple[Feature, ...]]:
    """Every combination of one feature of each column."""
    combinations: list[tuple[Feature, ...]] = [()]
    for column in groups:
        combinations = [(*before, feature) for before in combinations for feature in features[column]]
    return combinations


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
        _mark_absent(states, column, labels, missing)
    located = _place(places, len(labels))
    if isinstance(kind, Ordinal):
        return located
    return np.where(np.isnan(located), located, (located >= len(kind.false)).astype(np.float64))


def _mark_absent(states: States, column: Column, labels: Sequence[Label], missing: frozenset[str]) -> None:
    """Mark cells of lowered texts that are missing as they stand: "NA" means nothing, and "na" is no word."""
    absent = cells.positions(column, labels, missing) == MISSING
    states[absent & (states == STRANGE)] = ABSENT


def _place(positions: Integers, count: int) -> Floats:
    return np.where((positions == MISSING) | (positions == count), math.nan, positions)


def _shown(number: float) -> str:
    """Short, and no two numbers alike."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


def _flag(name: str) -> Feature:
    return Feature(f"{name} (missing)", name, CELL, "cell")


def _cone(kind: Number, encoding: Encoding, place: slice) -> Cone:
    """Return the coefficients of curves that never fall, or never rise: I-splines are sums of the last B-splines."""
    from scipy.interpolate import BSpline

    low, high = kind.limits
    u = np.linspace(-1.0, 1.0, _PLACES)
    features = np.zeros((_PLACES, len(encoding.features)), order="F")
    encoding.encode(low / 2 * (1 - u) + high / 2 * (1 + u), features)
    knots, degree = np.array(kind.scaled_knots), DEGREE if kind.is_curve else 1
    outer = np.concatenate([np.full(degree, -1.0), knots, np.full(degree, 1.0)])
    rising = np.cumsum(BSpline.design_matrix(u, outer, degree).toarray()[:, ::-1], axis=1)[:, :-1]
    count = features.shape[1] - (kind.missing == "flag")
    away = features[:, :count] - features[:, :count].mean(axis=0)
    sign = 1.0 if kind.monotone == INCREASING else -1.0
    generators = sign * np.linalg.lstsq(away, rising - rising.mean(axis=0), rcond=None)[0]
    return Cone(np.arange(place.start, place.start + count), generators, features[:, :count])


def row_norm(norms: Iterable[float]) -> float:
    """The bound of the module's docstring, with room for the rounding of squares and sums."""
    return math.sqrt(math.fsum(norm * norm for norm in norms)) * (1.0 + 2.0**-40)


class Layout:
    """Where each column's features stand, and how they are filled in: made from a schema, without data."""

    def __init__(self, schema: Schema) -> None:
        if not schema.columns:
            raise SchemaError("the schema declares no column to predict from")
        self.schema, self.missing = schema, frozenset(schema.missing_texts)
        self._parts: dict[str, tuple[Encoding, slice]] = {}
        self.features: list[Feature] = []
        for name, kind in schema.columns.items():
            encoding = encoding_of(name, kind, self.missing)
            self._parts[name] = encoding, slice(len(self.features), len(self.features) + len(encoding.features))
            self.features += encoding.features
        self._products: list[Integers] = []
        self._append_products()
        names = [feature.name for feature in self.features]
        if len(set(names)) < len(names):
            raise SchemaError("two features would have the same name: rename a column or a category")

    def _append_products(self) -> None:
        by_column = {name: encoding.factors for name, (encoding, _) in self._parts.items()}
        counts = [math.prod(len(by_column[name]) for name in group) for group in self.schema.interactions]
        check_count(len(self.features) + sum(counts), MAX_FEATURES, "features")  # before any product is made
        place = {feature.name: i for i, feature in enumerate(self.features)}
        for group in self.schema.interactions:
            for factors in products(group, by_column):
                self._products.append(np.array([place[factor.name] for factor in factors]))
                self.features.append(product_feature(factors))

    @property
    def bounds(self) -> Bounds:
        """What is known of the encoded rows: ranges, row norm, and the target's classes or range."""
        target = self.schema.target
        norms = [*(encoding.norm for encoding, _ in self._parts.values()), *(1.0 for _ in self.schema.interactions)]
        return Bounds(
            features=[feature.range for feature in self.features],
            row_norm=row_norm(norms),
            target=None if target is None else target.range,
            classes=None if target is None else target.classes,
            n=self.schema.rows,
            weights=None if self.schema.weight is None else self.schema.weight.range,
            offsets=None if self.schema.offset is None else self.schema.offset.limits,
        )

    @property
    def cones(self) -> tuple[Cone, ...]:
        """The coefficients of effects that are declared monotone."""
        kinds = ((kind, self._parts[name]) for name, kind in self.schema.columns.items() if isinstance(kind, Number))
        return tuple(_cone(kind, *part) for kind, part in kinds if kind.monotone is not None)

    @property
    def curves(self) -> dict[str, Integers]:
        """Where the line of each curve stands, and its bends after it."""
        curved = {name: part for name, part in self._parts.items() if isinstance(part[0], CurveEncoding)}
        counts = {name: len(encoding.features) - len(encoding.factors) for name, (encoding, _) in curved.items()}
        return {name: place.start + np.arange(counts[name] + 1) for name, (_, place) in curved.items()}

    @property
    def together(self) -> tuple[slice, ...]:
        """Where several features make one effect of a number: a curve's line and bends, or hats between knots."""
        places = (self._parts[name][1] for name, kind in self.schema.columns.items() if isinstance(kind, Number))
        return tuple(place for place in places if place.stop - place.start > 1)

    @property
    def places(self) -> dict[str, slice]:
        """Where each column's own features stand."""
        return {name: place for name, (_, place) in self._parts.items()}

    @property
    def factors(self) -> list[tuple[int, ...]]:
        """The columns' features that each feature is the product of, by place: itself alone, or several."""
        alone = len(self.features) - len(self._products)
        return [*((j,) for j in range(alone)), *(tuple(places.tolist()) for places in self._products)]

    @property
    def product_factors(self) -> dict[str, list[int]]:
        """The places of each column's features, among its own, of which products are made."""
        parts = {name: encoding for name, (encoding, _) in self._parts.items()}
        return {name: [part.features.index(factor) for factor in part.factors] for name, part in parts.items()}

    @property
    def indicators(self) -> tuple[tuple[int, ...], ...]:
        """The features of which at most one is on in a row, column by column: cells, and truth by itself."""
        groups: dict[str, list[int]] = {}
        for j, feature in enumerate(self.features):
            if feature.range == CELL or isinstance(self.schema.columns.get(feature.column), Boolean):
                groups.setdefault(feature.name if feature.range != CELL else feature.column, []).append(j)
        return tuple(tuple(group) for group in groups.values())

    def encode(self, columns: Mapping[str, Column], rows: int, states: States | None = None) -> Floats:
        """Return the features of some rows; a NaN among them makes a row null.

        ``states`` (rows, columns of the schema) is filled with what each cell holds, where it is given.
        """
        out = np.empty((rows, len(self.features)), order="F")  # columns are written, and read, one by one
        for j, (name, (encoding, place)) in enumerate(self._parts.items()):
            encoding.encode(columns[name], out[:, place], NOT_ASKED if states is None else states[:, j])
        first = len(self.features) - len(self._products)
        for j, factors in enumerate(self._products):
            np.multiply.reduce(out[:, factors], axis=1, out=out[:, first + j])
        return out

    def weights(self, column: Column, states: States = NOT_ASKED) -> Floats:
        """Return weights within their declared range, NaN where there is none."""
        assert self.schema.weight is not None
        return self._numbers_within(column, self.schema.weight.range, states)

    def offsets(self, column: Column, states: States = NOT_ASKED) -> Floats:
        """Return offsets, or the logarithms of exposures, within their declared range; NaN where there is none."""
        offset = self.schema.offset
        assert offset is not None
        values = self._numbers_within(column, offset.range, states)
        if not offset.log:
            return values
        return np.array([math.log(number) for number in values.tolist()])  # the vector form need not be row-pure

    def _numbers_within(self, column: Column, ends: Range, states: States) -> Floats:
        values = cells.numbers(column, self.missing)
        if states.size:
            states[:] = states_of_numbers(values, *ends)
        return np.clip(values, *ends)

    def targets(self, column: Column, states: States = NOT_ASKED) -> Floats:
        """Return a class's position, or a number, NaN for anything else; ``states`` receives what each cell holds."""
        target = self.schema.target
        assert target is not None
        if target.range is not None:
            values = cells.numbers(column, self.missing)
            if states.size:
                states[:] = states_of_numbers(values, *target.range)
            return values
        classes, column = target.classes or (), cells.coded(column)
        count, truth = len(classes), truth_labels(classes)
        positions = cells.positions(cells.lowered(column) if truth else column, truth or classes, self.missing)
        if states.size:
            states[:] = states_of_labels(positions, count)
            if truth:
                _mark_absent(states, column, classes, self.missing)
        return np.where((positions == MISSING) | (positions == count), np.nan, positions)
