"""The known-answer test of the minimizer's kernels: a stale one would certify the gradient of another function.

As in ``selftest.py``, but against sums in plain Python floats, to 13 digits: these passes are not bit for bit.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.curator.certified.float_passes import by_outputs
from discreet.curator.engines.base import Engine
from discreet.curator.engines.dense import DenseEngine
from discreet.curator.engines.sparse import SparseEngine
from discreet.curator.lattice.lattice import COARSE, Grid
from discreet.curator.records.admission import Records
from discreet.errors import StaleKernels
from discreet.losses.base import derivatives, values

_ROWS = np.array([[1.0, -1.0, 0.5, 0.25, 1.0], [0.125, 0, 0, 0, 1], [0, 0, 0, 0, 0], [-1, 0.75, 0, 1, 1]])
_TARGETS = [1.0, 0.0, 0.0, 1.0]
_SHARES = [2, 2, 1, 1]
_WEIGHTS = np.array([0.75, -0.5, 1.5, 0.125, -0.25])
_BOUNDS = ((math.inf, math.inf), (0.375, 1.5))  # of gradients, of rows
_STALE = "a compiled kernel disagrees with its source: delete the __pycache__ folders of discreet"
_checked: set[tuple[type, int, bool, int]] = set()


def check_smooth(loss: Any, *, sparse: bool, grid: Grid) -> None:
    """Raise ``StaleKernels`` unless gradients, clipped and not, and sums of losses agree with plain Python."""
    if np.dtype(grid.dtype).itemsize == 2:
        grid = COARSE  # recoded records' grids differ in their bits only, and these rows must fit
    key = (type(loss), loss.n_outputs, sparse, grid.bits)
    if key in _checked:
        return
    engine = _engine(grid, sparse)
    w = np.multiply.outer(_WEIGHTS, 1.0 - 2.0 * (np.arange(loss.n_outputs) % 2))
    passes = engine.smooth()
    for clip, row_norm in _BOUNDS:
        clip = clip if loss.n_outputs == 1 else math.inf
        gradient = passes.slopes(by_outputs(w), loss, passes.view(clip, row_norm)).gradient
        if not np.allclose(gradient, _gradient_by_hand(loss, w, clip, row_norm, grid), rtol=1e-13, atol=1e-13):
            raise StaleKernels(_STALE)
        if not math.isclose(passes.value(w, loss, row_norm), _value_by_hand(loss, w, row_norm, grid), rel_tol=1e-13):
            raise StaleKernels(_STALE)
    _checked.add(key)


def _engine(grid: Grid, sparse: bool) -> Engine:
    integers = (_ROWS * grid.one).astype(np.int64)
    rows, shares = integers.astype(grid.dtype), np.array(_SHARES)
    norms = np.ceil(np.sqrt((integers**2).sum(axis=1))).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum((rows != 0).sum(axis=1))]).astype(np.int64)
    csr = (indptr, np.nonzero(rows)[1].astype(np.int32), rows[rows != 0])
    facts = (np.array(_TARGETS), norms, np.abs(integers).sum(axis=1), np.array([0, 2, 3, 4]), shares, 5, grid)
    if sparse:
        return SparseEngine(Records(None, csr, *facts), threads=1)
    return DenseEngine(Records(rows, None, *facts), threads=1)


def _shrunk_rows(row_norm: float, grid: Grid) -> Iterator[tuple[list[float], float, float, int]]:
    """Each record after shrinking, its norm (by its integer ceiling), target and number of siblings."""
    for x, target, share in zip(_ROWS.tolist(), _TARGETS, _SHARES, strict=True):
        norm = math.ceil(math.hypot(*x) * grid.one) / grid.one
        factor = row_norm / norm if norm > row_norm else 1.0
        yield [value * factor for value in x], min(norm, row_norm), target, share


def _gradient_by_hand(loss: Any, w: Any, clip: float, row_norm: float, grid: Grid) -> list[list[float]]:
    parts: list[list[list[float]]] = [[[] for _ in range(5)] for _ in range(loss.n_outputs)]
    for x, norm, target, share in _shrunk_rows(row_norm, grid):
        slopes, limit = np.empty(loss.n_outputs), clip / max(norm, 1e-9)
        derivatives(loss, _margins(x, w), target, slopes)
        for k, slope in enumerate(slopes.tolist()):
            for j, value in enumerate(x):
                parts[k][j].append(min(max(slope, -limit), limit) / share * value)
    return [[math.fsum(terms) for terms in row] for row in parts]


def _value_by_hand(loss: Any, w: Any, row_norm: float, grid: Grid) -> float:
    rows = _shrunk_rows(row_norm, grid)
    return math.fsum(values(loss, _margins(x, w), target) / share for x, _, target, share in rows if any(x))


def _margins(x: list[float], w: Any) -> Any:
    return np.array([math.fsum(a * b for a, b in zip(x, wk, strict=True)) for wk in w.T.tolist()])
