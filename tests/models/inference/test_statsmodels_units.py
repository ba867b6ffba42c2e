"""The map to own units on drawn schemas: estimates and covariances of encoded rows are those of statsmodels' formulas.

The encoded rows are collinear (cells that sum to 1, knots, their products), so that least squares has many solutions.
What is shown must not depend on which one: it is what a formula with treatment contrasts has.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from discreet import Schema
from discreet.curator import Layout
from discreet.models.inference.units import own_units
from discreet.schema import Boolean, Category, Number, Ordinal, Target

N = 400
KINDS = ("number", "unit", "truth", "category", "base", "levels", "knots")


def column(kind, rng):
    """Return a declared column and its values."""
    if kind in ("number", "unit"):
        low, width = rng.uniform(-50, 50), 10 ** rng.uniform(-1, 3)
        declared = Number((low - width, low + 2 * width), unit=float(rng.choice([0.1, 10])) if kind == "unit" else 1.0)
        return declared, rng.uniform(low, low + width, N)
    if kind == "truth":
        return Boolean(), rng.random(N) < 0.4
    if kind == "levels":
        return Ordinal(("low", "mid", "high")), rng.choice(["low", "mid", "high"], N)
    if kind == "knots":
        return Number((0, 10), knots=(3, 6)), rng.uniform(0, 10, N)
    labels = ("p", "q", "r")
    base = None if kind == "category" else str(rng.choice(labels))
    return Category(labels, base=base, other=False), rng.choice(labels, N)


def drawn(seed):
    """Return a schema of two to four columns with products of some, and a table for it."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(KINDS, size=rng.integers(2, 5), replace=True)
    made = {f"{kind}{j}": column(kind, rng) for j, kind in enumerate(kinds)}
    pairs = [pair for pair in itertools.combinations(made, 2) if rng.random() < 0.5]
    schema = Schema({name: kind for name, (kind, _) in made.items()}, Target("y", range=(-9, 9)), interactions=pairs)
    return schema, {name: values for name, (_, values) in made.items()}, rng


def formula_of(schema, values):
    """Return a frame for a formula, and for each column its term and the formula's names of its cells."""
    frame, terms, cells = {}, {}, {}
    for name, kind in schema.columns.items():
        frame[name] = values[name]
        terms[name], cells[name] = name, {name: name}
        if isinstance(kind, Boolean):
            frame[name] = values[name].astype(float)
        elif isinstance(kind, Ordinal):
            frame[name] = np.array([kind.levels.index(level) for level in values[name]], dtype=float)
        elif isinstance(kind, Category):
            base = kind.base or kind.categories[0]
            terms[name] = f"C({name}, Treatment('{base}'))"
            others = [label for label in kind.categories if label != base]
            cells[name] = {f"{name} = {label}": f"{terms[name]}[T.{label}]" for label in others}
        elif kind.knots:
            places = (kind.limits[0], *kind.knots, kind.limits[1])
            cells[name] = {f"{name} at {place:g}": f"{name}_{place:g}" for place in places[1:]}
            hats = np.eye(len(places))
            frame |= {f"{name}_{at:g}": np.interp(values[name], places, hats[k]) for k, at in enumerate(places)}
            terms[name] = f"({' + '.join(cells[name].values())})"
        elif kind.unit != 1:
            frame[name] = values[name] / kind.unit
            cells[name] = {f"{name} (per {kind.unit:g})": name}
    return pd.DataFrame(frame), terms, cells


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(40))
def test_drawn_schemas_have_the_effects_of_a_formula(seed):
    schema, values, rng = drawn(seed)
    frame, terms, cells = formula_of(schema, values)
    layout = Layout(schema)
    encoded = np.column_stack([layout.encode(values, N), np.ones(N)])
    frame["y"] = encoded @ rng.normal(size=encoded.shape[1]) + rng.normal(size=N)
    parts = [*terms.values(), *(":".join(terms[name] for name in pair) for pair in schema.interactions)]
    plain = smf.ols("y ~ " + " + ".join(parts), frame).fit(cov_type="HC0")

    found = own_units(schema, fit_intercept=True)
    inverse = np.linalg.pinv(encoded.T @ encoded)
    w = inverse @ encoded.T @ frame["y"].to_numpy()
    spread = inverse @ (encoded.T * (frame["y"].to_numpy() - encoded @ w) ** 2) @ encoded @ inverse
    names = {ours: theirs for column in cells.values() for ours, theirs in column.items()}
    for pair in schema.interactions:
        for ours, theirs in zip(itertools.product(*(cells[name] for name in pair)),
                                itertools.product(*(cells[name].values() for name in pair)), strict=True):  # fmt: skip
            names[" x ".join(ours)] = ":".join(theirs)
    names["intercept"] = "Intercept"
    assert set(found.names) == set(names)
    order = [names[name] for name in found.names]
    expected, covariance = plain.params[order], plain.cov_params().loc[order, order]
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(found.matrix @ w / scale, expected / scale, rtol=1e-5, atol=1e-5)
    mapped = found.matrix @ spread @ found.matrix.T
    np.testing.assert_allclose(mapped / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=1e-5)
