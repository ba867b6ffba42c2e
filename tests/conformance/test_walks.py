"""How far a record walks: from a command, or from ``fit``, to the curator's copy. Counted in a run, by a profiler."""

import os
import sys
import threading
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet
from discreet import DPLogisticRegression
from discreet.cli.app import app
from discreet.curator import RecordStream, Source
from discreet.curator.records.admission import Records
from discreet.curator.records.stream import Block
from discreet.curator.tables.sources import Batch
from discreet.solvers import GradientDescent

SRC = f"{Path(discreet.__file__).parent}{os.sep}"
ROWS = 5003
"""A number that no other array of a fit has as its length."""
SCHEMA = """
[target]
column = "t"
classes = [0, 1]

[columns.a]
range = [0, 1]

[columns.c]
categories = ["x", "y"]
"""
PLAIN = ("--solver", "gd", "--delta", "0")
"""Steps in declared coordinates: a stage makes further copies of what the curator has, by its questions."""
MOST_HOPS, MOST_CHANGES = 30, 10
ENDS = (
    ("curator/tables/table_files.py", "ParquetSource.__init__"),
    ("curator/tables/cells.py", "raw_numbers"),
    ("curator/records/admission.py", "numbers"),
    ("curator/engines/dense.py", "DenseEngine.__init__"),
)
INSIDE_A_FUNCTION = ("<genexpr>", "<listcomp>", "<dictcomp>", "<lambda>")


def is_table(value):
    """A path, a container, a block or a column of the table. What holds records and answers questions is none."""
    if isinstance(value, (str, os.PathLike)):
        return str(value).endswith("table.parquet")
    if isinstance(value, (tuple, list)) and len(value) <= 6:
        return any(is_table(one) for one in value)
    if isinstance(value, dict):
        return any(is_table(one) for one in value.values())
    if isinstance(value, (np.ndarray, pa.Array, pa.ChunkedArray)):
        return ROWS in getattr(value, "shape", (len(value),))
    return isinstance(value, (Source, RecordStream, Batch, Block, Records))


def functions_on(frame):
    """Name our functions that are running, the outermost first."""
    found = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(SRC) and code.co_name not in INSIDE_A_FUNCTION:
            found.append((code.co_filename.removeprefix(SRC), code.co_qualname))
        frame = frame.f_back
    return found[::-1]


class Walk:
    """The functions that a record passes, and all that are given a part of the table.

    ``hops`` are those that run when the file is opened, when a cell is read, and when an engine takes the rows over.
    """

    def __init__(self):
        self.hops, self.given = [], []

    def __call__(self, frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(SRC) or code.co_name in INSIDE_A_FUNCTION:
            return
        if (code.co_filename.removeprefix(SRC), code.co_qualname) in ENDS:
            running = functions_on(frame)
            if not any("known_answers" in file for file, _ in running):
                self.hops += [name for name in running if name not in self.hops]
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = [frame.f_locals[name] for name in names if name in frame.f_locals]
        if any(is_table(value) for value in values):
            self.given.append((code.co_filename.removeprefix(SRC), code.co_qualname))

    @property
    def changes(self):
        folders = [Path(file).parts[0] for file, _ in self.hops]
        return sum(one != other for one, other in pairwise(folders))


@contextmanager
def watched():
    walk = Walk()
    sys.setprofile(walk)
    threading.setprofile(walk)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return {"a": rng.uniform(0, 1, ROWS), "c": rng.choice(["x", "y"], ROWS), "t": rng.integers(0, 2, ROWS)}


@pytest.fixture
def command(table, tmp_path):
    """The walk of ``discreet fit`` on a Parquet file."""
    pq.write_table(pa.table(table), tmp_path / "table.parquet")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    where = [tmp_path / "table.parquet", "-s", tmp_path / "schema.toml", "-o", tmp_path / "model"]
    with watched() as walk:
        done = CliRunner().invoke(app, ["fit", *map(str, where), "--no-report", "--no-checks", *PLAIN])
    assert done.exit_code == 0, done.output
    return walk


def test_from_a_command(command):
    assert set(ENDS) - set(command.hops) == {("curator/records/admission.py", "numbers")}
    assert ("models/fitting.py", "fit_model") in command.hops
    assert len(command.hops) <= MOST_HOPS, "\n".join(map(str, command.hops))
    assert command.changes <= MOST_CHANGES, command.hops


def test_declarations_are_given_no_table(command):
    """Schemas, prices and ledgers work with facts: no function of theirs is handed a container of records."""
    assert {Path(file).parts[0] for file, _ in command.given} == {"cli", "curator", "models"}


def test_from_arrays(table):
    with watched() as walk:
        DPLogisticRegression(
            1.0, 1e-6, bounds=1.0, classes=(0, 1), solver=GradientDescent(n_steps=5), ledger=False
        ).fit(np.column_stack([table["a"], table["a"] ** 2]), table["t"])
    assert set(ENDS) - set(walk.hops) == set(ENDS[:2])
    assert len(walk.hops) <= MOST_HOPS / 2, walk.hops
    assert walk.changes == 1, walk.hops
