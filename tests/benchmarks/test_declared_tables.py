"""Declared ranges: round, complete, applied as written; and rows that come out as they went in."""

import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.comparisons.accuracy import write_tables
from benchmarks.problems import declared_tables as declared
from discreet.bounds import Bounds
from discreet.curator import Layout

REAL = Path(os.environ.get("DISCREET_DATA", "data"))
TOY = {
    "title": "Toy",
    "file": "toy.csv.gz",
    "classes": [0, 1],
    "flags": ["smoker"],
    "numeric": {"age": [0, 100]},
    "categories": {"town": ["Lille", "Paris, 2e"]},
}
ROWS = 'age,town,smoker,target\n30,Lille,1,0\n130,"Paris, 2e",0,1\n50,Rome,0,1\n'


@pytest.fixture
def toy(tmp_path, monkeypatch):
    with gzip.open(tmp_path / "toy.csv.gz", "wt", encoding="utf-8") as file:
        file.write(ROWS)
    monkeypatch.setattr(declared, "declarations", lambda: {"toy": TOY})
    return tmp_path


def test_columns_are_encoded_as_declared(toy):
    table = declared.load("toy", toy)
    assert table.names == ("age", "town=Lille", "town=Paris, 2e", "smoker")
    assert table.X.tolist() == [[30, 1, 0, 1], [130, 0, 1, 0], [50, 0, 0, 0]]
    assert table.y.tolist() == [0, 1, 1]
    assert table.bounds.features == ((0.0, 100.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0))
    assert table.bounds.classes == (0, 1)
    assert table.numeric.tolist() == [True, False, False, False]


def test_a_sample_is_fixed_and_keeps_the_order(tmp_path, monkeypatch):
    with lzma.open(tmp_path / "toy.csv.xz", "wt", encoding="utf-8") as file:
        file.write("age,target\n" + "".join(f"{i},{i % 2}\n" for i in range(50)))
    facts = {"title": "Toy", "file": "toy.csv.xz", "classes": [0, 1], "rows": 20, "numeric": {"age": [0, 50]}}
    monkeypatch.setattr(declared, "declarations", lambda: {"toy": facts})
    monkeypatch.setattr(declared, "CHUNK", 7)
    first, again = (declared.load("toy", tmp_path) for _ in range(2))
    assert first.X.shape == (20, 1)
    assert np.array_equal(first.X, again.X)
    assert np.all(np.diff(first.X[:, 0]) > 0)
    assert np.array_equal(first.y, first.X[:, 0] % 2)


def test_a_split_takes_every_row_once_and_a_fifth_of_each_class(toy):
    table = declared.load("toy", toy)
    y = np.repeat([0.0, 1.0], [75, 25])
    big = declared.DeclaredTable("t", "t", np.arange(100.0)[:, None], y, ("a",), table.bounds, np.array([True]))
    train, test = declared.split(big)
    assert (len(train.y), len(test.y), test.y.sum()) == (80, 20, 5)
    assert np.array_equal(np.sort(np.concatenate([train.X, test.X])[:, 0]), np.arange(100.0))
    assert np.array_equal(declared.split(big)[1].X, test.X)
    assert not np.array_equal(declared.split(big, seed=1)[1].X, test.X)


def test_exported_tables_have_all_that_another_program_needs(toy, tmp_path):
    assert list(write_tables(toy, tmp_path / "out")) == ["toy"]
    table = declared.load("toy", toy)
    with np.load(tmp_path / "out" / "toy.npz") as file:
        assert np.array_equal(file["X"], table.X)
        assert np.array_equal(file["y"], table.y)
        assert bool(file["classification"])
        assert file["high"].tolist() == [100, 1, 1, 1]
        assert file["splits"].tolist() == [0]
        assert np.array_equal(file["X"][file["held_out"][0]], declared.split(table)[1].X)


@pytest.mark.thorough
@pytest.mark.parametrize("name", declared.names())
def test_real_tables_have_the_declared_columns(name):
    if not (REAL / declared.declarations()[name]["file"]).is_file():
        pytest.skip("the public tables are not here; DISCREET_DATA names their folder")
    table = declared.load(name, REAL)
    assert (len(table.y) < declared.SMALL) == declared.declarations()[name].get("small", False)
    assert np.isfinite(table.X).all()
    low, high = table.bounds.ranges(len(table.names))
    outside = np.mean((low > table.X) | (high < table.X), axis=0)
    assert outside.max() < 0.25, "a range that a quarter of the rows leave says nothing"
    for column in declared.declarations()[name].get("categories", {}):
        of = [j for j, made in enumerate(table.names) if made.startswith(f"{column}=")]
        assert np.array_equal(table.X[:, of].sum(axis=1), np.ones(len(table.y)))


def test_a_schema_says_what_columns_say():
    table = declared.DeclaredTable(
        "t",
        "T",
        np.array([[1.0, 0.0, 30.0, 1.0], [0.0, 0.0, 90.0, 0.0]]),
        np.array([0.0, 1.0]),
        ("ward=a", "ward=b", "age", "smoker"),
        Bounds([(0, 1), (0, 1), (18, 90), (0, 1)], classes=(0, 1)),
        np.array([False, False, True, False]),
    )
    assert [type(kind).__name__ for kind in table.schema.columns.values()] == ["Category", "Number", "Boolean"]
    assert table.columns["ward"].tolist() == ["a", ""]
    encoded = Layout(table.schema).encode(table.columns, 2)
    np.testing.assert_allclose(encoded, [[1, 0, 0, -2 / 3, 1], [0, 0, 1, 1, -1]])
