"""``discreet inspect``, ``report``, ``export`` and ``certificate registry``."""

import json
import re

import joblib
import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml

from discreet import TableModel
from discreet.cli.certificate import OPEN
from discreet.json_schemas import json_schema
from discreet.report.model_report import report_of
from tests.cli.tables import LEDGER, MARK, charges


@pytest.mark.parametrize("units", ["original", "encoded"])
def test_json_of_a_folder(ok, place, units):
    found = json.loads(ok("inspect", "model", "--json", "--units", units).stdout)
    known = TableModel.load(place / "model")
    (output,) = found["coefficients"]
    assert output == "class high"
    wanted = {one.name: one for one in known.coefficients(units=units)}
    assert {name: one["value"] for name, one in found["coefficients"][output].items()} == {
        name: one.value for name, one in wanted.items()
    }
    for name, one in found["coefficients"][output].items():
        spread = wanted[name].noise
        assert one["half_width"] == (None if spread is None else pytest.approx(1.959964 * spread))
        assert one["unit"] == wanted[name].unit
    assert found["coefficients"][output]["age"]["half_width"] > 0
    assert found["certificate"] == json.loads((place / "model" / "certificate.json").read_text())


def test_the_report_and_inspect_show_the_same_numbers(ok, place):
    """In the columns' own units, truth against falsehood, in the schema's order, rounded alike."""
    known = TableModel.load(place / "model")
    page = report_of(known, "x").html()
    told = [line.split() for line in ok("inspect", "model").stdout.split("Coefficients")[1].splitlines() if "±" in line]
    inspected = [" ".join(words[words.index("±") - 1 : words.index("±") + 2]) for words in told[:-1]]
    drawn = [text.replace("−", "-") for text in re.findall(r'class="value">([^<]+)<', page) if "±" in text]
    assert drawn == inspected
    assert len(drawn) == 6
    (smoker,) = (c for c in known.coefficients() if c.name == "smoker")
    assert smoker.unit == "true against false"
    assert smoker.value == pytest.approx(2 * known.estimator_.coef_[0][5])


SCORE = ("score", "model", "table.csv", "--private", "-e", 5, *LEDGER, "--json")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--metric", "calibration"), "Calibration error, in parts"),
        (("--metric", "confusion"), "low predicted as high"),
        (("--by", "color"), "color = red"),
        (("--by", "smoker", "--metric", "brier"), "smoker"),
    ],
)
def test_a_score_comes_onto_the_page(ok, place, options, shown):
    found = ok(*SCORE, *options).stdout
    (place / "score.json").write_text(found)
    assert json.loads(found)["parts"]
    before = charges()
    ok("report", "model", "--score", "score.json", "--out", "page.html")
    page = (place / "page.html").read_text()
    assert shown in page
    assert "Hazards and answers" in page
    assert MARK not in page
    assert charges() == before
    ok("verify", "page.html")


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
