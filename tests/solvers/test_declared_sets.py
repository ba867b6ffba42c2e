"""What is released lies in the set that was declared: a penalty's box or ball, a solver's radius."""

import numpy as np
import pytest

from discreet import Bounds, DPHuberRegressor, DPLogisticRegression, DPRidge
from discreet.default import Recipe
from discreet.errors import Unsupported
from discreet.penalties import Box, L2Ball
from discreet.solvers import (
    AdaptiveDescent,
    CoordinateDescent,
    ExponentialMechanism,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Preconditioned,
    StochasticGradientDescent,
    VarianceReducedDescent,
)
from discreet.testing import seeded
from tests.covering import covering

RADIUS = 0.05
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 3))
LABELS, NUMBERS = (X[:, 0] > 0).astype(int), X[:, 0]

PENALTIES = {
    "box": Box(-0.0301, 0.0503),
    "not negative": Box(0.0, 0.0503),
    "away from zero": Box(0.0113, 0.0503),
    "ball": L2Ball(RADIUS),
}
BY_PENALTY = {
    "gd": GradientDescent(n_steps=5),
    "gd, averaged": GradientDescent(n_steps=5, average="uniform"),
    "gd, momentum": GradientDescent(n_steps=5, momentum="nesterov"),
    "sgd": StochasticGradientDescent(n_steps=5, batch_size=20),
    "svrg": VarianceReducedDescent(n_epochs=2),
    "agd": AdaptiveDescent(),
    "cd": CoordinateDescent(n_outer=2),
    "cd, last": CoordinateDescent(average="last"),
    "cd, blocks": CoordinateDescent(block_size=2),
    "gcd": GreedyCoordinateDescent(n_steps=3),
    "recipe": Recipe(n_steps=4),
    "recipe, weighted": Recipe(n_steps=4, n_travel=2, n_newton=2),
    "recipe, declared": Recipe("declared", n_steps=4),
    "standardized, gd": Preconditioned(GradientDescent(n_steps=5), "diagonal"),
    "standardized, cd": Preconditioned(CoordinateDescent(n_inner=12), "diagonal"),
    "output": OutputPerturbation(regularization=0.1),
    "objective": ObjectivePerturbation(regularization=1.0),
    "exponential": ExponentialMechanism(regularization=1.0),
}
FITS = {name for name in BY_PENALTY if name.startswith(("gd", "sgd", "svrg"))}
BY_RADIUS = {
    "gd": GradientDescent(n_steps=5, radius=RADIUS),
    "sgd": StochasticGradientDescent(n_steps=5, batch_size=20, radius=RADIUS),
    "output": OutputPerturbation(regularization=0.1, radius=RADIUS),
    "output, steps": OutputPerturbation(n_steps=5, radius=RADIUS),
    "objective": ObjectivePerturbation(regularization=1.0, radius=RADIUS),
    "gaussian": ExponentialMechanism(regularization=1.0, radius=RADIUS),
    "rejection": ExponentialMechanism(regularization=1.0, radius=RADIUS, sampler="rejection"),
}


def coefficients(model):
    """In training coordinates, which are the user's here: every feature lies in (-1, 1)."""
    return np.append(np.ravel(model.coef_), model.intercept_)


def classified(solver, penalty="l2", epsilon=1.0, delta=1e-5, **settings):
    given = {"bounds": Bounds(1.0, classes=(0, 1)), "solver": solver, "penalty": penalty, **settings}
    return DPLogisticRegression(epsilon, delta, **given).fit(X, LABELS)


@covering(("name", BY_PENALTY), ("penalty", PENALTIES))
def test_every_solver_stays_in_a_penaltys_set_or_refuses_it(name, penalty):
    fits = name in FITS or name.startswith("recipe") or (name.startswith(("cd", "standardized")) and penalty != "ball")
    for seed in range(2):
        with seeded(seed):
            if fits:
                assert PENALTIES[penalty].value(coefficients(classified(BY_PENALTY[name], PENALTIES[penalty]))) == 0.0
            else:
                with pytest.raises(Unsupported):
                    classified(BY_PENALTY[name], PENALTIES[penalty])


@covering(("kind", [DPRidge, DPHuberRegressor]), ("name", BY_RADIUS), ("epsilon", [0.1, 10.0]))
def test_every_solver_stays_in_its_ball(kind, name, epsilon):
    for seed in range(2):
        with seeded(seed):
            model = kind(epsilon, 1e-5, bounds=Bounds(1.0, target=(-1, 1)), solver=BY_RADIUS[name])
            if name == "gaussian" and kind is not DPRidge:
                continue
            assert L2Ball(RADIUS).value(coefficients(model.fit(X, NUMBERS))) == 0.0


def test_one_coefficient_and_candidates_stay_in_the_ball():
    given = {"bounds": Bounds(1.0, classes=(0, 1)), "penalty": None, "fit_intercept": False}
    drawn = DPLogisticRegression(5.0, 0.0, solver=ExponentialMechanism(radius=RADIUS), **given).fit(X[:, :1], LABELS)
    assert abs(drawn.coef_[0, 0]) <= RADIUS
    far = ExponentialMechanism(candidates=[[0.0], [1.0]], radius=RADIUS)
    with pytest.raises(Unsupported, match="outside the ball"):
        DPLogisticRegression(5.0, 0.0, solver=far, **given).fit(X[:, :1], LABELS)


def test_noise_that_a_ball_cut_off_is_not_said_to_be_gaussian():
    """No interval where the answer ended on the sphere; the usual one where it ended inside."""
    with seeded(3):
        cut, free = (classified(OutputPerturbation(regularization=0.5, radius=r), epsilon=1.0) for r in (0.01, 1e3))
    assert np.linalg.norm(coefficients(cut)) == pytest.approx(0.01)
    assert cut.coef_noise_ is None
    with pytest.raises(Unsupported, match="not known"):
        cut.intervals()
    assert np.isfinite(free.intervals().coef.low).all()
