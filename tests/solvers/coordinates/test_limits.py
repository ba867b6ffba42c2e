"""Without noise both coordinate methods reach scikit-learn's optimum; greedy iterates stay sparse."""

import math

import numpy as np

from discreet import Budget
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData
from discreet.losses import Squared
from discreet.penalties import L1, L2
from discreet.solvers import Geometry, GreedyCoordinateDescent
from tests.covering import covering
from tests.solvers.coordinates.tables import bounds_for, drawn


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
