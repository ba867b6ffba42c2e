"""From encoded features to effects in the columns' own units: a linear map of the coefficients.

    number, level, truth   e = scale (x - origin)         per declared unit, per level, true against false
    cell                   e = x;  of a column that has a cell for every value, the first one is the base:
                           e = 1 - the sum of the others, and the others are against it
    product                the product of these forms, multiplied out

Multiplied out, a product of columns is in their own units and each column's own effect is at 0 (the base) of the
others, as R and statsmodels print them. The intercept is that of a row with every column at its base and every number
at 0. Products that the forms imply and the schema has not (pairs of a product of three) have a line too.

Without a fitted intercept, that level is spread over the cells of the first column that has a cell for every value, as
R does: each is then a level of its own. Without such a column it is what encoding implies (encoded numbers are 0 in the
middle of their range), and has a line where it is not 0 by construction.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.models.inference.structure import PRODUCT, BentShape, Factors, Shape, SmoothShape, Structure
from discreet.schema.columns import Category, Number
from discreet.typing import Floats

if TYPE_CHECKING:
    from collections.abc import Collection

    from discreet.curator import Layout
    from discreet.schema.schema import Schema

INTERCEPT = "intercept"
Term = frozenset[int]
Form = dict[Term, float]
"""What an encoded feature is in terms of the columns' own: a sum of products."""
LEVEL: Term = frozenset()


@dataclass(frozen=True)
class Units:
    """Effects in the columns' own units: their names, the map from encoded coefficients, and their columns."""

    names: tuple[str, ...]
    matrix: Floats
    structure: Structure


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
    return Units(tuple(names), np.array(matrix), structure)


def intercept_name(names: "Collection[str]") -> str:
    """Return the intercept's name: in parentheses where a feature is called so."""
    name = INTERCEPT
    while name in names:
        name = f"({name})"
    return name


def _rows(layout: "Layout", bases: dict[str, int], *, fit_intercept: bool) -> dict[Term, Floats]:
    """Return each effect as a combination of encoded coefficients; the level is always there."""
    size = len(layout.features) + fit_intercept
    own = {place for places in layout.factors if len(places) == 1 for place in places}
    forms = {j: _form(j, layout, bases) for j in own}
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
    made: Form = {LEVEL: 1.0}
    for form in forms:
        before, made = made, {}
        for left, a in before.items():
            for right, b in form.items():
                made[left | right] = made.get(left | right, 0.0) + a * b
    return {term: weight for term, weight in made.items() if weight}


def _bases(schema: "Schema", columns: list[str]) -> dict[str, int]:
    """Return the first feature of every column all of whose cells have a coefficient."""
    found = {}
    for name, kind in schema.columns.items():
        if kind.base is None if isinstance(kind, Category) else isinstance(kind, Number) and kind.is_bent:
            found[name] = columns.index(name)
    return found


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
            shapes[name] = BentShape(tuple(features[: len(places)]), places)
    return shapes


def _base_names(schema: "Schema", layout: "Layout", bases: dict[str, int]) -> frozenset[str]:
    """Return the names of the cells that others are against: declared bases, and those that stand for one."""
    declared = [(name, kind.base) for name, kind in schema.columns.items() if isinstance(kind, Category)]
    names = [f"{name} = {base}" for name, base in declared if base is not None]
    return frozenset([*names, *(layout.features[j].name for j in bases.values())])
