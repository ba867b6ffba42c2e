"""Monotone effects never turn, are the nearest ones, and cost nothing; what is not served is refused first."""

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet import DPLogisticRegression, DPRidge, Schema, TableModel
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator import Layout
from discreet.errors import Unsupported
from discreet.models.curves import monotone
from discreet.schema import Number, Target
from discreet.schema.cell_meaning import SchemaError
from discreet.solvers.base import Solution

SIGNS = {"increasing": 1.0, "decreasing": -1.0}


def truth(x):
    return 3 * (1 - np.exp(-x / 30))


def table(rng, n, sign):
    x = np.minimum(rng.exponential(12, n), 100)
    return {"x": x, "z": rng.uniform(-1, 1, n), "y": sign * truth(x) + rng.normal(size=n)}


def schema(direction, **facts):
    return Schema(
        {"x": Number((0, 100), monotone=direction, **facts), "z": Number((-1, 1))}, Target("y", range=(-9, 9))
    )


@pytest.mark.parametrize("facts", [{"term": "linear"}, {"knots": 8}, {"term": "curve", "knots": (5, 20, 40)}], ids=str)
@pytest.mark.parametrize("direction", SIGNS)
def test_effects_never_turn(direction, facts, seeded):
    sign = SIGNS[direction]
    for epsilon, actual in ((0.3, sign), (2.0, sign), (2.0, -sign)):
        rows = table(np.random.default_rng(0), 2000, actual)
        with seeded(1):
            model = TableModel(schema(direction, **facts), DPRidge(epsilon, ledger=False)).fit(rows)
        assert (sign * np.diff(model.term_effects()[0].effect)).min() > -1e-9


def test_classes_and_missing_cells(seeded):
    rows = table(np.random.default_rng(0), 3000, 1.0)
    rows["y"], rows["x"] = (rows["y"] > 1).astype(int), np.where(rows["z"] > 0.9, np.nan, rows["x"])
    declared = Schema(
        {"x": Number((0, 100), monotone="increasing", missing="flag")}, Target("y", classes=(0, 1)), ignore=("z",)
    )
    with seeded(1):
        model = TableModel(declared, DPLogisticRegression(1.0, ledger=False), terms="curves").fit(rows)
    assert np.diff(model.term_effects()[0].effect).min() > -1e-9


def test_the_nearest_of_the_cone():
    """Against a general optimizer, where nothing was released of the records: places of the range count alike."""
    layout = Layout(schema("increasing", knots=4))
    rng, (cone,) = np.random.default_rng(3), layout.cones
    count = len(layout.features) + 1
    domain = Domain(np.ones(count), np.sqrt(count), 100, Neighbors.ZERO_OUT, intercept=True)
    w = rng.normal(size=count)
    found = monotone(Solution(w), (cone,), domain, np.ones(count - 1)).coefficients
    features = np.column_stack([cone.features, np.ones(len(cone.features))])
    places = [*cone.columns, count - 1]

    def distance(d):
        return np.mean((features @ (np.r_[cone.generators @ d[:-1], d[-1]] - w[places])) ** 2)

    bounds = [*[(0, None)] * cone.generators.shape[1], (None, None)]
    best = minimize(distance, np.ones(len(bounds)), bounds=bounds, options={"maxiter": 5000, "ftol": 1e-15})
    ours = np.mean((features @ (found[places] - w[places])) ** 2)
    assert ours <= best.fun * (1 + 1e-4)
    np.testing.assert_array_equal(np.delete(found, places), np.delete(w, places))


def test_what_is_not_served_is_refused_before_a_charge():
    rows = table(np.random.default_rng(0), 500, 1.0)
    with pytest.raises(Unsupported, match="standard errors of monotone"):
        TableModel(schema("increasing"), DPRidge(inference="sandwich")).quote(rows)
    product = Schema(
        {"x": Number((0, 100), monotone="increasing"), "z": Number((-1, 1))},
        Target("y", range=(-9, 9)),
        interactions=(("x", "z"),),
    )
    with pytest.raises(Unsupported, match="in no product"):
        TableModel(product).quote(rows)
    three = Schema({"x": Number((0, 100), monotone="increasing")}, Target("z", classes=(0, 1, 2)), ignore=("y",))
    with pytest.raises(Unsupported, match="two classes"):
        TableModel(three).quote(rows)
    with pytest.raises(SchemaError, match="line or a curve"):
        Number((0, 100), knots=(20,), monotone="increasing")
    with pytest.raises(SchemaError, match="monotone must be"):
        Number((0, 100), monotone="up")
