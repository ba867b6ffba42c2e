"""``terms``: curves by default where public facts say that they predict better, and what says so."""

import numpy as np
import pytest

from discreet import DPLasso, DPLogisticRegression, DPPoissonRegressor, DPRidge, Schema, TableModel
from discreet.curator import Layout, SeededEntropy, use_entropy
from discreet.default.table import CURVES, Facts, knots_for
from discreet.models import DPRandomizedSearch, TableSearch
from discreet.models.fit import Beside
from discreet.schema import Boolean, Category, Number, Target

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


def test_few_rows_have_fewer_knots_and_then_lines():
    found = {n: fitted(n=n, epsilon=1.0) for n in (60, 700, 4000)}
    assert {n: model.schema_.columns["age"].knots for n, model in found.items()} == {60: (), 700: 4, 4000: 8}
    assert "linear effects" in found[60].certificate_.notes[-1]


def test_a_curve_is_learned_that_a_line_does_not_show():
    test = table(4000, seed=1)
    errors = {terms: np.mean(fitted(terms).predict(test) != test["ill"]) for terms in ("auto", "linear")}
    assert errors["auto"] < errors["linear"] - 0.1


def test_terms_can_be_said():
    assert fitted("linear").schema_ == SCHEMA
    assert fitted("curves", n=60).schema_.columns["age"].knots == 8
    with pytest.raises(ValueError, match="terms"):
        fitted("splines")


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


@pytest.mark.parametrize("estimator", [DPLasso(alpha=0.1), DPPoissonRegressor()], ids=["corners", "counts"])
def test_lines_stay_for_other_penalties_and_losses(estimator):
    schema = Schema(COLUMNS, Target("ill", range=(0, 1)))
    assert TableModel(schema, estimator).stream(table()).schema == schema


def test_a_table_without_free_numbers_says_nothing():
    schema = Schema({"sex": Category(("f", "m")), "smoker": Boolean()}, Target("ill", classes=(0, 1)))
    data = {"sex": ["f", "m"] * 50, "smoker": [1, 0] * 50, "ill": [0, 1] * 50}
    assert TableModel(schema).stream(data).notes == ()


def test_numbers_have_curves_too():
    schema = Schema(COLUMNS, Target("ill", range=(0, 1)))
    assert TableModel(schema, DPRidge()).stream(table()).schema.columns["age"].knots == 8


def test_a_private_number_of_rows_decides_nothing():
    """Under add_remove the choice is by what is declared."""
    found = {
        n: TableModel(SCHEMA, DPLogisticRegression(neighbors="add_remove", delta=1e-6)).stream(table(n)).schema
        for n in (5, 40_000)
    }
    assert found[5] == found[40_000]


def test_a_search_has_lines():
    search = DPRandomizedSearch(DPLogisticRegression(solver="gd"), {"alpha": [1e-3, 1e-1]}, epsilon=2.0)
    assert TableSearch(SCHEMA, search).quote(table()).price.epsilon <= 2.0


def test_a_saved_model_keeps_its_curves(tmp_path):
    model, rows = fitted(), table(50, seed=2)
    again = TableModel.load(model.save(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert again.schema_ == model.schema_
    assert again.stream(table(60)).schema == model.schema_


@pytest.mark.whole
@pytest.mark.parametrize("model", [DPLogisticRegression, DPRidge])
def test_more_rows_and_budget_never_have_fewer_knots(model):
    """The choice is monotone in n and epsilon, and follows the table of the default."""
    target = Target("ill", classes=(0, 1)) if model is DPLogisticRegression else Target("ill", range=(0, 1))
    schema = Schema(COLUMNS, target)
    choices = []
    for n in (50, 100, 200, 400, 1000):
        row = []
        for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0):
            found = TableModel(schema, model(epsilon=epsilon, delta=1e-6)).stream(table(n)).schema.columns["age"].knots
            row.append(found or 0)
        choices.append(row)
    assert (np.diff(choices, axis=0) >= 0).all()
    assert (np.diff(choices, axis=1) >= 0).all()
    assert {0, 4, 8} == set(np.ravel(choices))


def test_the_rule_counts_bends_among_the_coefficients():
    """At the very signal that is needed, and just below it."""
    stream = TableModel(SCHEMA, DPLogisticRegression(), terms="linear").stream(table())
    estimator = DPLogisticRegression(bounds=stream.bounds)
    fit = estimator._fit_settings(*estimator._declared())
    _, domain, budget = fit.declare(stream, None, Beside())
    facts = Facts(domain, fit.loss, fit.penalty, budget)
    most = facts.signal.total / CURVES[0].rule
    assert knots_for(facts, lambda knots: int(most) - 1)[0] == 8
    assert knots_for(facts, lambda knots: int(most) + 1)[0] is None
    assert knots_for(facts, lambda knots: int(most) + (1 if knots == 8 else -1))[0] == 4
    assert len(Layout(SCHEMA.with_curves(8)).features) == 1 + 8 + 1 + 3
