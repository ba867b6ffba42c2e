"""A file of a million rows: how fast it is read into features, and how much memory a fit of it takes."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Row, at_least, at_most
from discreet.curator import TableStream, open_table
from discreet.schema.columns import Number, Target
from discreet.schema.schema import Schema

N, P = 1_000_000, 50
LATTICE_MB = N * (P + 1) * 2 / 1e6
SCHEMA = Schema({f"x{j}": Number((-4.0, 4.0)) for j in range(P)}, Target("y", classes=(0, 1)))
_FIT = """
import json, sys
from discreet import DPLogisticRegression, Schema, TableModel
model = TableModel(Schema.load(sys.argv[2]), DPLogisticRegression(epsilon=1.0, ledger=False))
def mb():  # of this program alone: what getrusage tells may be its parent's
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3
before = mb()
model.fit(sys.argv[1])
print(json.dumps([before, mb()]))
"""


def run(rounds: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        _write(file)
        yield from reading(file, max(3, rounds // 3))
        yield memory(file)


def _write(file: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=N) for j in range(P)}
    columns["y"] = (columns["x0"] + columns["x1"] + rng.normal(size=N) > 0).astype(np.int64)
    pyarrow.parquet.write_table(pa.table(columns), file)


def reading(file: Path, rounds: int) -> Iterator[Row]:
    """Blocks of features and targets against pyarrow's batches of the same columns, and nothing done with either."""
    stream = TableStream(open_table(file), SCHEMA)
    taken = interleaved(
        {
            "ours": lambda: sum(len(block.targets) for block in stream.blocks()),
            "peer": lambda: sum(b.num_rows for b in pyarrow.parquet.ParquetFile(file).iter_batches()),
        },
        rounds=rounds,
    )
    title = f"Parquet to features, n={N:.0e}, p={P}: speed against pyarrow's own batches"
    yield Row.speed_up(title, taken["ours"], taken["peer"], at_least(0.5))
    yield Row.speed_up(f"{title}, CPU time", taken["ours"], taken["peer"], None, clock="cpu")


def memory(file: Path) -> Row:
    """The peak of a fit in a process of its own, beyond what it had before and the lattice."""
    schema = file.with_name("schema.toml")
    schema.write_text(SCHEMA.to_toml(), encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", _FIT, file, schema], capture_output=True, text=True, check=True)
    before, peak = json.loads(done.stdout)
    title = f"fit from Parquet, n={N:.0e}, p={P}: peak memory beyond imports and the lattice"
    return Row(title, "MB", peak - before - LATTICE_MB, goal=at_most(1000.0, absolute=True))
