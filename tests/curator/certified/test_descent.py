"""The minimizer's last resort: exact gradients, and steps that certify every data set within a public number."""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.bounds import Bounds
from discreet.curator.certified import minimize as minimizer
from discreet.curator.certified.float_passes import by_outputs
from discreet.curator.certified.minimize import Descent, ExactGradient, Objective, minimize, most_steps, whole
from discreet.losses import Gamma, Huber, Logistic, Poisson, SmoothedHinge, Softmax
from discreet.losses.base import slopes_in_decimals
from tests.curator.certified.test_minimize import (
    MARGINS,
    draw,
    each_loss,
    each_storage,
    exact_gradient,
    exact_slopes,
    linear_for,
    targets_for,
)
from tests.promises.reference import LOSSES, engine_for, records_of


def descent_for(engine, objective, tolerance):
    passes = engine.smooth
    return Descent(engine.records, passes, passes.view(objective.clip, objective.row_norm), objective, tolerance)


def as_fractions(numbers, bits):
    return [[mpmath.mpf(int(v)) / mpmath.mpf(2) ** bits for v in row] for row in numbers]


# ------------------------------------------------------------------------------------------- exact gradients


@pytest.mark.parametrize("loss", [*LOSSES, Logistic(30.0), Huber(1e-6), SmoothedHinge(1e-6), Poisson(50.0)], ids=repr)
@pytest.mark.parametrize("digits", [12, 40])
def test_slopes_in_decimals_are_as_exact_as_they_say(loss, digits):
    unit, outputs = mpmath.mpf(5) / mpmath.mpf(10) ** digits, loss.n_outputs
    rng = np.random.default_rng(0)
    for target in (0.0, 2.0) if outputs > 1 else (-1.0, 1.0) if loss.task == "classification" else (0.0, 3.0):
        for margin in [s * m for m in MARGINS[:-1] for s in (-1, 1)]:
            point = (margin * rng.uniform(-1, 1, outputs)).tolist() if outputs > 1 else [margin]
            with decimal.localcontext(decimal.Context(digits)):
                found = slopes_in_decimals(loss, [Decimal(m) for m in point], Decimal(target))
            with mpmath.workdps(200):
                exact = exact_slopes(loss, [mpmath.mpf(m) for m in point], target)
                off = mpmath.norm([mpmath.mpf(str(a)) - b for a, b in zip(found, exact, strict=True)])
                size = 1 + mpmath.norm(exact) + loss.smoothness * (1 + abs(margin) + abs(target))
            assert off <= (16 + 2 * outputs) * unit * size


@each_loss
@each_storage
@pytest.mark.parametrize("size", [1.0, 1e9])
def test_the_error_of_an_exact_gradient_is_bounded(loss, storage, size):
    engine, *table = draw(loss, n=12, storage=storage, groups=np.arange(12) // 3)
    for clip in (math.inf,) if loss.n_outputs > 1 else (math.inf, 0.2):
        objective = Objective(loss, 0.3, linear_for(loss, 5), clip=clip, row_norm=1.3)
        view = engine.smooth.view(clip, 1.3)
        w = size * linear_for(loss, 5, seed=8)
        exactly = ExactGradient(engine.records, view, objective, by_outputs(objective.linear), 120)
        exactly._digits = 12  # so that there is an error to be seen
        point = exactly._pass(whole(by_outputs(w), 120))
        with mpmath.workdps(120):
            exact = exact_gradient(engine, objective, *table, w)
            found = as_fractions(point.gradient, point.q)
            off = mpmath.norm([a - b for r, s in zip(found, exact, strict=True) for a, b in zip(r, s, strict=True)])
            bound = mpmath.mpf(point.error.numerator) / point.error.denominator
            assert off <= bound
            if size == 1.0:  # and is no fantasy; most of Gamma's slopes are cut, and have no error
                assert off >= (1e-6 if isinstance(loss, Gamma) and clip < math.inf else 1e-5) * bound
        finer = exactly.at(whole(by_outputs(w), 120), Fraction(1, 10**50))
        assert finer.error <= Fraction(1, 10**50)


# ------------------------------------------------------------------------------- the steps by themselves, and bugs


def steps_taken(descent, most):
    """How many plain gradient steps it took; None where more than ``most`` would."""
    point = descent.at(np.full(descent.shape, 0, dtype=object))
    for taken in range(most + 1):
        if descent.is_certified(point):
            return taken
        point = descent.step(point)
    return None


def small_problem(loss, storage=np.asarray, n=8, strength=4.0):
    rng = np.random.default_rng(3)
    rows, y = rng.uniform(-1, 1, (n, 2)), targets_for(loss, rng, n)
    records = records_of(storage(rows), y, Bounds(1.0, target=(-2.0, 6.0)))
    objective = Objective(loss, strength, linear_for(loss, 3))
    return descent_for(engine_for(records), objective, 1e-12)


@pytest.mark.few(2)
@each_loss
@each_storage
def test_gradient_steps_alone_certify_within_the_theorems_number(loss, storage):
    if isinstance(loss, Poisson):
        loss = Poisson(1.0)
    descent = small_problem(loss, storage)
    start = descent.at(np.full(descent.shape, 0, dtype=object)).norm
    most = most_steps(descent.kappa, start, descent.tolerance)
    taken = steps_taken(descent, most)
    assert taken is not None
    assert 0 < taken <= most


@each_loss
def test_an_attempt_that_is_taken_never_climbs(loss):
    """J at both ends, in sixty digits by integrating its exact slope along the way."""
    descent = small_problem(loss, strength=0.05)
    point = descent.at(np.full(descent.shape, 0, dtype=object))
    for _ in range(4):
        found = descent.attempt(point)
        if found is not point and not descent.is_certified(found):
            way = found.w - point.w
            parts = []
            for k in range(33):
                between = descent.at(point.w + way * k // 32)
                parts.append(float(Fraction(int((between.gradient * way).sum()), 1 << between.q)))
            assert np.trapezoid(parts) <= 1e-9 * abs(parts[0])
            assert parts[-1] <= 0
        point = descent.step(found)


# ------------------------------------------------------------------------- what Newton's method in doubles leaves

HARD = {
    "separable, weakly regularized": (Logistic(), 1e-9, math.inf, 1.0, 0.1),
    "sharp": (Logistic(30.0), 1e-8, math.inf, 1.0, 10.0),
    "a narrow hinge": (SmoothedHinge(1e-3), 1e-4, math.inf, 1.0, 0.0),
    "a narrow hinge, clipped": (SmoothedHinge(1e-3), 1e-5, 0.01, 1.0, 0.1),
    "a narrow band": (Huber(1e-6), 1e-4, math.inf, 1.0, 1.0),
    "a narrow band, clipped": (Huber(1e-6), 1e-4, 1e-7, 1.0, 0.1),
    "counts of huge curvature": (Poisson(20.0), 1e-3, math.inf, 1.0, 1.0),
    "counts, clipped": (Poisson(20.0), 1e-3, 0.05, 1.0, 1.0),
    "short and long rows": (Huber(0.7), 1e-8, math.inf, 1e-4, 1.0),
    "three classes": (Softmax(3), 1e-8, math.inf, 1.0, 10.0),
}


def hard_problem(name, seed, storage, grouped, n=12):
    """An engine, an objective as the one-shot solvers pose it, and their tolerance."""
    loss, strength, clip, shortest, pull = HARD[name]
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n, 2)) * np.where(np.arange(n) % 2, 1.0, shortest)[:, None]
    y = np.sign(rows[:, 0]) if loss.task == "classification" and loss.n_outputs == 1 else targets_for(loss, rng, n)
    groups = np.arange(n) // 2 if grouped else None
    engine = engine_for(records_of(storage(rows), y, Bounds(1.0, target=(-2.0, 6.0)), groups))
    units = engine.n_units
    bound = min(clip, loss.lipschitz_for(6.0) * math.sqrt(3))
    shape = (3,) if loss.n_outputs == 1 else (3, loss.n_outputs)
    objective = Objective(loss, strength * units, pull * bound * rng.normal(size=shape), clip=clip)
    return engine, objective, 1e-11 * units * bound


def by_doubles(engine, objective, tolerance):
    """Whether Newton's method in doubles certifies a point by itself."""
    with np.errstate(all="ignore"):
        return minimizer._by_newton(minimizer._certified(engine, objective), tolerance) is not None


@pytest.mark.few(1)
@each_storage
@pytest.mark.parametrize("name", HARD)
def test_every_problem_is_certified(name, storage):
    for seed in range(2):
        engine, objective, tolerance = hard_problem(name, seed, storage, grouped=seed % 2 == 1)
        found = minimize(engine, objective, tolerance)
        assert found.gradient_norm <= tolerance
        assert np.isfinite(found.point).all()


@pytest.mark.thorough
def test_doubles_fail_for_some_neighbors_and_the_answer_does_not_say_so():
    """Two data sets that differ in one record, of which doubles certify one: both are answered alike."""
    pairs = 0
    for seed in range(20):
        loss = SmoothedHinge(1e-3)
        rng = np.random.default_rng(seed)
        rows, y = rng.uniform(-1, 1, (10, 2)), rng.choice([-1.0, 1.0], 10)
        other = rows.copy()
        other[0] = np.nan  # the null record
        outcomes = []
        for X in (rows, other):
            engine = engine_for(records_of(X, y, Bounds(1.0)))
            objective = Objective(loss, 1e-4, np.zeros(3))
            outcomes.append(by_doubles(engine, objective, 1e-10))
            assert minimize(engine, objective, 1e-10).gradient_norm <= 1e-10
        pairs += outcomes[0] != outcomes[1]
    assert pairs  # doubles alone would have told these neighbors apart


@each_loss
@each_storage
@pytest.mark.parametrize("broken", ["search", "at"])
def test_an_error_inside_newtons_method_leads_to_the_descent(loss, storage, broken, monkeypatch):
    def fails(*given):
        raise MemoryError if broken == "search" else OverflowError

    engine, *table = draw(loss, n=30, storage=storage)
    objective = Objective(loss, 1.5, linear_for(loss, 5))
    if broken == "search":
        monkeypatch.setattr(minimizer, "search", fails)
    else:
        monkeypatch.setattr(minimizer._Certified, "at", fails)
    found = minimize(engine, objective, 1e-10)
    assert found.gradient_norm <= 1e-10
    with mpmath.workdps(60):
        exact = exact_gradient(engine, objective, *table, found.point)
        assert mpmath.norm([v for row in exact for v in row]) <= 1.1e-10


def test_a_tolerance_beyond_doubles_is_met():
    engine, *_ = draw(Logistic(), n=30)
    assert minimize(engine, Objective(Logistic(), 1.0, np.zeros(5)), 1e-30).gradient_norm <= 1e-30


def test_a_minimizer_beyond_the_range_of_doubles_is_cut_to_it():
    engine, *_ = draw(Huber(0.7), n=10)
    found = minimize(engine, Objective(Huber(0.7), 1e-3, np.full(5, 1e308)), 1e300)
    assert found.gradient_norm <= 1e300
    assert np.isfinite(found.point).all()
