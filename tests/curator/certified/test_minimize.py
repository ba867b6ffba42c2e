"""The minimizer: the right point, and a bound on its gradient that holds against sixty digits."""

import math

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

from discreet.bounds import Bounds
from discreet.curator.certified import float_passes as passes
from discreet.curator.certified import minimize as minimize_module
from discreet.curator.certified.minimize import Objective, certified_gradient, minimize
from discreet.curator.kernels import kernel
from discreet.curator.lattice import COARSE, FINE
from discreet.errors import Unsupported
from discreet.losses import Gamma, Huber, Logistic, NegativeBinomial, Poisson, SmoothedHinge, Softmax, Squared, Tweedie
from discreet.losses.base import derivatives
from tests.promises.reference import LOSSES, engine_for, records_of

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
SCALAR = [loss for loss in LOSSES if loss.n_outputs == 1]
each_scalar_loss = pytest.mark.parametrize("loss", SCALAR, ids=lambda loss: type(loss).__name__)
each_storage = pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])


@pytest.fixture(autouse=True)
def _split_even_small_sums(monkeypatch):
    monkeypatch.setattr(kernel, "_LEAST_WORK", 1)


def bounds(scale="feature"):
    return Bounds(features=1.0, target=(-2.0, 6.0), scale=scale)


def targets_for(loss, rng, n):
    if loss.n_outputs > 1:
        return rng.integers(0, loss.n_outputs, n).astype(float)
    if loss.task == "classification":
        return rng.choice([-1.0, 1.0], n)
    return rng.integers(0, 5, n).astype(float) if isinstance(loss, Poisson) else rng.uniform(-2, 2, n)


def draw(loss, n=300, p=4, seed=0, scale="feature", storage=np.asarray, groups=None, **options):
    """(engine, real rows, targets, weights) of a random table with a null record, a zero column and empty cells."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p)) * rng.choice([0.0, 1.0, 1.0], (n, p))
    X[:, 1] = 0.0
    y = targets_for(loss, rng, n)
    y[n // 2] = np.nan
    records = records_of(storage(X), y, bounds(scale), groups)
    rows = records.rows
    if rows is None:
        indptr, indices, data = records.sparse
        rows = sp.csr_array((data, indices, indptr), shape=(n, records.n_columns)).toarray()
    weights = np.ones(n) if records.shares is None else 1 / records.shares
    return engine_for(records, **options), rows / records.grid.one, records.targets, weights


def slopes_by_hand(loss, margins, targets):
    out = np.empty_like(margins)
    for i, target in enumerate(targets):
        derivatives(loss, margins[i], target, out[i])
    return out


def gradient_by_hand(objective, rows, targets, weights, w):
    """In numpy, straight from the definition."""
    shaped = w.reshape(len(w), -1)
    norms = np.ceil(np.linalg.norm(rows * COARSE.one, axis=1)) / COARSE.one  # as the private copy keeps them
    rows = rows * np.minimum(1.0, objective.row_norm / np.maximum(norms, 1e-300))[:, None]
    norms = np.minimum(norms, objective.row_norm)
    slopes = slopes_by_hand(objective.loss, rows @ shaped, targets)
    if objective.clip < math.inf:
        limits = (objective.clip / np.maximum(norms, 1e-300))[:, None]
        slopes = np.clip(slopes, -limits, limits)
    total = rows.T @ (slopes * weights[:, None])
    return total.reshape(w.shape) + (objective.ridge * w.T).T + objective.linear


def linear_for(loss, p, seed=3):
    shape = (p,) if loss.n_outputs == 1 else (p, loss.n_outputs)
    return np.random.default_rng(seed).normal(size=shape)


@each_loss
@each_storage
@pytest.mark.parametrize("exactly", [False, True], ids=["newton", "descent"])
def test_more_regularization_on_some_columns(loss, storage, exactly, monkeypatch):
    """An L2 penalty in other units: the point is the minimum of the objective with it, by either method."""
    if exactly:
        monkeypatch.setattr(minimize_module, "_by_newton", lambda problem, tolerance: None)
    engine, *table = draw(loss, scale="feature", storage=storage, groups=None)
    objective = Objective(loss, 0.5, linear_for(loss, 5), extra=np.array([0.0, 2.0, 0.1, 40.0, 0.0]))
    found = minimize(engine, objective, 1e-9)
    assert found.gradient_norm <= 1e-9
    assert np.linalg.norm(gradient_by_hand(objective, *table, found.point)) <= 1.1e-9


@each_loss
@each_storage
@pytest.mark.parametrize("scale", ["feature", "global"])
@pytest.mark.parametrize("grouped", [False, True], ids=["records", "persons"])
def test_the_point_is_the_minimum(loss, storage, scale, grouped):
    groups = np.random.default_rng(1).integers(0, 150, 300) if grouped else None
    engine, *table = draw(loss, scale=scale, storage=storage, groups=groups)
    assert engine.grid == (FINE if scale == "global" else COARSE)
    objective = Objective(loss, 1.5, linear_for(loss, 5))
    found = minimize(engine, objective, 1e-10)
    assert found.point.shape == objective.linear.shape
    assert found.gradient_norm <= 1e-10
    # strong convexity: the distance to the minimum is at most the gradient's norm over lambda
    assert np.linalg.norm(gradient_by_hand(objective, *table, found.point)) <= 1.1e-10


@each_scalar_loss
@each_storage
def test_a_clip_and_a_norm_of_rows(loss, storage):
    engine, *table = draw(loss, storage=storage)
    objective = Objective(loss, 0.7, linear_for(loss, 5), clip=0.3, row_norm=1.2)
    found = minimize(engine, objective, 1e-9)
    assert np.linalg.norm(gradient_by_hand(objective, *table, found.point)) <= 1.1e-9
    for row_norm in (math.inf, 0.9):
        view = engine.smooth.view(0.3, row_norm)
        assert (view.limits[view.norms > 0] * view.norms[view.norms > 0] <= 0.3).all()
        assert (view.norms <= row_norm).all()


# ------------------------------------------------------------------------------------------- the certificate


def exact_slopes(loss, margins, target):
    """The derivative in sixty digits, written a second time."""
    t = mpmath.mpf(target)
    if isinstance(loss, Softmax):
        top = max(margins)
        parts = [mpmath.exp(m - top) for m in margins]
        return [part / sum(parts) - (1 if k == int(target) else 0) for k, part in enumerate(parts)]
    m = margins[0]
    if isinstance(loss, Logistic):
        return [-t / (1 + mpmath.exp(loss.sharpness * t * m))]
    if isinstance(loss, Squared):
        return [loss.weight * (m - t)]
    if isinstance(loss, Huber):
        return [max(min(m - t, mpmath.mpf(loss.width)), -mpmath.mpf(loss.width))]
    if isinstance(loss, SmoothedHinge):
        h = mpmath.mpf(loss.width)
        return [-t * max(min((1 + h - t * m) / (2 * h), mpmath.mpf(1)), mpmath.mpf(0))]
    limit = mpmath.mpf(loss.limit)
    v = min(m, limit)
    if isinstance(loss, (Gamma, Tweedie)):
        v = max(v, -limit)
    if isinstance(loss, Poisson):
        return [mpmath.exp(v) - t]
    t = max(min(t, mpmath.mpf(loss.largest)), mpmath.mpf(0))
    if isinstance(loss, Gamma):
        return [1 - t * mpmath.exp(-v)]
    if isinstance(loss, Tweedie):
        power = mpmath.mpf(loss.power)
        return [mpmath.exp((2 - power) * v) - t * mpmath.exp((1 - power) * v)]
    assert isinstance(loss, NegativeBinomial)
    return [(mpmath.exp(v) - t) / (1 + mpmath.mpf(loss.dispersion) * mpmath.exp(v))]


def exact_gradient(engine, objective, rows, targets, weights, w):
    """grad J in sixty digits, with the very limits and factors that define the objective."""
    view = engine.smooth.view(objective.clip, objective.row_norm)
    limits, shrinks = (np.ravel(column)[: len(rows)] for column in (view.limits, view.shrinks))
    columns = [[mpmath.mpf(v) for v in column] for column in np.atleast_2d(w.T).tolist()]
    shares = np.rint(1 / weights).astype(int).tolist()
    linear = np.atleast_2d(objective.linear.T)
    total = [
        [objective.regularization * v + mpmath.mpf(b) for v, b in zip(column, extra, strict=True)]
        for column, extra in zip(columns, linear.tolist(), strict=True)
    ]
    for row, target, share, limit, shrink in zip(rows.tolist(), targets, shares, limits, shrinks, strict=True):
        x = [mpmath.mpf(v) * mpmath.mpf(float(shrink)) for v in row]
        slopes = exact_slopes(objective.loss, [mpmath.fdot(x, column) for column in columns], target)
        for k, slope in enumerate(slopes):
            slope = max(min(slope, mpmath.mpf(float(limit))), -mpmath.mpf(float(limit)))
            total[k] = [s + slope * v / share for s, v in zip(total[k], x, strict=True)]
    return total


CASES = {"random": 1.0, "small": 1e-9, "large": 1e3, "huge": 1e9}


@each_loss
@each_storage
def test_the_sizes_that_the_bound_is_made_of(loss, storage):
    engine, rows, targets, weights = draw(loss, storage=storage, groups=np.arange(300) // 2)
    smooth, w = engine.smooth, linear_for(loss, 5)
    view = smooth.view(math.inf, 1.1)
    norms = np.linalg.norm(rows, axis=1)
    shrinks = np.minimum(1.0, 1.1 / np.maximum(norms, 1e-9))
    slopes = slopes_by_hand(loss, (rows * shrinks[:, None]) @ w.reshape(5, -1), targets)
    parts = weights * np.linalg.norm(slopes, axis=1) * shrinks * norms
    assert smooth.slopes(passes.by_outputs(w), loss, view).size == pytest.approx(parts.sum(), rel=2e-4)
    assert view.sum_of_norms == pytest.approx((weights * shrinks * norms).sum(), rel=2e-4)
    assert view.sum_of_squares == pytest.approx((weights * (shrinks * norms) ** 2).sum(), rel=2e-4)


@each_loss
@each_storage
@pytest.mark.parametrize("size", CASES.values(), ids=CASES)
def test_the_error_bound_holds(loss, storage, size):
    groups = np.arange(40) // 3 if size == 1.0 else None
    engine, *table = draw(loss, n=40, storage=storage, groups=groups)
    clips = (math.inf,) if loss.n_outputs > 1 else (math.inf, 0.2)
    for clip in clips:
        objective = Objective(loss, 0.3, linear_for(loss, 5), clip=clip, row_norm=1.3)
        _assert_bounded(engine, objective, table, size * linear_for(loss, 5, seed=8))


@each_loss
def test_the_error_bound_holds_where_records_cancel(loss):
    """Records in opposite pairs, so that the sum is nearly nothing beside its terms; and at the minimum itself."""
    rng = np.random.default_rng(2)
    half = rng.uniform(-1, 1, (20, 4))
    y = targets_for(loss, rng, 20)
    records = records_of(np.vstack([half, -half]), np.concatenate([y, y]), bounds(), intercept=False)
    engine = engine_for(records, threads=2, tile_rows=8)
    table = (records.rows / records.grid.one, records.targets, np.ones(40))
    objective = Objective(loss, 1.0, np.zeros_like(linear_for(loss, 4)))
    _assert_bounded(engine, objective, table, 1e-3 * linear_for(loss, 4, seed=8))
    found = minimize(engine, objective, 1e-11)
    with mpmath.workdps(60):
        exact = exact_gradient(engine, objective, *table, found.point)
        assert mpmath.norm([v for row in exact for v in row]) <= found.gradient_norm


def _assert_bounded(engine, objective, table, w):
    computed, error = certified_gradient(engine, objective, w)
    with mpmath.workdps(60):
        exact = exact_gradient(engine, objective, *table, w)
        pairs = zip(np.atleast_2d(computed.T).tolist(), exact, strict=True)
        distance = mpmath.norm([a - b for row, other in pairs for a, b in zip(row, other, strict=True)])
    assert distance <= error
    assert error <= 1e-12 * 40 * (1 + np.linalg.norm(w)) * 10 * max(1.0, objective.loss.smoothness)


MARGINS = [
    *(0.0, 1e-300, 1e-9, 0.3, 0.5, 0.7, 0.9999, 1.0, 1.5, 2.9, 3.0, 3.1, 17.0, 36.0, 40.0, 300.0, 707.9, 720.0),
    *(1e5, 1e150),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "loss",
    [*LOSSES, Logistic(30.0), Huber(1e-3), SmoothedHinge(1e-4), SmoothedHinge(100.0), Poisson(50.0), Softmax(40)],
    ids=repr,
)
def test_kernels_of_losses_evaluate_as_the_proof_says(loss):
    rng = np.random.default_rng(0)
    allowed = 2.0**-48 * max(1.0, loss.n_outputs / 8)
    margins = np.array(
        [s * m for m in MARGINS for s in (-1, 1)] + [*rng.normal(size=50), *(1 + rng.normal(size=50) / 1e4)]
    )
    for target in (0.0, 2.0) if loss.n_outputs > 1 else (-1.0, 1.0) if loss.task == "classification" else (0.0, 3.0):
        for m in margins:
            point = m * rng.uniform(-1, 1, loss.n_outputs) if loss.n_outputs > 1 else np.array([m])
            computed = np.empty(loss.n_outputs)
            with np.errstate(over="ignore"):
                derivatives(loss, point, target, computed)
            with mpmath.workdps(60):
                exact = exact_slopes(loss, [mpmath.mpf(v) for v in point.tolist()], target)
                off = mpmath.norm([mpmath.mpf(a) - b for a, b in zip(computed.tolist(), exact, strict=True)])
            assert off <= 0.8 * allowed * (np.linalg.norm(computed) + loss.smoothness)  # 0.2 for weights and shrinking


# --------------------------------------------------------------------------------------- failing, and edges


@pytest.mark.parametrize("linear", [math.nan, math.inf])
def test_a_linear_term_that_is_not_finite_is_refused_before_any_pass(linear):
    engine, *_ = draw(Huber(0.7))
    with pytest.raises(Unsupported, match="finite"):
        minimize(engine, Objective(Huber(0.7), 1e-3, np.full(5, linear)), 1e-9)
    with pytest.raises(Unsupported, match="tolerance"):
        minimize(engine, Objective(Huber(0.7), 1e-3, np.zeros(5)), 0.0)


@each_loss
@each_storage
def test_tables_that_look_singular(loss, storage):
    rng = np.random.default_rng(4)
    column = rng.uniform(-1, 1, (50, 1))
    for X in (np.hstack([column] * 3), np.zeros((50, 3)), column[:1].repeat(3, 1), np.full((50, 3), np.nan)):
        y = targets_for(loss, rng, len(X))
        engine = engine_for(records_of(storage(X), y, bounds()))
        objective = Objective(loss, 1e-3, 0.01 * linear_for(loss, 4))
        assert minimize(engine, objective, 1e-10).gradient_norm <= 1e-10
