"""The mean of residuals that moves an intercept at last: what it costs, and what it brings back of a skewed target."""

import numpy as np
import pytest

from discreet import Bounds, DPLinearRegression, Neighbors
from discreet.losses import Logistic, Squared
from discreet.penalties import L1, NoPenalty
from discreet.solvers import AdaptiveDescent, GradientDescent, Preconditioned
from discreet.testing import seeded
from tests.solvers.whitened.test_price import problem

N = 4000
STEPS = GradientDescent(12, relative_clip=0.3, momentum=0.7, radius=100.0)


def skewed(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N, 3))
    return X, X @ [1.0, -0.5, 0.2] + rng.exponential(size=N)


def fitted(solver, kind=DPLinearRegression, epsilon=4.0, **settings):
    X, y = skewed()
    model = kind(epsilon=epsilon, bounds=Bounds(1.0, target=(-3.0, 13.0)), solver=solver, ledger=False, **settings)
    with seeded(1):
        model.fit(X, y)
    return model, float(np.mean(y - model.predict(X)))


@pytest.mark.parametrize("coordinates", ["full", "diagonal"])
def test_clipped_steps_leave_a_skewed_target_too_low_and_the_shift_brings_it_back(coordinates):
    _, before = fitted(Preconditioned(STEPS, coordinates))
    _, after = fitted(Preconditioned(STEPS, coordinates, shift_clip=6.0))
    assert before > 0.15
    assert abs(after) < 0.06


@pytest.mark.parametrize(
    ("loss", "penalty", "inner"),
    [(Logistic(), NoPenalty(), STEPS), (Squared(), L1(0.1), STEPS), (Squared(), NoPenalty(), AdaptiveDescent())],
)
def test_labels_corners_and_adaptive_plans_have_none(loss, penalty, inner):
    plan = Preconditioned(inner, "diagonal", shift_clip=3.0).plan(
        problem(loss, declared=40).domain(Neighbors.ZERO_OUT, loss), loss, penalty
    )
    assert all(release.query != "noisy_coordinate_gradient" for release in plan.releases)
