"""What the tests of adaptive runs share: opened curators, a window on releases, the audit of what was charged."""

import math
from fractions import Fraction

import numpy as np

from discreet import Bounds, Budget
from discreet.accounting import AdaptivePlan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.curator.noise import SeededEntropy
from discreet.losses import Logistic

RELATIONS = ("replace_one", "zero_out", "add_remove")
GRADIENT = Release("noisy_gradient", 0)
CHOICE = Release("select_candidate", 0, mechanism="exponential")
NOISY_MAX = Release("select_candidate", 0, mechanism="noisy_max")


class CountingEntropy(SeededEntropy):
    """A seeded stream that says how often it was asked."""

    def __init__(self, seed):
        super().__init__(seed)
        self.asked = 0

    def words(self, count):
        self.asked += 1
        return super().words(count)


def small_table(n=8, p=2, seed=3):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, p)), rng.choice([-1, 1], n)


def opened(budget=None, queries=(GRADIENT, CHOICE), *, X=None, y=None, loss=None, groups=None, intercept=False):
    """A curator for an adaptive plan with these queries, any clip; features and numeric targets within +-1."""
    budget = Budget(1.0, 1e-6) if budget is None else budget
    loss = Logistic() if loss is None else loss
    if X is None:
        X, y = small_table()
    facts = {"classes": tuple(range(loss.n_outputs)) if loss.n_outputs > 1 else (-1, 1)}
    if loss.task != "classification":
        facts = {"target": (-1.0, 1.0)}
    data = PrivateData(X, y, Bounds(1.0, n=len(y) if groups is None else None, **facts), groups=groups,
                       fit_intercept=intercept)  # fmt: skip
    return data.open(price_plan(AdaptivePlan(queries), budget), loss)


def filter_of(curator):
    return curator._session.filter


def budget_left(curator):
    return filter_of(curator).left


def realized_rho(measurement, selection="exponential"):
    """What a release costs in zCDP by its lattice alone, exactly: from the noise, the bound and the relation."""
    ratio = Fraction(int(measurement.factor) * measurement.unit.bound, 1 << measurement.unit.m)
    return ratio**2 / (8 if measurement.norm == "range" and selection == "exponential" else 2)


def audit(curator, seen, selection="exponential", failed=()):
    """Every release was charged, before it was made, for at least what its lattice says; and all within the total.

    ``failed`` are the places in the trace of answers that were paid for and could not be given.
    """
    trace = filter_of(curator).trace
    charges = iter([charge for place, charge in enumerate(trace) if charge.answered and place not in failed])
    for measurement in seen:
        charge = next(charges, None)
        paid = charge is not None and charge.query == measurement.query
        assert paid, f"{measurement.query} was answered and not charged"
        assert realized_rho(measurement, selection) <= Fraction(charge.rho), f"{measurement.query} has too little noise"
    assert sum(realized_rho(m, selection) for m in seen) <= filter_of(curator).total, (
        "the run spent more than its total"
    )


def ask_gradient(curator, rho, clip=1.0, w=None):
    return curator.noisy_gradient(np.zeros(curator.domain.shape) if w is None else w, clip=clip, rho=rho)


def ask_choice(curator, rho, clip=1.0, count=3):
    steps = np.linspace(0.0, 1.0, count)
    points = np.stack([np.full(curator.domain.shape, step) for step in steps])
    return curator.select_candidate(points, loss_bound=clip, rho=rho)


def large_budget(relation="replace_one"):
    """Enough for thousands of answers; private all the same."""
    return Budget(5000.0, 1e-6, relation)


def log_softmax(scores):
    top = max(scores)
    shifted = [float(s - top) for s in scores]
    total = math.log(math.fsum(math.exp(s) for s in shifted))
    return np.array([s - total for s in shifted])
