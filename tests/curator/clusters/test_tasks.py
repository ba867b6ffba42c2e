"""What workers run: sums, and nothing that draws noise or charges; failures without a cell's value."""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from discreet.bounds import Bounds
from discreet.curator.clusters import calls
from discreet.curator.clusters import tasks as part_tasks
from discreet.curator.clusters.calls import pack
from discreet.curator.clusters.tasks import ArrayRows, Failed, Part, answer, encode, guarded, sealed
from discreet.curator.known_answers import known_records
from discreet.curator.queries.gradients import GradientQuery
from discreet.curator.queries.moments import MomentQuery
from discreet.curator.records.admission import TargetScaling, scaling_for
from discreet.curator.records.stream import Encoding
from discreet.errors import Unsupported
from discreet.losses import Logistic

SENTINEL = "sentinel-4711"
HIDDEN = ("discreet.curator.noise", "discreet.curator.noise", "discreet.curator.session")

WORKER = """
import pickle, sys
tasks = pickle.load(sys.stdin.buffer)
found = [task(*given, **words) for task, given, words in tasks]
assert not any(type(one).__name__ == "Failed" for one in found), found
hidden = [name for name in sys.modules if name.startswith("discreet.ledger") or name in {hidden!r}]
print("imported:", hidden)
"""


def encoding(columns=2):
    return Encoding(scaling_for(Bounds(1.0, classes=(0, 1)), columns, None, True), TargetScaling(signed=True))


def encoded(X, y=None):
    y = np.zeros(len(X)) if y is None else y
    return encode(0, ArrayRows(2, (0, 1)), encoding(), X, y)


def questions(loss):
    from discreet.curator.known_answers import _two_points

    point = _two_points(loss)[0]
    return GradientQuery(point, loss, 1 << 34, 2.0**21), MomentQuery(1 << 34, 40.0, moment="outer")


def test_a_worker_imports_neither_noise_nor_entropy_nor_ledger():
    import pandas as pd

    from discreet import Schema
    from discreet.curator.clusters.tasks import TableRows, count_cells, count_rows
    from discreet.schema import Number, Target

    schema = Schema({"a": Number("private", within=(0, 9))}, Target("b", classes=(0, 1)))
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [0, 1]})
    part = sealed(0, known_records(False))
    tasks = [
        (part_tasks.probe, (Logistic(), True), {}),
        (calls.told, (calls.call(answer, placement=None), part, pack(questions(Logistic())[0])), {}),
        (encode, (0, ArrayRows(2, (0, 1)), encoding(), np.zeros((3, 2)), np.zeros(3)), {}),
        (count_rows, (0, TableRows(schema, True), frame), {}),
        (count_cells, (0, TableRows(schema, True), frame), {}),
        *((answer, (part, question), {"placement": None}) for question in questions(Logistic())),
    ]
    code = WORKER.format(hidden=HIDDEN)
    made = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(tasks), capture_output=True, timeout=300, check=False
    )
    assert made.stdout.decode().strip() == "imported: []", made.stderr.decode()


def test_the_search_for_imports_finds_planted_ones():
    code = WORKER.format(hidden=HIDDEN).replace("import pickle", "import discreet.ledger.ledger, pickle")
    made = subprocess.run([sys.executable, "-c", code], input=pickle.dumps([]), capture_output=True, timeout=60)
    assert b"discreet.ledger" in made.stdout


def test_a_seal_tells_other_rows_targets_types_weights_and_persons():
    records = known_records(False)
    rows = records.rows.copy()
    rows[0, 0] += 1
    others = [
        replace(records, rows=rows),
        replace(records, targets=records.targets + 1),
        replace(records, rows=records.rows.astype(np.int32)),
        replace(records, weights=np.full(records.n_rows, 0.5)),
        known_records(False, persons=True),
        records.part(0, 4),
    ]
    seals = {sealed(0, one).seal for one in (records, *others)}
    assert len(seals) == 1 + len(others)
    assert sealed(9, known_records(False)).seal in seals


@pytest.mark.whole
@pytest.mark.parametrize(
    "error", [ValueError(SENTINEL), KeyError(SENTINEL), MemoryError(SENTINEL), FileNotFoundError(2, SENTINEL, SENTINEL)]
)
def test_an_error_is_returned_without_its_words(error):
    def task():
        raise error

    found = guarded(task)()
    assert isinstance(found, Failed)
    assert SENTINEL not in repr(found)


def test_our_own_words_name_no_value_and_are_kept():
    def task():
        raise Unsupported("use another solver")

    assert guarded(task)() == Failed("use another solver")


@pytest.mark.whole
@pytest.mark.parametrize("cell", [SENTINEL, object(), None, b"\xff", 10**400])
def test_no_cell_stops_encoding(cell):
    X = np.array([[cell, 0.5], [0.25, 0.5]], dtype=object)
    part = encoded(X, np.array([cell, 0], dtype=object))
    assert isinstance(part, Part)
    assert part.records.norms.tolist()[0] == 0 < part.records.norms.tolist()[1]
