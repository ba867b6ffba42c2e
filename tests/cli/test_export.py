"""``discreet export`` and ``discreet certificate registry``."""

import json

import joblib
import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml

import discreet
from discreet import TableModel
from discreet.json_schemas import json_schema
from discreet.report.registry_entry import OPEN
from tests.cli.tables import MARK

ENTRY = json_schema("deployments-registry")


def test_a_folder_becomes_a_pipeline_and_a_graph(ok, place):
    onnx = pytest.importorskip("onnx")
    ok("export", "model", "--sklearn", "model.joblib", "--onnx", "model.onnx")
    table = pd.read_csv("table.csv")
    ours = TableModel.load("model").predict_proba(table)
    np.testing.assert_allclose(joblib.load("model.joblib").predict_proba(table), ours, rtol=0, atol=1e-12)
    assert [one.name for one in onnx.load("model.onnx").graph.input] == ["age", "income", "color", "smoker"]
    for file in ("model.joblib", "model.onnx"):
        assert MARK.encode() not in (place / file).read_bytes()


def test_a_saved_estimator_becomes_a_pipeline(ok, model_file, tmp_path):
    ok("export", model_file, "--sklearn", tmp_path / "model.joblib")
    X = np.random.default_rng(0).normal(size=(50, 13)) * 100
    ours = discreet.load(model_file).predict_proba(X)
    np.testing.assert_allclose(joblib.load(tmp_path / "model.joblib").predict_proba(X), ours, rtol=0, atol=1e-12)


def test_export_refuses_in_one_line(refused, place, certificate_file):
    assert "--onnx FILE" in refused("export", "model")
    assert "there is a file already" in refused("export", "model", "--sklearn", "table.csv")
    assert "no such folder" in refused("export", "model", "--onnx", "nowhere/model.onnx")
    assert "no model" in refused("export", certificate_file, "--sklearn", "new.joblib")
    refused("export", "table.csv", "--sklearn", "new.joblib")
    assert not (place / "new.joblib").exists()


def entry(text):
    found = yaml.safe_load(text)
    jsonschema.Draft202012Validator.check_schema(ENTRY)
    jsonschema.validate(found, ENTRY, format_checker=jsonschema.FormatChecker())
    return found


def test_a_registry_entry_is_valid_as_it_comes(ok, place):
    found = entry(ok("certificate", "registry", "model").stdout)
    made = TableModel.load("model").certificate_
    loss = found["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": made.epsilon, "delta": made.delta}
    assert found["status"] == "Draft"
    assert found["deployment"]["basic"]["name"].startswith(OPEN)
    assert "people" in found["deployment"]["deployment_model"]["release_type_details"]


def test_what_people_know_is_taken_over(ok, place):
    said = {"--name": "Risk of return: 30 days", "--curator": "A 'B' & \"C\"", "--description": "A\nmodel"}
    said |= {"--intended-use": "triage", "--region": "Zürich", "--sector": "Healthcare", "--author": "Ä"}
    said |= {"--published": "2026-01-31"}
    words = [word for pair in said.items() for word in pair]
    ok("certificate", "registry", "model", "--out", "entry.yaml", *words)
    found = entry((place / "entry.yaml").read_text())
    basic = found["deployment"]["basic"]
    assert basic["data_curators"] == [said["--curator"]]
    assert basic["description"] == said["--description"]
    assert basic["publication_date"] == "2026-01-31"
    assert found["url_slug"] == "risk-of-return-30-days"
    assert found["deployment"]["administrative"]["registry_authors"] == ["Ä"]


def test_a_registry_entry_refuses_in_one_line(refused, ok, place, model_file, certificate_file):
    assert "YYYY-MM-DD" in refused("certificate", "registry", "model", "--published", "yesterday")
    assert "there is a file already" in refused("certificate", "registry", "model", "--out", "table.csv")
    refused("certificate", "registry", "table.csv")
    stored = json.loads(certificate_file.read_text())
    stored |= {"not_private": ["the noise is seeded"], "stamp": "NOT PRIVATE (the noise is seeded)"}
    certificate_file.write_text(json.dumps(stored))
    assert "no guarantee" in refused("certificate", "registry", certificate_file)


def test_every_kind_of_certificate_makes_a_valid_entry(ok, certificate_file):
    from discreet import DPRidge

    eye, ones = np.eye(40), np.ones(40)
    for settings in ({"delta": 0.0}, {"neighbors": "add_remove", "delta": 1e-6}, {"neighbors": "zero_out"}):
        bounds = discreet.Bounds(features=1.0, target=(0, 1), n=40)
        made = DPRidge(bounds=bounds, solver="gd", **settings).fit(eye, ones, groups=np.arange(40))
        certificate_file.write_text(made.certificate_.to_json())
        found = entry(ok("certificate", "registry", certificate_file).stdout)
        assert found["deployment"]["privacy_loss"]["privacy_unit"] == "User-level"


def test_a_wrong_entry_would_be_found(ok, place):
    found = yaml.safe_load(ok("certificate", "registry", "model").stdout)
    found["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] = "1.0"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, ENTRY)
