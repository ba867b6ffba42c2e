import json

import numpy as np
import pytest

import discreet
from discreet.cli.terminal import UNSERVED

SCHEMA = """
[target]
column = "ill"
classes = [0, 1]
[columns.age]
range = [0, 120]
[columns.dose]
range = [-1, 1]
"""
SETTINGS = """
model = "logistic"
[candidates]
alpha = [1e-4, 1e-2]
solver = ["gd"]
"""


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "tune.toml"
    path.write_text(SETTINGS)
    return path


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA)
    return path


@pytest.fixture
def given(settings, schema):
    return ("--settings", settings, "--schema", schema)


def write_rows(path, n=300, seed=0):
    rng = np.random.default_rng(seed)
    age, dose = rng.uniform(0, 120, n), rng.uniform(-1, 1, n)
    ill = (age / 60 + dose > 1).astype(int)
    lines = ["dose,ill,age", *(f"{d:.4f},{i},{a:.1f}" for a, d, i in zip(age, dose, ill, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def rows(tmp_path):
    return write_rows(tmp_path / "rows.csv")


def answer(run, *arguments):
    result = run("tune", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_price_needs_no_records(run, given):
    found = answer(run, *given, "--dry-run", "--rows", 5000, "--epsilon", 2, "--neighbors", "zero_out")
    assert 1.98 < found["price"] <= 2 == found["epsilon"]
    assert found["run_epsilon"] < 1.9
    assert (found["candidates"], found["stopping"], found["mean_runs"]) == (2, "logarithmic", 2)
    assert found["delta"] == 1 / 5000**2
    assert "chosen" not in found


@pytest.mark.parametrize("kind", ["csv", "parquet", "files"])
def test_a_table_is_tuned_on(run, given, rows, tmp_path, kind):
    out, tables = tmp_path / "best", [rows]
    if kind == "parquet":
        import pandas as pd

        pd.read_csv(rows).to_parquet(tmp_path / "rows.parquet")
        tables = [tmp_path / "rows.parquet"]
    if kind == "files":
        tables = [rows, write_rows(tmp_path / "more.csv", seed=1)]
    result = run("tune", *tables, *given, "--epsilon", 4, "--out", out, "--stopping", "logarithmic")
    assert result.exit_code == 0, result.output
    assert "how many must stay secret" in result.stdout
    assert "Privacy certificate: PRIVATE" in result.stdout
    model = discreet.TableModel.load(out)
    assert model.estimator_.n_features_in_ == 2
    assert model.certificate_.solver["selected_from"] == 2
    assert model.certificate_.assumed_public["schema"]["target"]["column"] == "ill"
    verified = run("verify", out)
    assert verified.exit_code == 0, verified.output
    assert run("predict", out, rows, "--out", tmp_path / "predicted.csv").exit_code == 0


TINY = [1e-300, 1e-12, 3.86379219073286e-05, 1e-3, 0.05]


@pytest.mark.parametrize("declared", [False, True])
def test_a_private_number_of_rows_shows_in_no_answer(run, given, schema, tmp_path, declared):
    """With n and n + 1 rows, every budget gives the same words: delta once followed from the true n."""
    if declared:
        schema.write_text("rows = 400\n" + SCHEMA)
    told = []
    for n in (400, 401):
        table = write_rows(tmp_path / f"rows-{n}.csv", n)
        for epsilon in TINY:
            for extra in ((), ("--delta", 1e-6)):
                words = (*given, "-e", epsilon, "--neighbors", "add_remove", "--dry-run", "--json", *extra)
                result = run("tune", table, *words)
                told.append((n, epsilon, result.exit_code, result.stdout, result.stderr))
    assert [one[1:] for one in told if one[0] == 400] == [one[1:] for one in told if one[0] == 401]
    assert {one[2] for one in told} == ({0, 2} if declared else {2})


def test_a_private_number_of_rows_is_refused_before_the_charge(run, given, rows, tmp_path):
    result = run("tune", rows, *given, "--neighbors", "add_remove", "--delta", 1e-6, "-o", tmp_path / "best")
    assert result.exit_code == UNSERVED
    assert "n is private" in result.stderr


# --- the ledger -----------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """The configured ledger."""
    made = discreet.Ledger.create(tmp_path / "budget.db")
    made.grant("wards", 5.0, 1e-4)
    monkeypatch.setenv("DISCREET_LEDGER", str(tmp_path / "budget.db"))
    return made


def test_the_whole_selection_is_charged_once(run, given, rows, ledger, tmp_path):
    out = tmp_path / "best"
    found = answer(run, rows, *given, "-e", 4, "-o", out, "--dataset", "wards")
    (_, entry) = ledger.entries()
    assert (entry.dataset, entry.contents["label"]) == ("wards", "DPRandomizedSearch")
    assert found["ledger"] == discreet.TableModel.load(out).certificate_.ledger
    assert found["ledger"]["head"] == entry.hash
    assert run("budget", "verify", "--certificate", out / "certificate.json").exit_code == 0
