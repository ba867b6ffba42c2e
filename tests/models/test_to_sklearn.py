"""The exported scikit-learn pipeline predicts the same numbers, holds no class of ours, and no record."""

import subprocess
import sys
from dataclasses import replace

import joblib
import numpy as np
import pytest
from sklearn.utils.validation import check_is_fitted

from discreet import DPLogisticRegression, DPPoissonRegressor, DPRidge, Schema
from discreet.errors import Unsupported
from discreet.losses import Squared
from discreet.models import DPRegressor
from discreet.schema import Number, Target
from tests.models.exports import COLUMNS, ESTIMATORS, METHODS, SCHEMA, fitted, fitted_table, frame, rows


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


@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        (DPLogisticRegression(epsilon=20.0), Target("back", classes=("no", "yes"))),
        (DPRidge(epsilon=20.0), Target("age", range=(0, 120))),
        (DPPoissonRegressor(epsilon=20.0, limit=0.3), Target("age", range=(0, 120))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_tables_pipeline_predicts_the_same(estimator, target):
    columns = {name: kind for name, kind in COLUMNS.items() if name != target.column}
    groups = tuple(group for group in SCHEMA.interactions if target.column not in group)
    model, table = (
        fitted_table(estimator, replace(SCHEMA, columns=columns, target=target, interactions=groups)),
        frame(),
    )
    made = model.to_sklearn()
    agree(model.predict(table), made.predict(table))
    if hasattr(model.estimator_, "predict_proba"):
        agree(model.predict_proba(table), made.predict_proba(table))


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


def test_missing_values_are_refused_as_by_the_estimator():
    X = rows()[:5]
    X[0, 0] = np.nan
    for one in (fitted("ridge"), fitted("ridge").to_sklearn()):
        with pytest.raises(ValueError, match="NaN"):
            one.predict(X)


def test_private_ranges_are_the_estimated_ones():
    schema = Schema({"pay": Number("private", within=(0, 1e7))}, Target("back", classes=("no", "yes")))
    model = fitted_table(schema=schema)
    table = frame(1000)
    agree(model.predict_proba(table), model.to_sklearn().predict_proba(table))


class Cubic(Squared):
    def prediction(self, margins):
        return margins**3


def test_a_link_of_ones_own_is_refused():
    model = DPRegressor(bounds=1.0, target=(0, 1)).fit(np.eye(4), np.ones(4))
    model.loss = Cubic()
    with pytest.raises(Unsupported, match="link of its own"):
        model.to_sklearn()


def test_estimators_survive_joblib(tmp_path):
    for model, X in ((fitted("binary"), rows()[:9]), (fitted_table(), frame(9))):
        joblib.dump(model, tmp_path / "model")
        same = joblib.load(tmp_path / "model")
        assert same.certificate_ == model.certificate_
        agree(model.predict(X), same.predict(X))
