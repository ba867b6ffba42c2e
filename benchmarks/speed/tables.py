"""Files of millions of rows: how fast they are read and encoded, and how much memory that takes."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Row, at_least, at_most
from benchmarks.sizes import size
from discreet.curator import TableStream, open_table
from discreet.curator.records import admission
from discreet.curator.records.stream import admit_stream
from discreet.curator.tables.frames import BATCH_ROWS
from discreet.schema.columns import Number, Target
from discreet.schema.schema import Schema

N, P = size(1_000_000, 5000), 50
LATTICE_MB = N * (P + 1) * 2 / 1e6
SCHEMA = Schema({f"x{j}": Number((-4.0, 4.0)) for j in range(P)}, Target("y", classes=(0, 1)))
CSV_N, PART = size(11_000_000, 5000), size(1_000_000, 5000)
CSV_SCHEMA = Schema(
    {"a": Number((-4.0, 4.0)), "b": Number((0.0, 100.0)), "c": Number((0.0, 1000.0))},
    Target("y", classes=("no", "yes")),
)
_PEAK = """
def mb():  # of this program alone: what getrusage tells may be its parent's
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3
"""
_FIT = """
import json, sys
from discreet import DPLogisticRegression, Schema, TableModel
model = TableModel(Schema.load(sys.argv[2]), DPLogisticRegression(epsilon=1.0, ledger=False))
before = mb()
model.fit(sys.argv[1])
print(json.dumps([before, mb()]))
"""
_READ = """
import json, sys
from discreet import Schema
from discreet.curator import TableStream, open_table
stream = TableStream(open_table(sys.argv[1]), Schema.load(sys.argv[2]), checks=True)
before = mb()
count = sum(len(block.targets) for block in stream.blocks())
print(json.dumps([before, mb()]))
"""


def run(rounds: int) -> Iterator[Row]:
    rounds = max(3, rounds // 3)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        _write(file)
        yield from reading(file, rounds)
        title = f"fit from Parquet, n={N:.0e}, p={P}: peak memory beyond imports and the lattice"
        yield memory(title, file, SCHEMA, _FIT, LATTICE_MB, 1000.0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        _write_csv(file)
        yield from reading_csv(file, rounds)
        yield memory(f"CSV to features, n={CSV_N:.1e}: peak memory beyond imports", file, CSV_SCHEMA, _READ, 0.0, 250.0)


def _write(file: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=N) for j in range(P)}
    columns["y"] = (columns["x0"] + columns["x1"] + rng.normal(size=N) > 0).astype(np.int64)
    pyarrow.parquet.write_table(pa.table(columns), file)


def _write_csv(file: Path) -> None:
    """About 220 MB, as programs write it: numbers of some digits, and a label."""
    rng, part = np.random.default_rng(0), PART
    with file.open("wb") as out:
        for first in range(0, CSV_N, part):
            a, b, c = rng.normal(size=part).round(3), rng.uniform(0, 100, part).round(2), rng.integers(0, 1000, part)
            label = pa.array(["no", "yes"]).take(pa.array((a + rng.normal(size=part) > 0).astype(np.int8)))
            options = pyarrow.csv.WriteOptions(include_header=first == 0, quoting_style="none")
            pyarrow.csv.write_csv(pa.table({"a": a, "b": b, "c": c, "y": label}), out, options)


def reading(file: Path, rounds: int) -> Iterator[Row]:
    """Features, then integers on the lattice, against pyarrow's batches of the same rows, which are dropped."""
    stream = TableStream(open_table(file), SCHEMA)
    taken = interleaved(
        {
            "features": lambda: sum(len(block.targets) for block in stream.blocks()),
            "lattice": _admitted(stream),
            "peer": lambda: sum(b.num_rows for b in pyarrow.parquet.ParquetFile(file).iter_batches(BATCH_ROWS)),
        },
        rounds=rounds,
    )
    for name, goal in (("features", at_least(0.7)), ("lattice", at_least(0.7))):
        title = f"Parquet to {name}, n={N:.0e}, p={P}: speed against pyarrow's own batches"
        yield Row.speed_up(title, taken[name], taken["peer"], goal)
        yield Row.speed_up(f"{title}, CPU time", taken[name], taken["peer"], None, clock="cpu")


def _admitted(stream: TableStream) -> Callable[[], object]:
    scaling = admission.scaling_for(stream.bounds, stream.shape[1], stream.columns, True)
    return lambda: admit_stream(stream, admission.TargetScaling(signed=True), scaling)


def reading_csv(file: Path, rounds: int) -> Iterator[Row]:
    """Rows counted, then read into features with checks, against pyarrow reading the file once in its own types."""
    taken = interleaved(
        {
            "ours": lambda: _counted_and_read(file),
            "peer": lambda: sum(batch.num_rows for batch in pyarrow.csv.open_csv(file)),
        },
        rounds=rounds,
    )
    title = f"CSV to features, n={CSV_N:.1e}, {file.stat().st_size / 1e6:.0f} MB: speed against pyarrow's own reading"
    yield Row.speed_up(title, taken["ours"], taken["peer"], at_least(1 / 3))
    yield Row.speed_up(f"{title}, CPU time", taken["ours"], taken["peer"], None, clock="cpu")


def _counted_and_read(file: Path) -> int:
    stream = TableStream(open_table(file), CSV_SCHEMA, checks=True)
    rows = sum(len(block.targets) for block in stream.blocks())
    assert rows == stream.shape[0]
    return rows


def memory(title: str, file: Path, schema: Schema, program: str, apart: float, most: float) -> Row:
    """The peak of a program in a process of its own, beyond what it had before and what is counted ``apart``, in MB."""
    declared = file.with_name("schema.toml")
    declared.write_text(schema.to_toml(), encoding="utf-8")
    command = [sys.executable, "-c", _PEAK + program, file, declared]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, peak = json.loads(done.stdout)
    return Row(title, "MB", peak - before - apart, goal=at_most(most, absolute=True))
