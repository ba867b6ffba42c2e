"""epsilon=inf: the one-shot mechanisms return the solution that other solvers find, to 1e-8."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from discreet import Bounds, DPHuberRegressor, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.accounting import Release
from discreet.curator import Problem
from discreet.losses import Squared
from discreet.solvers import ExponentialMechanism, ObjectivePerturbation, OutputPerturbation
from tests.covering import covering
from tests.solvers.perturbation.cases import RELATIONS, opened

ALPHA, CLOSE = 0.01, 1e-8
SOLVERS = {
    "output": OutputPerturbation(radius=20.0),
    "objective": ObjectivePerturbation(radius=20.0),
    "exponential": ExponentialMechanism(radius=20.0),
}
NAMED = pytest.mark.parametrize("solver", SOLVERS)


def fitted(kind, table, y, solver, engine="dense", intercept=True, relation="replace_one", **settings):
    """All coefficients of a fit, the intercept's last: one row an output."""
    X = sparse.csr_array(table.X) if engine == "sparse" else table.X
    facts = {"classes": tuple(np.unique(y))} if kind in (DPLogisticRegression, DPLinearSVC) else {"target": (-1.0, 1.0)}
    if kind is DPPoissonRegressor:
        facts = {"target": (0.0, 20.0)}
    bounds = Bounds(1.0, n=len(y), **facts)
    model = kind(
        math.inf, 1e-6, bounds=bounds, alpha=ALPHA, solver=SOLVERS.get(solver, solver), neighbors=relation,
        fit_intercept=intercept, **settings,
    )  # fmt: skip
    model.fit(X, y)
    assert not model.certificate_.is_private
    coef = np.atleast_2d(model.coef_)
    return np.column_stack([coef, np.atleast_1d(model.intercept_)]) if intercept else coef


def with_ones(table, intercept):
    """The intercept is a constant column, penalized like any other."""
    return np.asarray(table.with_ones if intercept else table.X)


def root(gradient, p):
    """The zero of a reference gradient by scipy, polished."""
    start = optimize.root(gradient, np.zeros(p), method="lm", options={"xtol": 1e-15, "ftol": 1e-15}).x
    return optimize.root(gradient, start, method="hybr", options={"xtol": 1e-15}).x[None]


def logistic_reference(X, y):
    model = LogisticRegression(
        C=1 / (len(y) * ALPHA), fit_intercept=False, tol=1e-13, max_iter=500, solver="newton-cholesky"
    )
    return model.fit(X, y).coef_


@NAMED
@covering(("intercept", [True, False]), ("engine", ["dense", "sparse"]))
def test_binary_logistic(small_table, solver, engine, intercept):
    y = (small_table.signs > 0).astype(int)
    ours = fitted(DPLogisticRegression, small_table, y, solver, engine, intercept)
    assert ours == pytest.approx(logistic_reference(with_ones(small_table, intercept), y), abs=CLOSE)


@covering(("intercept", [True, False]), ("engine", ["dense", "sparse"]), ("solver", ["output", "objective"]))
def test_softmax(small_table, solver, engine, intercept):
    ours = fitted(DPLogisticRegression, small_table, small_table.labels, solver, engine, intercept)
    assert ours == pytest.approx(logistic_reference(with_ones(small_table, intercept), small_table.labels), abs=CLOSE)


@NAMED
@covering(("intercept", [True, False]), ("engine", ["dense", "sparse"]))
def test_ridge_in_a_generous_ball(small_table, solver, engine, intercept):
    ours = fitted(DPRidge, small_table, small_table.numbers, solver, engine, intercept)
    reference = Ridge(len(small_table.X) * ALPHA, fit_intercept=False, solver="cholesky")
    assert ours[0] == pytest.approx(
        reference.fit(with_ones(small_table, intercept), small_table.numbers).coef_, abs=CLOSE
    )


@NAMED
@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_smoothed_hinge(small_table, solver, engine):
    X, signs = with_ones(small_table, True), small_table.signs

    def gradient(w):
        slope = np.clip(1.5 - signs * (X @ w), 0, 1)  # width 1/2
        return -(X.T @ (signs * slope)) / len(X) + ALPHA * w

    ours = fitted(DPLinearSVC, small_table, (signs > 0).astype(int), solver, engine)
    assert ours == pytest.approx(root(gradient, 4), abs=CLOSE)


@NAMED
@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_huber(small_table, solver, engine):
    X, y = with_ones(small_table, True), small_table.numbers

    def gradient(w):
        return X.T @ np.clip(X @ w - y, -0.2, 0.2) / len(X) + ALPHA * w

    ours = fitted(DPHuberRegressor, small_table, y, solver, engine, width=0.2)
    assert ours == pytest.approx(root(gradient, 4), abs=CLOSE)


@NAMED
@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_poisson_within_its_limit(small_table, solver, engine):
    X, y = with_ones(small_table, True), small_table.counts
    reference = PoissonRegressor(
        alpha=ALPHA, fit_intercept=False, tol=1e-13, max_iter=500, solver="newton-cholesky"
    ).fit(X, y)
    assert np.abs(X @ reference.coef_).max() < 5.0
    ours = fitted(DPPoissonRegressor, small_table, y, solver, engine, limit=5.0)
    assert ours[0] == pytest.approx(reference.coef_, abs=CLOSE)


@covering(("solver", ["output", "objective", "exponential"]), ("relation", RELATIONS))
def test_by_name_and_under_every_relation(small_table, solver, relation):
    y = (small_table.signs > 0).astype(int)
    X = small_table.X
    model = DPLogisticRegression(
        math.inf, 1e-6, bounds=Bounds(1.0, classes=(0, 1), n=len(y)), alpha=ALPHA, solver=solver, neighbors=relation
    ).fit(X, y)
    assert np.append(model.coef_[0], model.intercept_) == pytest.approx(
        logistic_reference(with_ones(small_table, True), y)[0], abs=CLOSE
    )


def test_persons_count_once(small_table):
    """A person's loss is the mean over the person's rows: scikit-learn's sample weights of one over their number."""
    y = (small_table.signs > 0).astype(int)
    groups = np.arange(len(y)) // 3
    groups[:30] = 0
    persons, place, count = np.unique(groups, return_inverse=True, return_counts=True)
    model = DPLogisticRegression(
        math.inf, 1e-6, bounds=Bounds(1.0, classes=(0, 1)), alpha=ALPHA, solver=OutputPerturbation()
    ).fit(small_table.X, y, groups=groups)
    reference = LogisticRegression(
        C=1 / (len(persons) * ALPHA), fit_intercept=False, tol=1e-13, max_iter=500, solver="newton-cholesky"
    ).fit(small_table.with_ones, y, sample_weight=1 / count[place])
    assert np.append(model.coef_[0], model.intercept_) == pytest.approx(reference.coef_[0], abs=CLOSE)


def test_gradient_steps_are_gradient_steps(small_table):
    y = (small_table.signs > 0).astype(int)
    solver = OutputPerturbation(n_steps=7, step_size=0.5, regularization=None)
    ours = fitted(DPLogisticRegression, small_table, y, solver)
    X, signs, w = with_ones(small_table, True), small_table.signs, np.zeros(4)
    for _ in range(7):
        w -= 0.5 * (-(X.T @ (signs / (1 + np.exp(signs * (X @ w))))) / len(y) + ALPHA * w)
    assert ours[0] == pytest.approx(w, abs=1e-12)


@pytest.mark.parametrize("sampler", ["gaussian", "rejection"])
def test_shrunk_rows_are_shrunk_in_every_sampler(sampler):
    """Rows of norm 1 shrunk to 0.1: the minimizer of sum (0.1 w - 1)^2 / 2 + (lambda/2) w^2 with lambda = 0.2."""
    curator = opened(np.ones((20, 1)), np.ones(20), Squared(), [Release("sample_minimizer", 1)])
    point = curator.sample_minimizer(Problem(0.01, 20, row_norm=0.1, radius=50.0), sampler=sampler)
    assert point[0] == pytest.approx(20 * 0.1 / (20 * 0.01 + 0.2), abs=1e-6)
