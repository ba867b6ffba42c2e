"""Records on a Dask cluster: what a pass costs per part, and what a second worker brings.

Rows are made by the workers, and a time per pass is the difference of two fits that differ in their number of passes,
over that difference: reading, encoding and pricing drop out. Both fits of a pair run one after the other.
"""

import time
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from discreet import DPLogisticRegression
from discreet.scale import local_cluster
from discreet.solvers import GradientDescent


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    parts: tuple[int, ...] = (1, 8, 64)
    rows: int = 4_000_000
    columns: int = 20
    rows_per_part: int = 250_000
    few: int = 2
    more: int = 12
    rounds: int = 3


QUICK = Sizes(parts=(1, 4), rows=20_000, columns=3, rows_per_part=5_000, few=2, more=6, rounds=1)


@dataclass(frozen=True)
class Figure:
    """A measured number, in words."""

    name: str
    value: float
    unit: str


def _rows(n: int, columns: int, size: int) -> tuple[Any, Any]:
    random = da.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, size=(n, columns), chunks=(size, columns))
    return X, (X[:, 0] > 0).astype(np.int64)


def _seconds(X: Any, y: Any, passes: int) -> float:
    solver = GradientDescent(n_steps=passes)
    model = DPLogisticRegression(1.0, 1e-9, bounds=1.0, classes=(0, 1), solver=solver, ledger=False)
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def seconds_per_pass(X: Any, y: Any, sizes: Sizes) -> float:
    """Return the time of one pass: the median over rounds."""
    found = [_seconds(X, y, sizes.more) - _seconds(X, y, sizes.few) for _ in range(sizes.rounds)]
    return float(np.median(found)) / (sizes.more - sizes.few)


def figures(sizes: Sizes) -> list[Figure]:
    """Measure the overhead per pass and part on tiny parts, and passes over large ones with one and two workers."""
    found, times = [], {}
    with local_cluster(n_workers=2):
        for parts in sizes.parts:
            X, y = _rows(parts * 10, 3, 10)
            _seconds(X, y, sizes.few)  # compiles
            each = seconds_per_pass(X, y, sizes) / parts
            found.append(Figure(f"overhead per pass and part, {parts} parts", each * 1e3, "ms"))
    for workers in (1, 2):
        with local_cluster(n_workers=workers):
            X, y = _rows(sizes.rows, sizes.columns, sizes.rows_per_part)
            _seconds(X[: sizes.rows_per_part], y[: sizes.rows_per_part], sizes.few)
            times[workers] = seconds_per_pass(X.persist(), y.persist(), sizes)
        found.append(
            Figure(f"pass over {sizes.rows:,} x {sizes.columns}, {workers} workers", times[workers] * 1e3, "ms")
        )
    return [*found, Figure("speed-up of a second worker", times[1] / times[2], "x")]
