"""The known-answer test of the kernels behind moments and recodings, as in ``selftest.py``."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator.engines.base import MomentQuery
from discreet.curator.engines.choice import engine_for
from discreet.curator.lattice.lattice import COARSE
from discreet.curator.records.admission import Records
from discreet.curator.records.recode import recoded
from discreet.curator.records.recoding import Recoding
from discreet.errors import StaleKernels

_ROWS = np.array([[16384, -16384, 16384], [1, 0, 16384], [-9000, 12000, 16384], [0, 0, 0], [-16384, 77, 16384]])
_QUERY = MomentQuery(bound=1 << 34, scale=40.0)
_DOMAIN = Domain(np.ones(3), math.sqrt(3.0), 5, Neighbors("zero_out"))
_MATRIX = np.array([[0.5, -0.25, 0.0], [1.0, 0.5, 0.25], [-0.5, 0.0, 1.0]])
_STALE = "a compiled kernel disagrees with its source: delete the __pycache__ folders of discreet"


@lru_cache(maxsize=2)
def check_shape_kernels(*, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless sums are those of Python integers and recoded entries within a step of theirs."""
    records = _records(sparse)
    engine, outer = engine_for(records, threads=1), engine_for(_records(False), threads=1)
    found = [engine.mean_sum(_QUERY), engine.diagonal_sum(_QUERY), outer.outer_sum(_QUERY)]
    by_hand = [_mean_by_hand(), _diagonal_by_hand(), _outer_by_hand()]
    if any(total.tolist() != expected for total, expected in zip(found, by_hand, strict=True)):
        raise StaleKernels(_STALE)
    center = np.zeros(2) if sparse else np.array([0.125, -0.25])
    recoding = Recoding(center, np.array([0.5, 2.0]), 0.75, 1.25, np.diag(_MATRIX).copy() if sparse else _MATRIX)
    new = recoded(records, recoding, _DOMAIN, numeric_target=False)
    if np.abs(_dense(new) - _recoded_by_hand(recoding, new.grid.one)).max() > 1:
        raise StaleKernels(_STALE)


def _records(sparse: bool) -> Records:
    rows = _ROWS.astype(np.int16)
    norms = np.ceil(np.sqrt((_ROWS**2).sum(axis=1))).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum((rows != 0).sum(axis=1))]).astype(np.int64)
    csr = (indptr, np.nonzero(rows)[1].astype(np.int32), rows[rows != 0])
    facts = (np.zeros(5), norms, np.abs(_ROWS).sum(axis=1), None, None, 3, COARSE)
    return Records(None, csr, *facts) if sparse else Records(rows, None, *facts)


def _dense(records: Records) -> NDArray[np.int64]:
    if records.rows is not None:
        return records.rows.astype(np.int64)
    assert records.sparse is not None
    indptr, indices, data = records.sparse
    table = np.zeros((5, 3), dtype=np.int64)
    table[np.repeat(np.arange(5), np.diff(indptr)), indices] = data
    return table


def _mean_by_hand() -> list[int]:
    total = [0, 0, 0]
    for row in _ROWS.tolist():
        c = min(40, _QUERY.bound // max(1, math.isqrt(sum(x * x for x in row) - 1) + 1)) if any(row) else 0
        total = [s + c * x for s, x in zip(total, row, strict=True)]
    return total


def _diagonal_by_hand() -> list[int]:
    total = [0, 0, 0]
    for row in _ROWS.tolist():
        squares = [x * x >> 8 for x in row]
        norm = sum(s * s for s in squares)
        c = min(40 << 8, _QUERY.bound // (math.isqrt(norm - 1) + 1)) if norm else 0
        total = [t + c * s for t, s in zip(total, squares, strict=True)]
    return total


def _outer_by_hand() -> list[list[int]]:
    total = [[0] * 3 for _ in range(3)]
    for row in _ROWS.tolist():
        norm = math.isqrt(sum(x * x for x in row) - 1) + 1 if any(row) else 1
        c = min(40, _QUERY.bound // norm**2)
        total = [[t + c * x * y for t, y in zip(line, row, strict=True)] for line, x in zip(total, row, strict=True)]
    return total


def _recoded_by_hand(recoding: Recoding, one: int) -> NDArray[np.float64]:
    u = np.column_stack([(_ROWS[:, :2] / COARSE.one - recoding.center) / recoding.scale, np.full(5, recoding.constant)])
    u *= np.minimum(1.0, recoding.row_norm / np.linalg.norm(u, axis=1))[:, None]
    assert recoding.matrix is not None
    z = u * recoding.matrix if recoding.matrix.ndim == 1 else u @ recoding.matrix
    return np.asarray(np.where(_ROWS.any(axis=1, keepdims=True), np.rint(z * one), 0.0))
