"""Effects in the columns' own units: those of a formula of statsmodels, bases, products, declared units."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from discreet import Schema
from discreet.curator import Layout
from discreet.inference.units import own_units
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
            cells[name] = {
                f"{name} at {place:g}": f"{name}_{place:g}" for place in places if place != places[len(places) // 2]
            }
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


COLUMNS = {
    "age": Number((18, 100), knots=(40, 60)),
    "sex": Boolean(),
    "stay": Number((0, 30)),
    "ward": Category(("a", "b", "c")),
    "site": Category(("n", "s"), base="n", other=False),
}
GROUPS = (("age", "sex"), ("sex", "stay", "ward"))
MIDDLE = "age at 60"


@pytest.mark.whole
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("left_out", [(), ("age",), ("age", "ward"), ("ward",)])
def test_the_map_keeps_predictions(left_out, fit_intercept):
    """Encoded coefficients and their own units are the same function of a row: with knots, three columns, no level."""
    from discreet.curator import Layout

    kinds = {name: kind for name, kind in COLUMNS.items() if name not in left_out}
    groups = tuple(group for group in GROUPS if not set(group) & set(left_out))
    schema = Schema(kinds, Target("y", range=(0, 1)), interactions=groups)
    found = own_units(schema, fit_intercept=fit_intercept)
    assert len(set(found.names)) == len(found.names) == len(found.structure.terms)
    rng = np.random.default_rng(2)
    rows = {"age": rng.uniform(18, 100, 50), "sex": rng.random(50) < 0.5, "stay": rng.uniform(0, 30, 50)}
    rows |= {"ward": rng.choice(["a", "b", "c", "z"], 50), "site": rng.choice(["n", "s"], 50)}
    layout = Layout(schema)
    encoded = layout.encode({name: np.asarray(column) for name, column in rows.items()}, 50)
    w = rng.normal(size=encoded.shape[1] + fit_intercept)
    places = np.array([18.0, 40.0, 60.0, 100.0])
    own = {f"age at {at:g}": np.interp(rows["age"], places, hat) for at, hat in zip(places, np.eye(4), strict=True)}
    own |= {"sex": rows["sex"], "stay": rows["stay"], "ward (other)": rows["ward"] == "z", "intercept": np.ones(50)}
    own |= {f"ward = {one}": rows["ward"] == one for one in "abc"} | {"site = s": rows["site"] == "s"}
    X = np.column_stack([np.prod([own[part] for part in name.split(" x ")], axis=0) for name in found.names])
    margin = encoded @ w[:-1] + w[-1] if fit_intercept else encoded @ w
    np.testing.assert_allclose(X @ (found.matrix @ w), margin)


def test_names_and_bases():
    schema = Schema(COLUMNS, Target("y", range=(0, 1)), interactions=GROUPS)
    found = own_units(schema, fit_intercept=True)
    assert {"age at 18 x sex", "sex x stay x ward = b", "sex x stay"} <= set(found.names)
    assert not any(MIDDLE in name or "ward = a" in name for name in found.names)
    assert found.structure.bases == {MIDDLE, "ward = a", "site = n"}
    assert found.structure.terms[-1] == ()
    first, second = (dict(found.structure.terms[found.names.index(name)]) for name in ("sex x stay", "age at 40"))
    assert (first, second) == ({"sex": "sex", "stay": "stay"}, {"age": "age at 40"})
    bare = own_units(schema, fit_intercept=False)
    assert MIDDLE in bare.names
    assert not {f"{MIDDLE} x sex", "ward = a", "intercept"} & set(bare.names)
    assert bare.structure.bases == {"ward = a", "site = n"}


def test_effects_are_per_declared_unit():
    """The same function of a row: a coefficient per 10 is ten times that per 1, products too, and levels stay."""
    rows, w = {"age": np.array([30.0, 70.0]), "sex": np.array([True, False])}, np.array([0.7, -0.2, 0.4, 0.1])
    found = {}
    for unit in (1, 10):
        kinds = {"age": Number((18, 100), unit=unit), "sex": Boolean()}
        found[unit] = own_units(Schema(kinds, interactions=(("age", "sex"),)), fit_intercept=True)
    assert found[10].names == ("age (per 10)", "sex", "age (per 10) x sex", "intercept")
    np.testing.assert_allclose(found[10].matrix @ w, found[1].matrix @ w * [10, 1, 10, 1])
    assert found[10].structure.of_column("age") == [0, 2]
    from discreet.curator import Layout

    encoded = Layout(Schema({"age": Number((18, 100), unit=10), "sex": Boolean()}, interactions=(("age", "sex"),)))
    margin = np.column_stack([encoded.encode(rows, 2), np.ones(2)]) @ w
    own = np.column_stack([rows["age"] / 10, rows["sex"], rows["age"] / 10 * rows["sex"], np.ones(2)])
    np.testing.assert_allclose(own @ (found[10].matrix @ w), margin)
