"""What a forecast calls proven holds for the run as configured, and is never worse than what is certain anyway."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet import Bounds, Budget, DPLogisticRegression
from discreet.losses import Logistic
from discreet.models.forecast import point_of, setting_of, theory_of
from discreet.penalties import L2, NoPenalty
from discreet.solvers import (
    CoordinateDescent,
    Geometry,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    StochasticGradientDescent,
)
from tests.covering import covering

ONE = {"epsilons": (), "n_grid": (), "seeds": 2}
DIAMETER, P, FITS = 2.0, 4, 12
FEATURES = Bounds(features=1.0, classes=(0, 1), scale="global")


def estimator(solver="auto", epsilon=1.0, delta=1e-6, penalty=None, neighbors="replace_one"):
    facts = {"bounds": FEATURES, "fit_intercept": False, "ledger": False, "neighbors": neighbors}
    return DPLogisticRegression(epsilon, delta, penalty=penalty or NoPenalty(), solver=solver, **facts)


def domain_of(n=2_000, neighbors="replace_one"):
    return point_of(setting_of(estimator(neighbors=neighbors), P), n, 1.0, 1e6).domain


def theory(solver, epsilon, delta, n, penalty=None, diameter=DIAMETER):
    """As a forecast has it: of the solver with all that the defaults filled in."""
    setting = setting_of(estimator(solver, epsilon, delta, penalty), P)
    point = point_of(setting, n, epsilon, 1e6)
    return theory_of(point.solver, point.domain, setting.loss, setting.penalty, point.budget, diameter, n)


def table(n, seed=0):
    """Rows at the corners of the box, and labels of a line that is no longer than the diameter."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (n, P))
    w = np.array([1.5, -1.0, 0.5, 0.0])
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ w))).astype(int)


def mean_loss(w, X, y):
    return np.logaddexp(0.0, -(2 * y - 1) * (X @ w)).mean()


def excess(solver, epsilon, delta, n, penalty=None, diameter=DIAMETER):
    """How far the released coefficients' loss is above the best within the ball: the mean, and its error."""
    X, y = table(n)
    best = minimize(mean_loss, np.zeros(P), (X, y)).x
    assert np.linalg.norm(best) <= diameter
    model = estimator(solver, epsilon, delta, penalty)
    found = [mean_loss(model.fit(X, y).coef_[0], X, y) - mean_loss(best, X, y) for _ in range(FITS)]
    return np.mean(found), np.std(found) / math.sqrt(FITS)


IDLE = {"clip": 100.0, "row_norm": 100.0}
"""So wide that no record is touched; left open, the estimators' defaults would clip."""
SOLVERS = {
    "output": OutputPerturbation(regularization=0.05, **IDLE),
    "output in a ball": OutputPerturbation(regularization=0.05, radius=3.0, row_norm=100.0),
    "objective": ObjectivePerturbation(regularization=0.02, **IDLE),
}


@pytest.mark.few(1)
@pytest.mark.statistical
@covering(("name", SOLVERS), (("epsilon", "delta", "n"), [(8.0, 1e-6, 2_000), (2.0, 1e-6, 8_000), (4.0, 0.0, 4_000)]))
@pytest.mark.parametrize("penalty", [NoPenalty(), L2(0.01)], ids=["no penalty", "l2"])
def test_runs_stay_below_what_is_called_proven(name, penalty, epsilon, delta, n):
    proven = theory(SOLVERS[name], epsilon, delta, n, penalty).bound
    assert proven is not None
    mean, error = excess(SOLVERS[name], epsilon, delta, n, penalty)
    assert mean + 5 * error < proven


STEPS = {
    "gd": GradientDescent(n_steps=400, clip=2.0, step_size=0.1, radius=DIAMETER, average="uniform"),
    "sgd": StochasticGradientDescent(
        n_steps=400, clip=2.0, step_size=0.1, radius=DIAMETER, average="uniform", sampling_probability=0.25
    ),
    "cd": CoordinateDescent(n_inner=1000, geometry=Geometry(coordinate_clips=(1.0,) * P)),
}


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("name", STEPS)
def test_steps_stay_below_what_is_called_proven(name):
    proven = theory(STEPS[name], 4.0, 1e-6, 8_000).bound
    assert proven is not None
    mean, error = excess(STEPS[name], 4.0, 1e-6, 8_000)
    assert mean + 5 * error < proven


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "solver",
    [
        *("auto", "gd", "sgd", "svrg", "cd", "gcd", "agd", "output", "objective"),
        OutputPerturbation(regularization=0.05),  # the defaults fill in a clip
        OutputPerturbation(regularization=0.05, clip=100.0, row_norm=0.5),
        OutputPerturbation(regularization=0.05, radius=0.1, **IDLE),
        OutputPerturbation(regularization=0.05, n_steps=5, **IDLE),
        ObjectivePerturbation(regularization=0.05, radius=50.0, **IDLE),
        GradientDescent(n_steps=10, clip=0.1),
    ],
    ids=str,
)
def test_no_sentence_is_made_for_runs_that_no_theorem_covers(solver):
    found = DPLogisticRegression(4.0, 1e-6, solver=solver).forecast(2_000, P, diameter=DIAMETER, **ONE)
    assert found.asked.risk_bound is None
    assert "No informative theoretical bound" in found.theory
    assert "at most" not in found.theory


@covering(
    ("solver", [*SOLVERS.values(), CoordinateDescent(), GreedyCoordinateDescent()]),
    ("n", [2, 100, 100_000]),
    ("epsilon", [1e-3, 0.1, 1.0, 100.0]),
)
def test_nothing_is_above_what_is_certain(solver, n, epsilon):
    found = theory_of(solver, domain_of(n), Logistic(), NoPenalty(), Budget(epsilon, 1e-6), DIAMETER, n)
    assert found.zeros <= math.log(2)
    assert found.order <= found.zeros
    assert found.bound is None or found.bound < found.zeros
    if isinstance(solver, (CoordinateDescent, GreedyCoordinateDescent)):
        own = solver.bound(domain_of(n), Logistic(), Budget(epsilon, 1e-6), radius=DIAMETER)
        assert own.lower <= own.trivial <= math.log(2)
