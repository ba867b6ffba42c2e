"""Without noise a recipe reaches the optimum that others find, as far as 16-bit images of records allow.

Reached: 1e-4 of the largest coefficient (the recoded grid has 2^-9 to 2^-14 of a feature's scale, and errors average
out); objectives agree to 1e-8.
"""

import math

import numpy as np

from discreet import DPLinearRegression, DPLogisticRegression
from discreet.default import Recipe

LIMIT = Recipe(n_steps=12, n_travel=100, n_newton=20, weight_radius=1e3, slope_limit=1e3)
"""Steps until nothing moves; no row and no slope counts less."""


def classifier(cls, X, y, classes, solver=LIMIT, alpha=0.0, **facts):
    facts = {"bounds": 1.0, "classes": classes, "penalty": "l2" if alpha else None, "alpha": alpha, **facts}
    return cls(math.inf, solver=solver, **facts).fit(X, y)


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
