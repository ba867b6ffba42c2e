"""A known-answer test that runs when a curator opens: compiled kernels against plain Python integers.

Numba's disk cache does not see edits in *other* files: a kernel compiled against an older loss or
clip would run on silently. So each kernel that a fit will use is first compared, on a few records
chosen for their clips, with the same sum written in unbounded Python integers.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.curator.door import Records
from discreet.curator.engines.base import Engine, GradientQuery, coefficient_limits
from discreet.curator.engines.dense import DenseEngine
from discreet.curator.engines.sparse import SparseEngine
from discreet.curator.entropy import SeededEntropy
from discreet.curator.lattice import COARSE, Grid, Weights
from discreet.curator.noise import discrete_laplace, rounded_gaussian
from discreet.errors import StaleKernels
from discreet.losses.base import derivatives

_ROWS = np.array(
    [[16384, -16384, 16384], [1, 0, 16384], [-9000, 12000, 16384], [0, 0, 0], [-16384, 77, 16384]], dtype=np.int64
)
_BOUND = 1 << 34
_SCALE = 2.0**21


def _records(grid: Grid, sparse: bool) -> Records:
    rows = _ROWS.astype(grid.dtype)
    norms = np.ceil(np.sqrt((_ROWS**2).sum(axis=1))).astype(np.int64)
    sums = np.abs(_ROWS).sum(axis=1)
    targets = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    csr = None
    if sparse:
        counts = (_ROWS != 0).sum(axis=1)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        csr = (indptr, np.nonzero(rows)[1].astype(np.int32), rows[rows != 0])
    return Records(None if sparse else rows, csr, targets, norms, sums, None, None, 3, grid)


def _by_hand(query: GradientQuery, records: Records) -> list[list[int]]:
    """The sum in Python integers and plain Python floats."""
    w = query.weights.integers
    total = [[0] * w.shape[1] for _ in w]
    limits = coefficient_limits(records.norms, None, query.bound)
    scale = query.weights.margin_scale(records.grid)
    for row, target, limit in zip(_ROWS.tolist(), records.targets.tolist(), limits.tolist(), strict=True):
        margins = np.array([float(sum(x * int(v) for x, v in zip(row, wk, strict=True))) * scale for wk in w])
        slopes = np.empty(len(w))
        derivatives(query.loss, margins, target, slopes)
        coefficients = _clip_by_hand((slopes * query.scale).tolist(), limit)
        for k, c in enumerate(coefficients):
            total[k] = [s + c * x for s, x in zip(total[k], row, strict=True)]
    return total


def _clip_by_hand(values: list[float], limit: int) -> list[int]:
    if len(values) == 1:
        return [int(min(max(float(np.rint(values[0])), -float(limit)), float(limit)))]
    size = 0.0
    for v in values:
        size += v * v
    size = math.sqrt(size)
    factor = 1.0 if size <= limit else limit / size
    out = [int(v * factor) for v in values]
    while sum(c * c for c in out) > limit * limit:
        out = [c - (c > 0) + (c < 0) for c in out]
    return out


_checked: set[tuple[type, int, bool]] = set()


def check_kernels(loss: Any, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless the kernels for this loss agree with plain Python. Once a process and class."""
    key = (type(loss), loss.n_outputs, sparse)
    if key in _checked:
        return
    records = _records(COARSE, sparse)
    integers = np.array([[3 << 24, -(5 << 22), 1 << 23]], dtype=np.int32)
    integers = np.concatenate([integers * (1 - 2 * (k % 2)) for k in range(loss.n_outputs)])
    engine: Engine = SparseEngine(records, threads=1) if sparse else DenseEngine(records, threads=1)
    for units in (None, np.arange(5, dtype=np.int64)):
        query = GradientQuery(Weights(integers, 24), loss, _BOUND, _SCALE, units=units)
        if engine.gradient_sum(query).tolist() != _by_hand(query, records):
            raise StaleKernels(
                "a compiled kernel disagrees with its source: delete the __pycache__ folders of discreet"
            )
    check_samplers()
    _checked.add(key)


@lru_cache(maxsize=1)
def check_samplers() -> None:
    """Known answers of the exact samplers on a fixed stream."""
    if rounded_gaussian(4, 20, SeededEntropy(1)).tolist() != _GAUSSIAN:
        raise StaleKernels("the Gaussian sampler fails its known answers: delete the __pycache__ folders of discreet")
    if discrete_laplace(4, 20, SeededEntropy(1)).tolist() != _LAPLACE:
        raise StaleKernels("the Laplace sampler fails its known answers: delete the __pycache__ folders of discreet")


_GAUSSIAN = [696207, -356740, -678959, -285812]
_LAPLACE = [-1676727, -1618737, -730481, -169126]
