"""Known answers of coordinate sums, of programs of coordinate steps, and of squared norms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.curator.engines import engine_for
from discreet.curator.known_answers import ROWS, SIZE, TARGETS, known_records, once_for_classes, require
from discreet.losses.base import Loss, derivative
from discreet.penalties import NoPenalty
from discreet.penalties.base import prox_coordinate
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator.queries.coordinates import CoordinateProgram


@once_for_classes
def check_coordinate_kernels(loss: Loss, penalty: Any, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless programs of coordinate steps, and the sums below, agree with plain Python."""
    program = _program(loss, penalty)
    last, sums = program.over(engine_for(known_records(sparse), threads=1))
    require((last.tolist(), sums.tolist()) == _steps_by_hand(program))
    check_coordinate_sums(loss, sparse=sparse)
    check_square_sums(sparse=sparse)


@once_for_classes
def check_coordinate_sums(loss: Loss, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless sums of single gradient entries agree with plain Python."""
    from discreet.curator.queries.coordinates import CoordinateQuery

    program, bounds = _program(loss, NoPenalty()), np.full(SIZE, 1 << 29)
    query = CoordinateQuery(program.w, loss, np.arange(SIZE), program.scales, bounds, program.margin_scale)
    by_hand = [_entry_sum_by_hand(query.w, j, int(bounds[j]), program) for j in range(SIZE)]
    require(query.over(engine_for(known_records(sparse), threads=1)).tolist() == by_hand)


@once_for_classes
def check_square_sums(*, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless sums of squared features agree with plain Python."""
    from discreet.curator.queries.moments import SquareQuery

    every_square = SquareQuery(np.ones(SIZE), np.full(SIZE, 1 << 61), 1 << 61)
    found = every_square.over(engine_for(known_records(sparse), threads=1))
    require(found.tolist() == [sum(row[j] ** 2 for row in ROWS.tolist()) for j in range(SIZE)])


def _program(loss: Loss, penalty: Any) -> CoordinateProgram:
    """Return eight steps."""
    from discreet.curator.queries.coordinates import CoordinateProgram

    return CoordinateProgram(
        w=np.array([5.0, -3.0, 0.0, 2.0, 1.0]) * 2**20,
        loss=loss,
        penalty=penalty,
        coordinates=np.array([0, 2, 1, 4, 3, 0, 1, 2], dtype=np.int64),
        noise=np.arange(8, dtype=np.int64) - 2,
        scales=np.array([2.0, 3.0, 4.0, 5.0, 3.0]) * 2**18,
        bound=1 << 32,
        units=np.array([1.0, 2.0, 3.0, 1.0, 2.0]) * 2.0**-36,
        n=5.0,
        steps=np.array([0.5, 0.25, 0.125, 0.5, 0.25]),
        margin_scale=2.0**-38,
        to_grid=2.0**24,
        room=2.0**39,
    )


def _entry_sum_by_hand(w: Floats, j: int, bound: int, program: CoordinateProgram) -> int:
    total = 0
    for row, target in zip(ROWS.tolist(), TARGETS.tolist(), strict=True):
        margin = float(sum(x * int(v) for x, v in zip(row, w.tolist(), strict=True))) * program.margin_scale
        q = derivative(program.loss, margin, target) * (float(row[j]) * float(program.scales[j]))
        total += round(min(max(q, -float(bound)), float(bound)))
    return total


def _steps_by_hand(program: CoordinateProgram) -> tuple[list[float], list[float]]:
    w, sums = program.w.copy(), np.zeros(SIZE)
    for k, j in enumerate(program.coordinates.tolist()):
        total = _entry_sum_by_hand(w, j, program.bound, program) + int(program.noise[k])
        gradient, step = float(total) * float(program.units[j]) / program.n, float(program.steps[j])
        real = prox_coordinate(program.penalty, float(w[j]) / program.to_grid - step * gradient, step, j)
        room = program.room - (float(np.abs(w).sum()) - abs(float(w[j])))
        w[j] = min(max(float(np.rint(real * program.to_grid)), -room), room)
        sums += w
    return w.tolist(), sums.tolist()
