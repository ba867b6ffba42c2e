"""Declared ranges: round, complete, applied as written; and rows that come out as they went in."""

import gzip
import lzma

import numpy as np
import pytest

from benchmarks.problems import declared_tables as declared

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
