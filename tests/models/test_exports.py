"""The exported scikit-learn pipeline predicts the same numbers, holds no class of ours, and no record."""

import subprocess
import sys
import types
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pytest
from sklearn.utils.validation import check_is_fitted

from discreet import DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.errors import PrivacyWarning
from discreet.models import log_to_mlflow
from discreet.models.words import AUTOLOG
from discreet.schema import Number, Offset, Target
from discreet.testing import seeded
from tests.models.exports import COLUMNS, ESTIMATORS, FIT, METHODS, ROWS, SCHEMA, fitted, fitted_table, frame, rows

MANY = pytest.mark.parametrize("n", [4000, pytest.param(ROWS, marks=pytest.mark.thorough)])
"""Rows: a few thousand have every kind of cell, next to every other."""


def agree(ours, theirs):
    if ours.dtype.kind in "UO":
        assert (ours == theirs).all()
    else:
        np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimators_pipeline_predicts_the_same(name):
    model, X = fitted(name), rows()
    made = model.to_sklearn()
    check_is_fitted(made)
    shared = [method for method in METHODS if hasattr(model, method)]
    assert "predict" in shared
    for method in shared:
        agree(getattr(model, method)(X), getattr(made, method)(X))


@MANY
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        (DPLogisticRegression(epsilon=20.0), Target("back", classes=("no", "yes"))),
        (DPRidge(epsilon=20.0), Target("age", range=(0, 120))),
        (DPPoissonRegressor(epsilon=20.0, limit=0.3), Target("age", range=(0, 120))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_tables_pipeline_predicts_the_same(estimator, target, n):
    columns = {name: kind for name, kind in COLUMNS.items() if name != target.column}
    groups = tuple(group for group in SCHEMA.interactions if target.column not in group)
    model, table = (
        fitted_table(estimator, replace(SCHEMA, columns=columns, target=target, interactions=groups)),
        frame(n),
    )
    made = model.to_sklearn()
    agree(model.predict(table), made.predict(table))
    if hasattr(model.estimator_, "predict_proba"):
        agree(model.predict_proba(table), made.predict_proba(table))


OFFSETS = [Offset("days", (2, 365), log=True), Offset("days", (-3, 4))]


def with_offsets(offset, n):
    """A model whose margins have an offset, and rows with every kind of cell in its column."""
    columns = {name: kind for name, kind in COLUMNS.items() if name != "age"}
    facts = {"target": Target("age", range=(0, 120)), "offset": offset, "interactions": (("ward", "tenure"),)}
    schema = replace(SCHEMA, columns=columns, **facts)
    table = frame(n)
    table["days"] = np.resize([7.0, 400.0, 0.5, np.nan, -9.0, np.inf, -np.inf, 2.5, -100.0], len(table))
    small = {} if n == ROWS else {"alpha": 0.01}  # large terms of rare cells cancel in double precision only
    with seeded(0):
        return fitted_table(DPPoissonRegressor(epsilon=500.0, limit=3.0, **small), schema, table), table


@MANY
@pytest.mark.parametrize("offset", OFFSETS, ids=["exposure", "offset"])
def test_a_tables_pipeline_adds_the_offset(offset, n):
    model, table = with_offsets(offset, n)
    agree(model.predict(table), model.to_sklearn().predict(table))


def test_it_runs_without_discreet(tmp_path):
    model, table = fitted_table(), frame(500)
    joblib.dump((model.to_sklearn(), table, model.predict_proba(table)), tmp_path / "pipeline.joblib")
    script = (
        "import sys, joblib; sys.modules['discreet'] = None; "
        f"made, table, ours = joblib.load({str(tmp_path / 'pipeline.joblib')!r}); "
        "assert abs(made.predict_proba(table) - ours).max() < 1e-12"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_no_record_is_in_it(tmp_path):
    """The same releases with other records are the same pipeline, bit for bit."""
    model = fitted_table()
    joblib.dump(model.to_sklearn(), tmp_path / "first")
    assert b"discreet" not in (tmp_path / "first").read_bytes()
    other = fitted_table(table=frame(400, 9))
    other.estimator_ = model.estimator_
    joblib.dump(other.to_sklearn(), tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()


# --- the onnx graph predicts the same numbers in single precision, and name

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def outputs(path, inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, inputs), strict=True))


def texts(column):
    """Return cells as the graph takes them: texts without blanks, empty where nothing is there."""
    return np.array([["" if cell is None or cell != cell else str(cell).strip()] for cell in column], dtype=object)


def inputs_of(table):
    import pandas as pd

    found = {}
    for name, kind in COLUMNS.items():
        if isinstance(kind, Number):
            found[name] = pd.to_numeric(table[name], errors="coerce").to_numpy(np.float32)[:, np.newaxis]
        else:
            found[name] = texts(table[name].astype(object).mask(table[name].isna(), None))
    return found


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimators_graph_predicts_the_same(name, tmp_path):
    model, X = fitted(name), rows().astype(np.float32)
    found = outputs(model.to_onnx(tmp_path / "model.onnx"), {"X": X})
    if "prediction" in found:
        np.testing.assert_allclose(found["prediction"][:, 0], model.predict(X), rtol=1e-6, atol=1e-6)
        return
    margins = np.atleast_2d(model.decision_function(X).T).T
    sure = np.abs(margins).min(axis=1) > 1e-5
    ours = model.predict(X)
    if name == "mixed labels":
        ours = np.array([str(label) for label in ours])
    assert sure.mean() > 0.99
    if len(model.classes_) == 2:
        assert (found["label"][sure] == ours[sure]).all()
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=1e-6)
    else:
        np.testing.assert_allclose(found["scores"], margins, rtol=1e-6, atol=1e-6)


@MANY
def test_a_tables_graph_predicts_the_same(tmp_path, n):
    model, table = fitted_table(), frame(n)
    numbers = [name for name, kind in COLUMNS.items() if isinstance(kind, Number) and name != "hour"]
    table[numbers] = table[numbers].astype(np.float32)  # what the graph is given
    found = outputs(model.to_onnx(tmp_path / "model.onnx"), inputs_of(table))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(table), rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("estimator", [None, DPRidge(epsilon=20.0)], ids=["classes", "numbers"])
def test_a_graph_with_large_terms_predicts_the_same(estimator, size, seed, tmp_path):
    """Coefficients of rare cells may be large, and cancel: of such sums single precision keeps too few digits."""
    target = SCHEMA.target if estimator is None else Target("score_of", range=(-50, 50))
    model = fitted_table(estimator, replace(SCHEMA, target=target), frame(FIT, 1).assign(score_of=1.0))
    random, fitted = np.random.default_rng(seed), model.estimator_
    fitted.coef_ = size * random.standard_t(2, fitted.coef_.shape)
    table = frame(500, seed)
    for name, kind in COLUMNS.items():
        if isinstance(kind, Number) and name != "hour":
            table[name] = table[name].astype(np.float32)
    rows = np.concatenate([block for block, _ in model._rows(table)])
    fitted.intercept_ = -np.median(rows @ np.atleast_2d(fitted.coef_).T, axis=0)
    found = outputs(model.to_onnx(tmp_path / "model.onnx"), inputs_of(table))
    if estimator is None:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(table), rtol=0, atol=1e-6)
    else:
        np.testing.assert_allclose(found["prediction"][:, 0], model.predict(table), rtol=1e-6, atol=1e-6)


@MANY
@pytest.mark.parametrize("offset", OFFSETS, ids=["exposure", "offset"])
def test_a_tables_graph_adds_the_offset(offset, tmp_path, n):
    model, table = with_offsets(offset, n)
    numbers = [name for name, kind in COLUMNS.items() if isinstance(kind, Number) and name != "hour"]
    table[numbers] = table[numbers].astype(np.float32)
    given = inputs_of(table) | {"days": table["days"].to_numpy(np.float32)[:, np.newaxis]}
    del given["age"]
    found = outputs(model.to_onnx(tmp_path / "model.onnx"), given)
    np.testing.assert_allclose(found["prediction"][:, 0], model.predict(table), rtol=1e-6, atol=1e-6)


# --- models in mlflow


@pytest.mark.parametrize("off", [True, False])
def test_fits_warn_of_autolog(monkeypatch, off):
    monkeypatch.setitem(sys.modules, "mlflow.sklearn", types.ModuleType("mlflow.sklearn"))
    utils = types.ModuleType("mlflow.utils.autologging_utils")
    utils.autologging_is_disabled = lambda flavor: off
    monkeypatch.setitem(sys.modules, "mlflow.utils.autologging_utils", utils)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        DPRidge(bounds=1.0, target=(0, 1)).fit(np.eye(4), np.ones(4))
    found = [one for one in said if str(one.message) == AUTOLOG]
    assert len(found) == (not off)
    assert all(one.category is PrivacyWarning and one.filename == __file__ for one in found)


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    found = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    found.set_tracking_uri(f"file://{tmp_path}/runs")
    found.set_registry_uri(f"file://{tmp_path}/runs")
    return found


@pytest.mark.parametrize(("make", "data"), [(lambda: fitted("binary"), rows()[:50]), (fitted_table, frame(50))])
def test_a_logged_model_predicts_the_same(mlflow, make, data):
    model = make()
    with mlflow.start_run() as run:
        told = log_to_mlflow(model, pip_requirements=[])
    stored = mlflow.get_run(run.info.run_id)
    assert stored.data.tags["discreet.epsilon"] == str(model.certificate_.epsilon)
    assert stored.data.metrics == {}
    text = mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/certificate.json")
    assert text == model.certificate_.to_json() + "\n"
    same = mlflow.sklearn.load_model(told.model_uri)
    assert (same.predict(data) == model.predict(data)).all()
