"""The ONNX graph predicts the same numbers in single precision, and names the certificate."""

import hashlib

import numpy as np
import pytest

from discreet import DPPoissonRegressor
from discreet.schema import Number, Target
from tests.models.exports import COLUMNS, ESTIMATORS, SCHEMA, fitted, fitted_table, frame, rows

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


def test_a_tables_graph_predicts_the_same(tmp_path):
    model, table = fitted_table(), frame()
    numbers = [name for name, kind in COLUMNS.items() if isinstance(kind, Number) and name != "hour"]
    table[numbers] = table[numbers].astype(np.float32)  # what the graph is given
    found = outputs(model.to_onnx(tmp_path / "model.onnx"), inputs_of(table))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(table), rtol=0, atol=1e-6)


def test_counts_of_a_table(tmp_path):
    from dataclasses import replace

    columns = {name: kind for name, kind in COLUMNS.items() if name != "age"}
    schema = replace(SCHEMA, columns=columns, target=Target("age", range=(0, 120)), interactions=())
    model, table = fitted_table(DPPoissonRegressor(epsilon=20.0, limit=2.0), schema), frame(2000)
    inputs = {name: values for name, values in inputs_of(table).items() if name in columns}
    found = outputs(model.to_onnx(tmp_path / "model.onnx"), inputs)
    np.testing.assert_allclose(found["prediction"][:, 0], model.predict(table), rtol=1e-5)


def test_the_certificates_digest_is_that_of_its_file(tmp_path):
    model = fitted_table()
    model.save(tmp_path / "model")
    proto = onnx.load(model.to_onnx(tmp_path / "model.onnx"))
    facts = {one.key: one.value for one in proto.metadata_props}
    expected = hashlib.sha256((tmp_path / "model" / "certificate.json").read_bytes()).hexdigest()
    assert facts["discreet.certificate.sha256"] == expected
    assert facts["discreet.epsilon"] == "20.0"
    assert facts["discreet.neighbors"] == "replace_one"
