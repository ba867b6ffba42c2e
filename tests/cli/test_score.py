import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from discreet.models.table_model import TableModel
from tests.cli.tables import BOUGHT, LEDGER, MARK, charges, write_table

SCORE = ("score", "model", "table.csv")


def truth(place, model="model", table="table.csv", target="label"):
    """The share of rows that the model is right about, by hand; a row whose label is none of the classes has none."""
    known = pa.csv.read_csv(place / table).to_pydict()[target]
    found = TableModel.load(place / model).predict(place / table)
    counted = [said == is_so for said, is_so in zip(found, known, strict=True) if is_so != MARK]
    return np.mean(counted)


def test_whose_rows_they_are_must_be_said(refused, place):
    for options in ((), ("--private", "--public-data")):
        told = refused(*SCORE, *options)
        assert "--private" in told
        assert "--public-data" in told


def test_public_rows_are_scored_exactly(ok, place):
    told = ok(*SCORE, "--public-data").stdout
    assert "nothing protects them" in told
    found = json.loads(ok(*SCORE, "--public-data", "--json").stdout)
    right = truth(place)
    assert found["metric"] == "accuracy"
    assert found["value"] == pytest.approx(right)  # a row without a class is left out
    assert found["low"] == found["high"] == found["value"]
    assert found["population_low"] < found["value"] < found["population_high"]
    assert found["certificate"] is None
    assert charges() == 1


def test_private_rows_cost_and_come_with_intervals(ok, place):
    told = ok(*SCORE, "--private", "-e", 1, *LEDGER).stdout
    assert "PRIVATE: epsilon = 1" in told
    assert charges() == 2
    found = json.loads(ok(*SCORE, "--private", "-e", 1, "--level", 0.999, *LEDGER, "--json").stdout)
    assert charges() == 3
    assert found["certificate"]["epsilon"] == 1
    assert found["certificate"]["ledger"]["dataset"] == "people"
    assert found["low"] <= found["value"] <= found["high"]
    assert found["population_low"] <= found["low"]
    assert found["high"] <= found["population_high"]
    assert found["level"] == 0.999
    assert found["low"] - 0.02 < truth(place) < found["high"] + 0.02
    (place / "score.json").write_text(json.dumps(found["certificate"]))
    ok("verify", "score.json", "--ledger", "budget.db")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--private", *LEDGER, "-e", 50), "Nothing was charged, no record was read"),
        (("--private", "--ledger", "budget.db"), "add --dataset NAME"),
        (("--private", *LEDGER[:2], "--dataset", "others"), "no data set 'others'"),
        (("--private", *LEDGER, "--neighbors", "zero_out"), "registered for replace_one"),
        (("--public-data", *LEDGER), "not charged to a ledger"),
        (("--private", "--metric", "r2"), "numeric targets"),
        (("--private", "--metric", "f1"), "auto, accuracy, auc"),
        (("--private", "-e", "-1"), "epsilon"),
        (("--private", "-e", "nan"), "epsilon"),
        (("--private", "-d", "2"), "delta"),
        (("--private", "--neighbors", "add_remove"), "delta"),
    ],
)
def test_refused_before_anything_is_charged(refused, place, options, told):
    assert told in refused(*SCORE, *options)
    assert charges() == 1


def test_a_model_with_bought_ranges_is_scored_in_them(ok, place):
    """The range in the schema was private: the rows are encoded by the one that the model bought."""
    (place / "bought.toml").write_text(BOUGHT)
    ok("fit", "table.csv", "-s", "bought.toml", "-o", "new", "-e", 5)
    schema = (place / "new" / "schema.toml").read_text()
    assert "private" not in schema
    found = json.loads(ok("score", "new", "table.csv", "--public-data", "--json").stdout)
    right = truth(place, "new")
    assert found["value"] == pytest.approx(right)  # a row without a class is left out
    private = json.loads(ok("score", "new", "table.csv", "--private", "--json").stdout)
    assert len(private["certificate"]["events"]) == 1  # no range is bought again


def test_under_add_remove_no_number_of_rows_is_told(ok, place):
    write_table(place / "odd.csv", 397)
    asked = ("score", "model", "odd.csv", "--private", "--neighbors", "add_remove", "-d", 1e-6)
    assert not re.search(r"(?<![\d.])397\b", ok(*asked).output)  # digits of a share may be these
    assert json.loads(ok(*asked, "--json").stdout)["n"] != 397
