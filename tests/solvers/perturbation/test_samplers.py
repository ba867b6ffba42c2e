"""The exponential mechanism's draws against their densities, integrated numerically; candidates against the softmax."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet import Bounds, Budget, DPLogisticRegression, DPPoissonRegressor
from discreet.accounting import Release
from discreet.curator import Problem
from discreet.losses import Huber, Logistic
from discreet.solvers import ExponentialMechanism
from tests.priced import priced_at
from tests.solvers.perturbation import cases
from tests.solvers.perturbation.cases import opened, stream

pytestmark = pytest.mark.statistical

CHANCE = 1e-7
RNG = np.random.default_rng(8)
X1 = np.rint(RNG.uniform(-1, 1, (12, 1)) * 2**14) / 2**14
X2 = np.rint(RNG.uniform(-1, 1, (12, 2)) * 2**14) / 2**14
Y = np.where(np.arange(12) % 3 == 0, -1.0, 1.0)


def given_noise(monkeypatch, multiplier):
    monkeypatch.setattr(cases, "price_plan", priced_at(multiplier))


def logistic_sum(X, w):
    """The sum of losses at each row of ``w``."""
    return np.log1p(np.exp(-Y * (w @ X.T))).sum(axis=1)


# ------------------------------------------------------------------------------------------------ candidates


def test_losses_beyond_the_bound_and_offsets(monkeypatch):
    """A loss is clipped to the bound, so a candidate cannot be worse than n B; offsets add to the sums."""
    given_noise(monkeypatch, 0.0)
    curator = opened(
        np.ones((3, 1)), np.zeros(3), Huber(9.0), [Release("select_candidate", 2, mechanism="exponential")],
        Budget(math.inf, 0.0),
    )  # fmt: skip
    points = np.array([[3.0], [1.0]])  # losses 4.5 and 0.5, clipped to 0.25 each
    assert curator.select_candidate(points, loss_bound=0.25, offsets=[0.0, 0.01]) == 0
    assert curator.select_candidate(points, loss_bound=9.0, offsets=[0.0, 0.01]) == 1


def test_counts_choose_the_best_candidate_although_their_loss_is_negative():
    """exp(m) - y m is far below zero for large counts: clipped to [0, B] all candidates would look alike."""
    X, y = np.ones((50, 1)), np.full(50, 20.0)
    solver = ExponentialMechanism(candidates=[[0.0], [2.0], [3.0], [3.5]])
    model = DPPoissonRegressor(
        math.inf, 0.0, bounds=Bounds(1.0, target=(0.0, 30.0)), solver=solver, alpha=0.0, fit_intercept=False
    ).fit(X, y)
    assert model.coef_[0] == pytest.approx(3.0)


# ------------------------------------------------------------------------------------------------ one coefficient


def cumulative(energies, grid):
    density = np.exp(energies.min() - energies)
    steps = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])
    return lambda x: np.interp(x, grid, steps / steps[-1])


GRID = np.linspace(-2, 2, 4001)
INTERVAL = {
    # relation, epsilon: k = epsilon / (a G 2 radius)
    "zero_out": 4.0 / 4,
    "replace_one": 4.0 / 8,
}


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", INTERVAL)
def test_one_coefficient_through_the_estimator(relation):
    bounds = Bounds(1.0, classes=(-1, 1))
    model = DPLogisticRegression(
        4.0, 0.0, bounds=bounds, solver=ExponentialMechanism(radius=2.0), penalty=None, fit_intercept=False,
        neighbors=relation,
    )  # fmt: skip
    with stream(2):
        drawn = np.array([model.fit(X1, Y).coef_[0, 0] for _ in range(300)])
    losses = logistic_sum(X1, GRID[:, None])
    assert stats.kstest(drawn, cumulative(INTERVAL[relation] * losses, GRID)).pvalue > CHANCE
    assert stats.kstest(drawn, cumulative(4 * INTERVAL[relation] * losses, GRID)).pvalue < CHANCE
    assert model.certificate_.arithmetic == "idealized"
    assert [event.kind for event in model.certificate_.events] == ["bounded_range"]


# ----------------------------------------------------------------------------------------------- two coefficients


class Plane:
    """A density on a square grid, and Kolmogorov's test of both marginals and of the energy itself."""

    def __init__(self, energy, reach, radius=math.inf, size=401):
        self._axis = np.linspace(-reach, reach, size)
        points = np.stack(np.meshgrid(self._axis, self._axis, indexing="ij"), axis=-1).reshape(-1, 2)
        energies = energy(points)
        energies[np.linalg.norm(points, axis=1) > radius] = math.inf
        self._mass = np.exp(energies.min() - energies).reshape(size, size)
        assert self._mass[0].max() < 1e-6 * self._mass.max() or radius < reach

    def p_value(self, drawn):
        answers = []
        for j in range(2):
            mass = self._mass.sum(axis=1 - j)
            steps = np.concatenate([[0.0], np.cumsum((mass[1:] + mass[:-1]) / 2)])
            answers.append(stats.kstest(drawn[:, j], lambda x, s=steps: np.interp(x, self._axis, s / s[-1])).pvalue)
        return min(answers)


def energy_of(X, k, total):
    return lambda w: k * (logistic_sum(X, w) + 0.5 * total * np.square(w).sum(axis=1))


def test_persons_weigh_one_each(monkeypatch):
    """Every row twice, each pair one person: the same law as every row once."""
    given_noise(monkeypatch, 0.5)
    k = 6.0 / (0.5 * math.sqrt(2.0)) ** 2
    with stream(9):
        curator = opened(
            np.repeat(X2, 2, axis=0), np.repeat(Y, 2), Logistic(), [Release("sample_minimizer", 500)],
            Budget(1.0, 1e-5, "zero_out"), groups=np.repeat(np.arange(12), 2),
        )  # fmt: skip
        drawn = np.array([curator.sample_minimizer(Problem(0.5, 12), sampler="rejection") for _ in range(500)])
    assert Plane(energy_of(X2, k, 6.0), 2.0).p_value(drawn) > CHANCE
