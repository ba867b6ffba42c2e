"""The ways through the code, counted by a profiler with default settings: a record's way, and a whole fit.

The record's way are the functions that run when a table is opened, when a cell is read and when an engine takes the
rows over, for ``discreet fit table.parquet`` with its checks and its report. The other count is of all functions and
files that ``DPLogisticRegression.fit(X, y)`` visits, in a process that has fitted before.
"""

import os
import sys
import threading
from collections import Counter
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
from discreet.curator.tables.frames import Batch
from discreet.testing import seeded

COMMAND = {"functions": 41, "files": 20, "changes of folder": 6}
"""The longest way of a record from ``discreet fit table.parquet`` into an engine."""
FIT = {"functions": 402, "files": 45, "changes of folder": 123, "domains": 1, "recodings": 3}
"""The most that ``fit(X, y)`` visits, and how often it computes a domain and recodes records."""

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
ENDS = (
    ("curator/tables/files.py", "ParquetSource.__init__"),
    ("curator/tables/cells.py", "raw_numbers"),
    ("curator/engines.py", "DenseEngine.__init__"),
)
INSIDE_A_FUNCTION = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")


def is_table(value):
    """A path, a container, a block or a column of the table. What holds records and answers queries is none."""
    if isinstance(value, (str, os.PathLike)):
        return str(value).endswith("table.parquet")
    if isinstance(value, (tuple, list)) and len(value) <= 6:
        return any(is_table(part) for part in value)
    if isinstance(value, dict):
        return any(is_table(part) for part in value.values())
    if isinstance(value, (np.ndarray, pa.Array, pa.ChunkedArray)):
        return ROWS in getattr(value, "shape", (len(value),))
    return isinstance(value, (Source, RecordStream, Batch, Block, Records))


def function_of(frame):
    """Return the file and the name of our function that runs in a frame; None for other code."""
    code = frame.f_code
    if not code.co_filename.startswith(SRC) or code.co_name in INSIDE_A_FUNCTION or "/known_" in code.co_filename:
        return None
    return code.co_filename.removeprefix(SRC), code.co_qualname


def functions_on(frame):
    """Return our functions that are running, the outermost first."""
    running = []
    while frame is not None:
        running.append(function_of(frame))
        frame = frame.f_back
    return [function for function in reversed(running) if function is not None]


def is_checking_kernels(frame):
    while frame is not None:
        if "/known_" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def is_simulated(frame):
    """Whether rows are no records: a forecast's synthetic tables, and the points at which a curve is drawn."""
    function = function_of(frame)
    if function == ("curator/tables/cells.py", "raw_numbers"):
        return ROWS not in {len(cells) for cells in frame.f_locals.values() if hasattr(cells, "__len__")}
    while frame is not None:
        if f"{os.sep}forecast" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


class Walk:
    """The functions that a record passes (``hops``), that are given a part of the table, and all that are visited."""

    def __init__(self):
        self.hops, self.given, self.visits = [], [], Counter()

    def __call__(self, frame, event, _):
        function = function_of(frame)
        if event != "call" or function is None or is_checking_kernels(frame):
            return
        self.visits[function] += 1
        if function in ENDS and not is_simulated(frame):
            self.hops += [name for name in functions_on(frame) if name not in self.hops]
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(is_table(frame.f_locals[name]) for name in names if name in frame.f_locals):
            self.given.append(function)

    def calls(self, name):
        return sum(count for (_, function), count in self.visits.items() if function == name)


def counts(functions):
    folders = [Path(file).parts[0] for file, _ in functions]
    return {
        "functions": len(functions),
        "files": len({file for file, _ in functions}),
        "changes of folder": sum(before != after for before, after in pairwise(folders)),
    }


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


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return {"a": rng.uniform(0, 1, ROWS), "c": rng.choice(["x", "y"], ROWS), "t": rng.integers(0, 2, ROWS)}


@pytest.fixture(scope="module")
def command(table, tmp_path_factory):
    """The walk of ``discreet fit`` on a Parquet file, as it comes: with checks and the report."""
    folder = tmp_path_factory.mktemp("walk")
    pq.write_table(pa.table(table), folder / "table.parquet")
    (folder / "schema.toml").write_text(SCHEMA)
    arguments = ["fit", folder / "table.parquet", "-s", folder / "schema.toml", "-o", folder / "model"]
    with seeded(0), watched() as walk:
        done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return walk


@pytest.mark.thorough
def test_from_a_command(command):
    assert set(ENDS) <= set(command.hops)
    assert ("models/fit.py", "fit_model") in command.hops
    counted = counts(command.hops)
    assert all(counted[key] <= COMMAND[key] for key in COMMAND), (counted, "\n".join(map(str, command.hops)))


@pytest.mark.thorough
def test_declarations_are_given_no_table(command):
    """Schemas, prices and ledgers work with facts: no function of theirs is handed a container of records."""
    assert {Path(file).parts[0] for file, _ in command.given} <= {"cli", "curator", "models", "report"}


def test_from_arrays(table):
    X = np.column_stack([table["a"], table["a"] ** 2, np.arange(ROWS) % 2])
    model = DPLogisticRegression(1.0, 1e-6, bounds=1.0, classes=(0, 1), ledger=False).fit(X, table["t"])
    with seeded(0), watched() as walk:
        model.fit(X, table["t"])
    visits = counts(list(walk.visits))
    visits |= {"domains": walk.calls("PrivateData.__domain"), "recodings": walk.calls("Curator.recode")}
    assert all(visits[key] <= FIT[key] for key in FIT), (visits, "\n".join(sorted(map(str, walk.visits))))
