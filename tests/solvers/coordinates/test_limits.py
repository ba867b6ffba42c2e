"""Without noise both coordinate methods reach scikit-learn's optimum; greedy iterates stay sparse."""

import math

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet as SkElasticNet
from sklearn.linear_model import Lasso, LogisticRegression

from discreet import Bounds, Budget, DPElasticNet, DPLasso, DPLogisticRegression
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData
from discreet.losses import Logistic, Squared
from discreet.penalties import L1, L2
from discreet.solvers import CoordinateDescent, Geometry, GreedyCoordinateDescent
from tests.covering import covering
from tests.solvers.coordinates.tables import bounds_for, csr, drawn

GAP = 1e-6


def regression(seed=0, n=300, p=6):
    rng = np.random.default_rng(seed)
    X = np.rint(rng.uniform(-1, 1, (n, p)) * 2**14) / 2**14 * (rng.random((n, p)) > 0.3)
    y = np.clip(0.6 * X[:, 0] - 0.4 * X[:, 3] + 0.1 * rng.normal(size=n), -1, 1)
    return X, y


def close_to_optimum(value, best):
    assert value - best <= GAP * abs(best)
    assert best - value <= 1e-5 * abs(best)  # nobody beats the optimum: the objectives are the same


@pytest.mark.few(1)
@covering(
    (("model", "alpha"), [("lasso", 0.02), ("net", 0.03)]),
    (("solver", "sparse"), [("cd", False), ("cd", True), ("gcd", False)]),
)
def test_squared_loss(model, alpha, sparse, solver):
    X, y = regression()
    given = {"bounds": [(-1, 1)] * 6, "target": (-1, 1), "alpha": alpha, "solver": solver, "fit_intercept": False}
    ratio = 1.0 if model == "lasso" else 0.4
    ours = DPLasso(math.inf, **given) if model == "lasso" else DPElasticNet(math.inf, l1_ratio=0.4, **given)
    ours.fit(csr(X) if sparse else X, y)
    options = {"alpha": alpha, "fit_intercept": False, "tol": 1e-12, "max_iter": 100_000}
    theirs = (Lasso(**options) if model == "lasso" else SkElasticNet(l1_ratio=0.4, **options)).fit(X, y)

    def objective(w):
        penalty = ratio * np.abs(w).sum() + (1 - ratio) * (w @ w) / 2
        return 0.5 * np.mean((X @ w - y) ** 2) + alpha * penalty

    close_to_optimum(objective(ours.coef_), objective(theirs.coef_))
    assert ((ours.coef_ == 0) == (theirs.coef_ == 0)).all()


@pytest.mark.few(1)
@covering(("penalty", ["l1", "l2"]), ("solver", ["cd", "gcd"]))
def test_logistic_loss(penalty, solver):
    X, y = regression()
    labels = (y > 0.05).astype(int)
    alpha = 0.02
    ours = DPLogisticRegression(
        math.inf, bounds=[(-1, 1)] * 6, classes=(0, 1), penalty=penalty, alpha=alpha, solver=solver, fit_intercept=False
    ).fit(X, labels)
    options = {"C": 1 / (alpha * len(y)), "fit_intercept": False, "tol": 1e-12, "max_iter": 100_000}
    kind = {"l1_ratio": 1.0, "solver": "saga"} if penalty == "l1" else {"solver": "lbfgs"}
    try:
        theirs = LogisticRegression(**kind, **options).fit(X, labels)
    except (TypeError, ValueError):  # older versions name the penalty
        theirs = LogisticRegression(penalty=penalty, solver=kind["solver"], **options).fit(X, labels)

    def objective(w):
        size = np.abs(w).sum() if penalty == "l1" else (w @ w) / 2
        return np.mean(np.logaddexp(0, -(2 * labels - 1) * (X @ w))) + alpha * size

    close_to_optimum(objective(np.ravel(ours.coef_)), objective(np.ravel(theirs.coef_)))


@covering(
    (("steps", "batch"), [(1, 1), (4, 1), (2, 3)]),
    (("rule", "penalty"), [("gs", L2(0.1)), ("gs-s", L1(0.01)), ("gs-r", L1(0.01)), ("gs-q", L1(0.01))]),
    ("epsilon", [math.inf, 0.5]),
)
def test_greedy_iterates_are_sparse(steps, batch, rule, penalty, epsilon):
    loss = Squared()
    X, y = drawn(loss, 60, 30)
    data = PrivateData(X, y, bounds_for(loss, 30), fit_intercept=False)
    budget = Budget(epsilon, 1e-5)
    solver = GreedyCoordinateDescent(n_steps=steps, block_size=batch, rule=rule, geometry=Geometry(clip=1.0))
    curator = data.open(price_plan(solver.plan(data.domain(budget.neighbors, loss), loss, penalty), budget), loss)
    assert np.count_nonzero(solver.solve(curator, penalty).coefficients) <= steps * batch


@pytest.mark.parametrize("solver", ["cd", "gcd"])
def test_private_lasso_has_exact_zeros(solver):
    X, y = regression()
    model = DPLasso(1.0, 1e-6, bounds=[(-1, 1)] * 6, target=(-1, 1), alpha=0.5, solver=solver).fit(X, y)
    assert (model.coef_ == 0.0).any()


@pytest.mark.few(2)
@covering(
    ("p", [4, 150]),
    ("solver", ["cd", "gcd"]),
    ("relation", ["replace_one", "add_remove"]),
    ("scale", ["feature", "global"]),
)
def test_defaults_run_for_every_scale_and_width(p, solver, relation, scale):
    X, y = drawn(Logistic(), 50, p)
    bounds = Bounds([(-1.0, 1.0)] * p, classes=(0, 1), scale=scale)
    model = DPLogisticRegression(1.0, 1e-5, bounds=bounds, solver=solver, neighbors=relation).fit(X, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    "solver", [CoordinateDescent(n_inner=6), GreedyCoordinateDescent(n_steps=3)], ids=["cd", "gcd"]
)
def test_configured_solvers_need_no_clip(solver):
    """As GradientDescent(n_steps=50) does, for every model."""
    X, y = regression()
    assert DPLasso(1.0, 1e-6, bounds=[(-1, 1)] * 6, target=(-1, 1), solver=solver).fit(X, y).coef_.shape == (6,)
