"""Rows of one person brought together on a cluster: how long it takes, and the most memory that a worker has then.

A worker's memory is bounded where it does not grow with the table: what its limit does not hold is spilled to disk.
"""

import re
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from benchmarks.scale.dask import PART, Figure, rows_of
from discreet import DPLogisticRegression
from discreet.scale import local_cluster
from discreet.solvers import GradientDescent

ROWS_EACH = 5
"""How many rows a person has on average."""


def _resident(field: str) -> float:
    """Return this process's memory in MB: ``VmRSS`` now, ``VmHWM`` the most so far."""
    found = re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1e3


def _fitted(X: Any, y: Any, groups: Any) -> float:
    solver = GradientDescent(n_steps=3)
    model = DPLogisticRegression(1.0, 1e-9, bounds=1.0, classes=(0, 1), solver=solver, ledger=False)
    start = time.perf_counter()
    model.set_params(neighbors="add_remove").fit(X, y, groups=groups)  # persons are not counted beforehand
    return time.perf_counter() - start


def figures(rows: int, columns: int, memory: str) -> list[Figure]:
    """Fit persons on two workers with this limit of memory each; rows are made there, when they are read."""
    size = min(PART, max(1, rows // 8))
    with local_cluster(n_workers=2, memory_limit=memory) as client:
        X, y = rows_of(rows, columns, size)
        numbers = da.random.default_rng(1).integers(0, max(1, rows // ROWS_EACH), size=rows, chunks=size)
        few = slice(0, 1000)
        _fitted(X[few], y[few], numbers[few])  # imports and compiled code
        before = client.run(_resident, "VmRSS")
        seconds = _fitted(X, y, numbers)
        most = client.run(_resident, "VmHWM")
    beyond = max(most.values()) - min(before.values())
    table = rows * (2 * (columns + 1) + 24) / 1e6
    return [
        Figure(f"fit of {rows:,} x {columns}, {-(-rows // size)} parts dealt by person", seconds, "s"),
        Figure("encoded rows of all workers", table, "MB"),
        Figure("most memory of a worker beyond imports", float(np.round(beyond, 1)), "MB"),
        Figure("workers that were lost", float(len(set(before) - set(most))), ""),
    ]
