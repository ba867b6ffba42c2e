"""Known answers: compiled code must agree with its own source, run as plain Python, before it reads a record.

Numba's disk cache does not see edits in *other* files: a kernel compiled against an older loss or clip would run on
silently. So each kind of question that a fit will ask is first asked of a few records that are chosen for their clips,
and of persons with several rows, once with compiled kernels and once with their source. The answers are equal in every
bit; where kernels compute in floating point, in 13 digits. That the source is right is for tests to show. The cipher
and the samplers have known draws (``known_draws.py``).

Each check runs once per process and combination of classes. It imports its question when it runs, since the question's
file imports the check. Workers of a cluster import this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.curator.engines import DenseEngine, engine_for
from discreet.curator.kernels.kernel import plain_python
from discreet.curator.kernels.moments import add_counts
from discreet.curator.lattice import COARSE, Grid, Weights
from discreet.curator.records.admission import Records
from discreet.errors import StaleKernels
from discreet.losses.base import Loss, Valued
from discreet.penalties.base import Penalty
from discreet.typing import Integers

if TYPE_CHECKING:
    from discreet.curator.engines import ExactSum
    from discreet.curator.queries.gradients import CoordinateProgram, CoordinateQuery
    from discreet.curator.queries.moments import Moment

ROWS = np.array(
    [
        [16384, -16384, 8192, 77, 16384],
        [1, 0, 0, 0, 16384],
        [-9000, 12000, 0, 16384, 16384],
        [0, 0, 0, 0, 0],
        [-16384, 77, 0, -3, 16384],
    ],
    dtype=np.int64,
)
"""Records on the coarse grid: more columns than loops are unrolled by, a null record, entries that are absent."""
TARGETS = np.array([1.0, -1.0, 1.0, 0.0, -1.0])
"""Of two classes, of the first of several, and none: each has slopes for some loss."""
STARTS, SHARES = np.array([0, 2, 3, 5]), np.array([2, 2, 1, 2, 2])
"""Where the rows of three persons begin, and how many rows the person behind each row has."""
SIZE = ROWS.shape[1]
STEEPER = 5
"""Bits by which margins are larger when a question is asked again: beyond where losses change their form."""

_BOUND, _REACH = 1 << 34, 20000.0

_passed: set[tuple[object, ...]] = set()


def once_for_classes(check: Callable[..., None]) -> Callable[..., None]:
    """Run a check once per process for the classes (and numbers of outputs) of its arguments and for its keywords."""

    @wraps(check)
    def checked(*parts: object, **words: object) -> None:
        inner = ((type(part), getattr(part, "n_outputs", 1), type(getattr(part, "penalty", None))) for part in parts)
        key = (check.__qualname__, *inner, *sorted(words.items()))
        if key not in _passed:
            with np.errstate(all="ignore"):  # kernels run without warnings where they are compiled
                check(*parts, **words)
            _passed.add(key)

    return checked


def require(agrees: bool, what: str = "a compiled kernel disagrees with its source") -> None:
    """Raise ``StaleKernels`` unless compiled code agrees with plain Python."""
    if not agrees:
        raise StaleKernels(f"{what}: delete the __pycache__ folders of discreet")


def known_records(sparse: bool, grid: Grid = COARSE, *, persons: bool = False) -> Records:
    """Return the rows as records of a grid, each a record of its own or all of three persons."""
    integers = ROWS * (grid.one >> COARSE.bits)
    rows = integers.astype(grid.dtype)
    norms = np.ceil(np.sqrt((integers**2).sum(axis=1))).astype(np.int64)
    units = (STARTS, SHARES) if persons else (None, None)
    facts = (TARGETS, norms, np.abs(integers).sum(axis=1), *units, SIZE, grid)
    if not sparse:
        return Records(rows, None, *facts)
    indptr = np.concatenate([[0], np.cumsum((rows != 0).sum(axis=1))]).astype(np.int64)
    return Records(None, (indptr, np.nonzero(rows)[1].astype(np.int32), rows[rows != 0]), *facts)


def _agree(ask: Callable[[], Any], *, digits: float = 0.0) -> None:
    """Compare what compiled kernels answer with what their source does: in every bit, or up to ``digits``."""
    compiled = ask()
    with plain_python():
        plain = ask()
    pairs = zip(compiled, plain, strict=True) if isinstance(compiled, tuple) else [(compiled, plain)]
    for left, right in pairs:
        require(np.allclose(left, right, rtol=digits, atol=digits) if digits else np.array_equal(left, right))


def _check_question(question: ExactSum | CoordinateProgram, sparse: bool) -> None:
    for persons in (False, True):
        _agree(lambda persons=persons: question.over(engine_for(known_records(sparse, persons=persons), threads=1)))  # type: ignore[misc]


def _two_points(loss: Valued) -> tuple[Weights, Weights]:
    """Return integer weights of alternating sign, one row per output, and others."""
    row = [3 << 24, -(5 << 22), 1 << 23, 7 << 21, -(1 << 24)]
    integers = np.array([row] * loss.n_outputs, dtype=np.int32)
    integers[1::2] *= -1
    return Weights(integers, 24), Weights(-integers, 26)


@once_for_classes
def check_kernels(loss: Loss, *, sparse: bool, sampled: bool) -> None:
    """Raise ``StaleKernels`` unless gradients' sums, over all or ``sampled`` records, agree with their source."""
    from discreet.curator.queries.gradients import GradientQuery

    units, point = np.array([0, 2]) if sampled else None, _two_points(loss)[0]
    for bits in (point.shift, point.shift - STEEPER):
        _check_question(GradientQuery(replace(point, shift=bits), loss, _BOUND, 2.0**21, units=units), sparse)


def known_sum(loss: Loss) -> list[list[int]]:
    """Return a loss's sum over the known records, as this process computes it: equal wherever the code is."""
    from discreet.curator.queries.gradients import GradientQuery

    query = GradientQuery(_two_points(loss)[0], loss, _BOUND, 2.0**21)
    total: list[list[int]] = query.over(engine_for(known_records(False), threads=1)).tolist()
    return total


@once_for_classes
def check_change_kernels(loss: Loss, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless sums of changes of gradients agree with their source."""
    from discreet.curator.queries.gradients import GradientQuery

    point, other = _two_points(loss)
    _check_question(GradientQuery(point, loss, _BOUND, 2.0**21, anchor=other), sparse)


@once_for_classes
def check_value_kernels(loss: Valued, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless sums of clipped losses agree with their source."""
    from discreet.curator.queries.choices import ValueQuery

    _check_question(ValueQuery(_two_points(loss), loss, 1 << 20, 2.0**20), sparse)


@once_for_classes
def check_coordinate_kernels(loss: Loss, penalty: Penalty, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless programs of coordinate steps, and the sums below, agree with their source."""
    from discreet.curator.queries.gradients import CoordinateProgram

    entries = _entries(loss)
    program = CoordinateProgram(
        w=entries.w,
        loss=loss,
        penalty=penalty,
        coordinates=np.array([0, 2, 1, 4, 3, 0, 1, 2], dtype=np.int64),
        noise=np.arange(8, dtype=np.int64) - 2,
        scales=entries.scales,
        bound=1 << 32,
        units=np.array([1.0, 2.0, 3.0, 1.0, 2.0]) * 2.0**-36,
        n=5.0,
        steps=np.array([0.5, 0.25, 0.125, 0.5, 0.25]),
        margin_scale=entries.margin_scale,
        to_grid=2.0**24,
        room=2.0**39,
    )
    _check_question(program, sparse)
    check_coordinate_sums(loss, sparse=sparse)
    check_square_sums(sparse=sparse)


@once_for_classes
def check_coordinate_sums(loss: Loss, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless margins, and sums of gradient entries, agree with their source."""
    entries = _entries(loss)
    if not sparse:  # to the last step of the lattice, which a sum of clipped slopes does not show
        _agree(lambda: DenseEngine(known_records(sparse), threads=1).tiles.margins(entries.w))
    _check_question(entries, sparse)


@once_for_classes
def check_share_sums(loss: Loss, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless counts of gradient entries within a clip agree with their source."""
    from discreet.curator.queries.gradients import ShareQuery

    _check_question(ShareQuery(_entries(loss), 2.0**12), sparse)


def _entries(loss: Loss) -> CoordinateQuery:
    from discreet.curator.queries.gradients import CoordinateQuery

    w, scales = np.array([5.0, -3.0, 0.0, 2.0, 1.0]) * 2**20, np.array([2.0, 3.0, 4.0, 5.0, 3.0]) * 2**18
    return CoordinateQuery(w, loss, np.arange(SIZE), scales, np.full(SIZE, 1 << 29), 2.0**-38)


@once_for_classes
def check_square_sums(*, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless sums of squared features agree with their source."""
    from discreet.curator.queries.moments import SquareQuery

    _check_question(SquareQuery(np.ones(SIZE), np.full(SIZE, 1 << 27), 1 << 28), sparse)


@once_for_classes
def check_effect_kernels(loss: Loss) -> None:
    """Raise ``StaleKernels`` unless what intervals for effects need of a loss agrees with its source."""
    from discreet.curator.queries import effects

    signs = 1 - 2 * (np.arange(loss.n_outputs) % 2)
    weights = Weights(np.outer(signs, [9, -5, 3, 2, 7]).astype(np.int32), 5)
    point = (weights, loss, _BOUND)
    for bits in (weights.shift, weights.shift - STEEPER):
        query = effects.WeightedGradientQuery(replace(weights, shift=bits), loss, _BOUND, 2.0**19, _REACH)
        _check_question(query, False)
    if loss.n_outputs > 1 and not loss.softmax_link:
        return
    lengths, hessians, scores = (s * np.array([0.3, 0.7, 1.3]) for s in (_REACH, 0.1 * _REACH**2, 0.5 * _REACH))
    edges = effects.Edges(lengths, hessians, scores, np.full(SIZE, 0.5 * _REACH))
    _check_question(effects.CurvatureQuery(*point, 400.0, _REACH), False)
    _check_question(effects.ScoreQuery(*point, 2.0, _REACH), False)
    _check_question(effects.SlopeQuery(*point, 1000.0), False)
    _check_question(effects.ShellQuery(*point[:2], 4, 1.0, _REACH, edges=edges), False)


@once_for_classes
def check_moment_kernels(*, moment: Moment, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless sums of one moment agree with their source; outer products are of dense records."""
    from discreet.curator.queries.moments import MomentQuery

    center = np.array([3, -9000, 0, 5, 1 << 15]) if moment == "squares" and not sparse else None
    _check_question(MomentQuery(_BOUND, 40.0, moment=moment, center=center), sparse and moment != "outer")


@once_for_classes
def check_magnitude_kernel() -> None:
    """Raise ``StaleKernels`` unless magnitudes are counted as the source counts them."""
    from discreet.curator.queries.moments import MagnitudeQuery

    _check_question(MagnitudeQuery(6, np.array([0, 9000, -3, 1 << 40])), False)


@once_for_classes
def check_recoding_kernels(*, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless maps of records agree with their source."""
    _agree(lambda: _recoded(sparse))


def _recoded(sparse: bool) -> tuple[object, ...]:
    from discreet.bounds import Domain
    from discreet.budget import Neighbors
    from discreet.curator.records.recoding import Recoding, recoded

    rotation = np.array([0.5, -0.25, 0.0, 0.125, 0.25]) + np.linspace(-1.0, 1.0, SIZE * SIZE).reshape(SIZE, SIZE) ** 2
    center = np.zeros(SIZE - 1) if sparse else np.array([0.125, -0.25, 0.0, 0.5])
    matrix = np.diag(rotation).copy() if sparse else rotation
    recoding = Recoding(center, np.array([0.5, 2.0, 1.0, 4.0]), 0.75, 1.25, matrix)
    domain = Domain(np.ones(SIZE), math.sqrt(SIZE), len(ROWS), Neighbors("zero_out"))
    records = recoded(known_records(sparse), recoding, domain, numeric_target=True)
    rows = records.rows if records.sparse is None else records.sparse[2]
    assert rows is not None
    return rows, records.norms, records.sums, records.targets


@once_for_classes
def check_count_kernel() -> None:
    """Raise ``StaleKernels`` unless cells are counted as the source counts them."""

    def count() -> Integers:
        total, seen = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
        add_counts(np.array([[0, 3, 3], [-1, 4, 1], [2, 2, 2]]), np.array([6, 3, 2]), 0, seen, total)
        add_counts(np.array([[1, 1 << 62, 3], [3, -(1 << 62), 3]]), np.array([0, 6]), 3, seen, total)
        return total

    _agree(count)


def check_smooth(loss: Loss, *, sparse: bool, grid: Grid) -> None:
    """Raise ``StaleKernels`` unless the minimizer's gradients and sums of losses agree with their source.

    A stale kernel would certify the gradient of another function.
    """
    # recoded records' grids differ in their bits only, and these rows must fit
    _check_smooth(loss, sparse=sparse, grid=COARSE if np.dtype(grid.dtype).itemsize == 2 else grid)


@once_for_classes
def _check_smooth(loss: Loss, *, sparse: bool, grid: Grid) -> None:
    from discreet.curator.certified.float_passes import by_outputs

    weights = np.array([0.75, -0.5, 1.5, 0.125, -0.25])
    w = np.multiply.outer(weights, 1.0 - 2.0 * (np.arange(loss.n_outputs) % 2))

    def passed(clip: float, row_norm: float) -> tuple[object, ...]:
        passes = engine_for(known_records(sparse, grid, persons=True), threads=1).smooth
        gradient = passes.slopes(by_outputs(w), loss, passes.view(clip, row_norm)).gradient
        return gradient, passes.value(w, loss, row_norm)

    for clip, row_norm in ((math.inf, math.inf), (0.375, 1.5)):
        limit = clip if loss.n_outputs == 1 else math.inf
        _agree(lambda limit=limit, row_norm=row_norm: passed(limit, row_norm), digits=1e-13)  # type: ignore[misc]


def check_question(question: ExactSum, *, sparse: bool) -> None:
    """Raise ``StaleKernels`` unless the kernels of a question agree with their source here."""
    from discreet.curator.queries.choices import ValueQuery
    from discreet.curator.queries.effects import EffectQuery
    from discreet.curator.queries.gradients import CoordinateQuery, GradientQuery, ShareQuery
    from discreet.curator.queries.moments import MagnitudeQuery, MomentQuery, SquareQuery

    if isinstance(question, MomentQuery):
        check_moment_kernels(moment=question.moment, sparse=sparse)
    elif isinstance(question, GradientQuery) and question.anchor is not None:
        check_change_kernels(question.loss, sparse=sparse)
    elif isinstance(question, GradientQuery):
        check_kernels(question.loss, sparse=sparse, sampled=question.units is not None)
    elif isinstance(question, CoordinateQuery):
        check_coordinate_sums(question.loss, sparse=sparse)
    elif isinstance(question, ShareQuery):
        check_share_sums(question.entry.loss, sparse=sparse)
    elif isinstance(question, ValueQuery):
        check_value_kernels(question.loss, sparse=sparse)
    elif isinstance(question, SquareQuery):
        check_square_sums(sparse=sparse)
    elif isinstance(question, MagnitudeQuery):
        check_magnitude_kernel()
    elif isinstance(question, EffectQuery):
        check_effect_kernels(question.loss)
