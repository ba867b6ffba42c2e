"""The constant that steps start from: what it is read from, what it costs, and what is made of it."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget
from discreet.accounting.pricing import price_plan
from discreet.bounds import Bounds
from discreet.curator import PrivateData
from discreet.losses import Logistic, Poisson
from discreet.penalties import L2, NoPenalty
from discreet.solvers import (
    AdaptiveDescent,
    CoordinateDescent,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Preconditioned,
)
from discreet.solvers.base import planned
from discreet.solvers.calibration import released_mean
from discreet.solvers.coordinate_geometry import Geometry
from discreet.testing import seeded

RARE = 0.05
SHORT = 1e-9
STEPS = {
    "gd": GradientDescent(n_steps=3, clip=1.0, step_size=SHORT),
    "cd": CoordinateDescent(n_inner=6, geometry=Geometry(clip=1.0), relative_step=SHORT),
    "gcd": GreedyCoordinateDescent(n_steps=3, geometry=Geometry(clip=1.0), relative_step=SHORT),
    "agd": AdaptiveDescent(n_rounds=3, clip=1.0, loss_bound=3.0, step_sizes=(SHORT,)),
    "output": OutputPerturbation(regularization=1e6, clip=1.0),
    "objective": ObjectivePerturbation(regularization=1e6, clip=1.0),
}


def data_of(loss, n=4000):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    if isinstance(loss, Poisson):
        return PrivateData(X, rng.poisson(2.0, n), Bounds(1.0, target=(0.0, 40.0)), ledger=False)
    classes = tuple(range(loss.n_outputs if loss.n_outputs > 1 else 2))
    y = rng.choice(len(classes), n, p=[1 - RARE, RARE] if len(classes) == 2 else [0.7, 0.2, 0.1])
    return PrivateData(X, y, Bounds(1.0, classes=classes), ledger=False)


def solved(solver, loss, epsilon=50.0, penalty=None):
    data, budget, penalty = data_of(loss), Budget(epsilon, 1e-6, "zero_out"), penalty or NoPenalty()
    priced = price_plan(solver.plan(data.domain(budget.neighbors, loss), loss, penalty), budget)
    with seeded(3):
        curator = data.open(priced, loss)
        return curator, solver.solve(curator, penalty)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("coordinates", ["training", "declared"])
def test_steps_that_go_nowhere_end_at_the_constant_of_the_released_share(name, coordinates):
    if coordinates == "declared" and name in ("output", "objective"):
        coordinates = "diagonal"  # they need rows of length 1
    solver = STEPS[name] if coordinates != "diagonal" else type(STEPS[name])(1e6, row_norm=1.0, clip=1.0)
    _, solution = solved(Preconditioned(solver, coordinates, start_share=0.3), Logistic())
    assert solution.coefficients[-1] == pytest.approx(np.log(RARE / (1 - RARE)), abs=0.3)
    np.testing.assert_allclose(solution.coefficients[:-1], 0.0, atol=0.05)


def test_the_start_has_its_share_of_the_price_and_its_own_noise():
    curator, solution = solved(Preconditioned(STEPS["cd"], "training", start_share=0.25), Logistic(), epsilon=1.0)
    first, steps = (r for r in curator.plan.releases if r.query == "noisy_coordinate_gradient")
    assert first.count / first.relative_noise**2 == pytest.approx(0.25)
    assert steps.count / steps.relative_noise**2 == pytest.approx(0.75)
    assert planned(curator, "noisy_coordinate_gradient") is steps
    assert solution.noise[-1] > 0.01  # what the start's noise leaves in the intercept


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_a_mean_of_counts_loses_no_more_to_its_clip_than_is_said(epsilon):
    loss, lost = Poisson(5.0), []
    data, budget = data_of(loss), Budget(epsilon, 1e-6, "zero_out")
    solver = Preconditioned(STEPS["gd"], "training", start_share=0.3)
    priced = price_plan(solver.plan(data.domain(budget.neighbors, loss), loss, NoPenalty()), budget)
    for seed in range(20):
        with seeded(seed):
            curator = data.open(priced, loss)
            relative = curator.plan.releases[0].relative_noise * curator.noise_multiplier
            mean, noise = released_mean(curator, 4000, relative)
        lost.append((2.0 - mean) / noise)
    assert np.mean(lost) < 1.5  # by its rule at most one and a deviation of the mean of twenty
    assert np.std(lost) < 1.6


def test_a_start_is_not_asked_for_where_one_was_given_or_none_can_follow():
    stage, loss = Preconditioned(STEPS["gd"], "training", start_share=0.3), Logistic()
    domain = data_of(loss).domain(Budget(1.0, 1e-6).neighbors, loss)
    without = replace(domain, intercept=False)
    for facts, count in ((domain, 2), (replace(domain, start=np.zeros(3)), 1), (without, 1)):
        assert len(stage.plan(facts, loss, NoPenalty()).releases) == count


@pytest.mark.parametrize("solver", [OutputPerturbation(0.5, clip=1.0), ObjectivePerturbation(0.5, clip=1.0)])
def test_regularization_of_minimizers_is_about_the_start(solver):
    staged = Preconditioned(solver, "training", start_share=0.01)
    curator, solution = solved(staged, Logistic(), epsilon=1e4, penalty=L2(0.25))
    start = np.zeros(3)
    start[-1] = curator.domain.start[-1]
    rows = np.column_stack([np.random.default_rng(5).uniform(-1.0, 1.0, (4000, 2)), np.ones(4000)])
    signs = np.where(_labels() == 1, 1.0, -1.0)

    def slope(w):
        return -(rows.T @ (signs / (1 + np.exp(signs * (rows @ w))))) / 4000 + 0.25 * w + 0.5 * (w - start)

    w = solution.coefficients
    np.testing.assert_allclose(slope(w), 0.0, atol=3e-3)


def _labels():
    rng = np.random.default_rng(5)
    rng.uniform(-1.0, 1.0, (4000, 2))
    return rng.choice(2, 4000, p=[1 - RARE, RARE])
