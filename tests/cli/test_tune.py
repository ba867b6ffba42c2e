import json
import re

import numpy as np
import pytest

import discreet
from discreet.cli.errors import UNSERVED
from discreet.cli.tune import _csv

SETTINGS = """
model = "logistic"
target = "ill"
[bounds]
classes = [0, 1]
[bounds.features]
age = [0, 120]
dose = [-1, 1]
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
def rows(tmp_path):
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(0, 120, 300), rng.uniform(-1, 1, 300)
    ill = (age / 60 + dose > 1).astype(int)
    path = tmp_path / "rows.csv"
    lines = ["dose,ill,age", *(f"{d:.4f},{i},{a:.1f}" for a, d, i in zip(age, dose, ill, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def answer(run, *arguments):
    result = run("tune", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_price_needs_no_records(run, settings):
    found = answer(run, "--settings", settings, "--dry-run", "--rows", 5000, "--epsilon", 2, "--neighbors", "zero_out")
    assert 1.98 < found["price"] <= 2 == found["epsilon"]
    assert found["run_epsilon"] < 1.9
    assert (found["candidates"], found["stopping"], found["mean_runs"]) == (2, "logarithmic", 2)
    assert found["delta"] == 1 / 5000**2
    assert "chosen" not in found
    settings.write_text(SETTINGS.replace("[bounds.features]\nage = [0, 120]\ndose = [-1, 1]\n", "features = 1.0\n"))
    wide = answer(run, "--settings", settings, "--dry-run", "--rows", 5000, "--columns", 40, "--epsilon", 2)
    assert wide["price"] <= 2


def test_a_table_is_not_opened_for_the_price(run, settings, tmp_path):
    found = answer(run, tmp_path / "nowhere.csv", "-s", settings, "--dry-run", "--rows", 500)
    assert found["price"] <= 1


def test_a_csv_is_tuned_on(run, settings, rows, tmp_path):
    out = tmp_path / "best.discreet"
    result = run("tune", rows, "--settings", settings, "--epsilon", 4, "--out", out, "--stopping", "logarithmic")
    assert result.exit_code == 0, result.output
    assert "how many must stay secret" in result.stdout
    assert "Privacy certificate: PRIVATE" in result.stdout
    model = discreet.load(out)
    assert model.n_features_in_ == 2
    assert model.certificate_.solver["selected_from"] == 2
    verified = run("verify", out)
    assert verified.exit_code == 0, verified.output


def test_an_npz_and_json_settings(run, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (200, 2))
    np.savez(tmp_path / "rows.npz", X=X, y=X[:, 0])
    settings = {"model": "ridge", "bounds": {"features": 1.0, "target": [-1, 1]}, "candidates": {"alpha": [1e-3, 1.0]}}
    (tmp_path / "tune.json").write_text(json.dumps(settings))
    found = answer(run, tmp_path / "rows.npz", "-s", tmp_path / "tune.json", "-e", 5, "-o", tmp_path / "best.discreet")
    assert set(found["chosen"]) == {"alpha"}
    assert "noisy_score" in found


def test_the_demo(run, tmp_path):
    found = answer(run, "--demo", "--rows", 400, "--epsilon", 3, "--out", tmp_path / "demo.discreet")
    assert found["candidates"] == 6
    dry = answer(run, "--demo", "--dry-run", "--epsilon", 3)
    assert dry["price"] <= 3


def test_a_cell_that_is_no_number_is_silent(run, settings, rows, tmp_path):
    text = rows.read_text().splitlines()
    text[3] = "Jane,1,50"
    rows.write_text("\n".join(text))
    result = run("tune", rows, "-s", settings, "-e", 4, "-o", tmp_path / "best.discreet")
    assert result.exit_code == 0
    assert "Jane" not in result.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("logistic", "forest"), "need a model"),
        (("[candidates]", "[others]"), "need \\[bounds\\]"),
        (('model = "logistic"', 'model = "logistic"\nmagic = 1'), "unknown settings: magic"),
        (('target = "ill"', 'target = "sick"'), "no column 'sick'"),
        (("age = ", "years = "), "no column 'years'"),
        (("classes = [0, 1]", "labels = [0, 1]"), "knows features"),
        (("alpha = ", "strength = "), "no parameter 'strength'"),
        (("model", "[["), "neither TOML"),
        (("solver = [", "epsilon = [1.0]\nsolver = ["), "cannot have their own epsilon"),
    ],
)
def test_wrong_settings(run, settings, rows, change, message):
    settings.write_text(SETTINGS.replace(*change))
    result = run("tune", rows, "-s", settings)
    assert result.exit_code == UNSERVED
    assert len(result.stderr.strip().splitlines()) == 1
    assert re.search(message, result.stderr)


def test_what_is_missing_is_said(run, settings, rows, tmp_path):
    assert "give a table" in run("tune").stderr
    assert "give a table" in run("tune", rows).stderr
    assert "give --rows" in run("tune", "-s", settings, "--dry-run").stderr
    np.savez(tmp_path / "bad.npz", X=np.zeros((3, 2)))
    assert "X and y" in run("tune", tmp_path / "bad.npz", "-s", settings).stderr


def test_cells_that_are_no_numbers_make_null_records_and_drop_none(tmp_path):
    table = tmp_path / "cells.csv"
    table.write_text('dose,ill,age\n1,0,3\n4,5\n#N/A,1,2\n7,1,a#b\n"1,5",1,2\n')
    X, y = _csv(table, "ill", None)
    assert X.shape == (5, 2)
    assert np.isnan(np.column_stack([X, y])).any(axis=1).tolist() == [False, True, True, True, True]


# --- the ledger -----------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """The configured ledger."""
    made = discreet.Ledger.create(tmp_path / "budget.db")
    made.grant("wards", 5.0, 1e-4)
    monkeypatch.setenv("DISCREET_LEDGER", str(tmp_path / "budget.db"))
    return made


def refused(run, *arguments):
    result = run("tune", *arguments)
    assert result.exit_code == UNSERVED, result.output
    assert len(result.stderr.strip().splitlines()) == 1
    return result.stderr


def test_the_whole_selection_is_charged_once(run, settings, rows, ledger, tmp_path):
    out = tmp_path / "best.discreet"
    found = answer(run, rows, "-s", settings, "-e", 4, "-o", out, "--dataset", "wards")
    (_, entry) = ledger.entries()
    assert (entry.dataset, entry.contents["label"]) == ("wards", "DPSelectCV")
    assert found["ledger"] == discreet.load(out).certificate_.ledger
    assert found["ledger"]["head"] == entry.hash
    assert run("budget", "verify", "--certificate", out).exit_code == 0


def test_a_named_ledger_comes_before_the_configured_one(run, settings, rows, ledger, tmp_path):
    other = discreet.Ledger.create(tmp_path / "other.db")
    other.grant("wards", 5.0, 1e-4)
    out = tmp_path / "best.discreet"
    answer(run, rows, "-s", settings, "-e", 4, "-o", out, "-l", tmp_path / "other.db", "--dataset", "wards")
    assert other.spent("wards").fits == 1
    assert ledger.spent("wards").fits == 0


def test_a_spent_budget_stops_the_selection(run, settings, rows, ledger, tmp_path):
    out = tmp_path / "best.discreet"
    assert "does not allow" in refused(run, rows, "-s", settings, "-e", 6, "-o", out, "--dataset", "wards")
    assert ledger.spent("wards").fits == 0
    assert not out.exists()


def test_what_the_ledger_refuses_is_refused_before_the_table_is_opened(run, settings, ledger, tmp_path, monkeypatch):
    nowhere = tmp_path / "nowhere.csv"
    assert "--public" in refused(run, nowhere, "-s", settings)
    assert "no data set 'beds'" in refused(run, nowhere, "-s", settings, "--dataset", "beds")
    told = refused(run, nowhere, "-s", settings, "--dataset", "wards", "--neighbors", "zero_out")
    assert "registered for replace_one per record" in told
    ledger.grant("patients", 5.0, 1e-4, unit="person")
    assert "per person" in refused(run, nowhere, "-s", settings, "--dataset", "patients")
    assert "no ledger here" in refused(run, nowhere, "-s", settings, "-l", tmp_path / "no.db", "--dataset", "wards")
    monkeypatch.delenv("DISCREET_LEDGER")
    assert "no ledger: give" in refused(run, nowhere, "-s", settings, "--dataset", "wards")


def test_public_and_synthetic_records_are_charged_nowhere(run, settings, rows, ledger, tmp_path):
    out = tmp_path / "best.discreet"
    assert answer(run, rows, "-s", settings, "-e", 4, "-o", out, "--public")["ledger"] is None
    assert answer(run, "--demo", "--rows", 500, "-o", out)["ledger"] is None
    assert "ledger" not in answer(run, "-s", settings, "--dry-run", "--rows", 500)
    assert "ledger" not in answer(run, "-s", settings, "--dry-run", "--rows", 500, "--dataset", "wards")
    assert ledger.spent("wards").fits == 0
    assert "charged nowhere" in refused(run, rows, "-s", settings, "--public", "--dataset", "wards")
    assert "charged nowhere" in refused(run, "--demo", "--ledger", tmp_path / "budget.db")
