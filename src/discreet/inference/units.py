"""From encoded features to effects in the columns' own units, and which columns each effect belongs to.

    number, level, truth   e = scale (x - origin)         per declared unit, per level, true against false
    cell                   e = x;  of a column that has a cell for every value, the first one is the base:
                           e = 1 - the sum of the others, and the others are against it
    product                the product of these forms, multiplied out

Multiplied out, a product of columns is in their own units and each column's own effect is at 0 (the base) of the
others, as R and statsmodels print them: a linear map of the coefficients. The intercept is that of a row with every
column at its base and every number at 0. Products that the forms imply and the schema has not (pairs of a product of
three) have a line too.

Without a fitted intercept, that level is spread over the cells of the first column that has a cell for every value, as
R does: each is then a level of its own. Without such a column it is what encoding implies (encoded numbers are 0 in the
middle of their range), and has a line where it is not 0 by construction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.bounds import Range
from discreet.errors import Unsupported
from discreet.schema.columns import Category, Number, Ordinal
from discreet.typing import Floats

if TYPE_CHECKING:
    from collections.abc import Collection

    from discreet.curator import Layout
    from discreet.schema.schema import Schema

Factors = tuple[tuple[str, str], ...]
"""What a coefficient multiplies: columns, each with its feature; empty for the intercept."""
PRODUCT = " x "


@dataclass(frozen=True)
class Structure:
    """The columns behind the coefficients of a summary.

    ``terms`` has the factors of each coefficient. ``shapes`` maps a column with knots to the form of its effect.
    ``bases`` are names of cells whose effect is 0, since the others are against them.
    """

    terms: tuple[Factors, ...]
    shapes: "Mapping[str, Shape]" = field(default_factory=dict)
    bases: frozenset[str] = frozenset()

    @classmethod
    def of_arrays(cls, names: Sequence[str], intercept: str | None) -> "Structure":
        """Return the structure of features that are columns by themselves."""
        return cls(tuple(() if name == intercept else ((name, name),) for name in names))

    def repeated(self, times: int) -> "Structure":
        """Return the same for the coefficients of several classes, one block after the other."""
        return Structure(self.terms * times, self.shapes, self.bases)

    @property
    def slopes(self) -> list[int]:
        """Places of all coefficients but intercepts."""
        return [j for j, factors in enumerate(self.terms) if factors]

    @property
    def ratios(self) -> list[int]:
        """Places of coefficients whose exponential means something: no intercept, no part of a smooth curve."""
        smooth = {name for name, shape in self.shapes.items() if shape.is_smooth}
        return [j for j in self.slopes if len(self.terms[j]) > 1 or self.terms[j][0][0] not in smooth]

    def of_column(self, column: str) -> list[int]:
        """Places of a column's coefficients, products with other columns included."""
        return [j for j, factors in enumerate(self.terms) if any(name == column for name, _ in factors)]

    def of_term(self, text: str) -> list[int]:
        """Places of the coefficients of a product of columns, such as ``age x ward``."""
        return [j for j, factors in enumerate(self.terms) if factors and PRODUCT.join(c for c, _ in factors) == text]


@dataclass(frozen=True)
class BentShape:
    """A piecewise linear effect: the coefficient of each place is the effect there, against the base's."""

    features: tuple[str, ...]
    places: tuple[float, ...]
    base: int = 0

    @property
    def range(self) -> Range:
        """The ends of the column's declared range."""
        return self.places[0], self.places[-1]

    @property
    def is_smooth(self) -> bool:
        """Whether coefficients mean nothing one by one."""
        return False

    @property
    def references(self) -> tuple[float, ...]:
        """Values that effects may be against: the place whose coefficient is the base."""
        return (self.places[self.base],)

    def basis(self, x: Floats) -> Floats:
        """Return what multiplies each feature's coefficient at each x: hat functions."""
        return np.array([np.interp(x, self.places, hat) for hat in np.eye(len(self.places))]).T

    def bends(self) -> Floats:
        """Return the change of slope at each knot as combinations of the features' coefficients."""
        gaps = np.diff(self.places)[:, None]
        return np.asarray(np.diff(np.diff(np.eye(len(self.places)), axis=0) / gaps, axis=0))


@dataclass(frozen=True)
class SmoothShape:
    """A cubic spline: a line per ``unit`` of the column, and bends."""

    features: tuple[str, ...]
    range: Range
    knots: tuple[float, ...]
    unit: float = 1.0

    @property
    def is_smooth(self) -> bool:
        """Whether coefficients mean nothing one by one."""
        return True

    @property
    def references(self) -> tuple[float, ...]:
        """Values that effects may be against: the knots."""
        low, high = self.range
        return tuple(low / 2 * (1 - u) + high / 2 * (1 + u) for u in self.knots)

    def basis(self, x: Floats) -> Floats:
        """Return what multiplies each feature's coefficient at each x: x in its unit, and the bends there."""
        from discreet.curator import curve_on

        low, high = self.range
        scaled = np.clip((x - low / 2 - high / 2) / (high / 2 - low / 2), -1.0, 1.0)
        return np.column_stack([x / self.unit, curve_on(self.knots).bends(scaled)])

    def bends(self) -> Floats:
        """Return all coefficients but the line's."""
        return np.eye(len(self.features))[1:]


Shape = BentShape | SmoothShape


class Curve(NamedTuple):
    """The effect of a column with knots, by its coefficients' places; None: 0, since it is the base or not there.

    ``group`` is the class, and ``partners`` the features that it is multiplied with.
    """

    group: str
    partners: Factors
    shape: Shape
    coefficients: tuple[int | None, ...]

    def rows(self, x: Floats, count: int) -> Floats:
        """Return the effect at each x as a combination of ``count`` coefficients."""
        return self._spread(self.shape.basis(x), count)

    def bends(self, count: int) -> Floats:
        """Return what is 0 where the effect is a straight line, as combinations of ``count`` coefficients."""
        rows = self._spread(self.shape.bends(), count)
        return rows[np.any(rows != 0, axis=1)]

    def _spread(self, basis: Floats, count: int) -> Floats:
        rows = np.zeros((len(basis), count))
        for k, j in enumerate(self.coefficients):
            if j is not None:
                rows[:, j] = basis[:, k]
        return rows


def curves_of(structure: Structure, groups: Sequence[str], column: str) -> list[Curve]:
    """Return a column's curves: of each class, by itself first, then times other features."""
    shape = structure.shapes.get(column)
    if shape is None:
        if not structure.of_column(column):
            raise Unsupported(f"there is no column called {column}")
        raise Unsupported(f"{column} has no knots: only columns with knots in the schema have a curve")
    coefficients: dict[tuple[str, Factors], dict[str, int]] = {}
    for j in structure.of_column(column):
        feature = dict(structure.terms[j])[column]
        partners = tuple(factor for factor in structure.terms[j] if factor[0] != column)
        if feature in shape.features:  # not a flag of missing values
            coefficients.setdefault((groups[j], partners), {})[feature] = j
    curves = [Curve(*key, shape, tuple(map(at.get, shape.features))) for key, at in coefficients.items()]
    return sorted(curves, key=lambda curve: len(curve.partners))


INTERCEPT = "intercept"
Term = frozenset[int]
Form = dict[Term, float]
"""What an encoded feature is in terms of the columns' own: a sum of products."""
LEVEL: Term = frozenset()


@dataclass(frozen=True)
class Units:
    """Effects in the columns' own units: their names, the map from encoded coefficients, and their columns.

    ``places`` are the encoded features that each effect is of; none for the intercept.
    """

    names: tuple[str, ...]
    matrix: Floats
    structure: Structure
    places: tuple[tuple[int, ...], ...]

    def without(self, names: "Collection[str]") -> "Units":
        """Return the same without some effects."""
        places = [j for j, name in enumerate(self.names) if name not in names]
        terms = tuple(self.structure.terms[j] for j in places)
        structure = replace(self.structure, terms=terms)
        return Units(
            tuple(self.names[j] for j in places), self.matrix[places], structure, tuple(self.places[j] for j in places)
        )


def own_units(schema: "Schema", *, fit_intercept: bool) -> Units:
    """Return the effects of a schema's columns; the intercept's is the last."""
    from discreet.curator import Layout

    layout = Layout(schema)
    bases = _bases(schema, [feature.column for feature in layout.features])
    rows = _rows(layout, bases, fit_intercept=fit_intercept)
    level = rows.pop(LEVEL)
    if bases and not fit_intercept:
        column, base = next(iter(bases.items()))
        cells = [j for j, feature in enumerate(layout.features) if feature.column == column]
        rows |= {frozenset([j]): rows[frozenset([j])] + level if j != base else level for j in cells}
        bases, level = {name: j for name, j in bases.items() if name != column}, np.zeros_like(level)
    named = _names(layout, rows)
    columns = {term: _factors(layout, term) for term in named}
    names, matrix = list(named.values()), [rows[term] for term in named]
    if fit_intercept or level.any():
        names, matrix = [*names, intercept_name(names)], [*matrix, level]
    terms = (*columns.values(), *[()] * (len(names) - len(columns)))
    structure = Structure(terms, _shapes(schema, layout), _base_names(schema, layout, bases))
    places = (*(tuple(sorted(term)) for term in named), *[()] * (len(names) - len(columns)))
    return Units(tuple(names), np.array(matrix), structure, places)


def numbers_of(schema: "Schema") -> list[bool]:
    """Return which encoded features are numbers or levels on a line, whose values no share of rows has."""
    from discreet.curator import Layout

    kinds = schema.columns
    return [
        feature.name == feature.column and isinstance(kinds.get(feature.column), (Number, Ordinal))
        for feature in Layout(schema).features
    ]


def intercept_name(names: "Collection[str]") -> str:
    """Return the intercept's name: in parentheses where a feature is called so."""
    name = INTERCEPT
    while name in names:
        name = f"({name})"
    return name


def _rows(layout: "Layout", bases: dict[str, int], *, fit_intercept: bool) -> dict[Term, Floats]:
    """Return each effect as a combination of encoded coefficients; the level is always there."""
    size = len(layout.features) + fit_intercept
    singles = {place for places in layout.factors if len(places) == 1 for place in places}
    forms = {j: _form(j, layout, bases) for j in singles}
    rows: dict[Term, Floats] = {LEVEL: np.zeros(size)}
    for j, places in enumerate(layout.factors):
        for term, weight in _product([forms[place] for place in places]).items():
            rows.setdefault(term, np.zeros(size))[j] += weight
    if fit_intercept:
        rows[LEVEL][-1] = 1.0
    return rows


def _names(layout: "Layout", rows: dict[Term, Floats]) -> dict[Term, str]:
    """Return a name for each effect, in the layout's order; products that forms imply are the last."""
    declared = {frozenset(places): places for places in layout.factors}
    implied = {term: tuple(sorted(term)) for term in sorted(rows.keys() - declared.keys(), key=sorted)}
    names: dict[Term, str] = {}
    for term, places in (declared | implied).items():
        parts = [_name(layout, j) for j in places]
        if term in rows:
            name = PRODUCT.join(parts)
            names[term] = name if name not in names.values() else PRODUCT.join(f"({part})" for part in parts)
    return names


def _name(layout: "Layout", j: int) -> str:
    """Return the name of a feature's effect, with the declared unit of a number where it is not 1."""
    feature = layout.features[j]
    kind = layout.schema.columns[feature.column]
    is_line = feature.name == feature.column and isinstance(kind, Number) and kind.unit != 1
    return f"{feature.name} ({feature.unit.removeprefix('trend ')})" if is_line else feature.name


def _factors(layout: "Layout", term: Term) -> Factors:
    return tuple((layout.features[j].column, layout.features[j].name) for j in sorted(term))


def _form(j: int, layout: "Layout", bases: dict[str, int]) -> Form:
    features = layout.features
    feature = features[j]
    if bases.get(feature.column) != j:
        return {LEVEL: -feature.origin * feature.scale, frozenset([j]): feature.scale}
    others = [k for k, other in enumerate(features) if other.column == feature.column and k != j]
    return {LEVEL: 1.0, **{frozenset([k]): -1.0 for k in others}}


def _product(forms: list[Form]) -> Form:
    product: Form = {LEVEL: 1.0}
    for form in forms:
        before, product = product, {}
        for left, a in before.items():
            for right, b in form.items():
                product[left | right] = product.get(left | right, 0.0) + a * b
    return {term: weight for term, weight in product.items() if weight}


def middle(count: int) -> int:
    """Return which of a range's places is the base of the others: the ends of a declared range have fewest rows."""
    return count // 2


def _bases(schema: "Schema", columns: list[str]) -> dict[str, int]:
    """Return the base of every column all of whose cells have a coefficient: the first category, the middle knot."""
    bases = {}
    for name, kind in schema.columns.items():
        if isinstance(kind, Category) and kind.base is None:
            bases[name] = columns.index(name)
        elif isinstance(kind, Number) and kind.is_bent and not isinstance(kind.knots, int):
            bases[name] = columns.index(name) + middle(len(kind.knots) + 2)
    return bases


def _shapes(schema: "Schema", layout: "Layout") -> dict[str, Shape]:
    """Return the form of the effect of each column with knots."""
    shapes: dict[str, Shape] = {}
    for name, kind in schema.columns.items():
        if not isinstance(kind, Number):
            continue
        features = [feature.name for feature in layout.features if feature.column == name]
        if kind.is_curve:
            flags = kind.missing == "flag"
            smooth = tuple(features[: len(features) - flags])
            shapes[name] = SmoothShape(smooth, kind.limits, kind.scaled_knots, kind.unit)
        elif kind.is_bent and not isinstance(kind.knots, int):
            places = (kind.limits[0], *kind.knots, kind.limits[1])
            shapes[name] = BentShape(tuple(features[: len(places)]), places, middle(len(places)))
    return shapes


def _base_names(schema: "Schema", layout: "Layout", bases: dict[str, int]) -> frozenset[str]:
    """Return the names of the cells that others are against: declared bases, and those that stand for one."""
    declared = [(name, kind.base) for name, kind in schema.columns.items() if isinstance(kind, Category)]
    names = [f"{name} = {base}" for name, base in declared if base is not None]
    return frozenset([*names, *(layout.features[j].name for j in bases.values())])
