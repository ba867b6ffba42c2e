"""The comparison of solvers runs, replays, and says what it found: few synthetic rows, no files but its own."""

import csv
import gzip
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparisons.solvers import Protocol, run
from benchmarks.measures.accuracy import mean_and_error, private_accuracy
from benchmarks.methods.defaults import METHODS
from benchmarks.pages.generated import into_page
from benchmarks.pages.solvers import as_csv, best_in_column, cells, markdown
from benchmarks.problems.measured_tables import SOURCES, MissingTable, chosen_tables, read_table, unit_hospital
from discreet.errors import Unsupported

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


@pytest.fixture(scope="module")
def results():
    return run({"synthetic": unit_hospital(600)}, FAST)


def test_a_file_becomes_numbers_within_zero_and_one(tmp_path):
    table = read_table(written(tmp_path / "small.csv.gz"))
    assert table.names == ("age", "town=Lille", "town=Paris", "constant")
    assert table.X.tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0.25, 1, 0, 0]]
    assert table.y.tolist() == [0, 1, 1]
    assert table.bounds.features == ((0.0, 1.0),) * 4


@pytest.mark.parametrize("text", ["a,target\n1,0\n", "a,target\n1,0\n2,yes\n", "a,target\n1,0\n2\n", "target\n0\n1\n"])
def test_other_layouts_are_refused_without_quoting_them(tmp_path, text):
    with pytest.raises(MissingTable) as refused:
        read_table(written(tmp_path / "small.csv.gz", text))
    assert "yes" not in str(refused.value)


def test_missing_files_are_named(tmp_path, monkeypatch):
    written(tmp_path / SOURCES["bank"].file)
    with pytest.raises(MissingTable, match=r"adult\.csv\.gz, ipums_br\.csv\.gz"):
        chosen_tables(tmp_path)
    assert list(chosen_tables(tmp_path, ["bank"])) == ["bank"]
    with pytest.raises(MissingTable, match="no table called iris"):
        chosen_tables(tmp_path, ["iris"])
    monkeypatch.chdir(tmp_path)
    assert list(chosen_tables(None, rows=100)) == ["synthetic"]
    (tmp_path / "data").mkdir()
    with pytest.raises(MissingTable, match="folder data has no"):
        chosen_tables(None)


def test_synthetic_rows_are_stretched_by_their_codebook():
    table = unit_hospital(500)
    assert table.X.min() >= 0
    assert 0.5 < table.X.max() <= 1


def test_folds_cover_every_row_once_a_repeat():
    splits = list(Protocol(folds=3, repeats=2).splits(20))
    assert len(splits) == 6
    assert np.array_equal(np.sort(np.concatenate([held for _, held in splits[:3]])), np.arange(20))
    assert all(np.array_equal(np.union1d(train, held), np.arange(20)) for train, held in splits)
    assert not np.array_equal(splits[0][1], splits[3][1])


@pytest.mark.parametrize("wrong", [{"methods": ("newton",)}, {"folds": 1}, {"epsilons": ()}, {"epsilons": (-1.0,)}])
def test_impossible_protocols_are_refused(wrong):
    with pytest.raises(Unsupported):
        Protocol(**wrong)


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


def test_results_are_plain_numbers(results):
    assert json.loads(json.dumps(results))["tables"] == results["tables"]
    (table,) = results["tables"]
    assert [method["method"] for method in table["methods"]] == ["agd", "gd", "objective"]
    assert FAST.fit_count(1) == 12
    assert np.mean(table["non_private"]) > np.mean(table["majority"])


def test_tables_say_what_was_found(results):
    (table,) = results["tables"]
    rows = cells(table)
    assert [row[0] for row in rows] == ["agd", "gd", "objective", "majority class", "without privacy"]
    mean, error = mean_and_error(table["methods"][1]["points"][0]["accuracies"])
    assert rows[1][1] == f"{100 * mean:.2f} ± {100 * error:.2f}"
    page = into_page("<!-- solvers: generated -->\nold\n<!-- solvers: end -->\n", markdown(results), "solvers")
    assert "old" not in page
    assert f"**{rows[best_in_column(table)[0]][1]}**" in page
    lines = list(csv.DictReader(io.StringIO(as_csv(results))))
    assert len(lines) == 12 + 4
    assert {line["method"] for line in lines} == {"agd", "gd", "objective", "majority", "non_private"}


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


def test_panels_draw(results):
    pytest.importorskip("matplotlib")
    from benchmarks.pages.accuracy_panels import AccuracyPanel, Line, accuracy_panels

    panel = AccuracyPanel("a table", [Line("method", [0.7, 0.8], [0.01, 0.0], 0)], 0.6, 0.85)
    figure = accuracy_panels([panel, panel], (0.1, 1.0), title="t", subtitle="s")
    assert len(figure.axes) == 2
    assert figure.axes[0].get_ylim()[1] > 0.85
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["method"]


def test_one_method_that_is_far_behind_does_not_press_the_others_together():
    pytest.importorskip("matplotlib")
    from benchmarks.pages.accuracy_panels import AccuracyPanel, Line, accuracy_panels

    good = [Line(name, [0.8, 0.84], [0.01, 0.0], look) for look, name in enumerate("ab")]
    panel = AccuracyPanel("a table", [*good, Line("far behind", [0.5, 0.6], [0.01, 0.0], 2)], 0.6, 0.85)
    (axes,) = accuracy_panels([panel], (0.1, 1.0), title="t", subtitle="s").axes
    assert 0.6 < axes.get_ylim()[0] < 0.8
    assert "majority class 60.0%, below" in [text.get_text() for text in axes.texts]


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
