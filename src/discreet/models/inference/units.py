"""From encoded features to effects in the columns' own units: a linear map of the coefficients.

    number, level, truth   e = scale (x - origin)         one per 1, per level, true against false
    cell                   e = x;  of a column that has a cell for every value, the first one is the base:
                           e = 1 - the sum of the others, and the others are against it
    product                the product of these forms, multiplied out

Multiplied out, a product of columns is in their own units and each column's own effect is at 0 (the base) of the
others, as R and statsmodels print them. The intercept is that of a row with every column at its base and every number
at 0. Products that the forms imply and the schema has not (pairs of a product of three) have a line too.
"""

from typing import TYPE_CHECKING

import numpy as np

from discreet.schema.columns import Category, Number
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Layout
    from discreet.schema.schema import Schema

INTERCEPT = "intercept"
Term = frozenset[int]
Form = dict[Term, float]
"""What an encoded feature is in terms of the columns' own: a sum of products."""


def own_units(schema: "Schema", *, fit_intercept: bool) -> tuple[list[str], Floats]:
    """Return the effects' names, the intercept's last, and the map from encoded coefficients to them."""
    from discreet.curator import Layout

    layout = Layout(schema)
    features, factors = layout.features, layout.factors
    bases = _bases(schema, [feature.column for feature in features]) if fit_intercept else {}
    own = {place for places in factors if len(places) == 1 for place in places}
    forms = {j: _form(j, layout, bases) for j in own}
    rows: dict[Term, Floats] = {}
    for j, places in enumerate(factors):
        for term, weight in _product([forms[place] for place in places]).items():
            rows.setdefault(term, np.zeros(len(features) + fit_intercept))[j] += weight
    named = {frozenset(places): features[j].name for j, places in enumerate(factors)}
    level = rows.pop(frozenset(), np.zeros(len(features) + fit_intercept))
    terms = [term for term in named if term in rows]
    terms += sorted(rows.keys() - named.keys(), key=sorted)
    names = [named.get(term) or " x ".join(features[j].name for j in sorted(term)) for term in terms]
    kept = [rows[term] for term in terms]
    if fit_intercept:
        level[-1] = 1.0
        return [*names, INTERCEPT], np.array([*kept, level])
    return names, np.array(kept)


def _form(j: int, layout: "Layout", bases: dict[str, int]) -> Form:
    features = layout.features
    feature = features[j]
    if bases.get(feature.column) != j:
        return {frozenset(): -feature.origin * feature.scale, frozenset([j]): feature.scale}
    others = [k for k, other in enumerate(features) if other.column == feature.column and k != j]
    return {frozenset(): 1.0, **{frozenset([k]): -1.0 for k in others}}


def _product(forms: list[Form]) -> Form:
    made: Form = {frozenset(): 1.0}
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
        if kind.base is None if isinstance(kind, Category) else isinstance(kind, Number) and bool(kind.knots):
            found[name] = columns.index(name)
    return found
