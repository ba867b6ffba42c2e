"""A table made block by block, and a fit of it from disk: time by stage, and memory."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from discreet.schema.columns import Number, Target
from discreet.schema.schema import Schema

BLOCK = 1_000_000
LOGISTIC = 1.7


@dataclass(frozen=True)
class Fit:
    """One fit: seconds by stage, and the most memory that it took beyond its imports, in MB."""

    rows: int
    columns: int
    seconds: float
    cpu: float
    stages: dict[str, float]
    anonymous_mb: float
    mapped_mb: float
    distance: float


def schema_of(columns: int) -> Schema:
    """Return what is declared: normal features within four deviations."""
    features = {f"x{j}": Number((-4.0, 4.0)) for j in range(columns)}
    return Schema(features, Target("y", classes=(0, 1)))


def weights(columns: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the coefficients that labels follow."""
    return np.random.default_rng(7).normal(size=columns) / np.sqrt(columns) * LOGISTIC


def blocks(rows: int, columns: int) -> Iterator[pa.Table]:
    """Yield the table, a block at a time."""
    w = weights(columns)
    for first in range(0, rows, BLOCK):
        rng = np.random.default_rng([1, first])
        X = rng.standard_normal((min(BLOCK, rows - first), columns), dtype=np.float32)
        y = (X @ w + rng.logistic(size=len(X)) > 0).astype(np.int8)
        yield pa.table({**{f"x{j}": X[:, j] for j in range(columns)}, "y": y})


def write(file: Path, rows: int, columns: int) -> None:
    """Write the table as Parquet, a row group per block."""
    made = blocks(rows, columns)
    first = next(made)
    with pyarrow.parquet.ParquetWriter(file, first.schema, compression="none", use_dictionary=False) as writer:
        writer.write_table(first)
        for block in made:
            writer.write_table(block)


def fit(file: Path, rows: int, columns: int, *, memory: str, scratch: Path) -> Fit:
    """Fit the default in a process of its own, with encoded rows within ``memory`` or else in scratch files."""
    words = [str(file), str(rows), str(columns), memory, str(scratch)]
    done = subprocess.run([sys.executable, "-m", __name__, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return Fit(**json.loads(done.stdout))


def _measured(file: str, rows: int, columns: int, memory: str, scratch: str) -> Fit:
    import time

    from benchmarks.scale.watched import Memory, Stages
    from discreet import DPLogisticRegression, TableModel
    from discreet.scale import limited

    model = TableModel(schema_of(columns), DPLogisticRegression(epsilon=1.0, ledger=False), terms="linear")
    model.fit(next(blocks(2000, columns)).to_pandas())  # imports and compiled code
    with Stages() as stages, Memory() as taken, limited(memory, scratch):
        start, cpu = time.perf_counter(), time.process_time()
        model.fit(file)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    w = weights(columns)
    distance = float(np.linalg.norm(model.estimator_.coef_[0] / 4.0 - w) / np.linalg.norm(w))  # coded to [-1, 1]
    return Fit(rows, columns, seconds, cpu, stages.seconds, taken.anonymous, taken.mapped, distance)


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(asdict(_measured(given[0], int(given[1]), int(given[2]), given[3], given[4]))))
