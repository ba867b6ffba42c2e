"""How far a neighbor moves the minimizer: never beyond the bound, and all the way for losses that act linear."""

import math

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, Budget, DPLogisticRegression
from discreet.accounting import Release
from discreet.curator import Problem
from discreet.curator.queries import minimizers
from discreet.errors import Unsupported
from discreet.losses import SmoothedHinge
from discreet.solvers import OutputPerturbation
from tests.covering import covering
from tests.replaying import window
from tests.solvers.perturbation.cases import RELATIONS, opened

LAMBDA, N = 50.0, 6
LINEAR = SmoothedHinge(0.5)  # with coefficients so short that no margin reaches 1/2: slope -t everywhere


def points_of(X, y, loss, relation, problem, *, query="noisy_minimizer", n=None, groups=None, **asked):
    """(lattice point, lattice unit): what noise is added to, and what it was scaled to."""
    facts = {"classes": (-1, 1)} if loss.task == "classification" else {"target": (-1.0, 1.0)}
    bounds = Bounds(1.0, n=n, **facts)
    budget = Budget(1.0, 1e-5, relation)
    with window() as seen:
        curator = opened(X, y, loss, [Release(query, 1)], budget, bounds=bounds, groups=groups)
        getattr(curator, query)(problem, **asked)
    return seen[-1]


def moved(one, other):
    """The distance of two releases' exact points, in real units, and over the sensitivity that was paid for."""
    assert one.unit == other.unit
    steps = math.dist(one.exact.ravel().tolist(), other.exact.ravel().tolist())
    return steps * one.unit.step, steps / one.unit.bound


def neighbor_of(X, y, record, label, relation, rng):
    place = rng.integers(len(X))
    if relation == "add_remove":
        return np.vstack([X, record]), np.append(y, label)
    changed, labels = X.copy(), y.copy()
    changed[place], labels[place] = (
        (np.full_like(record, np.nan), y[place]) if relation == "zero_out" else (record, label)
    )
    return changed, labels


@covering(("relation", RELATIONS), ("engine", ["dense", "sparse"]))
def test_a_search_for_the_worst_neighbor_comes_within_a_percent_and_not_beyond(relation, engine):
    """Linear losses attain a C / lambda: opposite corners of the feature box under replace_one."""
    rng = np.random.default_rng(0)
    wrap = sparse.csr_array if engine == "sparse" else np.asarray
    corner, opposite, y = np.ones(2), -np.ones(2), np.ones(N)
    X = rng.uniform(-1, 1, (N, 2))
    problem = Problem(LAMBDA / N, N)
    bound = math.sqrt(2.0)
    factor = 2 if relation == "replace_one" else 1
    worst = 0.0
    for trial in range(25):
        X[:] = corner if trial == 0 else rng.choice([corner, opposite, rng.uniform(-1, 1, 2)], N)
        record = opposite if trial == 0 else rng.uniform(-1, 1, 2)
        other = neighbor_of(X, y, record, 1, relation, rng)
        pair = [points_of(wrap(A), b, LINEAR, relation, problem) for A, b in ((X, y), other)]
        distance, share = moved(*pair)
        assert share <= 1.0
        assert distance <= (factor * bound + 2 * problem.tolerance * N * bound) / LAMBDA * (1 + 1e-6)
        worst = max(worst, share)
    assert worst >= 0.99


def share_with_linear_term(linear):
    """How much of the sensitivity the worst neighbors use, with a linear term in the problem."""
    X, y = np.ones((N, 2)), np.ones(N)
    other = X.copy()
    other[0] = -1.0
    problem = Problem(LAMBDA / N, N, linear=linear)
    return moved(*(points_of(A, y, LINEAR, "replace_one", problem) for A in (X, other)))[1]


def test_a_public_linear_term_moves_no_neighbors_apart():
    public = np.array([0.3, -0.2, 0.1])
    assert 0.99 <= share_with_linear_term(None) <= 1.0
    assert 0.99 <= share_with_linear_term(public) <= 1.0


def test_a_linear_term_made_of_records_would_be_noticed(monkeypatch):
    """The neighbors' terms differ: their minimizers are farther apart than was paid for."""
    made, terms = Problem.objective, iter((-1.0, 1.0))  # of the records, then of their neighbor
    monkeypatch.setattr(
        Problem, "objective", lambda self, loss, domain: made(self, loss, domain, next(terms) * np.ones(domain.shape))
    )
    assert share_with_linear_term(None) > 1.0


@pytest.mark.parametrize("relation", ["replace_one", "zero_out"])
def test_gradient_steps_attain_their_bound(relation):
    X, y = np.ones((N, 1)), np.ones(N)
    X_other, y_other = neighbor_of(X, y, -np.ones(1), 1, relation, np.random.default_rng(1))
    problem = Problem(5.0, N)
    asked = {"query": "noisy_descent", "n_steps": 7, "step_size": 0.08}
    pair = [points_of(A, b, LINEAR, relation, problem, **asked) for A, b in ((X, y), (X_other, y_other))]
    distance, share = moved(*pair)
    factor = 2 if relation == "replace_one" else 1
    assert 0.99 <= share <= 1.0
    assert distance == pytest.approx(factor / N / 5.0 * (1 - (1 - 0.4) ** 7), rel=1e-4)


def share_of_proximal_steps(X, other, l1):
    """How much of the sensitivity neighbors use, both after few steps that thresholds cut."""
    y, asked = np.ones(N), {"query": "noisy_descent", "n_steps": 5, "step_size": 0.05}
    problem = Problem(0.5, N, l1=l1)
    return moved(*(points_of(A, y, LINEAR, "replace_one", problem, **asked) for A in (X, other)))[1]


def test_an_operator_that_expands_would_be_noticed(monkeypatch):
    """Away from 0 in place of toward it: neighbors on both sides of 0 are driven apart."""
    X = np.zeros((N, 1))
    X[0], other = 1.0, np.zeros((N, 1))
    other[0] = -1.0
    assert share_of_proximal_steps(X, other, 0.3) <= 1.0
    monkeypatch.setattr(Problem, "thresholded", lambda self, w, step: w + np.sign(w) * step * self.l1)
    assert share_of_proximal_steps(X, other, 0.3) > 1.0


@pytest.mark.parametrize("step_size", [None, 7.9])
def test_gradient_steps_on_more_records_than_were_declared_are_covered_or_refused(step_size):
    """Under add_remove n is private: the declared one may be small, and then the mean of the sum over it is less
    smooth than beta and steps that should contract stretch. Either the noise covers it or nothing is answered."""
    solver = OutputPerturbation(n_steps=4, regularization=1e-6, row_norm=1.0, clip=1.0, step_size=step_size)
    bounds = Bounds(1.0, classes=(0, 1), n=10)
    answers = []
    for extra in (0, 1):
        X, y = np.ones((200 + extra, 1)), np.append(np.arange(200) % 2, np.ones(extra, dtype=int))
        with window() as seen:
            try:
                DPLogisticRegression(
                    1.0, 1e-5, bounds=bounds, fit_intercept=False, solver=solver, neighbors="add_remove"
                ).fit(X, y)
            except Unsupported:
                return
        answers.append(seen[-1])
    assert moved(*answers)[1] <= 1.0


# ------------------------------------------------------------------------------------------- planted bugs


def linear_pair(problem, relation="replace_one"):
    X = np.ones((N, 1))
    other = X.copy()
    other[0] = -1.0
    return [points_of(A, np.ones(N), LINEAR, relation, problem) for A in (X, other)]


class _Lazy:
    """A minimizer as bad as its certificate allows: pulled to one side or the other by the data's sign."""

    def __init__(self, honest):
        self._honest = honest

    def __call__(self, engine, objective, tolerance):
        found = self._honest(engine, objective, 1e-9)
        aside = 0.999 * tolerance / (objective.regularization + 1e-12)
        return type(found)(found.point - math.copysign(aside, -found.point[0]), tolerance)


def test_a_loose_tolerance_is_paid_for(monkeypatch):
    """tau as large as a record's whole gradient: two solvers that stop on opposite sides are still covered."""
    monkeypatch.setattr(minimizers, "minimize", _Lazy(minimizers.minimize))
    X = np.array([[1.0], [-1.0], [1.0], [0.0], [0.0], [0.0]])
    other = X.copy()
    other[0] = -1.0  # the minimizers are at +-1/lambda, so the solver errs outwards on both sides
    pair = [
        points_of(A, np.ones(N), LINEAR, "replace_one", Problem(LAMBDA / N, N, tolerance=1 / N)) for A in (X, other)
    ]
    assert 0.99 <= moved(*pair)[1] <= 1.0


def test_projection_onto_the_ball_is_before_the_noise_and_never_stretches():
    short, far = Problem(LAMBDA / N, N, radius=10.0), Problem(LAMBDA / N, N, radius=0.01)
    assert 0.99 <= moved(*linear_pair(short))[1] <= 1.0
    inside = linear_pair(far)
    assert max(abs(int(one.exact[0])) * one.unit.step for one in inside) <= 0.01 * (1 + 1e-6)
    assert moved(*inside)[1] <= 1.0
