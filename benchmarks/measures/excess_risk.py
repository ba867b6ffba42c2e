"""Relative excess risk of one private fit of a linear problem."""

import math

from benchmarks.methods.setting import Setting
from benchmarks.methods.tuned import Method
from benchmarks.problems.linear import Problem
from benchmarks.seeded import SeededWords
from discreet.accounting.pricing import price_plan
from discreet.budget import Budget
from discreet.curator import PrivateData, use_entropy
from discreet.losses import Squared

EPSILON = 1.0


def excess_risk(given: Problem, method: Method, setting: Setting, seed: int, epsilon: float = EPSILON) -> float:
    """(F - F*) / F* of one private fit, delta = 1/n^2, replace_one."""
    budget, loss = Budget(epsilon, 1.0 / len(given.y) ** 2), Squared()
    data = PrivateData(given.X, given.y, given.bounds.with_facts(scale=method.scale), fit_intercept=False, ledger=False)
    solver = method.solver(given, setting)
    plan = solver.plan(data.domain(budget.neighbors, loss), loss, given.penalty)
    with use_entropy(SeededWords(seed)):
        solution = solver.solve(data.open(price_plan(plan, budget), loss), given.penalty)
    excess = given.excess(solution.coefficients * (given.feature_unit / data.scaling.scale))
    return excess if math.isfinite(excess) else math.inf
