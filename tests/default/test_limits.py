"""Without noise a recipe reaches the optimum that others find, as far as 16-bit images of records allow.

Reached: 1e-4 of the largest coefficient (the recoded grid has 2^-9 to 2^-14 of a feature's scale, and errors average
out); objectives agree to 1e-8.
"""

import math

import numpy as np
from scipy import sparse

from discreet import DPLinearRegression, DPLogisticRegression
from discreet.default import Recipe
from tests.covering import covering
from tests.limits.test_optimum import logistic, weights
from tests.solvers.whitened.cases import descent

NEAR = 2e-4
LIMIT = Recipe(n_steps=12, n_travel=100, n_newton=20, weight_radius=1e3, slope_limit=1e3)
"""Steps until nothing moves; no row and no slope counts less."""


def apart(found, best):
    return np.abs(found - best).max() / np.abs(best).max()


def coefficients(model, intercept):
    return weights(model) if intercept else np.ravel(model.coef_)


def classifier(cls, X, y, classes, solver=LIMIT, alpha=0.0, **facts):
    facts = {"bounds": 1.0, "classes": classes, "penalty": "l2" if alpha else None, "alpha": alpha, **facts}
    return cls(math.inf, solver=solver, **facts).fit(X, y)


@covering(
    (
        ("wrap", "intercept", "near"),
        [(sparse.csr_array, True, 1e-8), (np.asarray, False, 1e-8), (np.asarray, True, 1e-5)],
    ),
    ("shared", [0.0, 0.5]),
)
def test_the_diagonal_form_converges(wrap, intercept, near, shared):
    """Features with a common part have one direction with a curvature p times as large as the others'.

    Dense ones are centered, and the intercept is penalized at the center: another problem, by very little.
    """
    rng = np.random.default_rng(0)
    X = np.clip(shared * rng.uniform(-1, 1, (400, 1)) + (1 - shared) * rng.uniform(-1, 1, (400, 20)), -1, 1)
    X = np.rint(X * 2**14) / 2**14
    y = np.where(X @ rng.normal(size=20) + 0.5 * rng.normal(size=400) > 0, 1, -1)
    solver = descent("diagonal", n_steps=2000, momentum=0.9)
    model = classifier(DPLogisticRegression, wrap(X), y, (-1, 1), solver, alpha=1e-2, fit_intercept=intercept)
    objective = logistic(np.hstack([X, np.ones((400, 1))]) if intercept else X, y, 1e-2)
    assert objective.value(coefficients(model, intercept)) - objective.value(objective.optimum(20 + intercept)) < near


def test_the_limit_survives_columns_that_say_the_same(table):
    """Collinear and constant columns: the second moment is singular."""
    X = np.hstack([table.X, table.X[:, :1], np.full((len(table.X), 1), 0.5)])
    model = classifier(DPLogisticRegression, X, table.signs, (-1, 1))
    best = classifier(DPLogisticRegression, table.X, table.signs, (-1, 1))
    np.testing.assert_allclose(model.decision_function(X), best.decision_function(table.X), atol=0.05)


def test_the_limit_of_least_squares_survives_columns_that_say_the_same(table):
    X = np.hstack([table.X, table.X[:, :1], np.full((len(table.X), 1), 0.5)])
    facts = {"bounds": 1.0, "target": (-1, 1), "solver": LIMIT}
    model, best = DPLinearRegression(math.inf, **facts), DPLinearRegression(math.inf, **facts)
    model.fit(X, table.numbers), best.fit(table.X, table.numbers)
    np.testing.assert_allclose(model.predict(X), best.predict(table.X), atol=0.02)


def test_persons_weigh_one_each(table):
    A, y = table.with_ones, table.numbers
    persons = np.minimum(np.arange(len(y)) // 3, 60)  # sixty persons of three rows, one of many
    share = 1 / np.bincount(persons)[persons]
    best = np.linalg.solve((A * share[:, None]).T @ A, A.T @ (share * y))
    model = DPLinearRegression(math.inf, bounds=1.0, target=(-1, 1), solver=LIMIT)
    assert apart(weights(model.fit(table.X, y, groups=persons)), best) < 0.01
