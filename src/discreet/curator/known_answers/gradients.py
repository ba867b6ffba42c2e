"""A known-answer test that runs when a curator opens: compiled kernels against plain Python integers.

Numba's disk cache does not see edits in *other* files: a kernel compiled against an older loss or
clip would run on silently. So each kernel that a fit will use is first compared, on a few records
chosen for their clips, with the same sum written in unbounded Python integers.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.engines.base import GradientQuery, ValueQuery, coefficient_limits
from discreet.curator.engines.choice import engine_for
from discreet.curator.engines.coordinates import CoordinateProgram, CoordinateQuery, SquareQuery
from discreet.curator.lattice.entropy import SeededEntropy
from discreet.curator.lattice.lattice import COARSE, Grid, Weights
from discreet.curator.lattice.noise import discrete_laplace, rounded_gaussian
from discreet.curator.records.admission import Records
from discreet.errors import StaleKernels
from discreet.losses.base import derivative, derivatives, least, values
from discreet.penalties.base import prox_coordinate

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


def _two_points(loss: Any) -> tuple[Weights, Weights]:
    """Integer weights of alternating sign, one row an output, and others."""
    integers = np.array([[3 << 24, -(5 << 22), 1 << 23]] * loss.n_outputs, dtype=np.int32)
    integers[1::2] *= -1
    return Weights(integers, 24), Weights(-integers, 26)


def _by_hand(query: GradientQuery, records: Records) -> list[list[int]]:
    """The sum in Python integers and plain Python floats."""
    w = query.weights.integers
    total = [[0] * w.shape[1] for _ in w]
    limits = coefficient_limits(records.norms, None, query.bound)
    for row, target, limit in zip(_ROWS.tolist(), records.targets.tolist(), limits.tolist(), strict=True):
        margins = _margins_by_hand(row, query.weights, records.grid)
        slopes, others = np.empty(len(w)), np.zeros(len(w))
        derivatives(query.loss, margins, target, slopes)
        if query.anchor is not None:
            anchored = _margins_by_hand(row, query.anchor, records.grid)
            derivatives(query.loss, anchored, target, others)
            slopes -= others
        coefficients = _clip_by_hand((slopes * query.scale).tolist(), limit)
        for k, c in enumerate(coefficients):
            total[k] = [s + c * x for s, x in zip(total[k], row, strict=True)]
    return total


def _margins_by_hand(row: list[int], point: Weights, grid: Grid) -> NDArray[np.float64]:
    scale = point.margin_scale(grid)
    return np.array([float(sum(x * int(v) for x, v in zip(row, wk, strict=True))) * scale for wk in point.integers])


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


_STALE = "a compiled kernel disagrees with its source: delete the __pycache__ folders of discreet"


def check_kernels(loss: Any, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless the kernels for this loss agree with plain Python. Once a process and class."""
    key = (type(loss), loss.n_outputs, sparse)
    if key in _checked:
        return
    records = _records(COARSE, sparse)
    engine = engine_for(records, threads=1)
    for units in (None, np.arange(5, dtype=np.int64)):
        query = GradientQuery(_two_points(loss)[0], loss, _BOUND, _SCALE, units=units)
        if engine.gradient_sum(query).tolist() != _by_hand(query, records):
            raise StaleKernels(_STALE)
    check_samplers()
    _checked.add(key)


_ALL_SQUARES = SquareQuery(np.ones(3), np.full(3, 1 << 61), 1 << 61)
_PROGRAM = np.array([0, 2, 1, 0, 1, 2], dtype=np.int64)
_checked_programs: set[tuple[type, type, type, bool]] = set()


def check_coordinate_kernels(loss: Any, penalty: Any, *, sparse: bool) -> None:
    """The same for coordinate sums and programs of steps; once a process, loss, penalty and engine."""
    key = (type(loss), type(penalty), type(getattr(penalty, "penalty", None)), sparse)  # a rescaled one holds another
    if key in _checked_programs:
        return
    records = _records(COARSE, sparse)
    engine = engine_for(records, threads=1)
    program = CoordinateProgram(
        w=np.array([5.0, -3.0, 0.0]) * 2**20,
        loss=loss,
        penalty=penalty,
        coordinates=_PROGRAM,
        noise=np.arange(6, dtype=np.int64) - 2,
        scales=np.array([2.0, 3.0, 4.0]) * 2**18,
        bound=1 << 32,
        units=np.array([1.0, 2.0, 3.0]) * 2.0**-36,
        n=5.0,
        steps=np.array([0.5, 0.25, 0.125]),
        margin_scale=2.0**-38,
        to_grid=2.0**24,
        room=2.0**39,
    )
    last, sums = engine.coordinate_steps(program)
    if (last.tolist(), sums.tolist()) != _steps_by_hand(program, records):
        raise StaleKernels(_STALE)
    total = np.full(3, 1 << 29)
    query = CoordinateQuery(program.w, loss, np.arange(3), program.scales, total, program.margin_scale)
    by_hand = [_entry_sum_by_hand(query.w, j, int(total[j]), program, records) for j in range(3)]
    squares = [sum(row[j] ** 2 for row in _ROWS.tolist()) for j in range(3)]
    if engine.coordinate_sums(query).tolist() != by_hand or engine.square_sums(_ALL_SQUARES).tolist() != squares:
        raise StaleKernels(_STALE)
    _checked_programs.add(key)


def _entry_sum_by_hand(w: Any, j: int, bound: int, program: CoordinateProgram, records: Records) -> int:
    total = 0
    for row, target in zip(_ROWS.tolist(), records.targets.tolist(), strict=True):
        margin = float(sum(x * int(v) for x, v in zip(row, w.tolist(), strict=True))) * program.margin_scale
        q = derivative(program.loss, margin, target) * (float(row[j]) * float(program.scales[j]))
        total += round(min(max(q, -float(bound)), float(bound)))
    return total


def _steps_by_hand(program: CoordinateProgram, records: Records) -> tuple[list[float], list[float]]:
    w, sums = program.w.copy(), np.zeros(3)
    for k, j in enumerate(program.coordinates.tolist()):
        total = _entry_sum_by_hand(w, j, program.bound, program, records) + int(program.noise[k])
        gradient, step = float(total) * float(program.units[j]) / program.n, float(program.steps[j])
        real = prox_coordinate(program.penalty, float(w[j]) / program.to_grid - step * gradient, step, j)
        room = program.room - (float(np.abs(w).sum()) - abs(float(w[j])))
        w[j] = min(max(float(np.rint(real * program.to_grid)), -room), room)
        sums += w
    return w.tolist(), sums.tolist()


_checked_changes: set[tuple[type, bool]] = set()


def check_change_kernels(loss: Any, *, sparse: bool) -> None:
    """The same for changes of gradients; once a process, loss and engine."""
    key = (type(loss), sparse)
    if key in _checked_changes:
        return
    records = _records(COARSE, sparse)
    engine = engine_for(records, threads=1)
    point, other = _two_points(loss)
    query = GradientQuery(point, loss, _BOUND, _SCALE, anchor=other)
    if engine.gradient_sum(query).tolist() != _by_hand(query, records):
        raise StaleKernels(_STALE)
    _checked_changes.add(key)


_checked_values: set[tuple[type, bool]] = set()


def check_value_kernels(loss: Any, *, sparse: bool) -> None:
    """The same for sums of clipped losses; once a process, loss and engine."""
    key = (type(loss), sparse)
    if key in _checked_values:
        return
    records = _records(COARSE, sparse)
    engine = engine_for(records, threads=1)
    query = ValueQuery(_two_points(loss), loss, 1 << 20, 2.0**20)
    if engine.value_sums(query).tolist() != [_values_by_hand(query, point, records) for point in query.points]:
        raise StaleKernels(_STALE)
    _checked_values.add(key)


def _values_by_hand(query: ValueQuery, point: Weights, records: Records) -> int:
    total = 0
    for row, target in zip(_ROWS.tolist(), records.targets.tolist(), strict=True):
        margins = _margins_by_hand(row, point, records.grid)
        if any(row):
            above = values(query.loss, margins, target) - least(query.loss, target)
            total += round(min(max(above * query.scale, 0.0), float(query.bound)))
    return total


@lru_cache(maxsize=1)
def check_samplers() -> None:
    """Known answers of the exact samplers on a fixed stream."""
    if rounded_gaussian(4, 20, SeededEntropy(1)).tolist() != _GAUSSIAN:
        raise StaleKernels("the Gaussian sampler fails its known answers: delete the __pycache__ folders of discreet")
    if discrete_laplace(4, 20, SeededEntropy(1)).tolist() != _LAPLACE:
        raise StaleKernels("the Laplace sampler fails its known answers: delete the __pycache__ folders of discreet")


_GAUSSIAN = [696207, -356740, -678959, -285812]
_LAPLACE = [-1676727, -1618737, -730481, -169126]
