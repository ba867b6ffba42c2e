"""Weights and offsets of tables: declared in the schema, a formula or Python, and read by fits and predictions."""

import math

import numpy as np
import pandas as pd
import pytest

from discreet import (
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRandomizedSearch,
    Schema,
    TableModel,
)
from discreet.accounting.certificate import CHECKED, NULL
from discreet.errors import Unsupported
from discreet.models import TableSearch, make_private_pipeline
from discreet.models.base import default_model
from discreet.schema import Number, Offset, Target, Weight
from discreet.testing import assert_replay

sm = pytest.importorskip("statsmodels.api")
EXACT = {"epsilon": 1e6, "delta": 1e-6, "ledger": False}
COLUMNS = {"a": Number((-1, 1)), "b": Number((-1, 1))}
WEIGHT, OFFSET, DAYS = Weight("w", (0, 5)), Offset("o", (-1, 1)), Offset("days", (1, 30), log=True)
COUNTS = Schema(COLUMNS, Target("y", range=(0, 60)), weight=WEIGHT, offset=DAYS)


@pytest.fixture(scope="module")
def table():
    rng, n = np.random.default_rng(0), 20_000
    found = {name: rng.uniform(-1, 1, n) for name in COLUMNS}
    found |= {"w": rng.uniform(0.1, 5, n), "o": rng.uniform(-1, 1, n), "days": rng.uniform(1, 20, n)}
    margin = found["a"] - 0.5 * found["b"]
    found["y"] = rng.poisson(np.exp(margin - 2) * found["days"]).astype(float)
    found["z"] = (rng.random(n) < 1 / (1 + np.exp(-margin - found["o"]))).astype(int)
    return found


def columns_of(table):
    return sm.add_constant(np.column_stack([table["a"], table["b"]]))


def difference(model, theirs):
    ours = {coefficient.name: coefficient.value for coefficient in model.coefficients()}
    return np.abs(np.array([ours["(intercept)"], ours["a"], ours["b"]]) - theirs.params).max()


def test_counts_with_weights_and_exposure(table, tmp_path):
    model = TableModel(COUNTS, DPPoissonRegressor(alpha=0, **EXACT), terms="linear").fit(table)
    family, exposure = sm.families.Poisson(), table["days"]
    theirs = sm.GLM(table["y"], columns_of(table), family=family, exposure=exposure, freq_weights=table["w"]).fit()
    assert difference(model, theirs) < 2e-4
    few = {name: values[:50] for name, values in table.items() if name not in ("y", "z", "w", "o")}
    expected = theirs.predict(columns_of(table)[:50], exposure=exposure[:50])
    np.testing.assert_allclose(model.predict(few), expected, rtol=1e-3)
    loaded = TableModel.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(few), model.predict(few))
    assert loaded.schema_ == model.schema_
    facts = model.certificate_.assumed_public
    assert list(facts["weights"]) == [0.0, 5.0]
    assert facts["schema"]["offset"] == {"column": "days", "range": [1.0, 30.0], "log": True}
    row = {name: values[:1] for name, values in few.items()}
    assert math.isclose(model.explain(row).score[0], math.log(model.predict(row)[0]), rel_tol=1e-6)
    exported = model.to_sklearn().predict(pd.DataFrame(few))
    np.testing.assert_allclose(exported, model.predict(few), rtol=1e-12)
    assert "days" in model.report().html()


def test_an_exposure_without_a_model_is_that_of_a_log_link():
    assert default_model(COUNTS) == "poisson"
    assert default_model(Schema(COLUMNS, Target("y", range=(-1, 60)), offset=DAYS)) == "ridge"
    assert default_model(Schema(COLUMNS, Target("y", range=(0, 60)), offset=OFFSET)) == "ridge"
    assert default_model(Schema(COLUMNS, Target("z", classes=(0, 1)), offset=DAYS)) == "logistic"


def test_classes_and_numbers_with_offsets(table):
    schema = Schema(COLUMNS, Target("z", classes=(0, 1)), offset=OFFSET, weight=WEIGHT)
    model = TableModel(schema, DPLogisticRegression(alpha=0, **EXACT), terms="linear").fit(table)
    family = sm.families.Binomial()
    theirs = sm.GLM(table["z"], columns_of(table), family=family, offset=table["o"], freq_weights=table["w"]).fit()
    assert difference(model, theirs) < 2e-4
    chances = model.predict_proba(table)[:, 1]
    np.testing.assert_allclose(chances, theirs.predict(columns_of(table), offset=table["o"]), atol=1e-3)
    score = model.public_score(table, metric="brier").value
    assert math.isclose(score, np.mean((chances - table["z"]) ** 2), rel_tol=1e-3)
    schema = Schema(COLUMNS, Target("y", range=(0, 60)), weight=WEIGHT)
    model = TableModel(schema, DPLinearRegression(**EXACT), terms="linear").fit(table)
    assert difference(model, sm.WLS(table["y"], columns_of(table), weights=table["w"]).fit()) < 1e-2


EXTREMES = [(1e9, 1e300), (None, 5.0), (2.0, None), ("x", -3.0), (0.0, 0.0), (math.inf, math.nan)]


@pytest.mark.parametrize("relation", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_no_cell_of_a_weight_or_an_exposure_moves_an_answer_by_more_than_its_noise_is_for(relation, extreme):
    rng, n = np.random.default_rng(1), 30
    schema = Schema(COLUMNS, Target("y", range=(0, 9)), rows=n, weight=Weight("w", (0, 2)), offset=DAYS)
    table = {name: list(rng.uniform(-1, 1, n)) for name in COLUMNS}
    table |= {"w": list(rng.uniform(0, 3, n)), "days": list(rng.uniform(1, 40, n)), "y": list(rng.integers(0, 9, n))}
    table["a"][0], table["b"][0], table["y"][0], (table["w"][0], table["days"][0]) = 1.0, 1.0, 9, extreme
    other = {name: cells[relation == "add_remove" :] for name, cells in table.items()}
    if relation != "add_remove":
        other |= {"a": [-1.0, *table["a"][1:]], "w": [2.0, *table["w"][1:]], "days": [30.0, *table["days"][1:]]}
        other["y"] = [None if relation == "zero_out" else 0, *table["y"][1:]]

    def fit(table):
        return TableModel(schema, DPPoissonRegressor(1.0, 1e-6, neighbors=relation, ledger=False)).fit(table)

    assert_replay(fit, (table,), (other,), relation)


def test_missing_weights_and_offsets_are_counted_as_null(table):
    broken = {name: list(values) for name, values in table.items()}
    broken["w"][:4000], broken["days"][4000:8000] = [None] * 4000, ["?"] * 4000
    model = TableModel(COUNTS, DPPoissonRegressor(5.0, 1e-6, ledger=False), terms="linear").fit(broken)
    checked = model.certificate_.assumed_public[CHECKED]
    assert abs(checked["columns"]["w"]["no_number"] - 4000) < 500
    assert abs(checked[NULL] - 8000) < 500


def test_what_cannot_take_weights_refuses_before_a_charge(table):
    with pytest.raises(Unsupported, match="does not see"):
        make_private_pipeline(COUNTS, DPPoissonRegressor())
    search = DPRandomizedSearch(DPPoissonRegressor(solver="gd"), {"alpha": [1e-3, 1e-1]}, epsilon=2.0, ledger=False)
    with pytest.raises(Unsupported, match="count alike"):
        TableSearch(COUNTS, search).quote(table)
