import csv
import io

import numpy as np
import pyarrow.parquet
import pytest

from discreet.curator.tables.files import CsvSource
from discreet.models.table_model import TableModel
from tests.cli.tables import hidden, poison, write_parquet

PREDICT = ("predict", "model", "table.csv")


def column(text, name="prediction"):
    return [row[name] for row in csv.DictReader(io.StringIO(text))]


def test_one_prediction_per_row_in_their_order(ok, place):
    """By the probabilities: noise may make all predictions of a small table the same."""

    def chances(*tables):
        return column(ok("predict", "model", *tables, "--probabilities").stdout, "probability of high")

    whole = chances("table.csv")
    assert len(whole) == 400
    assert len(set(whole)) > 1
    rows = (place / "table.csv").read_text().splitlines()
    (place / "turned.csv").write_text("\n".join([rows[0], *reversed(rows[1:])]) + "\n")
    assert chances("turned.csv") == whole[::-1]
    assert chances("table.csv", "turned.csv") == whole + whole[::-1]
    predictions = column(ok(*PREDICT).stdout)
    assert predictions == np.where(np.array(whole, dtype=float) > 0.5, "high", "low").tolist()
    assert np.array_equal(TableModel.load(place / "model").predict(place / "table.csv"), predictions)


def test_csv_parquet_and_stdout_say_the_same(ok, place):
    printed = ok(*PREDICT, "--probabilities").stdout
    told = ok(*PREDICT, "--probabilities", "--out", "found.csv")
    assert told.stdout == ""
    assert "400 predictions in found.csv" in told.stderr
    ok(*PREDICT, "--probabilities", "--out", "found.parquet")
    assert (place / "found.csv").read_text() == printed
    table = pyarrow.parquet.read_table(place / "found.parquet").to_pydict()
    assert list(table) == ["prediction", "probability of low", "probability of high"]
    assert table["prediction"] == column(printed)
    assert table["probability of high"] == [float(cell) for cell in column(printed, "probability of high")]
    assert np.allclose(np.add(table["probability of low"], table["probability of high"]), 1)
    assert hidden(place) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*PREDICT, "-o", "schema.toml"), "ends in .csv or .parquet"),
        ((*PREDICT, "-o", "table.csv"), "the file already exists"),
        ((*PREDICT, "-o", "link.csv"), "the file already exists"),
        ((*PREDICT, "-o", "nowhere/found.csv"), "nowhere"),
        ((*PREDICT, "-o", "nowhere/found.parquet"), "nowhere"),
        ((*PREDICT, "-o", "/proc/nothing.csv"), "/proc"),
        (("predict", "model", "none.csv"), "no such file"),
        (("predict", "model", "empty.csv"), "no rows"),
        (("predict", "model", "empty.csv", "-o", "found.csv"), "no rows"),
        (("predict", "model/model.discreet", "table.csv"), "not a model's folder"),
        (("predict", ".", "table.csv"), "not a model's folder"),
        (("predict", "none", "table.csv"), "not a model's folder"),
    ],
)
def test_refused(refused, place, arguments, told):
    (place / "empty.csv").write_text("name,age,income,color,smoker,visits,label\n")
    (place / "link.csv").symlink_to("table.csv")
    before = (place / "table.csv").read_bytes()
    assert told in refused(*arguments)
    assert (place / "table.csv").read_bytes() == before
    assert hidden(place) == []


def test_a_file_is_there_whole_or_not_at_all(refused, run, place, monkeypatch):
    """Where reading fails in the middle, and where it is interrupted there."""
    write_parquet(place / "first.parquet")
    poison(write_parquet(place / "second.parquet"))
    for name in ("found.csv", "found.parquet"):
        told = refused("predict", "model", "first.parquet", "second.parquet", "-o", name)
        assert "second.parquet" in told
        assert not (place / name).exists()
    assert hidden(place) == []
    batches = CsvSource.batches

    def interrupted(self, *arguments):
        yield next(batches(self, *arguments))
        if len(arguments) == 2:  # not when rows are counted
            raise KeyboardInterrupt

    monkeypatch.setattr(CsvSource, "batches", interrupted)
    assert run(*PREDICT, "-o", "found.csv").exit_code == 130
    assert not (place / "found.csv").exists()
    assert hidden(place) == []


def test_columns_are_kept_beside_their_predictions(ok, refused, place):
    """Also where a line is no row: it is predicted last, and what is kept shows which one is whose."""
    lines = (place / "table.csv").read_text().splitlines()
    numbered = [f"row,{lines[0]}", *(f"caf\u00e9 {i},{line}" for i, line in enumerate(lines[1:]))]
    (place / "numbered.csv").write_text("\n".join([*numbered[:5], "ragged", *numbered[5:]]) + "\n", encoding="utf-8")
    printed = ok("predict", "model", "numbered.csv", "--keep", "row").stdout
    found = list(csv.DictReader(io.StringIO(printed)))
    assert list(found[0]) == ["row", "prediction"]
    assert [row["row"] for row in found] == [*(f"caf\u00e9 {i}" for i in range(400)), ""]
    assert [row["prediction"] for row in found[:400]] == column(ok(*PREDICT).stdout)
    assert "no column 'id'" in refused(*PREDICT, "--keep", "id")
