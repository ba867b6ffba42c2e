"""Known answers of moments, of recoded records and of counts of cells."""

import math

import numpy as np

from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator.engines import engine_for
from discreet.curator.kernels.moments import add_counts
from discreet.curator.known_answers import ROWS, SIZE, known_records, once_for_classes, require
from discreet.curator.lattice.lattice import COARSE
from discreet.curator.records.admission import Records
from discreet.curator.records.recoding import Recoding, recoded
from discreet.typing import Floats, Integers

_BOUND, _SCALE = 1 << 34, 40
_DOMAIN = Domain(np.ones(SIZE), math.sqrt(SIZE), len(ROWS), Neighbors("zero_out"))
_MATRIX = np.array(
    [
        [0.5, -0.25, 0.0, 0.125, 0.25],
        [1.0, 0.5, 0.25, 0.0, -0.5],
        [-0.5, 0.0, 1.0, 0.5, 0.25],
        [0.25, 0.5, -0.25, 0.5, 0.0],
        [-0.5, 0.0, 1.0, 0.25, 0.75],
    ]
)


@once_for_classes
def check_moment_kernels(*, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless sums are those of Python integers and recoded entries within a step of theirs."""
    from discreet.curator.queries.moments import MomentQuery

    query, records = MomentQuery(bound=_BOUND, scale=float(_SCALE)), known_records(sparse)
    engine, dense = engine_for(records, threads=1), engine_for(known_records(False), threads=1)
    require(query.mean_over(engine).tolist() == _mean_by_hand())
    require(query.squares_over(engine).tolist() == _squares_by_hand())
    require(query.outer_over(dense).tolist() == _outer_by_hand())
    center = np.zeros(SIZE - 1) if sparse else np.array([0.125, -0.25, 0.0, 0.5])
    matrix = np.diag(_MATRIX).copy() if sparse else _MATRIX
    recoding = Recoding(center, np.array([0.5, 2.0, 1.0, 4.0]), 0.75, 1.25, matrix)
    new = recoded(records, recoding, _DOMAIN, numeric_target=False)
    require(np.abs(_dense(new) - _recoded_by_hand(recoding, new.grid.one)).max() <= 1)


@once_for_classes
def check_count_kernel() -> None:
    """Raise ``StaleKernels`` unless the compiled loop counts as it is written."""
    total, seen = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    add_counts(np.array([[0, 3, 3], [-1, 4, 1], [2, 2, 2]]), np.array([6, 3, 2]), 0, seen, total)
    add_counts(np.array([[1, 1 << 62, 3], [3, -(1 << 62), 3]]), np.array([0, 6]), 3, seen, total)
    require(total.tolist() == [6, 3, 2, 12])


def _dense(records: Records) -> Integers:
    if records.rows is not None:
        return records.rows.astype(np.int64)
    assert records.sparse is not None
    indptr, indices, data = records.sparse
    table = np.zeros(ROWS.shape, dtype=np.int64)
    table[np.repeat(np.arange(len(ROWS)), np.diff(indptr)), indices] = data
    return table


def _norm(row: list[int]) -> int:
    """Return the Euclidean norm, rounded up."""
    squares = sum(x * x for x in row)
    return math.isqrt(squares - 1) + 1 if squares else 0


def _mean_by_hand() -> list[int]:
    total = [0] * SIZE
    for row in ROWS.tolist():
        c = min(_SCALE, _BOUND // _norm(row)) if any(row) else 0
        total = [s + c * x for s, x in zip(total, row, strict=True)]
    return total


def _squares_by_hand() -> list[int]:
    total = [0] * SIZE
    for row in ROWS.tolist():
        squares = [x * x >> 8 for x in row]
        c = min(_SCALE << 8, _BOUND // _norm(squares)) if any(squares) else 0
        total = [t + c * s for t, s in zip(total, squares, strict=True)]
    return total


def _outer_by_hand() -> list[list[int]]:
    total = [[0] * SIZE for _ in range(SIZE)]
    for row in ROWS.tolist():
        c = min(_SCALE, _BOUND // max(1, _norm(row)) ** 2)
        total = [[t + c * x * y for t, y in zip(line, row, strict=True)] for line, x in zip(total, row, strict=True)]
    return total


def _recoded_by_hand(recoding: Recoding, one: int) -> Floats:
    u = (ROWS[:, : SIZE - 1] / COARSE.one - recoding.center) / recoding.scale
    u = np.column_stack([u, np.full(len(ROWS), recoding.constant)])
    u *= np.minimum(1.0, recoding.row_norm / np.linalg.norm(u, axis=1))[:, None]
    assert recoding.matrix is not None
    z = u * recoding.matrix if recoding.matrix.ndim == 1 else u @ recoding.matrix
    return np.asarray(np.where(ROWS.any(axis=1, keepdims=True), np.rint(z * one), 0.0))
