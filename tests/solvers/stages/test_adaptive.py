"""A stage around DP-AGD: its releases and the inner answers share one zCDP filter."""

from functools import partial

import numpy as np
import pytest

from discreet import Budget
from discreet.accounting import AdaptivePlan
from discreet.accounting.pricing import price_plan
from discreet.accounting.rdp import zcdp_of_budget
from discreet.losses import Logistic, Squared
from discreet.penalties import NoPenalty
from discreet.solvers import AdaptiveDescent, Preconditioned
from discreet.testing import seeded
from tests.replaying import window
from tests.solvers.whitened.test_price import problem

STAGES = {
    "whitened": partial(Preconditioned, coordinates="full"),
    "standardized": partial(Preconditioned, coordinates="diagonal"),
}
LOSSES = {"logistic": Logistic(), "squared": Squared()}
OWN = {"noisy_mean": 0.04, "noisy_mean_squares": 0.08, "noisy_second_moment": 0.2, "noisy_target_moments": 0.05}
EACH = pytest.mark.parametrize("around", STAGES)


def run(solver, loss, epsilon=1.0, relation="zero_out", penalty=None):
    data, penalty, budget = problem(loss), penalty or NoPenalty(), Budget(epsilon, 1e-6, relation)
    plan = solver.plan(data.domain(budget.neighbors, loss), loss, penalty)
    with seeded(1), window() as seen:
        curator = data.open(price_plan(plan, budget), loss)
        solution = solver.solve(curator, penalty)
    return curator, seen, solution


@EACH
@pytest.mark.parametrize("name", LOSSES)
def test_a_stage_is_charged_to_the_filter_by_its_shares(around, name):
    curator, _, solution = run(STAGES[around](AdaptiveDescent(n_rounds=5)), LOSSES[name])
    assert isinstance(curator.plan, AdaptivePlan)
    total, found = zcdp_of_budget(1.0, 1e-6), curator._session.filter
    charged = {line.query: line.rho for line in found.trace if line.query in OWN}
    assert charged
    for query, rho in charged.items():
        assert rho == pytest.approx(OWN[query] * total, rel=1e-12)
    assert found.spent <= found.total
    assert float(found.spent) > 0.9 * total
    assert np.isfinite(solution.coefficients).all()
