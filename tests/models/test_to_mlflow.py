"""Models in MLflow: the pipeline, the certificate, and a warning where autolog would log exact scores."""

import sys
import types
import warnings

import numpy as np
import pytest

from discreet import DPRidge
from discreet.errors import DiscreetError, PrivacyWarning
from discreet.models import log_to_mlflow
from discreet.models.words import AUTOLOG
from tests.models.exports import fitted, fitted_table, frame, rows


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(DiscreetError, match=r'pip install "discreet\[mlflow\]"'):
        log_to_mlflow(fitted("ridge"))


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


def test_autolog_is_noticed(mlflow):
    mlflow.sklearn.autolog()
    with pytest.warns(PrivacyWarning, match="autolog is on"):
        DPRidge(bounds=1.0, target=(0, 1)).fit(np.eye(4), np.ones(4))
    mlflow.sklearn.autolog(disable=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        DPRidge(bounds=1.0, target=(0, 1)).fit(np.eye(4), np.ones(4))
