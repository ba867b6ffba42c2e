"""Shrinking by empirical Bayes: noise goes, what stands out stays, nothing is made larger."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from discreet import Bounds, DPLogisticRegression, DPRidge, Neighbors
from discreet.bounds import Domain
from discreet.losses import Logistic
from discreet.models import DPClassifier, DPRegressor
from discreet.penalties import L1, L2, NoPenalty
from discreet.solvers import GradientDescent, Preconditioned, propagation
from discreet.solvers.base import Solution
from discreet.solvers.propagation import average_weights, posterior_weights
from discreet.solvers.shrinkage import noise_in, shrunk
from discreet.solvers.traces import CoordinateTrace, DescentTrace, EpochsTrace, Noise, PathTrace, PointTrace
from discreet.testing import seeded


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1.0, 1e6])
def test_nothing_is_turned_or_made_larger(noise):
    q, values = np.random.default_rng(1).normal(size=20), np.geomspace(1e-3, 10, 20)
    weights = posterior_weights(q, values, noise)
    assert ((weights >= 0) & (weights <= (1 + 1e-9) / values)).all()


NOISE = Noise(1, 2.0, 1.5, laplace=False)
TRACES = {
    "gd": DescentTrace((3,), 0.5, 2.0, 100.0, np.full(12, 0.6), average_weights("tail", 12), NOISE, 0.9),
    "svrg": EpochsTrace((3,), 0.5, 2.0, 9.0, 4.0, np.full((3, 4), 0.6), np.ones((3, 4)), NOISE, NOISE, 0.9, "last"),
    "cd": CoordinateTrace([[np.array([j]) for j in (0, 1, 2) * 4]], np.ones(3), np.ones(3), 0.5, 9.0, NOISE, "last"),
    "output": PointTrace((3,), 2.0, 0.3, pure=False),
}


@pytest.mark.parametrize("name", TRACES)
def test_variances_are_those_of_a_flat_loss_and_fall_with_curvature(name):
    trace = TRACES[name]
    flat, curved = (trace.variances(np.full(3, bend)) for bend in (0.0, 0.4))
    np.testing.assert_allclose(flat, np.square(trace.deviations()))
    assert (curved <= flat).all()
    assert (curved < flat).all() or name == "output"  # whose noise comes after the minimizer


STIFF = 0.7


def test_variances_of_steps_with_a_proximal_step_each_are_those_of_runs():
    rng, trace, bend = np.random.default_rng(0), TRACES["gd"], 0.4
    unit, shrink = trace.noise.deviation(trace.clip) / trace.count, 1 / (1 + trace.step * STIFF)
    last = d = mean = np.zeros(40_000)
    for momentum, weight in zip(trace.momenta, trace.averages[1:], strict=True):
        ahead = d + momentum * (d - last)
        last, d = d, shrink * (ahead - trace.step * (bend * ahead + unit * rng.normal(size=d.size)))
        mean = mean + weight * d
    found = trace.variances(np.array([bend]), np.array([STIFF]))
    np.testing.assert_allclose(found, mean.var(), rtol=0.04)


def test_variances_of_passes_with_a_proximal_step_each_are_those_of_runs():
    rng, trace, bend = np.random.default_rng(0), replace(TRACES["cd"], clips=np.full(3, 2.0)), 0.4
    unit, step = 2.0 * trace.noise.deviation() / trace.count, trace.relative_step
    d = np.zeros(40_000)
    for _ in range(4):
        d = (d - step * (bend * d + unit * rng.normal(size=d.size))) / (1 + step * STIFF)
    np.testing.assert_allclose(trace.variances(np.full(3, bend), np.full(3, STIFF)), d.var(), rtol=0.04)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["gd", "sgd", "svrg", "cd", "agd", "gcd", "output", "objective"])
def test_with_a_strong_penalty_names_end_near_what_little_it_leaves(name):
    """Narrow columns have coefficients that the loss hardly feels, and the penalty does."""
    rng = np.random.default_rng(2)
    X, y = (rng.random((6000, 3)) < 0.02).astype(float), (rng.random(6000) < 0.3).astype(int)
    bounds = Bounds(features=[(0.0, 1.0)] * 3, classes=(0, 1))
    facts = {"bounds": bounds, "neighbors": "zero_out", "ledger": False, "penalty": L2(0.3)}

    def sizes(epsilon, seed):
        with seeded(seed):
            return np.square(DPClassifier(epsilon, solver=name, **facts).fit(X, y).coef_).sum()

    assert np.median([sizes(1.0, seed) for seed in range(3)]) < 1e-3


def simulated(bend, steps, weights, noises, rng):
    """Iterates of a parabola with noise in every gradient, averaged."""
    d, mean = 0.0, 0.0
    for step, noise, weight in zip(steps, noises, weights[1:], strict=True):
        d = d - step * (bend * d + noise * rng.normal(size=40_000))
        mean = mean + weight * d
    return mean


@pytest.mark.parametrize("bend", [0.0, 0.3, 1.5])
def test_variances_of_steps_of_any_length_are_those_of_runs(bend):
    rng = np.random.default_rng(0)
    steps, noises, weights = rng.uniform(0.1, 0.6, 9), rng.uniform(1, 3, 9), average_weights("tail", 9)
    runs = simulated(bend, steps, weights, noises, rng)
    np.testing.assert_allclose(PathTrace(steps, noises, weights).variances(np.array([bend])), runs.var(), rtol=0.04)


@pytest.mark.parametrize("bend", [0.0, 0.5])
@pytest.mark.parametrize("average", ["last", "uniform"])
def test_variances_of_passes_are_those_of_runs(bend, average):
    """Passes over three columns that do not interact; a coordinate's share of a mean depends on its place in a pass."""
    rng, count = np.random.default_rng(0), 8
    blocks = [[np.array([j]) for _ in range(count) for j in range(3)] for _ in range(2)]
    trace = CoordinateTrace(blocks, np.full(3, 2.0), np.full(3, 0.8), 0.5, 9.0, NOISE, average)
    step, noise = 0.5 / 0.8, NOISE.deviation() * 2.0 / 9.0
    start = np.zeros(40_000)
    for _ in range(2):
        d, mean = start, 0.0
        for _ in range(count):
            d = d - step * (bend * d + noise * rng.normal(size=40_000))
            mean = mean + d / count
        start = mean if average == "uniform" else d
    np.testing.assert_allclose(trace.variances(np.full(3, bend)), start.var(), rtol=0.05)


def intercepts(name, *, share=0.5, n=600, epsilon=0.3, denoise=True):
    """Released intercepts of labels that no column says anything of, for ten seeds."""
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, (n, 2)), (np.arange(n) < share * n).astype(int)
    facts = {"bounds": 1.0, "classes": (0, 1), "neighbors": "zero_out", "ledger": False}
    solver = DPLogisticRegression(epsilon, 1e-6, solver=name, **facts).quote(X, y).configured

    def fit(seed):
        with seeded(seed):
            model = DPLogisticRegression(epsilon, 1e-6, solver=replace(solver, denoise=denoise), **facts)
            return model.fit(X, y).intercept_.item()

    return np.array([fit(seed) for seed in range(10)])


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["gd", "sgd", "svrg", "cd", "agd", "gcd", "output"])
def test_an_intercept_within_its_noise_goes_and_a_clear_one_stays(name):
    hidden, before = (np.mean(intercepts(name, denoise=denoise) ** 2) for denoise in (True, False))
    assert hidden < 0.7 * before  # samples bring noise of their own, which is not counted
    assert (intercepts(name, share=0.1, n=20_000, epsilon=4.0)[:3] < -1.0).all()


def test_objective_perturbation_keeps_what_correlated_columns_tell():
    """Its noise is far below the only bound there is: a shrinkage by that bound would leave nothing of the signal."""
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(size=(3000, 1)) + 0.5 * rng.normal(size=(3000, 12)), -4, 4)
    y = np.clip(X.mean(axis=1) + 0.5 * rng.normal(size=3000), -5, 5)
    bounds = Bounds(features=[(-4.0, 4.0)] * 12, target=(-5.0, 5.0))
    with seeded(0):
        model = DPRidge(1.0, 1e-6, bounds=bounds, neighbors="zero_out", solver="objective", ledger=False).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.4 * np.var(y)


def test_solvers_as_configured_are_not_denoised():
    """A box of a paper is what was configured, to the last bit: shrinking belongs to names."""
    assert not Preconditioned(GradientDescent(n_steps=5)).denoise


def test_columns_that_greedy_steps_did_not_move_hide_none_that_they_did():
    """A hundred columns that were never chosen say nothing of how noisy the chosen one is."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 100))
    y = 0.5 * X[:, 3] + 0.1 * rng.normal(size=3000)
    model = DPRidge(1.0, 1e-6, bounds=Bounds(features=1.0, target=(-1.0, 1.0)), solver="gcd", ledger=False)
    assert model.quote(X, y).configured.denoise
    with seeded(0):
        assert model.fit(X, y).coef_[3] > 0.1


def test_so_many_entries_that_odds_are_no_number_are_shrunk(monkeypatch):
    """As of a million columns: their odds, e to the power of a part of their number, overflow."""
    monkeypatch.setattr(propagation, "ROUNDS", 1)
    weights = posterior_weights(np.zeros(20_000), np.ones(20_000), 1.0, odds=10.0)
    assert (weights == 0).all()


@pytest.mark.parametrize("middle", [False, True])
def test_what_is_known_of_the_noise_of_very_wide_records_has_no_room_of_its_own_squared(middle):
    """60,000 columns squared would be 29 GB."""
    p = 60_000
    domain = Domain(np.ones(p + 1), math.sqrt(p + 1), 1000, Neighbors.ZERO_OUT)
    trace = DescentTrace((p + 1,), 0.5, 2.0, 100.0, np.full(2, 0.6), average_weights("tail", 2), NOISE)
    curator = SimpleNamespace(domain=domain, loss=Logistic(), noise_multiplier=1.0)
    found = Solution(np.ones(p + 1), trace)
    seen = noise_in(found, curator, None, np.full(p, 0.5) if middle else None, NoPenalty(), intercept=True)
    assert shrunk(found, curator, seen).coefficients.shape == (p + 1,)


def fitted(solver, penalty, *, n=2000, effect=0.0, seed=0):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (n, 4))
    y = np.clip(effect * X[:, 0] + 0.3 * rng.normal(size=n), -1, 1)
    bounds = Bounds(features=1.0, target=(-1.0, 1.0))
    with seeded(seed):
        return DPRegressor(0.2, 1e-6, penalty=penalty, bounds=bounds, solver=solver, ledger=False).fit(X, y)


def test_in_training_coordinates_a_solver_is_itself_until_it_is_shrunk():
    inner = GradientDescent(n_steps=10, clip=0.5, step_size=0.3)
    alone = fitted(inner, L1(1e-3))
    staged, less = (fitted(Preconditioned(inner, "training", denoise=yes), L1(1e-3)) for yes in (False, True))
    assert [staged.certificate_.events, staged.certificate_.epsilon] == [
        alone.certificate_.events, alone.certificate_.epsilon,
    ]  # fmt: skip
    np.testing.assert_array_equal(staged.coef_, alone.coef_)
    assert np.linalg.norm(less.coef_) < 0.5 * np.linalg.norm(alone.coef_)


@pytest.mark.parametrize("name", ["gd", "sgd", "svrg", "cd", "gcd"])
def test_names_with_corners_and_no_signal_find_nothing_and_keep_what_is_clear(name):
    sizes = [np.abs(fitted(name, L1(1e-3), seed=seed).coef_).max() for seed in range(4)]
    assert np.median(sizes) < 0.02
    assert fitted(name, L1(1e-3), n=40_000, effect=0.6).coef_[0] > 0.2


def test_public_moments_are_refused_where_records_stay_as_they_are():
    assert not Preconditioned(GradientDescent(), "training").takes_public_moments
    assert Preconditioned(GradientDescent()).takes_public_moments
