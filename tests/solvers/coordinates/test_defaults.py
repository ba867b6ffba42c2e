"""What ``cd`` and ``gcd`` stand for, and the smoothness that greedy steps find out by themselves."""

import math

import numpy as np
import pytest

from discreet import Budget, DPLasso, DPLogisticRegression
from discreet.bounds import Domain
from discreet.losses import Logistic, Poisson, Squared
from discreet.penalties import L1, L2, NoPenalty
from discreet.solvers import CoordinateDescent, Geometry, GreedyCoordinateDescent, Preconditioned
from discreet.testing import neighbor_pairs, seeded
from tests.replaying import worst_ratio
from tests.solvers.perturbation.cases import bounds_of, fit_of, table


def domain_of(n, p=20):
    return Domain(np.ones(p), math.sqrt(p), n, Budget(1.0, 1e-6, "zero_out").neighbors, target_range=(-1.0, 1.0))


@pytest.mark.parametrize("solver", [CoordinateDescent, GreedyCoordinateDescent])
def test_the_stage_follows_the_signal_the_loss_and_the_penalty(solver):
    def made(n, loss, penalty, delta=1e-6):
        found = solver.defaults(domain_of(n), loss, penalty, Budget(1.0, delta, "zero_out"))
        return getattr(found, "coordinates", found.name)

    greedy = solver is GreedyCoordinateDescent
    for penalty in (NoPenalty(), L1(0.1), L2(0.1)):
        seen = "diagonal" if greedy or not penalty.ridge else "full"
        assert made(20_000, Logistic(), penalty) == made(20_000, Squared(), penalty) == seen
        assert made(100, Logistic(), penalty) == "declared"
    assert made(20_000, Poisson(3.0), NoPenalty()) == solver.name
    assert made(20_000, Logistic(), NoPenalty(), delta=0.0) == solver.name


@pytest.mark.parametrize("solver", [CoordinateDescent, GreedyCoordinateDescent])
def test_more_signal_makes_more_steps_and_wider_clips(solver):
    found = [
        solver.defaults(domain_of(n), Logistic(), NoPenalty(), Budget(1.0, 1e-6)).solver for n in (3000, 10**4, 10**5)
    ]
    counts = [one.n_steps if solver is GreedyCoordinateDescent else one.n_inner for one in found]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    clips = [one.geometry.relative_clip for one in found]
    assert clips == sorted(clips)


def test_steps_are_short_where_a_coordinate_has_little_signal_of_its_own():
    """K = 4 and more: whole steps, for labels and numbers alike."""
    for loss, penalty in ((Logistic(), L1(0.1)), (Squared(), L1(0.1)), (Logistic(), NoPenalty())):
        steps = [
            CoordinateDescent.defaults(domain_of(n), loss, penalty, Budget(1.0, 1e-6)).solver.relative_step
            for n in (200, 600, 10**4)
        ]
        assert steps == sorted(steps)
        assert steps[0] < 0.1 < steps[1] < steps[2] == 1.0


def test_an_l1_penalty_on_wide_noise_is_no_worse_than_no_columns():
    rng = np.random.default_rng(0)
    X, y = np.clip(rng.normal(size=(1600, 160)), -4, 4), rng.integers(0, 2, 1600)
    for seed in range(3):
        with seeded(seed):
            model = DPLogisticRegression(
                1.0, 1e-6, bounds=[(-4, 4)] * 160, classes=(0, 1), penalty="l1", alpha=1e-3, solver="cd"
            ).fit(X, y)
        margins = model.decision_function(X)
        assert np.mean(np.logaddexp(0.0, margins) - y * margins) < 1.03 * math.log(2.0)


def sparse_problem(n=1000, p=200, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, p)), -4, 4)
    return X, (X[:, 3] - 0.8 * X[:, 7] + 0.3 * rng.normal(size=n) > 0).astype(int)


def backtracking(n_steps=12, *, backtrack=True):
    inner = GreedyCoordinateDescent(n_steps, Geometry(relative_clip=0.5), selection_share=0.65, backtrack=backtrack)
    return Preconditioned(inner, "declared", measure=True)


def accuracy(solver, epsilon=4.0):
    X, y = sparse_problem()
    right = []
    for seed in range(3):
        with seeded(seed):
            model = DPLogisticRegression(epsilon, 1e-6, bounds=[(-4, 4)] * 200, classes=(0, 1), solver=solver)
            right.append(float(np.mean(model.fit(X, y).predict(X) == y)))
    return float(np.mean(right))


def test_greedy_steps_by_default_find_the_few_columns_that_matter():
    assert accuracy("gcd") > max(accuracy("cd"), accuracy("gd")) + 0.05
    assert accuracy("gcd") > 0.85


def test_steps_that_find_out_the_smoothness_travel_farther_than_bounded_ones():
    assert accuracy(backtracking(4)) > accuracy(backtracking(4, backtrack=False))


def test_a_column_steeper_than_the_others_does_not_make_steps_run_away():
    """Its M_j is far above what columns that are all alike would have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 40)) * 0.05
    X[:, 0] = rng.choice([-1.0, 1.0], 2000)
    y = np.clip(0.5 * X[:, 0], -1, 1)
    with seeded(0):
        model = DPLasso(50.0, 1e-6, bounds=[(-1, 1)] * 40, target=(-1, 1), alpha=1e-6, solver=backtracking(30)).fit(
            X, y
        )
    assert model.coef_[0] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("relation", ["replace_one", "zero_out", "add_remove"])
def test_backtracking_replays_on_neighbors(relation):
    """M_j follow released numbers only: with the same answers a neighboring table asks the same questions."""
    pairs = list(neighbor_pairs(*table("logistic"), relation=relation, bounds=bounds_of("logistic")))
    fit = fit_of("logistic", backtracking(4), relation, penalty=None)
    assert worst_ratio(fit, pairs[::8], relation) <= 1.0
