"""Parquet files, and tables in memory: what is stored otherwise is refused before anything is charged or read."""

import datetime
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import DPLogisticRegression, Ledger
from discreet.errors import Unsupported
from discreet.models.table_model import TableModel
from discreet.schema.columns import Category, Number, Target
from discreet.schema.schema import Schema
from discreet.solvers import GradientDescent
from tests.covering import covering
from tests.curator.tables.shown import SECRET, assert_discreet, watched

SCHEMA = Schema({"a": Number((0, 10)), "b": Category(("x", "y"))}, Target("t", classes=(0, 1)))
ROWS = {"a": [1, 5, 9, 0], "b": ["x", "y", "z", None], "t": [0, 1, 0, 1]}


@pytest.fixture
def write(tmp_path):
    def written(table, name="t.parquet", **given):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path, **given)
        return path

    return written


def fit(data, **given):
    model = DPLogisticRegression(1.0, 1e-5, solver=GradientDescent(n_steps=1, clip=1.0), **given)
    return TableModel(SCHEMA, model).fit(data)


BAD = {
    "dates": pa.array([datetime.date(2000, 1, 1)] * 4),
    "times": pa.array([datetime.datetime(2000, 1, 1)] * 4),
    "lists": pa.array([[1]] * 4),
    "structs": pa.array([{"view": 1}] * 4),
    "intervals": pa.array([datetime.timedelta(1)] * 4),
}


@covering(("role", ["a", "b", "t"]), ("kind", BAD))
def test_other_kinds_are_refused_where_used_and_fine_where_not(write, tmp_path, kind, role):
    fine = write({**ROWS, "extra": BAD[kind]})
    assert fit(fine).estimator_.coef_.shape == (1, 4)
    bad = {**ROWS, role: BAD[kind]}
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.grant("d", 10.0, 1e-3)
    one, two = write(ROWS, "two/1.parquet"), write(bad, "two/2.parquet")
    for data in (write(bad, "bad.parquet"), pa.table(bad), [one, two], [two, one]):
        with pytest.raises(Unsupported, match=f"'{role}' is stored as"):
            fit(data, ledger=tmp_path / "ledger.db", dataset="d")
    assert not [entry for entry in ledger.entries() if entry.kind == "charge"]


def test_a_name_twice(write):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([0]), pa.array(["x"])], ["a", "a", "t", "b"])
    for data in (write(table), table):
        with pytest.raises(Unsupported, match="'a' more than once"):
            fit(data)
    spare = pa.Table.from_arrays([*table.columns[1:], pa.array([1]), pa.array([2])], ["a", "t", "b", "e", "e"])
    for data in (write(spare), spare):
        fit(data)


def damaged(raw):
    middle = len(raw) // 2
    yield "cut short", raw[:-10]
    yield "half", raw[:middle]
    yield "no footer", raw[:-8] + b"\0" * 8
    yield "torn", raw[: middle // 2] + os.urandom(middle) + raw[middle // 2 + middle :]
    yield "blank", raw[:middle] + b"\0" * 3000 + raw[middle + 3000 :]
    yield "CSV", f"a,b,t\n{SECRET},{SECRET},0\n".encode()
    yield "empty", b""


def test_damaged_files_show_nothing(write, tmp_path):
    many = 20000
    table = pa.table({"a": np.arange(many), "b": [f"{SECRET}{i}" for i in range(many)], "t": np.arange(many) % 2})
    sound = write(ROWS, "d/sound.parquet")
    for name, raw in damaged(write(table).read_bytes()):
        path = tmp_path / "d" / "z damaged.parquet"
        path.write_bytes(raw)
        for data in (path, [sound, path]):
            with watched() as found:
                fit(data)
            assert isinstance(found.error, Unsupported), name
            assert "z damaged.parquet" in str(found.error), name
            assert_discreet(found)


@pytest.mark.parametrize("role", ["a", "b", "t", "who"])
def test_texts_that_are_no_utf8(write, role):
    """A file may call anything a string: the bytes are read as in CSV, and nothing is raised."""
    strange = pa.array([b"\xff" + SECRET.encode(), b"x", b"\xe9", b"7"], pa.binary()).view(pa.string())
    table = {**ROWS, "who": ["p", "q", "p", "r"], role: strange}
    schema = Schema(SCHEMA.columns, SCHEMA.target, person="who")
    for data in (write(table), pa.table(table), pa.table({**table, role: strange.dictionary_encode()})):
        with watched() as found:
            TableModel(schema, DPLogisticRegression(1.0, 1e-5, solver=GradientDescent(n_steps=1, clip=1.0))).fit(data)
        assert found.error is None
        assert_discreet(found)


# ----------------------------------------------------------------------------------------------- tables in memory


def test_lacking_and_extra_columns(write):
    for data in (pa.table({"a": [1], "b": ["x"]}), pd.DataFrame({"a": [1], "b": ["x"]})):
        with pytest.raises(Unsupported, match="no column 't'"):
            fit(data)
    fit(pd.DataFrame({**ROWS, "extra": [object()] * 4}))
    model = fit(pd.DataFrame(ROWS))
    assert len(model.predict(pd.DataFrame({"b": ["x"], "a": ["?"]}))) == 1
    with pytest.raises(Unsupported, match="no column 'a'"):
        model.predict(pd.DataFrame({"b": ["x"]}))
