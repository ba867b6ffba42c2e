"""What discreet writes is what its JSON Schemas say, and what they do not say is refused."""

import json
import tomllib

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from discreet import DPLogisticRegression, DPRidge, Ledger
from discreet.cli.app import app
from discreet.errors import DiscreetError
from discreet.json_schemas import json_schema
from discreet.schema import Number, Schema
from tests.models.exports import SCHEMA, fitted_table


def check(name, value):
    jsonschema.validate(json.loads(json.dumps(value)), json_schema(name))


@pytest.mark.parametrize("solver", ["auto", "gd", "sgd", "cd", "gcd", "agd", "output", "objective"])
def test_certificates(solver, tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.grant("people", 9.0, 1e-3)
    model = DPLogisticRegression(bounds=1.0, classes=(0, 1), solver=solver, delta=1e-6, alpha=0.1)
    for charged in ({}, {"ledger": ledger, "dataset": "people"}):
        made = model.set_params(**charged).fit(np.eye(40), np.arange(40) % 2).certificate_
        stored = json.loads(made.to_json())
        check("certificate", stored)
        for name in ("solver", "assumed_public"):
            with pytest.raises(jsonschema.ValidationError):
                check("certificate", stored | {name: {"a": [{}]}})


def test_folders(tmp_path):
    model = fitted_table()
    folder = model.save(tmp_path / "model")
    check("model-folder", json.loads((folder / "manifest.json").read_text()))
    check("certificate", json.loads((folder / "certificate.json").read_text()))
    check("schema-file", tomllib.loads((folder / "schema.toml").read_text()))


def test_ledgers(tmp_path):
    address = tmp_path / "budget.db"
    ledger = Ledger.create(address)
    ledger.grant("people", 9.0, 1e-3)
    ledger.divide("people", ["north", "south"])
    DPRidge(bounds=1.0, target=(0, 1), ledger=ledger, dataset="north").fit(np.eye(40), np.ones(40))

    def said(*words):
        done = CliRunner().invoke(app, ["budget", *words, "--ledger", str(address)], prog_name="discreet")
        assert done.exit_code == 0, done.output
        return done.stdout

    check("ledger-statement", json.loads(said("show", "--json")))
    lines = said("export", "-").splitlines()
    assert {json.loads(line)["kind"] for line in lines} == {"grant", "part", "charge"}
    for line in lines:
        check("ledger-entry", json.loads(line))


@pytest.mark.parametrize(
    "text",
    [
        SCHEMA.to_toml(),
        Schema({"pay": Number("private", within=(0, 1e7))}).to_toml(),
        '[target]\ncolumn = "a"\n[columns.b]\n',
        '[columns.b]\nboolean = true\ntrue = "ja"\nfalse = ["nein"]\nmissing = true',
    ],
)
def test_schema_files(text):
    Schema.from_toml(text)
    check("schema-file", tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        *("unknown = 1", "rows = 0", "[columns.b]\nrange = [1]", '[columns.b]\nrange = [0, 1]\ncategories = ["a"]'),
        *('[columns.b]\nlevels = ["a"]', "[columns.b]\nboolean = false"),
        *('[target]\ncolumn = "a"\nclasses = [0, 1]\nrange = [0, 1]', 'separator = "x"'),
    ],
)
def test_what_discreet_refuses_the_schema_refuses(text):
    with pytest.raises(DiscreetError):
        Schema.from_toml(text)
    with pytest.raises(jsonschema.ValidationError):
        check("schema-file", tomllib.loads(text))
