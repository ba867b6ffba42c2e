"""Records on a Dask cluster: what a pass costs per part, and what a second worker brings.

Rows are made by the workers, and a time per pass is the difference of two fits that differ in their number of passes,
over that difference: reading, encoding and pricing drop out. Both fits of a pair run one after the other.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from discreet import DPLogisticRegression
from discreet.scale import local_cluster
from discreet.solvers import GradientDescent

PART = 250_000
"""Rows of a part."""


@dataclass(frozen=True)
class Passes:
    """Which fits are compared: of so few passes and so many, and how often."""

    few: int = 2
    more: int = 12
    rounds: int = 3


QUICK, MANY = Passes(more=6, rounds=1), Passes(more=42)
"""Tiny ones; and those of large parts, where reading them is most of a fit of few passes."""


@dataclass(frozen=True)
class Figure:
    """A measured number, in words."""

    name: str
    value: float
    unit: str


def rows_of(n: int, columns: int, size: int) -> tuple[Any, Any]:
    """Return features and labels that workers make, in parts of so many rows."""
    random = da.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, size=(n, columns), chunks=(size, columns))
    return X, (X[:, 0] > 0).astype(np.int64)


def _seconds(X: Any, y: Any, passes: int) -> float:
    solver = GradientDescent(n_steps=passes)
    model = DPLogisticRegression(1.0, 1e-9, bounds=1.0, classes=(0, 1), solver=solver, ledger=False)
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def seconds_per_pass(X: Any, y: Any, passes: Passes) -> float:
    """Return the time of one pass: the median over rounds."""
    found = [_seconds(X, y, passes.more) - _seconds(X, y, passes.few) for _ in range(passes.rounds)]
    return float(np.median(found)) / (passes.more - passes.few)


def overhead(parts: Sequence[int], passes: Passes) -> list[Figure]:
    """Measure what a pass costs per part, on tiny parts."""
    found = []
    with local_cluster(n_workers=2):
        for count in parts:
            X, y = rows_of(count * 10, 3, 10)
            _seconds(X, y, passes.few)  # compiles
            each = seconds_per_pass(X, y, passes) / count
            found.append(Figure(f"overhead per pass and part, {count} parts", each * 1e3, "ms"))
    return found


def second_worker(rows: int, columns: int, passes: Passes) -> list[Figure]:
    """Measure passes over large parts, which workers keep encoded, with one worker and with two."""
    found, times, size = [], {}, min(PART, max(1, rows // 4))
    for workers in (1, 2):
        with local_cluster(n_workers=workers, memory_limit=0):
            X, y = rows_of(rows, columns, size)
            _seconds(X[:size], y[:size], passes.few)
            times[workers] = seconds_per_pass(X.persist(), y.persist(), passes)
        found.append(Figure(f"pass over {rows:,} x {columns}, {workers} workers", times[workers] * 1e3, "ms"))
    return [*found, Figure("speed-up of a second worker", times[1] / times[2], "x")]
