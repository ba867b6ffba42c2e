"""Where noise is negligible (epsilon = 1e6) an estimator with nothing set has the optimum of its objective.

At 4,000 rows such a budget moves a mean in whitened coordinates by about 1e-6 of a row's length, which costs less than
1e-8 of the objective. So a gap of 1e-6 is a bias (a clip, a shrunk row, steps that end early), not noise.
"""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq, minimize

from benchmarks.measures.objectives import Coordinates, Loss, Objective
from discreet import Bounds, DPClassifier, DPLogisticRegression, DPRegressor
from discreet.penalties import Box, GroupL2, L2Ball
from discreet.testing import seeded
from tests.limits.cells import COLUMNS, ESTIMATORS, RANGES, make

EPSILON = 1e6
GAP = 1e-6


def fitted(kind, X, y, epsilon=EPSILON, **settings):
    with seeded(1):
        return kind(epsilon, ledger=False, **settings).fit(X, y)


@pytest.mark.few(21)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("ranges", RANGES)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "origin"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_has_the_optimum(name, intercept, ranges, columns):
    cell = make(name, columns, ranges, intercept)
    assert abs(cell.gap(fitted(ESTIMATORS[name].kind, cell.X, cell.y, **cell.settings))) < GAP


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_oracle_is_what_estimators_reach_without_any_noise(name):
    """A control: the objective above is the one that is minimized, and no model is below its minimum."""
    cell = make(name, "few")
    assert abs(cell.gap(fitted(ESTIMATORS[name].kind, cell.X, cell.y, math.inf, **cell.settings))) < GAP


@pytest.mark.few(2)
@pytest.mark.parametrize("ranges", RANGES)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "origin"])
@pytest.mark.parametrize("name", ["logistic, L2 .1", "ridge .1", "huber, narrow", "elastic net", "poisson, L2 .1"])
def test_the_oracle_has_the_coordinates_of_training(name, intercept, ranges):
    cell = make(name, "few", ranges, intercept)
    assert abs(cell.gap(fitted(ESTIMATORS[name].kind, cell.X, cell.y, math.inf, **cell.settings))) < GAP


@pytest.mark.few(4)
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "facts",
    [{"neighbors": "zero_out"}, {"neighbors": "replace_one"}, {"neighbors": "add_remove", "delta": 1e-7}],
    ids=lambda facts: facts["neighbors"],
)
@pytest.mark.parametrize("name", ["logistic", "logistic, L1", "softmax", "svm", "ridge", "lasso", "huber", "poisson"])
def test_under_every_relation_and_in_every_container(name, facts, store):
    cell = make(name, "rare")
    kind = ESTIMATORS[name].kind
    assert abs(cell.gap(fitted(kind, store(cell.X), cell.y, **facts, **cell.settings))) < GAP


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["logistic", "softmax", "least squares", "poisson"])
def test_with_very_many_columns(name):
    cell = make_wide(name, 20_000, 100)
    assert abs(cell.gap(fitted(ESTIMATORS[name].kind, cell.X, cell.y, **cell.settings))) < GAP


def make_wide(name, n, p):
    """Return a table of independent columns."""
    rng = np.random.default_rng(p)
    return make(name, n=n, columns=np.rint(rng.uniform(-1, 1, (n, p)) * 2**14) / 2**14)


# ------------------------------------------------------------------------------- penalties that only objects name


def problem(loss, intercept, strength=0.0):
    """Return a table of five columns with its objective under an L2 penalty."""
    cell = make("logistic" if loss == "logistic" else "least squares", "lognormal", "fitting", intercept)
    objective = Objective(cell.objective.rows, cell.objective.targets, Loss(loss), l2=strength)
    return cell, objective


def with_penalty(loss, intercept, penalty):
    cell, objective = problem(loss, intercept)
    kind = DPClassifier if loss == "logistic" else DPRegressor
    model = fitted(kind, cell.X, cell.y, loss=loss, penalty=penalty, **cell.settings)
    return objective, cell.coordinates.weights(model)


@pytest.mark.few(2)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "origin"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_box(loss, intercept):
    end = 0.5 if loss == "logistic" else 0.05
    objective, w = with_penalty(loss, intercept, Box(-end, end))
    best = minimize(
        objective.value, np.zeros(len(w)), jac=objective.gradient, method="L-BFGS-B", bounds=[(-end, end)] * len(w),
        options={"ftol": 1e-16, "gtol": 1e-12},
    )  # fmt: skip
    assert np.isclose(np.abs(best.x), end).any()  # it binds
    assert np.abs(w).max() <= end * (1 + 1e-9)
    assert abs(objective.value(w) / best.fun - 1) < GAP


@pytest.mark.few(2)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "origin"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_ball(loss, intercept):
    """The best point within a ball is that of the L2 penalty under which it has the ball's radius."""
    radius = 0.5 if loss == "logistic" else 0.05
    objective, w = with_penalty(loss, intercept, L2Ball(radius))

    def beyond(log_strength):
        return np.linalg.norm(problem(loss, intercept, math.exp(log_strength))[1].minimizer) - radius

    best = problem(loss, intercept, math.exp(brentq(beyond, -15, 10, xtol=1e-12)))[1].minimizer
    assert np.linalg.norm(w) <= radius * (1 + 1e-9)
    assert abs(objective.value(w) / objective.value(best) - 1) < GAP


@pytest.mark.few(2)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "origin"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_groups(loss, intercept):
    """Proximal steps of numpy, with momentum that starts over where it leads uphill."""
    penalty = GroupL2(0.01, ((0, 1), (2, 3)))
    objective, w = with_penalty(loss, intercept, penalty)
    groups, weight = [[0, 1], [2, 3]], 0.01 * math.sqrt(2)

    def value(v):
        return objective.value(v) + weight * sum(np.linalg.norm(v[group]) for group in groups)

    step = 1 / np.linalg.eigvalsh(objective.hessian(np.zeros(len(w))))[-1]
    best = ahead = np.zeros(len(w))
    for count in range(20_000):
        moved = ahead - step * objective.gradient(ahead)
        for group in groups:
            moved[group] *= max(0.0, 1 - step * weight / max(np.linalg.norm(moved[group]), 1e-300))
        if np.abs(moved - best).max() < 1e-12 and count > 10:
            break
        uphill = (ahead - moved) @ (moved - best) > 0
        best, ahead = moved, moved if uphill else moved + 0.97 * (moved - best)
    assert abs(value(w) / value(best) - 1) < GAP


def test_a_row_norm_that_binds():
    """Rows longer than the declared norm are shrunk onto it, before training: the oracle sees them so."""
    cell = make("logistic", "lognormal")
    U = cell.objective.rows[:, :-1]
    U = U * np.minimum(1.0, 0.5 / np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-300))
    rows = np.column_stack([np.rint(U * 2**14) / 2**14, np.ones(len(U))])
    objective = Objective(rows, cell.objective.targets, Loss("logistic"), l2=1e-8)
    bounds = Bounds(1.0, classes=(0, 1), row_norm=0.5)
    model = fitted(DPLogisticRegression, cell.X, cell.y, bounds=bounds)
    place = Coordinates.of(bounds, U.shape[1], Loss("logistic"), True)
    assert abs(objective.value(place.weights(model)) / objective.least - 1) < 10 * GAP  # shrinking rounds by itself


@pytest.mark.few(21)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("ranges", RANGES)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "origin"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_without_privacy_it_is_the_optimum_to_rounding(name, intercept, ranges, columns):
    cell = make(name, columns, ranges, intercept)
    model = ESTIMATORS[name].kind(epsilon=math.inf, ledger=False, **cell.settings).fit(cell.X, cell.y)
    assert abs(cell.gap(model)) < 1e-8
