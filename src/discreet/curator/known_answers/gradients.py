"""Known answers of sums of gradients, of their changes and of losses. Workers of a cluster import this file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.curator.engines import engine_for
from discreet.curator.engines.base import coefficient_limits
from discreet.curator.known_answers import ROWS, SIZE, TARGETS, known_records, once_for_classes, require
from discreet.curator.lattice.lattice import COARSE, Weights
from discreet.losses.base import Loss, Valued, derivatives, least, values
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator.queries.gradients import GradientQuery
    from discreet.curator.queries.values import ValueQuery

_BOUND = 1 << 34
_SCALE = 2.0**21


@once_for_classes
def check_kernels(loss: Loss, *, sparse: bool, sampled: bool) -> None:
    """Raise ``StaleKernels`` unless sums for this loss, over all or ``sampled`` records, agree with plain Python."""
    from discreet.curator.queries.gradients import GradientQuery

    units = np.arange(len(ROWS), dtype=np.int64) if sampled else None
    _check_gradient(GradientQuery(_two_points(loss)[0], loss, _BOUND, _SCALE, units=units), sparse)


def known_sum(loss: Loss) -> list[list[int]]:
    """Return a loss's sum over the known records, as this process computes it: equal wherever the code is."""
    from discreet.curator.queries.gradients import GradientQuery

    query = GradientQuery(_two_points(loss)[0], loss, _BOUND, _SCALE)
    found: list[list[int]] = query.over(engine_for(known_records(False), threads=1)).tolist()
    return found


@once_for_classes
def check_change_kernels(loss: Loss, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless changes of gradients agree with plain Python."""
    from discreet.curator.queries.gradients import GradientQuery

    point, other = _two_points(loss)
    _check_gradient(GradientQuery(point, loss, _BOUND, _SCALE, anchor=other), sparse)


@once_for_classes
def check_value_kernels(loss: Valued, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless sums of clipped losses agree with plain Python."""
    from discreet.curator.queries.values import ValueQuery

    query = ValueQuery(_two_points(loss), loss, 1 << 20, 2.0**20)
    found = query.over(engine_for(known_records(sparse), threads=1)).tolist()
    require(found == [_values_by_hand(query, point) for point in query.points])


def _check_gradient(query: GradientQuery, sparse: bool) -> None:
    require(query.over(engine_for(known_records(sparse), threads=1)).tolist() == _gradient_by_hand(query))


def _two_points(loss: Valued) -> tuple[Weights, Weights]:
    """Return integer weights of alternating sign, one row per output, and others."""
    row = [3 << 24, -(5 << 22), 1 << 23, 7 << 21, -(1 << 24)]
    integers = np.array([row] * loss.n_outputs, dtype=np.int32)
    integers[1::2] *= -1
    return Weights(integers, 24), Weights(-integers, 26)


def _gradient_by_hand(query: GradientQuery) -> list[list[int]]:
    """Return the sum in Python integers and plain Python floats."""
    w = query.weights.integers
    total = [[0] * SIZE for _ in w]
    limits = coefficient_limits(known_records(False).norms, None, query.bound)
    for row, target, limit in zip(ROWS.tolist(), TARGETS.tolist(), limits.tolist(), strict=True):
        slopes, others = np.empty(len(w)), np.zeros(len(w))
        derivatives(query.loss, _margins_by_hand(row, query.weights), target, slopes)
        if query.anchor is not None:
            derivatives(query.loss, _margins_by_hand(row, query.anchor), target, others)
            slopes -= others
        for k, c in enumerate(_clip_by_hand((slopes * query.scale).tolist(), limit)):
            total[k] = [s + c * x for s, x in zip(total[k], row, strict=True)]
    return total


def _margins_by_hand(row: list[int], point: Weights) -> Floats:
    scale = point.margin_scale(COARSE)
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


def _values_by_hand(query: ValueQuery, point: Weights) -> int:
    total = 0
    for row, target in zip(ROWS.tolist(), TARGETS.tolist(), strict=True):
        if any(row):
            above = values(query.loss, _margins_by_hand(row, point), target) - least(query.loss, target)
            total += round(min(max(above * query.scale, 0.0), float(query.bound)))
    return total
