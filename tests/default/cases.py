"""Recipes for tests: each in few steps, and together all that a recipe may ask."""

from discreet import Budget
from discreet.accounting.pricing import price_plan
from discreet.default import Recipe, Shares
from discreet.penalties import NoPenalty
from discreet.testing import seeded
from tests.replaying import window
from tests.solvers.whitened.test_price import problem

RECIPES = {
    "clipped": Recipe(n_steps=3),
    "weighted": Recipe(n_steps=3, n_travel=2, n_newton=3),
    "travel": Recipe(n_steps=2, n_travel=3),
    "newton": Recipe(n_steps=2, n_newton=3, shares=Shares(moment=0.1, newton=0.4)),
    "moments": Recipe(n_steps=3, target_looks=0, shares=Shares(calibration=0.0)),
    "declared": Recipe("declared", n_steps=3),
    "diagonal": Recipe("diagonal", n_steps=3),
    "two Hessians": Recipe(n_steps=2, n_newton=8),
    "sizes": Recipe(n_steps=2, n_travel=2, n_newton=3, shares=Shares(sizes=0.05)),
    "declared, weighted": Recipe("declared", n_steps=3, n_travel=2, n_newton=2, target_looks=4),
}


def run(solver, loss, relation="zero_out", epsilon=1.0, penalty=None, seed=1, **facts):
    """The curator, the plan, what was measured and the solution of one run on a small table."""
    data, penalty, budget = problem(loss, **facts), penalty or NoPenalty(), Budget(epsilon, 1e-6, relation)
    plan = solver.plan(data.domain(budget.neighbors, loss), loss, penalty)
    with seeded(seed), window() as seen:
        curator = data.open(price_plan(plan, budget), loss)
        solution = solver.solve(curator, penalty)
    return curator, plan, seen, solution


def share(release):
    """What a release has of mu^2."""
    return release.count / release.relative_noise**2
