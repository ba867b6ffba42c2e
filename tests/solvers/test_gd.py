"""Private gradient descent on real records: its noiseless limit, and the lecture's bound on its error."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting.gaussian import mu_of
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData
from discreet.losses import Huber, Logistic, SmoothedHinge
from discreet.losses.base import derivative
from discreet.penalties import L2, NoPenalty
from discreet.solvers import GradientDescent, StochasticGradientDescent
from tests.covering import covering

LIMIT = Budget(math.inf, 1e-6)  # no noise, clipped in the L2 norm


def opened(solver, X, y, loss, budget, bounds, penalty=None, **options):
    data = PrivateData(X, y, bounds, **options)
    domain = data.domain(budget.neighbors, loss)
    return data.open(price_plan(solver.plan(domain, loss, penalty or NoPenalty()), budget), loss)


def plain_descent(A, targets, loss, penalty, *, n_steps, step, clip, weight, average):
    """The algorithm box with numpy: clipped per-record gradients, momentum, prox, average."""
    w = previous = np.zeros(A.shape[1])
    path = [w]
    for t in range(n_steps):
        point = w + weight(t) * (w - previous)
        slopes = np.array([derivative(loss, margin, target) for margin, target in zip(A @ point, targets, strict=True)])
        gradients = slopes[:, None] * A
        norms = np.linalg.norm(gradients, axis=1)
        gradients *= np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None]
        previous, w = w, penalty.prox(point - step * gradients.mean(axis=0), step)
        path.append(w)
    return np.mean(path, axis=0) if average == "uniform" else w


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.4)], ids=["logistic", "huber"])
@pytest.mark.parametrize("clip", [10.0, 0.3], ids=["loose", "tight"])
@covering(("average", ["last", "uniform"]), ("momentum", [0.0, 0.7, "nesterov"]))
def test_without_noise_it_is_plain_gradient_descent(small_table, loss, clip, momentum, average):
    n_steps, step, penalty = 12, 0.4, L2(0.01)
    y = small_table.signs if loss.task == "classification" else small_table.numbers
    solver = GradientDescent(n_steps=n_steps, clip=clip, step_size=step, momentum=momentum, average=average)
    bounds = Bounds(1.0, classes=(-1, 1), target=(-1, 1))
    curator = opened(solver, small_table.X, y, loss, LIMIT, bounds, penalty)
    root = math.sqrt(step * 0.01)
    weight = {
        0.0: lambda t: 0.0,
        0.7: lambda t: 0.7,
        "nesterov": lambda t: min(t / (t + 3), (1 - root) / (1 + root)),
    }[momentum]
    expected = plain_descent(
        small_table.with_ones, y, loss, penalty, n_steps=n_steps, step=step, clip=clip, weight=weight, average=average
    )
    # the clip divides by a row's norm rounded up to the grid: one part in 2^14 of a clipped gradient
    np.testing.assert_allclose(solver.solve(curator, penalty).coefficients, expected, rtol=2**-14, atol=1e-6)


def test_sampling_everyone_is_full_batch(small_table):
    """Probability one: sgd and gd are the same computation."""
    common = {"n_steps": 5, "clip": 1.0, "step_size": 0.3, "average": "last"}
    answers = []
    for solver in (GradientDescent(**common), StochasticGradientDescent(**common, sampling_probability=1.0)):
        curator = opened(solver, small_table.X, small_table.signs, Logistic(), LIMIT, Bounds(1.0, classes=(-1, 1)))
        answers.append(solver.solve(curator, NoPenalty()).coefficients)
    np.testing.assert_array_equal(*answers)


def test_pure_budgets_clip_in_the_sum_norm(small_table):
    solver = GradientDescent(n_steps=1, clip=0.3, step_size=1.0)
    bounds = Bounds(1.0, classes=(-1, 1))
    curator = opened(solver, small_table.X, small_table.signs, Logistic(), Budget(math.inf), bounds)
    gradients = -0.5 * small_table.signs[:, None] * small_table.with_ones
    gradients *= np.minimum(1, 0.3 / np.abs(gradients).sum(axis=1))[:, None]
    np.testing.assert_allclose(solver.solve(curator, NoPenalty()).coefficients, -gradients.mean(axis=0), atol=1e-6)


# ---------------------------------------------------------------------------------------- the lecture's method


def test_lecture_constants(small_table):
    data = PrivateData(small_table.X, small_table.signs, Bounds(1.0, classes=(-1, 1)))
    domain = data.domain(Budget(1.0).neighbors, Logistic())
    solver = GradientDescent.lecture(domain, Logistic(), n_steps=25, radius=3.0, budget=Budget(1.0, 1e-6))
    bound = 1.0 * 2.0  # |f'| <= 1, three features and the intercept in [-1, 1]
    assert (solver.n_steps, solver.radius, solver.average, solver.momentum) == (25, 3.0, "uniform", 0.0)
    assert solver.clip == pytest.approx(bound)
    noise = 2 * bound * 5 / mu_of(1.0, 1e-6) / len(small_table.X)  # replace_one, sqrt(25) = 5
    assert solver.step_size == pytest.approx(3.0 / math.sqrt(25 * (bound**2 + 4 * noise**2)))
    assert solver.plan(domain, Logistic(), NoPenalty()).count == 25


def lecture_excess(*, n, p, n_steps, epsilon, radius, runs):
    """Mean of F - F* in units of R L over runs, and the documented bound, for a loss that is linear on the ball.

    Every record is the same unit vector times sqrt(p), with label +1: F(w) = 1 - x.w there, and L = sqrt(p).
    """
    X, y = np.ones((n, p)), np.ones(n)
    loss, budget = SmoothedHinge(0.5), Budget(epsilon, 1e-6)
    lipschitz = math.sqrt(p)
    assert radius * lipschitz <= 0.5  # margins stay below 1 - h: linear
    bounds = Bounds(1.0, classes=(-1, 1))
    excess = []
    for _ in range(runs):
        data = PrivateData(X, y, bounds, fit_intercept=False)
        domain = data.domain(budget.neighbors, loss)
        solver = GradientDescent.lecture(domain, loss, n_steps=n_steps, radius=radius, budget=budget)
        curator = data.open(price_plan(solver.plan(domain, loss, NoPenalty()), budget), loss)
        w = solver.solve(curator, NoPenalty()).coefficients
        excess.append((radius * lipschitz - w.sum()) / (radius * lipschitz))
    mu = math.sqrt(n_steps) / curator.noise_multiplier
    return np.mean(excess), math.sqrt(1 / n_steps + 4 * p / (n * mu) ** 2)


@pytest.mark.statistical
def test_lecture_bound_where_noise_is_small():
    measured, bound = lecture_excess(n=2000, p=4, n_steps=100, epsilon=2.0, radius=0.2, runs=10)
    assert measured <= bound
    assert measured > 0.05 * bound  # the bound is of the right kind, not idle


@pytest.mark.thorough
@pytest.mark.statistical
def test_lecture_bound_where_noise_dominates():
    """Many steps of large noise: the documented R sqrt(L^2/T + 4 p L^2/(n mu)^2) must hold here too."""
    measured, bound = lecture_excess(n=60, p=10, n_steps=4000, epsilon=5.0, radius=0.1, runs=4)
    assert bound < 0.2  # it says something
    assert measured <= bound
