"""Known numbers of output perturbation and of the regularized exponential mechanism, through the public classes."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget, DPRegressor
from discreet.accounting import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData, Problem
from discreet.errors import Unsupported
from discreet.losses import Huber, Logistic
from discreet.penalties import ElasticNet
from discreet.solvers import OutputPerturbation
from tests.replaying import window

# n = 1000 records of norm at most 1 (so L = 1), ten coefficients, mu = 0.01
DATA = PrivateData(np.zeros((1000, 10)), np.ones(1000), Bounds(1.0, row_norm=1.0, classes=(-1, 1)), fit_intercept=False)
PROBLEM = Problem(0.01, 1000)
PLAN = Plan([Release("noisy_minimizer", 1)])


def release(budget):
    with window() as seen:
        DATA.open(price_plan(PLAN, budget), Logistic()).noisy_minimizer(PROBLEM)
    return seen[0].unit


def domain(relation="replace_one"):
    return DATA.domain(Budget(1.0, neighbors=relation).neighbors, Logistic())


def test_proximal_steps_end_at_the_elastic_nets_minimizer():
    """Without noise, and before it; Huber's loss of so large a width is the squared one."""
    rng, l1, l2 = np.random.default_rng(0), 0.05, 0.1
    X = rng.uniform(-1, 1, (400, 5))
    y = np.clip(X @ [0.5, -0.4, 0.0, 0.0, 0.02] + 0.1 * rng.normal(size=400), -2.0, 2.0)
    model = DPRegressor(
        epsilon=math.inf, loss=Huber(100.0), penalty=ElasticNet(l1, l2), fit_intercept=False, ledger=False,
        bounds=Bounds(1.0, target=(-1.0, 1.0)), solver=OutputPerturbation(n_steps=2000),
    )  # fmt: skip
    w = model.fit(X, np.clip(y, -1, 1)).coef_
    slopes = X.T @ (X @ w - np.clip(y, -1, 1)) / 400 + l2 * w
    assert (np.abs(w) > 1e-9).sum() == 2
    np.testing.assert_allclose(slopes[np.abs(w) > 1e-9], -l1 * np.sign(w[np.abs(w) > 1e-9]), atol=1e-6)
    assert (np.abs(slopes[np.abs(w) <= 1e-9]) <= l1 + 1e-9).all()


def test_corners_need_steps():
    with pytest.raises(Unsupported, match=r"n_steps"):
        OutputPerturbation(regularization=0.1).plan(domain(), Logistic(), ElasticNet(0.1, 0.1))
    assert OutputPerturbation(n_steps=3).plan(domain(), Logistic(), ElasticNet(0.1, 0.1)).releases
