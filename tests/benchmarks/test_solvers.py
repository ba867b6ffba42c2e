"""The comparison of solvers runs, replays, and says what it found: few synthetic rows, no files but its own."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparisons.solvers import Protocol, run
from benchmarks.measures.accuracy import private_accuracy
from benchmarks.methods.defaults import METHODS
from benchmarks.problems.measured_tables import SOURCES, chosen_tables, read_table, unit_hospital

FAST = Protocol(epsilons=(0.5, 4.0), methods=("agd", "gd", "objective"), folds=2)
REAL = Path(os.environ.get("DISCREET_DATA", "data"))

SMALL = """age,town,constant,target
20,Lille,3,0
60,Paris,3,1
30,Lille,3,1
"""


def written(path, text=SMALL):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


def test_a_file_becomes_numbers_within_zero_and_one(tmp_path):
    table = read_table(written(tmp_path / "small.csv.gz"))
    assert table.names == ("age", "town=Lille", "town=Paris", "constant")
    assert table.X.tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0.25, 1, 0, 0]]
    assert table.y.tolist() == [0, 1, 1]
    assert table.bounds.features == ((0.0, 1.0),) * 4


@pytest.mark.few(2)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_fits_and_replays(method):
    table = unit_hospital(400)
    train, held = next(FAST.splits(400))
    first, again = (
        private_accuracy(table, train, held, method, 1.0, delta=FAST.delta, alpha=FAST.alpha, seed=1) for _ in range(2)
    )
    assert first == again
    assert 0 <= first <= 1


@pytest.mark.thorough
def test_one_command_writes_numbers_and_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("benchmarks.commands.solvers.QUICK_ROWS", 300)
    done = CliRunner().invoke(app, ["solvers", "--quick", "--method", "gd", "--method", "agd"])
    assert done.exit_code == 0, done.output
    assert "using synthetic" in done.output
    assert "without privacy" in done.output
    names = {path.name for path in (tmp_path / "build/solvers").iterdir()}
    assert {"solvers.json", "solvers.csv"} <= names
    refused = CliRunner().invoke(app, ["solvers", "--data", str(tmp_path)])
    assert refused.exit_code == 2
    assert "adult.csv.gz" in refused.output


@pytest.mark.thorough
@pytest.mark.parametrize("name", SOURCES)
def test_on_real_tables_noise_leaves_something_to_learn(name):
    if not (REAL / SOURCES[name].file).is_file():
        pytest.skip("the public tables are not here; DISCREET_DATA names their folder")
    tables = chosen_tables(REAL, [name])
    found = run(tables, Protocol(epsilons=(1.6,), methods=("agd", "agd-paper"), folds=2))
    (table,) = found["tables"]
    ours, paper = (np.mean(method["points"][0]["accuracies"]) for method in table["methods"])
    assert np.mean(table["non_private"]) + 0.005 > ours > np.mean(table["majority"])
    assert ours >= paper - 0.005
