"""Step sizes over time, the slides' noise and the bound of gradient steps."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget, DPLogisticRegression
from discreet.accounting.gaussian import mu_of
from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.errors import Unsupported
from discreet.losses import Logistic
from discreet.penalties import L2, NoPenalty
from discreet.solvers import GradientDescent, OutputPerturbation, StochasticGradientDescent
from discreet.solvers.gradient_loop import SCHEDULES, step_factors
from tests.covering import covering

DOMAIN = Domain(np.ones(4), 2.0, 2000, Neighbors("replace_one"))
BUDGET = Budget(1.0, 1e-6, "replace_one")


def table(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (rng.random(n) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)


@covering(
    ("kind", [GradientDescent, StochasticGradientDescent]), ("schedule", [*SCHEDULES, (1.0, 0.5, 0.25, 0.1, 0.1)])
)
def test_a_schedule_is_followed(schedule, kind):
    """Without noise, by the textbook's loop."""
    X, y = table(300)
    sampled = {"sampling_probability": 1.0} if kind is StochasticGradientDescent else {}
    solver = kind(n_steps=5, step_size=2.0, step_schedule=schedule, average="last", **sampled)
    words = {"bounds": 1.0, "classes": (0, 1), "penalty": None, "neighbors": "zero_out", "ledger": False}
    model = DPLogisticRegression(math.inf, solver=solver, **words).fit(X, y)
    full, w = np.column_stack([X, np.ones(len(X))]), np.zeros(4)
    for factor in step_factors(schedule, 5):
        w = w - 2.0 * factor * full.T @ (1 / (1 + np.exp(-full @ w)) - y) / len(y)
    assert np.append(model.coef_, model.intercept_) == pytest.approx(w, abs=1e-4)
    assert model.certificate_.solver["step_schedule"] in (schedule, list(schedule))


def test_the_slides_noise_is_theirs():
    plan = GradientDescent(n_steps=50, calibration="slides").plan(DOMAIN, Logistic(), NoPenalty())
    found = price_plan(plan, BUDGET).noise_multiplier
    assert found == pytest.approx(math.sqrt(8 * 50 * math.log(1e6)), rel=1e-9)
    tight = price_plan(GradientDescent(n_steps=50).plan(DOMAIN, Logistic(), NoPenalty()), BUDGET).noise_multiplier
    assert found > 1.5 * tight
    with pytest.raises(Unsupported, match="calibration"):
        GradientDescent(calibration="loose")


def test_the_slides_noise_on_samples_is_that_of_the_mean_gradient():
    """A sum over a sample is divided by q n, so that its noise is q times that of the sum over all records."""
    solver = StochasticGradientDescent(n_steps=200, sampling_probability=0.25, calibration="slides")
    found = price_plan(solver.plan(DOMAIN, Logistic(), NoPenalty()), BUDGET)
    assert found.noise_multiplier == pytest.approx(0.25 * math.sqrt(8 * 200 * math.log(1e6)), rel=1e-9)
    assert 0.2 < found.price.epsilon < 1.0
    few = replace(solver, n_steps=2, sampling_probability=0.001)
    assert price_plan(few.plan(DOMAIN, Logistic(), NoPenalty()), BUDGET).price.epsilon == pytest.approx(1.0, rel=2e-3)


def test_the_bound_is_the_lectures():
    """R sqrt(L^2/T + 4 p L^2 / (n mu)^2) at the lecture's step."""
    solver = GradientDescent.lecture(DOMAIN, Logistic(), n_steps=400, radius=2.0, budget=BUDGET)
    found, mu = solver.bound(DOMAIN, Logistic(), BUDGET), mu_of(1.0, 1e-6)
    assert found.upper == pytest.approx(2.0 * math.sqrt(4.0 / 400 + 4 * 4 * 4.0 / (2000 * mu) ** 2), rel=1e-3)
    assert found.lower <= found.upper <= 2.0 * 2.0
    short = GradientDescent(n_steps=1, radius=2.0, average="uniform", step_size=1e-9)
    assert short.bound(DOMAIN, Logistic(), BUDGET).upper == 8.0  # 2 R L: the ball is no wider


def test_the_population_is_no_further_than_uniform_convergence_allows():
    """2 L R / sqrt(n) in expectation, by the Rademacher complexity of linear models on a ball."""
    solver = GradientDescent.lecture(DOMAIN, Logistic(), n_steps=400, radius=2.0, budget=BUDGET)
    found = solver.bound(DOMAIN, Logistic(), BUDGET)
    assert found.population(2000) == pytest.approx(found.upper + 2 * 4.0 / math.sqrt(2000))
    sure = OutputPerturbation(regularization=0.1, radius=2.0).bound(
        DOMAIN, Logistic(), BUDGET, radius=2.0, confidence=0.9
    )
    around = 4 * math.sqrt(math.log(2 / 0.1) / (2 * 2000))
    assert sure.population(2000) == pytest.approx(sure.upper + 4.0 * (2 / math.sqrt(2000) + around))
    free = OutputPerturbation(regularization=0.1).bound(DOMAIN, Logistic(), BUDGET, radius=2.0)
    with pytest.raises(Unsupported, match="ball"):
        free.population(2000)


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_runs_exceed_a_bound_with_a_probability_no_more_often(strength):
    """The recursion in plain numpy, with a linear loss, the worst there is, in a ball or with a penalty."""
    rng, n, T, p, eta = np.random.default_rng(0), 200, 40, 4, 0.5 if strength else 0.1
    domain = Domain(np.ones(p), 2.0, n, Neighbors("zero_out"))
    budget, radius = Budget(1.0, 1e-6, "zero_out"), None if strength else 1.0
    solver = GradientDescent(T, 2.0, eta, average="last" if strength else "uniform", radius=radius)
    penalty = L2(strength) if strength else None
    bound = solver.bound(domain, Logistic(), budget, penalty=penalty, confidence=0.9).upper
    s = 2.0 * math.sqrt(T) / (n * mu_of(1.0, 1e-6))
    slope, w = np.array([2.0, 0, 0, 0]), np.zeros((4000, p))
    total = w.copy()
    for _ in range(T):
        w = (w - eta * (slope + s * rng.normal(size=w.shape))) / (1 + eta * strength)
        w /= np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True)) if radius else 1.0
        total += w
    excess = strength / 2 * np.sum((w + slope / strength) ** 2, axis=1) if strength else total @ slope / (T + 1) + 2.0
    assert np.mean(excess > bound) <= 0.1
    assert np.mean(excess) > bound / 20  # the test has power: noise of 20 times the size would exceed it
