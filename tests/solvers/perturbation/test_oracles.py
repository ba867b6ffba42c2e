"""Known numbers of output perturbation and of the regularized exponential mechanism, through the public classes."""

import math

import numpy as np
import pytest

from discreet import Bounds, Budget, DPRegressor
from discreet.accounting import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData, Problem
from discreet.curator.lattice.noise import Draws
from discreet.curator.queries.sampling import inverse_temperature
from discreet.errors import Unsupported
from discreet.losses import Huber, Logistic
from discreet.penalties import ElasticNet
from discreet.solvers import ExponentialMechanism, OutputPerturbation
from tests.replaying import window

# n = 1000 records of norm at most 1 (so L = 1), ten coefficients, mu = 0.01
DATA = PrivateData(np.zeros((1000, 10)), np.ones(1000), Bounds(1.0, row_norm=1.0, classes=(-1, 1)), fit_intercept=False)
PROBLEM = Problem(0.01, 1000)
PLAN = Plan([Release("noisy_minimizer", 1)])
CLOSE = 5e-6  # a few of the 2^22 steps of the lattice are for rounding


def release(budget):
    with window() as seen:
        DATA.open(price_plan(PLAN, budget), Logistic()).noisy_minimizer(PROBLEM)
    return seen[0].unit


def test_the_sensitivity_and_the_gaussian_scale():
    for relation, sensitivity, sigma in (("replace_one", 0.2, 0.74612633), ("zero_out", 0.1, 0.373063165)):
        unit = release(Budget(1.0, 1e-5, relation))
        assert unit.bound * unit.step == pytest.approx(sensitivity, rel=CLOSE)
        assert 2.0**unit.m * unit.step == pytest.approx(sigma, rel=CLOSE)
        assert 2.0**unit.m * unit.step >= sigma * (1 - 1e-9)


def test_the_pure_radius(monkeypatch):
    asked, honest = [], Draws.gamma_vector
    monkeypatch.setattr(
        Draws, "gamma_vector", lambda self, p, scale: asked.append((p, scale)) or honest(self, p, scale)
    )
    unit = release(Budget(1.0, 0.0, "replace_one"))
    p, scale = asked[0][0], asked[0][1] * unit.step
    assert p * scale == pytest.approx(2.0, rel=CLOSE)
    assert p * (p + 1) * scale**2 == pytest.approx(4.4, rel=2 * CLOSE)


def domain(relation="replace_one"):
    return DATA.domain(Budget(1.0, neighbors=relation).neighbors, Logistic())


def test_the_lectures_bound_and_what_beats_it():
    budget = Budget(1.0, 1e-5)
    lectures = 3 * math.sqrt(10 * math.log(1.25 / 1e-5)) / (1.0 * 0.01 * 1000)
    assert lectures == pytest.approx(3.249994, rel=1e-6)
    solver = OutputPerturbation(regularization=0.01)
    ours = solver.bound(domain(), Logistic(), budget, radius=1e-9).upper
    assert ours <= math.sqrt(10) * 0.74612633 * (1 + 1e-6) < lectures  # L sqrt(p) sigma, before smoothness helps
    assert ours == pytest.approx(0.5 * 0.26 * 10 * 0.74612633**2, rel=1e-5)  # (beta + mu)/2 p sigma^2


def test_the_lectures_regularizer():
    made = OutputPerturbation.lecture(domain(), Logistic(), radius=1.0, budget=Budget(1.0, 1e-5))
    assert made.regularization == pytest.approx(math.sqrt(6 * math.sqrt(10 * math.log(125_000)) / 1000), rel=1e-9)
    best = OutputPerturbation.for_diameter(domain(), Logistic(), radius=1.0, budget=Budget(1.0, 1e-5))
    bounds = [s.bound(domain(), Logistic(), Budget(1.0, 1e-5), radius=1.0).upper for s in (best, made)]
    assert bounds[0] <= bounds[1]


def test_the_regularized_exponential_mechanism():
    budget = Budget(1.0, 1e-6)
    made = ExponentialMechanism.for_diameter(domain(), Logistic(), radius=1.0, budget=budget)
    assert made.regularization == pytest.approx(0.03778668, rel=1e-6)
    multiplier = 1 / 0.2367043807
    k = 1000 * inverse_temperature(multiplier, 2 * 1.0, Problem(made.regularization, 1000))  # of the mean
    assert k == pytest.approx(529.2871, rel=1e-6)
    assert 10 / k + made.regularization / 2 == pytest.approx(0.03778668, rel=1e-6)


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
