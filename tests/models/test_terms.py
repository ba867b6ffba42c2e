"""``terms``: curves by default where public facts say that they predict better, and what says so."""

import numpy as np
import pytest

from discreet import DPLogisticRegression, DPRidge, Schema, TableModel
from discreet.curator import SeededEntropy, use_entropy
from discreet.schema import Category, Number, Target

COLUMNS = {"age": Number((0, 100)), "dose": Number((0, 10), term="linear"), "sex": Category(("f", "m"))}
SCHEMA = Schema(COLUMNS, Target("ill", classes=(0, 1)))


def table(n=4000, seed=0):
    """Return rows whose outcome is likelier in the middle of an age range: no line shows that."""
    random = np.random.default_rng(seed)
    age, dose = random.uniform(0, 100, n), random.uniform(0, 10, n)
    chance = 1 / (1 + np.exp(3 - 5 * np.exp(-(((age - 50) / 20) ** 2)) - (dose - 5) / 5))
    return {"age": age, "dose": dose, "sex": random.choice(["f", "m"], n), "ill": (random.random(n) < chance) * 1}


def fitted(terms="auto", n=4000, epsilon=2.0, schema=SCHEMA, **settings):
    with use_entropy(SeededEntropy(1)):
        return TableModel(schema, DPLogisticRegression(epsilon=epsilon, **settings), terms=terms).fit(table(n))


def test_curves_are_the_default_where_the_signal_suffices():
    model = fitted()
    assert model.schema_.columns["age"].knots == 8
    assert model.schema_.columns["dose"] == COLUMNS["dose"]
    assert "curves with 8 knots" in model.certificate_.notes[-1]
    assert model.certificate_.assumed_public["schema"]["columns"]["age"]["knots"] == 8
    assert "curves with 8 knots" in str(model.certificate_)
    assert "curves with 8 knots" in TableModel(SCHEMA).quote(table()).explain()


def test_a_curve_is_learned_that_a_line_does_not_show():
    test = table(4000, seed=1)
    errors = {terms: np.mean(fitted(terms).predict(test) != test["ill"]) for terms in ("auto", "linear")}
    assert errors["auto"] < errors["linear"] - 0.1


def knots_by(estimator, target, **facts):
    """Return the knots of eight numbers for each of several numbers of rows and epsilons, None for lines."""
    schema = Schema({f"x{j}": Number((0, 1)) for j in range(8)}, target)
    rows = {name: np.zeros(facts["n"]) for name in (*schema.columns, "y")}
    knots = TableModel(schema, estimator(epsilon=facts["epsilon"])).stream(rows).schema.columns["x0"].knots
    return knots or None


@pytest.mark.parametrize(
    ("estimator", "target"),
    [(DPLogisticRegression, Target("y", classes=(0, 1))), (DPRidge, Target("y", range=(0, 1)))],
    ids=["classes", "numbers"],
)
def test_knots_grow_with_the_signal_one_by_one(estimator, target):
    by_epsilon = [knots_by(estimator, target, n=8000, epsilon=0.02 * 1.06**j) or 1 for j in range(145)]
    by_rows = [knots_by(estimator, target, n=int(100 * 1.06**j), epsilon=1.0) or 1 for j in range(125)]
    for grid in (by_epsilon, by_rows):
        assert set(np.diff(grid).tolist()) <= {0, 1}
        assert grid[0] == 1
        assert grid[-1] == 8


@pytest.mark.whole
@pytest.mark.parametrize(
    "estimator",
    [
        DPLogisticRegression(inference="sandwich"),
        DPLogisticRegression(solver="gd"),
        DPLogisticRegression(delta=0.0),
        DPLogisticRegression(start=(np.zeros(5), 0.0)),
    ],
    ids=["inference", "a solver", "a pure budget", "a start"],
)
def test_lines_stay_where_curves_are_not_proven_to_help(estimator):
    assert TableModel(SCHEMA, estimator).stream(table()).schema == SCHEMA


def test_a_private_number_of_rows_decides_nothing():
    """Under add_remove the choice is by what is declared."""
    found = {
        n: TableModel(SCHEMA, DPLogisticRegression(neighbors="add_remove", delta=1e-6)).stream(table(n)).schema
        for n in (5, 40_000)
    }
    assert found[5] == found[40_000]
