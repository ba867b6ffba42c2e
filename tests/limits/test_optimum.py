"""Without noise every estimator must reach the optimum that others find, with its own default settings.

All objectives are in training coordinates: (1/n) sum of losses + penalty(w), the intercept being the
weight of a column of ones. The features lie on the door's grid, so quantization is not the question.
"""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import ElasticNet as SkElasticNet
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, PoissonRegressor, Ridge

from discreet import (
    Bounds,
    Budget,
    DPHuberRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData
from discreet.losses import Squared
from discreet.penalties import L1, L2, Box, ElasticNet, GroupL2, L2Ball
from discreet.solvers import GradientDescent

GAP = 1e-6


class Objective:
    """Mean loss and gradient, written out with numpy: nothing here is discreet's."""

    def __init__(self, A, loss, slope, alpha=0.0):
        self.A, self.loss, self.slope, self.alpha = A, loss, slope, alpha

    def value(self, w):
        return float(np.mean(self.loss(self.A @ w)) + self.alpha / 2 * np.sum(w**2))

    def gradient(self, w):
        return self.A.T @ self.slope(self.A @ w) / len(self.A) + self.alpha * w

    def optimum(self, shape, **options):
        def unflat(f):
            return lambda v: np.ravel(f(v.reshape(shape)))

        found = minimize(
            lambda v: self.value(v.reshape(shape)),
            np.zeros(shape).ravel(),
            jac=unflat(self.gradient),
            **({"method": "BFGS", "options": {"gtol": 1e-11, "maxiter": 10_000}} | options),
        )
        return found.x.reshape(shape)


def logistic(A, t, alpha=0.0):
    return Objective(A, lambda m: np.logaddexp(0, -t * m), lambda m: -t / (1 + np.exp(t * m)), alpha)


def squared(A, y, alpha=0.0):
    return Objective(A, lambda m: 0.5 * (m - y) ** 2, lambda m: m - y, alpha)


def huber(A, y, c, alpha):
    def loss(m):
        u = np.abs(m - y)
        return np.where(u <= c, u**2 / 2, c * u - c**2 / 2)

    return Objective(A, loss, lambda m: np.clip(m - y, -c, c), alpha)


def smoothed_hinge(A, t, h, alpha):
    def loss(m):
        s = t * m
        return np.where(s < 1 - h, 1 - s, np.where(s > 1 + h, 0.0, (1 + h - s) ** 2 / (4 * h)))

    return Objective(A, loss, lambda m: -t * np.clip((1 + h - t * m) / (2 * h), 0, 1), alpha)


def poisson(A, y, alpha):
    return Objective(A, lambda m: np.exp(m) - y * m, lambda m: np.exp(m) - y, alpha)


def softmax(A, y, alpha):
    rows = np.arange(len(y))

    def slope(M):
        P = np.exp(M - np.logaddexp.reduce(M, axis=1, keepdims=True))
        P[rows, y] -= 1
        return P

    return Objective(A, lambda M: np.logaddexp.reduce(M, axis=1) - M[rows, y], slope, alpha)


def weights(model):
    if np.ndim(model.intercept_) and len(model.intercept_) > 1:
        return np.vstack([model.coef_.T, model.intercept_])
    return np.append(model.coef_, model.intercept_)


def relative_gap(value, w, best):
    """How far above the best known value, which need not be exact either."""
    return (value(w) - value(best)) / abs(value(best))


@pytest.mark.few(1)
@pytest.mark.parametrize("alpha", [1e-4, 1e-2])
def test_logistic(table, alpha):
    n = len(table.X)
    model = DPLogisticRegression(math.inf, bounds=1.0, classes=(-1, 1), alpha=alpha).fit(table.X, table.signs)
    theirs = LogisticRegression(C=1 / (n * alpha), fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cg")
    theirs.fit(table.with_ones, table.signs)
    objective = logistic(table.with_ones, table.signs, alpha)
    assert abs(relative_gap(objective.value, weights(model), theirs.coef_[0])) < GAP
    np.testing.assert_allclose(weights(model), theirs.coef_[0], rtol=1e-4, atol=1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize("alpha", [1e-4, 1e-2])
def test_softmax(table, alpha):
    n = len(table.X)
    model = DPLogisticRegression(math.inf, bounds=1.0, classes=(0, 1, 2), alpha=alpha).fit(table.X, table.labels)
    theirs = LogisticRegression(C=1 / (n * alpha), fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cg")
    theirs.fit(table.with_ones, table.labels)
    objective = softmax(table.with_ones, table.labels, alpha)
    assert abs(relative_gap(objective.value, weights(model), theirs.coef_.T)) < GAP
    probabilities = theirs.predict_proba(table.with_ones)
    np.testing.assert_allclose(model.predict_proba(table.X), probabilities, atol=1e-4)


def test_linear_regression(table):
    model = DPLinearRegression(math.inf, bounds=1.0, target=(-1, 1)).fit(table.X, table.numbers)
    theirs = LinearRegression(fit_intercept=False).fit(table.with_ones, table.numbers)
    assert abs(relative_gap(squared(table.with_ones, table.numbers).value, weights(model), theirs.coef_)) < GAP
    np.testing.assert_allclose(weights(model), theirs.coef_, atol=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_ridge(table, alpha):
    model = DPRidge(math.inf, bounds=1.0, target=(-1, 1), alpha=alpha).fit(table.X, table.numbers)
    theirs = Ridge(alpha=len(table.X) * alpha, fit_intercept=False).fit(table.with_ones, table.numbers)
    objective = squared(table.with_ones, table.numbers, alpha)
    assert abs(relative_gap(objective.value, weights(model), theirs.coef_)) < GAP


def test_least_squares_through_the_origin(table):
    model = DPLinearRegression(math.inf, bounds=1.0, target=(-1, 1), fit_intercept=False).fit(table.X, table.numbers)
    theirs = LinearRegression(fit_intercept=False).fit(table.X, table.numbers)
    assert model.intercept_ == 0
    assert abs(relative_gap(squared(table.X, table.numbers).value, model.coef_, theirs.coef_)) < GAP


@pytest.mark.few(1)
@pytest.mark.parametrize("width", [0.05, 0.5])
def test_huber(table, width):
    objective = huber(table.with_ones, table.numbers, width, 1e-3)
    model = DPHuberRegressor(math.inf, bounds=1.0, target=(-1, 1), width=width, alpha=1e-3)
    model.fit(table.X, table.numbers)
    assert relative_gap(objective.value, weights(model), objective.optimum(6)) < GAP


@pytest.mark.few(1)
@pytest.mark.parametrize("width", [0.1, 0.5])
def test_smoothed_hinge(table, width):
    objective = smoothed_hinge(table.with_ones, table.signs, width, 1e-3)
    model = DPLinearSVC(math.inf, bounds=1.0, classes=(-1, 1), width=width, alpha=1e-3).fit(table.X, table.signs)
    assert relative_gap(objective.value, weights(model), objective.optimum(6)) < GAP


@pytest.mark.few(1)
@pytest.mark.parametrize("limit", [3.0, 5.0])
def test_poisson(table, limit):
    """scikit-learn's half deviance is this loss plus a constant; the limit does not bind at the optimum."""
    alpha = 1e-3
    model = DPPoissonRegressor(math.inf, bounds=1.0, target=(0, 20), limit=limit, alpha=alpha)
    model.fit(table.X, table.counts)
    theirs = PoissonRegressor(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(table.with_ones, table.counts)
    assert np.abs(table.with_ones @ theirs.coef_).max() < limit
    objective = poisson(table.with_ones, table.counts, alpha)
    assert abs(relative_gap(objective.value, weights(model), theirs.coef_)) < GAP
    np.testing.assert_allclose(model.predict(table.X), theirs.predict(table.with_ones), rtol=1e-2)


def test_no_clip_bites_without_noise():
    """Five records that the model cannot fit have slopes far above the largest target; they count in full."""
    x = np.repeat([0.5, 1.0], [95, 5])[:, None]
    y = np.repeat([8.0, 0.0], [95, 5])
    model = DPPoissonRegressor(math.inf, bounds=1.0, target=(0, 8), fit_intercept=False).fit(x, y)
    best = poisson(x, y, 1e-3).optimum(1)
    assert math.exp(best[0]) > 8
    assert model.coef_[0] == pytest.approx(best[0], rel=1e-3)


def accelerated(steps=5000):
    return GradientDescent(n_steps=steps, momentum="nesterov")


@pytest.mark.few(1)
@pytest.mark.parametrize("strength", [1e-3, 3e-2])
def test_l1_logistic(table, strength):
    n = len(table.X)
    model = DPLogisticRegression(math.inf, bounds=1.0, classes=(-1, 1), penalty="l1", alpha=strength)
    model.fit(table.X, table.signs)
    theirs = LogisticRegression(
        C=1 / (n * strength), l1_ratio=1.0, solver="saga", fit_intercept=False, tol=1e-10, max_iter=100_000
    ).fit(table.with_ones, table.signs)

    def value(w):
        return logistic(table.with_ones, table.signs).value(w) + strength * np.abs(w).sum()

    assert abs(relative_gap(value, weights(model), theirs.coef_[0])) < GAP


def linear(table, penalty, steps=5000):
    """Least squares with any penalty, by the solver itself."""
    loss, solver = Squared(), GradientDescent(n_steps=steps, momentum="nesterov", clip=100.0)
    data = PrivateData(table.X, table.numbers, Bounds(1.0, target=(-1, 1)))
    budget = Budget(math.inf, 1e-6)
    plan = solver.plan(data.domain(budget.neighbors, loss), loss, penalty)
    return solver.solve(data.open(price_plan(plan, budget), loss), penalty).coefficients


def test_lasso_finds_the_same_zeros(table):
    w = linear(table, L1(0.08))
    theirs = Lasso(alpha=0.08, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(table.with_ones, table.numbers)

    def value(v):
        return squared(table.with_ones, table.numbers).value(v) + 0.08 * np.abs(v).sum()

    assert abs(relative_gap(value, w, theirs.coef_)) < GAP
    assert (theirs.coef_ == 0).any()
    np.testing.assert_array_equal(w == 0, theirs.coef_ == 0)


def test_elastic_net(table):
    w = linear(table, ElasticNet(l1=0.01, l2=0.03))
    theirs = SkElasticNet(alpha=0.04, l1_ratio=0.25, fit_intercept=False, tol=1e-14, max_iter=100_000)
    theirs.fit(table.with_ones, table.numbers)

    def value(v):
        return squared(table.with_ones, table.numbers, 0.03).value(v) + 0.01 * np.abs(v).sum()

    assert abs(relative_gap(value, w, theirs.coef_)) < GAP


def test_elastic_net_by_name_splits_alpha(table):
    kwargs = {"bounds": 1.0, "classes": (-1, 1), "solver": accelerated(2000)}
    named = DPLogisticRegression(math.inf, penalty="elasticnet", alpha=0.02, **kwargs).fit(table.X, table.signs)
    built = DPLogisticRegression(math.inf, penalty=ElasticNet(0.01, 0.01), **kwargs).fit(table.X, table.signs)
    np.testing.assert_array_equal(weights(named), weights(built))


def test_box(table):
    objective = logistic(table.with_ones, table.signs)
    limits = Box(-0.5, 1.5)
    model = DPLogisticRegression(math.inf, bounds=1.0, classes=(-1, 1), penalty=limits).fit(table.X, table.signs)
    best = objective.optimum(
        6, method="L-BFGS-B", bounds=[(-0.5, 1.5)] * 6, options={"ftol": 1e-15, "gtol": 1e-11, "maxiter": 10_000}
    )
    assert np.isclose(np.abs(best + 0.5), 0).any()  # the box binds
    assert limits.value(weights(model)) == 0
    assert relative_gap(objective.value, weights(model), best) < GAP


def test_ball(table):
    objective = logistic(table.with_ones, table.signs)
    ball = L2Ball(2.0)
    model = DPLogisticRegression(math.inf, bounds=1.0, classes=(-1, 1), penalty=ball).fit(table.X, table.signs)
    within = {"type": "ineq", "fun": lambda v: 4.0 - v @ v, "jac": lambda v: -2 * v}
    best = objective.optimum(6, method="SLSQP", constraints=[within], options={"ftol": 1e-14, "maxiter": 1000})
    assert np.linalg.norm(best) == pytest.approx(2.0)  # the ball binds
    assert ball.value(weights(model)) == 0
    assert relative_gap(objective.value, weights(model), best) < GAP


def test_a_ball_by_radius_is_the_same_constraint(table):
    solver = GradientDescent(n_steps=3000, momentum="nesterov", radius=2.0)
    objective = logistic(table.with_ones, table.signs)
    facts = {"bounds": 1.0, "classes": (-1, 1)}
    projected = DPLogisticRegression(math.inf, penalty=None, solver=solver, **facts).fit(table.X, table.signs)
    penalized = DPLogisticRegression(math.inf, penalty=L2Ball(2.0), solver=accelerated(3000), **facts)
    penalized.fit(table.X, table.signs)
    assert abs(relative_gap(objective.value, weights(projected), weights(penalized))) < GAP


def test_groups_satisfy_their_optimality_conditions(table):
    """0 is in the subdifferential: kept groups balance the gradient exactly, dropped ones bound it."""
    penalty = GroupL2(0.05, ((0, 1), (2, 3)))
    w = linear(table, penalty)
    gradient = squared(table.with_ones, table.numbers).gradient(w)
    weight = 0.05 * math.sqrt(2)
    for group in penalty.groups:
        rows = list(group)
        norm = np.linalg.norm(w[rows])
        if norm > 0:
            np.testing.assert_allclose(gradient[rows], -weight * w[rows] / norm, atol=1e-6)
        else:
            assert np.linalg.norm(gradient[rows]) <= weight
    np.testing.assert_allclose(gradient[4:], 0, atol=1e-6)


def test_the_limit_does_not_depend_on_the_relation(table):
    fits = [
        weights(DPRidge(math.inf, bounds=1.0, target=(-1, 1), neighbors=relation).fit(table.X, table.numbers))
        for relation in ("replace_one", "zero_out")
    ]
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-8)


def test_sgd_by_name_comes_near(table):
    """Sampling noise stays without privacy noise: near, not at, the optimum."""
    model = DPRidge(math.inf, bounds=1.0, target=(-1, 1), solver="sgd", alpha=1e-3).fit(table.X, table.numbers)
    objective = squared(table.with_ones, table.numbers, 1e-3)
    assert relative_gap(objective.value, weights(model), objective.optimum(6)) < 0.05


def test_persons_without_noise_reach_the_weighted_optimum(small_table):
    """A person's loss is the mean over that person's rows, so a row of k weighs 1/k."""
    A, y = small_table.with_ones, small_table.numbers
    persons = np.minimum(np.arange(len(y)) // 4, 20)  # twenty persons of four rows, one of many
    share = 1 / np.bincount(persons)[persons]
    n = persons.max() + 1
    best = np.linalg.solve((A * share[:, None]).T @ A / n + 1e-3 * np.eye(4), A.T @ (share * y) / n)
    model = DPRidge(math.inf, bounds=1.0, target=(-1, 1), alpha=1e-3).fit(small_table.X, y, groups=persons)
    np.testing.assert_allclose(weights(model), best, atol=1e-6)


def test_l2_object_is_the_named_penalty(small_table):
    facts = {"bounds": 1.0, "classes": (-1, 1), "solver": accelerated(50)}
    named = DPLogisticRegression(math.inf, penalty="l2", alpha=0.01, **facts).fit(small_table.X, small_table.signs)
    built = DPLogisticRegression(math.inf, penalty=L2(0.01), **facts).fit(small_table.X, small_table.signs)
    np.testing.assert_array_equal(weights(named), weights(built))
