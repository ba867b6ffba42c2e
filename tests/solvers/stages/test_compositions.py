"""Stages around any iterative solver: they fit, cost the whole budget, replay on neighbors, and reach the optimum."""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from discreet import Budget, DPLogisticRegression, DPRidge
from discreet.accounting.pricing import price_plan
from discreet.errors import PlanViolation
from discreet.losses import Logistic, Squared
from discreet.penalties import NoPenalty
from discreet.solvers import (
    CoordinateDescent,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Preconditioned,
    StochasticGradientDescent,
    VarianceReducedDescent,
)
from tests.covering import covering
from tests.solvers.whitened.test_price import problem

STAGES = {
    "whitened": partial(Preconditioned, coordinates="full"),
    "standardized": partial(Preconditioned, coordinates="diagonal"),
    "declared": partial(Preconditioned, coordinates="declared"),
}


# --------------------------------------------------------------------------------------------------- prices


ONE_SHOT = {
    "output": OutputPerturbation(regularization=0.2, clip=0.5, row_norm=1.0),
    "objective": ObjectivePerturbation(regularization=0.2, clip=0.5, row_norm=1.0),
}


@pytest.mark.parametrize(
    ("loss", "other"),
    [(Logistic(), {"regularization": 0.1}), (Logistic(), {"clip": 0.25}), (Squared(), {"regularization": 0.1})],
    ids=["logistic-penalty", "logistic-clip", "squared-penalty"],
)
def test_the_plan_covers_what_is_minimized_on_recoded_rows(loss, other):
    """The price is fixed before rows are recoded: a weaker penalty or another clip than planned is refused.

    Losses other than the logistic one are held to the curvature alone.
    """
    planned, domain = (
        Preconditioned(ONE_SHOT["objective"], "diagonal"),
        problem(loss).domain(Budget(1.0).neighbors, loss),
    )
    plan = planned.plan(domain, loss, NoPenalty())
    solver = Preconditioned(replace(ONE_SHOT["objective"], **other), "diagonal")
    curator = problem(loss).open(price_plan(plan, Budget(1.0, 1e-6)), loss)
    with pytest.raises(PlanViolation, match="priced for another"):
        solver.solve(curator, NoPenalty())


# --------------------------------------------------------------------------------------- the limit without noise

LIMIT = {
    "gd": GradientDescent(n_steps=2000, momentum=0.9),
    "sgd": StochasticGradientDescent(n_steps=2000, sampling_probability=1.0, average="last", momentum=0.9),
    "svrg": VarianceReducedDescent(n_epochs=300, n_inner=10),
    "cd": CoordinateDescent(n_inner=8000, schedule="cyclic", average="last"),
    "gcd": GreedyCoordinateDescent(n_steps=1500),
}
LIMIT_SHOT = {name: replace(solver, regularization=1e-7, clip=1e3, row_norm=1e3) for name, solver in ONE_SHOT.items()}


@covering(
    ("name", ["logistic", "ridge"]),
    (
        ("inner", "around"),
        [*itertools.product(LIMIT, ("whitened", "standardized")), *((inner, "standardized") for inner in LIMIT_SHOT)],
    ),
)
def test_without_noise_a_composition_reaches_the_optimum(small_table, inner, around, name):
    more = {"floor": 1e-9} if around == "whitened" else {}
    facts = {"bounds": 1.0, "epsilon": math.inf, "delta": 1e-6, "neighbors": "zero_out"}
    if name == "logistic":
        made, y, facts = DPLogisticRegression, small_table.signs, {**facts, "classes": (-1, 1), "penalty": None}
    else:
        made, y, facts = DPRidge, small_table.numbers, {**facts, "target": (-1.0, 1.0), "alpha": 0.0}
    best = made(solver="auto", **facts).fit(small_table.X, y)
    model = made(solver=STAGES[around]((LIMIT | LIMIT_SHOT)[inner], **more), **facts).fit(small_table.X, y)
    found, expected = (np.append(np.ravel(m.coef_), m.intercept_) for m in (model, best))
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())
