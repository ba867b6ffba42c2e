"""epsilon=inf: the one-shot mechanisms return the solution that other solvers find, to 1e-8."""

import math

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor
from discreet.accounting import Release
from discreet.curator import Problem
from discreet.losses import Squared
from discreet.solvers import ExponentialMechanism, ObjectivePerturbation, OutputPerturbation
from tests.solvers.perturbation.cases import opened

ALPHA, CLOSE = 0.01, 1e-8
SOLVERS = {
    "output": OutputPerturbation(radius=20.0),
    "objective": ObjectivePerturbation(radius=20.0),
    "exponential": ExponentialMechanism(radius=20.0),
}


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
