"""What gradients say that steps gained: unbiased, with the deviation it states, and the part that is kept."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from discreet import DPLogisticRegression
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.default.table import Facts, choose
from discreet.penalties import L1, L2, ElasticNet, NoPenalty
from discreet.solvers import GradientDescent, OutputPerturbation, Preconditioned, StochasticGradientDescent
from discreet.solvers.agd import AdaptiveDescent
from discreet.solvers.decrease import Decrease, expected_gain
from discreet.solvers.gradient_loop import Path
from discreet.testing import seeded

P, STEPS, STEP, NOISE = 40, 25, 0.3, 0.2
BENDS = np.geomspace(0.01, 3.0, P)
"""Of a quadratic F(x) = sum of BENDS (x - BEST)^2 / 2."""
BEST = np.where(np.arange(P) % 3 == 0, 1.0, 0.0)


def loss(x: np.ndarray) -> float:
    return float(BENDS @ np.square(x - BEST)) / 2.0


def run(penalty, seed: int, noise: float = NOISE) -> tuple[float, float, float]:
    """Return the true decrease, what the gradients say, and its variance."""
    rng = np.random.default_rng(seed)
    path = Path(np.zeros(P), STEPS, momentum="nesterov", average="last", step=STEP)
    found = Decrease(noise, penalty)
    for t in range(STEPS):
        x = path.ahead()
        g = BENDS * (x - BEST) + noise * rng.normal(size=P)
        path.move(x, penalty.prox(x - STEP * g, STEP))
        found.add(x, g, path.w, STEP, float(path.momenta[t]))
    found.end(path.average)
    return loss(np.zeros(P)) - loss(path.w), float(found.value.sum()), float(found.variance.sum())


@pytest.mark.parametrize(
    "penalty", [NoPenalty(), L2(0.5), L1(0.05), ElasticNet(0.05, 0.3)], ids=lambda one: type(one).__name__
)
def test_the_decrease_is_unbiased_and_varies_as_stated(penalty):
    true, shown, variance = np.array([run(penalty, seed) for seed in range(200)]).T
    missed = shown - true
    error = missed.std() / np.sqrt(len(missed))
    assert abs(missed.mean()) < 4.0 * error + 0.02 * abs(true.mean())  # of the last step one end alone is known
    assert 0.75 < missed.var() / variance.mean() < 1.3


def test_without_noise_it_is_the_decrease_but_for_the_last_step():
    true, shown, variance = run(NoPenalty(), 0, noise=0.0)
    assert variance == 0.0
    assert shown == pytest.approx(true, rel=0.01)


def test_a_gain_that_does_not_stand_out_is_hardly_expected():
    assert expected_gain(-0.01, 0.01, 0.7) < 1e-3
    assert expected_gain(0.1, 0.01, 0.7) == pytest.approx(0.1, abs=1e-3)
    assert expected_gain(-50.0, 1.0, 0.7) < 0.03
    assert 0.2 < expected_gain(0.0, 100.0, 0.7) < 0.35  # nothing is known: half of all there is, in three of four cases
    assert expected_gain(5.0, 0.01, 0.7) == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize("deviation", [0.0, 1e-300, 1e-160, 1e-14, 1e-12, 1e-10, 1e-3, 1e3, 1e200])
def test_a_gain_is_expected_of_whatever_is_shown_with_any_noise(deviation):
    """Its numbers come after the charge: an overflow would spend the budget for nothing."""
    assert all(0.0 <= expected_gain(shown, deviation, 0.7) <= 0.7 for shown in (-1e3, -1.0, -0.01, 0.0, 1.0, 1e3))


SAMPLED = StochasticGradientDescent(n_steps=4, sampling_probability=0.5, clip=1.0, step_size=1.0)
AVERAGED = GradientDescent(n_steps=4, average="uniform", clip=1.0, step_size=1.0)


@pytest.mark.parametrize("steps", [SAMPLED, AVERAGED], ids=lambda steps: steps.name)
def test_what_has_no_decrease_is_denoised(steps):
    """The sum is of the way to the last point: the noise of other steps is in an average, and other points."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    known = {"bounds": 1.0, "classes": (0, 1), "neighbors": "zero_out", "ledger": False}
    weighed, denoised = (
        DPLogisticRegression(solver=Preconditioned(steps, "declared", denoise=True, weigh=weigh), **known)
        for weigh in (True, False)
    )
    for model in (weighed, denoised):
        with seeded(0):
            model.fit(X, (X[:, 0] > 0).astype(int))
    assert np.array_equal(weighed.coef_, denoised.coef_)


def test_steps_without_a_relative_size_stay_as_they_are():
    private = Domain(np.ones(3), 2.0, None, Neighbors.ADD_REMOVE)
    for solver in (AdaptiveDescent(), OutputPerturbation()):  # without a relative step, or with none by default
        assert Preconditioned(solver, weigh=True)._for_count(10.0, private) is solver


@pytest.mark.thorough
@pytest.mark.parametrize(("signal", "epsilon", "least"), [(0.0, 1.0, 0.015), (2.0, 4.0, -0.012)])
def test_noise_of_sparse_slopes_is_taken_out_and_signal_stays(signal, epsilon, least):
    """What 3,000 columns say together, of which none stands out, is a tenth of the loss at an epsilon of 4."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.random((4000, 3000)) < 0.01) * rng.choice([-1.0, 1.0], (4000, 3000)))
    margins = signal * (X @ rng.normal(size=3000)) / np.sqrt(30.0)
    y = (margins + rng.logistic(size=4000) > 0).astype(int)
    known = {"bounds": 1.0, "classes": (0, 1), "alpha": 1e-3, "neighbors": "zero_out", "ledger": False}
    quote = DPLogisticRegression(epsilon, **known).quote(X, y)
    solver, _ = choose(Facts(*quote.facts, quote.priced.budget))
    losses = []
    for weigh in (False, True):
        model = DPLogisticRegression(epsilon, **known, solver=replace(solver, weigh=weigh))
        with seeded(0):
            model.fit(X, y)
        w = model.coef_.ravel()
        found = X @ w + model.intercept_
        losses.append(np.mean(np.logaddexp(0.0, found) - y * found) + 1e-3 * (w @ w) / 2.0)
    assert losses[0] - losses[1] > least
