"""Without noise every registered solver reaches the optimum of every loss that it serves.

The optimum is that of ``benchmarks/measures/objectives.py``, which is numpy's and scipy's alone and is compared with
scikit-learn there. Tables lie on the grid of training, so that rounding is not the question. Penalties that only
objects name are in ``tests/limits``.
"""

import math

import numpy as np
import pytest
from scipy import sparse

from discreet import DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.penalties import L2, ElasticNet
from discreet.solvers import ExponentialMechanism, ObjectivePerturbation, OutputPerturbation
from tests.limits.cells import ESTIMATORS, make
from tests.registry import SOLVERS

ROWS = 400
GAP = 1e-6
BALL = {"radius": 50.0}
STEPS = (
    *("logistic, L2 .1", "logistic, L1", "softmax, L2 .1", "svm, L2 .1", "ridge .1", "lasso", "huber"),
    "poisson, L2 .1",
)
SMOOTH = tuple(name for name in STEPS if name not in ("logistic, L1", "lasso"))
ONE_OUTPUT = tuple(name for name in STEPS if not name.startswith("softmax"))
WITHOUT_NOISE = {
    "gd": ("gd", STEPS, GAP),
    "recipe": ("recipe", STEPS, GAP),
    "cd": ("cd", ONE_OUTPUT, GAP),
    "gcd": ("gcd", ONE_OUTPUT, GAP),
    "output": (OutputPerturbation(**BALL), SMOOTH, 1e-9),
    "objective": (ObjectivePerturbation(**BALL), SMOOTH, 1e-9),
    "exponential": (ExponentialMechanism(**BALL), tuple(name for name in SMOOTH if name in ONE_OUTPUT), 1e-9),
    "sgd": ("sgd", STEPS, 0.05),  # samples are noise that stays
    "svrg": ("svrg", STEPS, 0.05),
    "agd": ("agd", SMOOTH, 0.05),  # a grid of step sizes
}
"""Solver -> how it is named or set, what it serves, and how near it comes."""
SHORT_STEPS = {("cd", "poisson, L2 .1"): 1e-5, ("gcd", "poisson, L2 .1"): 1e-2}
"""The bound on the curvature of counts is far above it, so that the default's number of steps ends early."""


def test_every_solver_is_here():
    assert set(WITHOUT_NOISE) == set(SOLVERS)


def every_pair():
    """Yield each solver with all that it serves; ``make test`` runs one of them for each solver."""
    for k, (solver, (_, names, _)) in enumerate(WITHOUT_NOISE.items()):
        for i, name in enumerate(names):
            yield pytest.param(solver, name, marks=() if i == k % len(names) else pytest.mark.thorough)


@pytest.mark.whole
@pytest.mark.parametrize(("solver", "name"), list(every_pair()))
def test_the_optimum_is_reached(solver, name):
    given, _, gap = WITHOUT_NOISE[solver]
    cell = make(name, "lognormal", n=ROWS)
    X = sparse.csr_array(cell.X) if name.startswith("ridge") and solver != "recipe" else cell.X
    model = ESTIMATORS[name].kind(math.inf, 1e-6, solver=given, **cell.settings).fit(X, cell.y)
    assert not model.certificate_.is_private
    assert -1e-9 < cell.gap(model) < SHORT_STEPS.get((solver, name), gap)


def test_persons_weigh_one_each(small_table):
    """A person's loss is the mean over that person's rows, so a row of k weighs 1/k."""
    A, y = small_table.with_ones, small_table.numbers
    persons = np.minimum(np.arange(len(y)) // 4, 20)  # twenty persons of four rows, one of many
    share = 1 / np.bincount(persons)[persons]
    n = persons.max() + 1
    best = np.linalg.solve((A * share[:, None]).T @ A / n + 1e-3 * np.eye(4), A.T @ (share * y) / n)
    model = DPRidge(math.inf, bounds=1.0, target=(-1, 1), alpha=1e-3).fit(small_table.X, y, groups=persons)
    assert np.append(model.coef_, model.intercept_) == pytest.approx(best, abs=1e-6)


def test_no_clip_bites():
    """Means beyond the largest declared count, which a clip made for counts would cut off."""
    x, y = np.repeat([0.5, 1.0], [95, 5])[:, None], np.repeat([8.0, 0.0], [95, 5])
    model = DPPoissonRegressor(math.inf, bounds=1.0, target=(0, 8), fit_intercept=False).fit(x, y)
    (slope,) = model.coef_
    assert math.exp(slope) > 8
    assert np.mean(x[:, 0] * (np.exp(slope * x[:, 0]) - y)) + 1e-5 * slope == pytest.approx(0, abs=5e-3)


def test_a_penalty_by_name_is_that_object(small_table):
    for name, built in (("l2", L2(0.02)), ("elasticnet", ElasticNet(0.01, 0.01))):
        fits = [
            DPLogisticRegression(math.inf, bounds=1.0, classes=(-1, 1), penalty=penalty, solver="gd", **alpha)
            .fit(small_table.X, small_table.signs)
            .coef_
            for penalty, alpha in ((name, {"alpha": 0.02}), (built, {}))
        ]
        assert (fits[0] == fits[1]).all()
