"""Compiled sums are those of Python's integers, row by row and by hand; minimizers' passes those of exact sums."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator.certified.float_passes import by_outputs
from discreet.curator.engines import coefficient_limits, engine_for
from discreet.curator.kernels import gradients
from discreet.curator.kernels.kernel import _interpreted
from discreet.curator.known_answers import (
    ROWS,
    SHARES,
    SIZE,
    STARTS,
    TARGETS,
    _entries,
    _two_points,
    known_records,
)
from discreet.curator.lattice import COARSE, FINE, Weights
from discreet.curator.queries import effects
from discreet.curator.queries.choices import ValueQuery
from discreet.curator.queries.gradients import CoordinateProgram, GradientQuery, ShareQuery
from discreet.curator.queries.moments import MomentQuery, SquareQuery
from discreet.curator.records.recoding import Recoding, recoded
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.losses.base import curvature, derivative, derivatives, least, values
from discreet.penalties import L1, L2, ElasticNet
from discreet.penalties.base import prox_coordinate
from tests.covering import covering

BOUND, REACH = 1 << 34, 20000.0
ONE_OUTPUT = (Logistic(), Squared(), Huber(0.5), SmoothedHinge(0.5), Poisson(5.0))
each_loss = pytest.mark.parametrize("loss", [*ONE_OUTPUT, Softmax(3)], ids=lambda loss: type(loss).__name__)
one_output = pytest.mark.parametrize("loss", ONE_OUTPUT, ids=lambda loss: type(loss).__name__)
each_storage = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def over(question, sparse=False, **facts):
    return question.over(engine_for(known_records(sparse, **facts), threads=1))


def margins(row, point):
    scale = point.margin_scale(COARSE)
    return np.array([float(sum(x * int(v) for x, v in zip(row, wk, strict=True))) * scale for wk in point.integers])


def slopes_at(loss, row, target, point):
    slopes = np.empty(len(point.integers))
    derivatives(loss, margins(row, point), target, slopes)
    return slopes


def bounded(entries, limit):
    """Return integers of a norm of at most ``limit``: one rounded and clipped, several shrunk toward zero."""
    if len(entries) == 1:
        return [int(min(max(float(np.rint(entries[0])), -float(limit)), float(limit)))]
    size = math.sqrt(sum(v * v for v in entries))
    factor = 1.0 if size <= limit else limit / size
    whole = [int(v * factor) for v in entries]
    while sum(c * c for c in whole) > limit * limit:
        whole = [c - (c > 0) + (c < 0) for c in whole]
    return whole


def length(row):
    """Return the Euclidean norm, rounded up."""
    squares = sum(x * x for x in row)
    return math.isqrt(squares - 1) + 1 if squares else 0


@pytest.mark.parametrize("units", [None, [0, 2, 4]], ids=["all", "sampled"])
@pytest.mark.parametrize("has_anchor", [False, True], ids=["gradient", "change"])
@each_storage
@each_loss
def test_gradients(loss, sparse, has_anchor, units):
    point, other = _two_points(loss)
    anchor = other if has_anchor else None
    chosen = None if units is None else np.array(units)
    query = GradientQuery(point, loss, BOUND, 2.0**21, units=chosen, anchor=anchor)
    total = [[0] * SIZE for _ in point.integers]
    limits = coefficient_limits(known_records(False).norms, None, BOUND).tolist()
    for i in range(len(ROWS)) if units is None else units:
        row = ROWS[i].tolist()
        slopes = slopes_at(loss, row, TARGETS[i], point)
        if anchor is not None:
            slopes -= slopes_at(loss, row, TARGETS[i], anchor)
        for k, c in enumerate(bounded((slopes * 2.0**21).tolist(), limits[i])):
            total[k] = [s + c * x for s, x in zip(total[k], row, strict=True)]
    assert over(query, sparse).tolist() == total


@each_storage
@each_loss
def test_values(loss, sparse):
    points = _two_points(loss)
    totals = []
    for point in points:
        total = 0
        for row, target in zip(ROWS.tolist(), TARGETS.tolist(), strict=True):
            if any(row):
                above = values(loss, margins(row, point), target) - least(loss, target)
                total += round(min(max(above * 2.0**20, 0.0), float(1 << 20)))
        totals.append(total)
    assert over(ValueQuery(points, loss, 1 << 20, 2.0**20), sparse).tolist() == totals


def entry_sum(query, w, j, bound):
    total = 0
    for row, target in zip(ROWS.tolist(), TARGETS.tolist(), strict=True):
        margin = float(sum(x * int(v) for x, v in zip(row, w.tolist(), strict=True))) * query.margin_scale
        q = derivative(query.loss, margin, target) * (float(row[j]) * float(query.scales[j]))
        total += round(min(max(q, -float(bound)), float(bound)))
    return total


@each_storage
@one_output
def test_coordinates(loss, sparse):
    query = _entries(loss)
    sums = [entry_sum(query, query.w, j, int(query.bounds[j])) for j in range(SIZE)]
    assert over(query, sparse).tolist() == sums
    within = 0
    for row, target in zip(ROWS.tolist(), TARGETS.tolist(), strict=True):
        margin = float(sum(x * int(v) for x, v in zip(row, query.w.tolist(), strict=True))) * query.margin_scale
        near = abs(derivative(loss, margin, target) * row[0]) <= 2.0**12
        within += (1 if near else -1) * (1 << 29) * any(row)
    assert over(ShareQuery(query, 2.0**12), sparse).tolist() == [within]


@pytest.mark.parametrize("penalty", [L1(0.01), L2(0.1), ElasticNet(0.01, 0.1)], ids=lambda p: type(p).__name__)
@each_storage
@one_output
def test_programs_of_steps(loss, penalty, sparse):
    query = _entries(loss)
    program = CoordinateProgram(
        query.w, loss, penalty, np.array([0, 2, 1, 4, 3, 0, 1, 2]), np.arange(8) - 2, query.scales, 1 << 32,
        np.array([1.0, 2.0, 3.0, 1.0, 2.0]) * 2.0**-36, 5.0, np.array([0.5, 0.25, 0.125, 0.5, 0.25]),
        query.margin_scale, 2.0**24, 2.0**39,
    )  # fmt: skip
    w, sums = program.w.copy(), np.zeros(SIZE)
    for k, j in enumerate(program.coordinates.tolist()):
        total = entry_sum(query, w, j, program.bound) + int(program.noise[k])
        gradient, step = float(total) * float(program.units[j]) / program.n, float(program.steps[j])
        real = prox_coordinate(penalty, float(w[j]) / program.to_grid - step * gradient, step, j)
        room = program.room - (float(np.abs(w).sum()) - abs(float(w[j])))
        w[j] = min(max(float(np.rint(real * program.to_grid)), -room), room)
        sums += w
    last, total = over(program, sparse)
    assert (last.tolist(), total.tolist()) == (w.tolist(), sums.tolist())


@each_storage
def test_moments(sparse):
    mean, squares, outer = [0] * SIZE, [0] * SIZE, [[0] * SIZE for _ in range(SIZE)]
    center, about = [3, -9000, 0, 5, 1 << 15], [0] * SIZE
    for row in ROWS.tolist():
        c = min(40, BOUND // length(row)) if any(row) else 0
        mean = [s + c * x for s, x in zip(mean, row, strict=True)]
        cut = [x * x >> 8 for x in row]
        c = min(40 << 8, BOUND // length(cut)) if any(cut) else 0
        squares = [t + c * s for t, s in zip(squares, cut, strict=True)]
        cut = [(x - m) ** 2 >> 10 for x, m in zip(row, center, strict=True)]
        c = min(40 << 10, BOUND // length(cut)) if any(row) else 0
        about = [t + c * s for t, s in zip(about, cut, strict=True)]
        c = min(40, BOUND // max(1, length(row)) ** 2)
        outer = [[t + c * x * y for t, y in zip(line, row, strict=True)] for line, x in zip(outer, row, strict=True)]
    assert over(MomentQuery(BOUND, 40.0, moment="mean"), sparse).tolist() == mean
    assert over(MomentQuery(BOUND, 40.0, moment="squares"), sparse).tolist() == squares
    assert over(MomentQuery(BOUND, 40.0, moment="squares", center=np.array(center))).tolist() == about
    assert over(MomentQuery(BOUND, 40.0, moment="outer")).tolist() == outer
    every = SquareQuery(np.ones(SIZE), np.full(SIZE, 1 << 61), 1 << 61)
    assert over(every, sparse).tolist() == [sum(row[j] ** 2 for row in ROWS.tolist()) for j in range(SIZE)]


@each_storage
def test_recoded_rows(sparse):
    """Within a step of the grid: the map is computed in floating point."""
    matrix = np.linspace(-1.0, 1.0, SIZE) if sparse else np.linspace(-1.0, 1.0, SIZE * SIZE).reshape(SIZE, SIZE)
    center = np.zeros(SIZE - 1) if sparse else np.array([0.125, -0.25, 0.0, 0.5])
    recoding = Recoding(center, np.array([0.5, 2.0, 1.0, 4.0]), 0.75, 1.25, matrix)
    domain = Domain(np.ones(SIZE), math.sqrt(SIZE), len(ROWS), Neighbors("zero_out"))
    records = recoded(known_records(sparse), recoding, domain, numeric_target=False)
    u = np.column_stack([(ROWS[:, : SIZE - 1] / COARSE.one - center) / recoding.scale, np.full(len(ROWS), 0.75)])
    u *= np.minimum(1.0, 1.25 / np.linalg.norm(u, axis=1))[:, None]
    image = np.where(ROWS.any(axis=1, keepdims=True), u * matrix if sparse else u @ matrix, 0.0) * records.grid.one
    if sparse:
        indptr, indices, data = records.sparse
        rows = np.zeros(ROWS.shape)
        rows[np.repeat(np.arange(len(ROWS)), np.diff(indptr)), indices] = data
    else:
        rows = records.rows
    assert np.abs(rows - np.rint(image)).max() <= 1


def effect_rows(loss, point, targets):
    """Return each row of the three persons with its length, weight, share, and slopes at the point."""
    found = []
    for row, target, share in zip(ROWS.tolist(), targets, SHARES.tolist(), strict=True):
        weight = 1 / share * min(1.0, REACH / max(length(row), 1)) ** 2
        found.append((np.array(row, dtype=float), length(row), weight, share, slopes_at(loss, row, target, point)))
    return found


def shrunk(vector, limit):
    size = float(np.linalg.norm(vector))
    return np.trunc(vector * min(1.0, limit / size)) if size > 0 else vector


@each_loss
def test_effects(loss):
    """Up to a lattice step per row, since vectors are shrunk in floating point; squared slopes and counts exactly."""
    signs = 1 - 2 * (np.arange(loss.n_outputs) % 2)
    point = Weights(np.outer(signs, [9, -5, 3, 2, 7]).astype(np.int32), 5)
    engine = engine_for(known_records(False, persons=True), threads=1)
    rows = effect_rows(loss, point, TARGETS.tolist())
    gradient = effects.WeightedGradientQuery(point, loss, BOUND, 2.0**19, REACH).over(engine)
    expected, scores = np.zeros((loss.n_outputs, SIZE)), np.zeros((SIZE * loss.n_outputs,) * 2)
    for x, r, weight, share, slopes in rows:
        expected += np.outer(shrunk(slopes * (weight * 2.0**19), BOUND // share // max(r, 1)), x)
    assert (np.abs(gradient - expected.reshape(gradient.shape)) <= 2 * np.abs(ROWS).sum(axis=0)).all()
    for first, last in zip(STARTS[:-1].tolist(), STARTS[1:].tolist(), strict=True):
        whole = sum(np.outer(slopes * (weight * 2.0), x).ravel() for x, _, weight, _, slopes in rows[first:last])
        s = shrunk(np.asarray(whole), math.isqrt(BOUND))
        scores += np.outer(s, s)
    covariance = effects.ScoreQuery(point, loss, BOUND, 2.0, REACH).over(engine)
    assert np.abs(covariance - scores).max() <= 4 * math.isqrt(BOUND)
    total = effects.SlopeQuery(point, loss, BOUND, 1000.0).over(engine)[0]
    parts = [min(float(s @ s) * (1 / k * 1000.0), BOUND // k) if r else 0.0 for _, r, _, k, s in rows]
    assert abs(int(total) - sum(map(round, parts))) <= (0 if loss.n_outputs == 1 else len(rows))


def bends_at(loss, row, target, point):
    """Return a row's curvature, or the couplings of its outputs."""
    if loss.n_outputs == 1:
        return np.array([curvature(loss, margins(row, point)[0], target)])
    chances = slopes_at(loss, row, -1.0, point)
    return np.array([a * b for k, a in enumerate(chances) for b in chances[k + 1 :]])


@each_loss
def test_curvature_and_shells(loss):
    signs = 1 - 2 * (np.arange(loss.n_outputs) % 2)
    point = Weights(np.outer(signs, [9, -5, 3, 2, 7]).astype(np.int32), 5)
    engine = engine_for(known_records(False, persons=True), threads=1)
    rows = effect_rows(loss, point, TARGETS.tolist())
    bends = [bends_at(loss, row, target, point) for row, target in zip(ROWS.tolist(), TARGETS.tolist(), strict=True)]
    found = effects.CurvatureQuery(point, loss, BOUND, 400.0, REACH).over(engine).reshape(-1, SIZE, SIZE)
    expected, off = np.zeros(found.shape), np.zeros((SIZE, SIZE))
    for (x, r, weight, share, _), bend in zip(rows, bends, strict=True):
        most = BOUND // share // max(r, 1) ** 2 if r else 0
        whole = bend * (weight * 400.0)
        whole = np.clip(np.rint(whole), 0, most) if loss.n_outputs == 1 else shrunk(whole, most)
        expected += np.multiply.outer(whole, np.outer(x, x))
        off += np.abs(np.outer(x, x))
    assert (np.abs(found - expected) <= (0 if loss.n_outputs == 1 else 2 * off)).all()
    edges = [size * np.array([0.3, 0.7, 1.3]) for size in (REACH, 0.1 * REACH**2, 0.5 * REACH)]
    ends = 0.2 * REACH * np.arange(1.0, SIZE + 1.0)
    shells = effects.ShellQuery(point, loss, 4, 1.0, REACH, edges=effects.Edges(*edges, ends)).over(engine)
    farthest = np.zeros(SIZE + 1, dtype=np.int64)
    for x, r, _, k, _ in rows:
        parts = [abs(entry) / end for entry, end in zip(x, ends.tolist(), strict=True)]
        farthest[1 + parts.index(max(parts)) if max(parts) > 1 else 0] += 4 // k if r else 0
    assert shells[12:].tolist() == farthest.tolist()
    assert farthest[1:].any()
    assert farthest[0]
    for j, cells in enumerate(np.split(shells[:12], len(edges))):
        counts = np.zeros(4, dtype=np.int64)
        for (_, r, weight, k, slopes), bend in zip(rows, bends, strict=True):
            slope, size = float(np.linalg.norm(slopes)), float(np.linalg.norm(bend))
            measure = (r, k * weight * size * r**2, k * weight * slope * r)[j]
            counts[np.searchsorted(edges[j], measure)] += 4 // k if r else 0
        assert cells.tolist() == counts.tolist()


@pytest.mark.parametrize("grid", [COARSE, FINE], ids=["coarse", "fine"])
@each_storage
@each_loss
def test_passes_of_the_minimizer(loss, sparse, grid):
    """To 13 digits, against sums whose rounding errors are kept."""
    passes = engine_for(replace(known_records(sparse, grid, persons=True)), threads=1).smooth
    w = np.multiply.outer(np.array([0.75, -0.5, 1.5, 0.125, -0.25]), 1.0 - 2.0 * (np.arange(loss.n_outputs) % 2))
    for clip, row_norm in ((math.inf, math.inf), (0.375 if loss.n_outputs == 1 else math.inf, 1.5)):
        terms, losses = [[[] for _ in range(SIZE)] for _ in range(loss.n_outputs)], []
        for row, target, share in zip((ROWS / COARSE.one).tolist(), TARGETS.tolist(), SHARES.tolist(), strict=True):
            norm = math.ceil(math.hypot(*row) * grid.one) / grid.one
            x = [value * (row_norm / norm if norm > row_norm else 1.0) for value in row]
            at = np.array([math.fsum(a * b for a, b in zip(x, wk, strict=True)) for wk in w.T.tolist()])
            slopes, limit = np.empty(loss.n_outputs), clip / max(min(norm, row_norm), 1e-9)
            derivatives(loss, at, target, slopes)
            for k, slope in enumerate(slopes.tolist()):
                for j, value in enumerate(x):
                    terms[k][j].append(min(max(slope, -limit), limit) / share * value)
            losses += [values(loss, at, target) / share] if any(x) else []
        gradient = passes.slopes(by_outputs(w), loss, passes.view(clip, row_norm)).gradient
        np.testing.assert_allclose(gradient, [[math.fsum(t) for t in row] for row in terms], rtol=1e-13, atol=1e-13)
        assert math.isclose(passes.value(w, loss, row_norm), math.fsum(losses), rel_tol=1e-13)


# --- sums over batches of any size are those of the kernels that go row by

SIZES = (0, 1, 2, 3, 4, 5, 8, 9, gradients.BLOCK - 1, gradients.BLOCK, gradients.BLOCK + 1, 3 * gradients.BLOCK + 2)
N = 200


def problem(columns, dtype):
    rng = np.random.default_rng(columns)
    one = 1 << (14 if dtype == np.int16 else 21)
    rows = np.where(rng.random((N, columns)) < 0.4, rng.integers(-one, one, (N, columns)), 0).astype(dtype)
    facts = np.column_stack([rng.choice([-1.0, 1.0], N), rng.choice([1.0, 0.5], N), rng.integers(0, 1 << 20, N)])
    w = rng.integers(-(2**26), 2**26, columns).astype(np.int32)
    return rows, facts, w, (2.0**-40 * (2**14 / one), 2.0**19), rng


@pytest.mark.few(4)
@covering(("columns", [1, 5, 33, 100]), ("dtype", [np.int16, np.int32]), ("loss", [Logistic(), Huber(0.5)]))
def test_batches_are_sums_of_rows(columns, dtype, loss):
    rows, facts, w, scales, rng = problem(columns, dtype)
    compressed = csr_array(rows)
    entries = compressed.indptr.astype(np.int64), compressed.indices.astype(np.int32), compressed.data
    for size in SIZES:
        chosen = np.sort(rng.choice(N, size, replace=False))
        expected, batch, sparse_batch, sparse_rows = (np.zeros((1, columns), dtype=np.int64) for _ in range(4))
        gradients.gradient_over_rows(rows, facts, chosen, w[None], *scales, False, loss, expected)
        gradients.gradient_over_batch(rows, facts, chosen, w, *scales, loss, batch[0])
        gradients.gradient_over_sparse_batch(*entries, facts, chosen, w, *scales, loss, sparse_batch[0])
        gradients.gradient_over_sparse_rows(*entries, facts, chosen, w[None], *scales, False, loss, sparse_rows)
        assert (batch == expected).all()
        assert (sparse_batch == expected).all()
        assert (sparse_rows == expected).all()
        assert expected.any() or size < 8


# --- one loop or two

one_loop = njit(gradients._in_one_loop)


@njit
def chosen_loop(loss, x, moved, move, margin, target, slopes, margin_scale, scale, bound):
    return gradients._moved_column_sum(loss, x, moved, move, margin, target, slopes, margin_scale, scale, bound)


@pytest.mark.few(1)
@covering(("bound", [2.0**20, 2.0**45]), ("rows", [64, 100, 1024]), ("loss", [Squared(), Logistic(), Huber(0.5)]))
def test_same_bits(loss, rows, bound):
    rng = np.random.default_rng(rows)
    x, moved = rng.integers(-(2**14), 2**14, (2, rows), dtype=np.int16)
    margin, target = rng.integers(-(2**36), 2**36, rows).astype(np.float64), rng.uniform(-1, 1, rows)
    found = []
    for sums in (_interpreted(gradients._moved_column_sum), one_loop, chosen_loop):
        margins = margin.copy()
        given = (loss, x, moved, 12345.0, margins, target, np.empty(rows), 2.0**-38, 2.0**18 / 3, bound)
        with np.errstate(all="ignore"):
            found.append((int(sums(*given)), margins.tolist()))
    assert found[0] == found[1] == found[2]
    assert found[0][1] != margin.tolist()
