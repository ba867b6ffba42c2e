"""An audit of the way from a table to a model: what a record says must not show before, beside or after the releases.

Each test is a neighboring pair, or an attack, that a proof elsewhere takes to be impossible.
"""

import sys
from contextlib import contextmanager
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from discreet import DPLogisticRegression, Ledger, Schema, TableModel
from discreet.curator.metrics.row_values import Released
from discreet.curator.tables import cells
from discreet.curator.tables.encode import Layout
from discreet.curator.tables.files import open_table
from discreet.curator.tables.frames import FrameSource
from discreet.errors import DiscreetError, LedgerError, Unsupported
from discreet.models import base, make_private_pipeline
from discreet.schema import Boolean, Category, Number, Ordinal, Target
from discreet.schema.cell_meaning import MISSING_TEXTS

MISSING = frozenset(MISSING_TEXTS)
PLAIN = Schema({"a": Number((-3, 3))}, Target("t", classes=("n", "y")))


def column(table, name="x"):
    source = FrameSource(table)
    source.check([name])
    return next(source.batches([name])).columns[name]


@pytest.mark.parametrize("bad", [b"\xff", b"caf\xe9", b"1,2,3,4\xff", b"\xc3\xa9,\xc3,"])
def test_a_line_that_is_no_row_and_no_utf8(tmp_path, monkeypatch, bad):
    """The reader's own handler decodes such a line: it must neither raise nor print, nor touch other rows."""
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,caf\xe9\n" + bad + b"\n3,\xc3\xa9\n")
    source = open_table(path)
    assert source.count() == 3
    found = [cell for batch in source.batches(["b"]) for cell in batch.columns["b"].to_pylist()]
    assert found == [b"caf\xe9", b"\xc3\xa9", None]
    assert not shown


BIG = 2**60


@pytest.mark.parametrize("last", [BIG + 3, None, "x", 0.5])
def test_lists_of_cells_are_read_cell_by_cell(last):
    """A type that is guessed from a list would round all other rows' numbers where one is missing."""
    found = column({"x": [BIG + 1, BIG + 2, last]})
    assert cells.names(found, MISSING)[:2] == [str(BIG + 1), str(BIG + 2)]
    assert cells.positions(found, [str(BIG + 1), "b"], MISSING)[:2].tolist() == [0, 2]


@pytest.mark.parametrize("cell", [datetime(2020, 1, 1), 1j])
def test_lists_of_cells_are_refused_for_no_value(cell):
    outcomes = []
    for last in (cell, "x"):
        try:
            column({"x": [cell, cell, last]})
            outcomes.append("read")
        except DiscreetError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("beside", ["a", 5, None, b"\xff"])
def test_a_person_has_one_name_whoever_is_beside(beside):
    names = [cells.names(column({"x": pd.Series(["\0", other], dtype=object)}), MISSING)[0] for other in ("b", beside)]
    assert names[0] == names[1]


@pytest.mark.parametrize("neighbors", ["replace_one", "zero_out", "add_remove"])
def test_progress_does_not_tell_how_many_rows_persons_have(monkeypatch, neighbors):
    """Neighbors agree on the number of persons, not on the number of their rows."""
    told = []

    class Bars:
        def __call__(self, done, planned):
            pass

        def rows(self, done, in_all):
            told.append(in_all)

    @contextmanager
    def bars(*_):
        yield Bars()

    monkeypatch.setattr(base, "progress_bar", bars)
    schema = Schema(PLAIN.columns, PLAIN.target, person="p")
    shown = []
    for more in (0, 9):
        who = [f"p{i}" for i in range(20)] + ["p0"] * more
        table = pd.DataFrame({"p": who, "a": 0.5, "t": "y"})
        estimator = DPLogisticRegression(epsilon=1.0, delta=1e-6, neighbors=neighbors, ledger=False, verbose=True)
        TableModel(schema, estimator).fit(table)
        shown.append(list(told))
        told.clear()
    assert shown[0] == shown[1]


def test_a_pipeline_does_not_forget_the_persons():
    """A schema that names persons promises to protect them; a pipeline cannot see them."""
    with pytest.raises(Unsupported, match="person"):
        make_private_pipeline(Schema(PLAIN.columns, PLAIN.target, person="p"), DPLogisticRegression(epsilon=1.0))


def test_a_failure_after_an_estimate_was_an_answer(tmp_path):
    """What was estimated decides whether the range can be used: it must not be estimated again for free."""
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.grant("x", epsilon=100, delta=1e-3, neighbors="replace_one")
    table = pd.DataFrame({"a": np.ones(4000), "t": "y"})
    schema = Schema({"a": Number("private", within=(0, 1e-289))}, PLAIN.target)
    estimator = DPLogisticRegression(epsilon=20.0, delta=1e-6, ledger=ledger, dataset="x")
    try:
        TableModel(schema, estimator).fit(table, charge_id="once")
    except DiscreetError:
        with pytest.raises(LedgerError):
            TableModel(schema, estimator).fit(table, charge_id="once")


def test_rows_are_encoded_and_predicted_alike_in_any_company():
    """Every bit: products of three and four columns, knots, curves, cells, and the linear predictor of a score."""
    rng = np.random.default_rng(0)
    schema = Schema(
        {
            "a": Number((-3.3, 17.7)),
            "b": Number((0, 1), knots=(0.1, 0.37, 0.9), missing="flag"),
            "c": Category(("x", "y"), missing="flag"),
            "d": Ordinal(("l", "m", "h"), missing="record"),
            "e": Boolean(),
            "f": Number((1e-3, 1e9), missing=5),
            "g": Number((-3.3, 17.7), knots=8),
        },
        interactions=(("a", "b", "f"), ("a", "c", "e"), ("a", "b", "c", "f"), ("c", "g")),
    )
    n = 60
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n) * 9,
            "b": pd.Series(rng.choice([0.2, 0.71, None], n), dtype=object),
            "c": rng.choice(["x", "y", "w", "?"], n),
            "d": rng.choice(["l", "m", "h", "?"], n, p=[0.3, 0.3, 0.3, 0.1]),
            "e": rng.choice(["Yes", "no", "?"], n),
            "f": 10 ** rng.uniform(-5, 11, n),
            "g": rng.normal(size=n) * 9,
        }
    )
    layout = Layout(schema)
    width = len(layout.features)
    model = Released(
        "m", layout.bounds, None, rng.normal(size=(3, width)), rng.normal(size=3), -np.ones(width), np.ones(width)
    )

    def bits(part):
        batch = next(FrameSource(part).batches(list(schema.columns), n))
        features = layout.encode(batch.columns, batch.rows)
        return np.column_stack([np.ascontiguousarray(features), model.margins(features)]).view(np.int64)

    whole = bits(table)
    for size in (1, 2, 3, 7):
        for first in range(0, n - size, size):
            np.testing.assert_array_equal(bits(table.iloc[first : first + size]), whole[first : first + size])
