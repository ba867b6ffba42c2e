"""Effects of tables in their columns' own units: products as R and statsmodels print them."""

import math

import numpy as np
import pytest

from benchmarks.problems.effects import plain_fit
from discreet import DPLinearRegression, DPLogisticRegression, Schema, TableModel
from discreet.models.inference.units import own_units
from discreet.schema import Boolean, Category, Number, Target
from discreet.testing import seeded

N = 40_000
MODELS = {"linear": DPLinearRegression, "logistic": DPLogisticRegression}
PRODUCTS = {
    "number and truth": (("age", "sex"),),
    "number and category": (("age", "ward"),),
    "category and truth": (("ward", "sex"),),
}


def table():
    rng = np.random.default_rng(0)
    return {"age": rng.uniform(20, 80, N), "sex": rng.random(N) < 0.5, "ward": rng.choice(["a", "b", "c"], N)}


def outcome(name, rows):
    rng = np.random.default_rng(1)
    age, sex, ward = rows["age"], rows["sex"], rows["ward"]
    m = -1.0 + 0.02 * age - 0.5 * sex + 0.3 * (ward == "b") + 0.02 * (age - 50) * sex - 0.01 * age * (ward == "c")
    return m + rng.normal(size=N) if name == "linear" else (rng.random(N) < 1 / (1 + np.exp(-m))).astype(int)


def raw(rows, products):
    """Raw columns and their products, by the names of the summary."""
    cells = {"age": [("age", rows["age"])], "sex": [("sex", rows["sex"])]}
    cells["ward"] = [(f"ward = {one}", rows["ward"] == one) for one in "bc"]
    made = {name: column for group in cells.values() for name, column in group}
    for group in products:
        for left, a in cells[group[0]]:
            made.update({f"{left} x {right}": a * b for right, b in cells[group[1]]})
    return {name: np.asarray(column, dtype=float) for name, column in made.items()}


def reference(name, columns, y):
    """Least squares or maximum likelihood with robust standard errors, by plain numpy, back in raw units."""
    X = np.column_stack(list(columns.values()))
    scale = X.std(axis=0)
    w, se = plain_fit(X / scale, y.astype(float), name, 1.0)
    unit = np.append(1.0 / scale, 1.0)
    return w * unit, se * unit


@pytest.mark.whole
@pytest.mark.parametrize("epsilon", [1e5, math.inf])
@pytest.mark.parametrize("products", PRODUCTS)
@pytest.mark.parametrize("name", MODELS)
def test_products_are_those_of_the_raw_columns(name, products, epsilon):
    """0.02 per year and sex, not per half range of centered columns; main effects at 0 of the other column."""
    rows, groups = table(), PRODUCTS[products]
    y = outcome(name, rows)
    base = "a" if math.isinf(epsilon) else None  # else cells are collinear, and no noise says so
    kinds = {"age": Number((18, 100)), "sex": Boolean(), "ward": Category(("a", "b", "c"), base=base, other=False)}
    target = Target("y", range=(-8, 8)) if name == "linear" else Target("y", classes=(0, 1))
    model = MODELS[name](epsilon, 1e-6, inference="sandwich", neighbors="zero_out", ledger=False)
    with seeded(0):
        fitted = TableModel(Schema(kinds, target, interactions=groups), model).fit({**rows, "y": y})
    summary = fitted.summary()
    columns = raw(rows, groups)
    w, se = reference(name, columns, y)
    assert list(summary.names) == [*columns, "intercept"]
    frame, exact = summary.frame, math.isinf(epsilon)
    assert np.all(np.abs(frame.coef - w) < (0.05 if exact else 0.1) * se)
    np.testing.assert_allclose(frame.se, se, rtol=0.03 if exact else 0.05)
    if name == "logistic":
        np.testing.assert_allclose(summary.ratios().ratio, np.exp(frame.coef[:-1]))


COLUMNS = {
    "age": Number((18, 100), knots=(40, 60)),
    "sex": Boolean(),
    "stay": Number((0, 30)),
    "ward": Category(("a", "b", "c")),
    "site": Category(("n", "s"), base="n", other=False),
}
GROUPS = (("age", "sex"), ("sex", "stay", "ward"))


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
    assert {"age at 40 x sex", "sex x stay x ward = b", "sex x stay"} <= set(found.names)
    assert not any("age at 18" in name or "ward = a" in name for name in found.names)
    assert found.structure.bases == {"age at 18", "ward = a", "site = n"}
    assert found.structure.terms[-1] == ()
    first, second = (dict(found.structure.terms[found.names.index(name)]) for name in ("sex x stay", "age at 40"))
    assert (first, second) == ({"sex": "sex", "stay": "stay"}, {"age": "age at 40"})
    bare = own_units(schema, fit_intercept=False)
    assert "age at 18" in bare.names
    assert not {"age at 18 x sex", "ward = a", "intercept"} & set(bare.names)
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


def test_an_implied_product_and_a_column_of_its_name_are_told_apart():
    kinds = {"a": Number((0, 1)), "b": Number((0, 1)), "c": Number((0, 1)), "a x b": Number((0, 1))}
    found = own_units(Schema(kinds, Target("y", range=(0, 1)), interactions=(("a", "b", "c"),)), fit_intercept=True)
    assert len(set(found.names)) == len(found.names)
    assert "(a) x (b)" in found.names
