"""Known answers of the minimizer's kernels: a stale one would certify the gradient of another function.

Against sums in plain Python floats, to 13 digits: these passes are not bit for bit.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.curator.certified.float_passes import by_outputs
from discreet.curator.engines import engine_for
from discreet.curator.known_answers import ROWS, SIZE, TARGETS, known_records, once_for_classes, require
from discreet.curator.lattice.lattice import COARSE, Grid
from discreet.losses.base import Loss, derivatives, values

_SHARES, _STARTS = np.array([2, 2, 1, 1, 1]), np.array([0, 2, 3, 4, 5])
_WEIGHTS = np.array([0.75, -0.5, 1.5, 0.125, -0.25])
_BOUNDS = ((math.inf, math.inf), (0.375, 1.5))  # of gradients, of rows


def check_smooth(loss: Loss, *, sparse: bool, grid: Grid) -> None:
    """Raise ``StaleKernels`` unless gradients, clipped and not, and sums of losses agree with plain Python."""
    # recoded records' grids differ in their bits only, and these rows must fit
    _check_smooth(loss, sparse=sparse, grid=COARSE if np.dtype(grid.dtype).itemsize == 2 else grid)


@once_for_classes
def _check_smooth(loss: Loss, *, sparse: bool, grid: Grid) -> None:
    records = known_records(sparse, grid, shares=_SHARES, starts=_STARTS)
    passes = engine_for(records, threads=1).smooth()
    w = np.multiply.outer(_WEIGHTS, 1.0 - 2.0 * (np.arange(loss.n_outputs) % 2))
    for clip, row_norm in _BOUNDS:
        clip = clip if loss.n_outputs == 1 else math.inf
        found = passes.slopes(by_outputs(w), loss, passes.view(clip, row_norm)).gradient
        expected = _gradient_by_hand(loss, w, clip, row_norm, grid)
        require(np.allclose(found, expected, rtol=1e-13, atol=1e-13))
        value = _value_by_hand(loss, w, row_norm, grid)
        require(math.isclose(passes.value(w, loss, row_norm), value, rel_tol=1e-13))


def _shrunk_rows(row_norm: float, grid: Grid) -> Iterator[tuple[list[float], float, float, int]]:
    """Yield each record after shrinking, its norm (by its integer ceiling), target and number of siblings."""
    for row, target, share in zip((ROWS / COARSE.one).tolist(), TARGETS.tolist(), _SHARES.tolist(), strict=True):
        norm = math.ceil(math.hypot(*row) * grid.one) / grid.one
        factor = row_norm / norm if norm > row_norm else 1.0
        yield [value * factor for value in row], min(norm, row_norm), target, share


def _gradient_by_hand(loss: Loss, w: Any, clip: float, row_norm: float, grid: Grid) -> list[list[float]]:
    parts: list[list[list[float]]] = [[[] for _ in range(SIZE)] for _ in range(loss.n_outputs)]
    for x, norm, target, share in _shrunk_rows(row_norm, grid):
        slopes, limit = np.empty(loss.n_outputs), clip / max(norm, 1e-9)
        derivatives(loss, _margins(x, w), target, slopes)
        for k, slope in enumerate(slopes.tolist()):
            for j, value in enumerate(x):
                parts[k][j].append(min(max(slope, -limit), limit) / share * value)
    return [[math.fsum(terms) for terms in row] for row in parts]


def _value_by_hand(loss: Loss, w: Any, row_norm: float, grid: Grid) -> float:
    rows = _shrunk_rows(row_norm, grid)
    return math.fsum(values(loss, _margins(x, w), target) / share for x, _, target, share in rows if any(x))


def _margins(x: list[float], w: Any) -> Any:
    return np.array([math.fsum(a * b for a, b in zip(x, wk, strict=True)) for wk in w.T.tolist()])
