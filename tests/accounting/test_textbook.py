"""Textbook theorems: known answers, their conditions, and that exact prices are below them.

Prices of (epsilon_i, delta_i) claims: against closed forms, another library's composition, and explicit attacks.
The privacy loss as an object: against simulation, integration and the exact prices.
"""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from discreet import Budget
from discreet.accounting import (
    Plan,
    PrivacyLoss,
    Release,
    basic_composition,
    calibrate,
    classical_gaussian,
    composed_epsilon,
    gaussian,
    heterogeneous_composition,
    lecture_epsilon,
    population_gap,
    price,
    records_for_uniform_convergence,
)
from discreet.accounting.events import Gaussian, Laplace, PerturbedMinimum
from discreet.errors import Unsupported


def test_the_classical_gaussian_holds_up_to_one_and_is_refused_beyond():
    for epsilon in (0.1, 0.5, 1.0):
        z = classical_gaussian(epsilon, 1e-5)
        assert gaussian.delta_of(epsilon, 1 / z) <= 1e-5
        assert calibrate(Plan([Release("noisy_gradient", 1)]), Budget(epsilon, 1e-5)) < z
    formula = math.sqrt(2 * math.log(1.25 / 1e-5)) / 10
    assert gaussian.delta_of(10.0, 1 / formula) > 2e-5  # what refusing prevents
    with pytest.raises(Unsupported, match="calibrate"):
        classical_gaussian(10.0, 1e-5)


@pytest.mark.parametrize(("rho", "count", "delta"), [(1e-4, 100, 1e-6), (1e-3, 10, 1e-5), (0.01, 400, 1e-9)])
def test_the_lectures_price_is_an_upper_bound(rho, count, delta):
    exact = price(Plan([Release("noisy_gradient", count)]), rho**-0.5, delta)
    assert exact < lecture_epsilon(rho, count, delta)
    assert lecture_epsilon(1e-4, 100, 1e-6) == pytest.approx(0.5357, abs=1e-4)


def test_uniform_convergence_holds_for_coins():
    """Exact tails of fair coins, whose losses spread most; a lecture's n, without the 2, is for one side."""
    candidates, alpha, beta = 50, 0.05, 0.05
    n = records_for_uniform_convergence(candidates, alpha, beta)
    failure = binom.cdf(math.ceil(n * (0.5 - alpha)) - 1, n, 0.5) + binom.sf(math.floor(n * (0.5 + alpha)), n, 0.5)
    assert candidates * failure <= beta
    assert population_gap(n, candidates, beta) <= alpha < population_gap(n - 1, candidates, beta)
    assert n == math.ceil(math.log(2 * candidates / beta) / (2 * alpha**2))


UNEQUAL = [(0.1, 1e-7)] * 20 + [(0.3, 0.0)] * 5 + [(0.02, 1e-8)] * 50


@pytest.mark.parametrize("claims", [UNEQUAL, [(0.1, 1e-8)] * 100])
def test_exact_is_below_the_closed_forms(claims):
    slack = 1e-5
    closed, delta = heterogeneous_composition(claims, slack)
    assert composed_epsilon(claims, delta) <= closed < basic_composition(claims)[0]


def test_an_attack_attains_nearly_the_price():
    """Randomized responses, and coins that show everything: the best test's delta at a smaller epsilon is too large."""
    count, epsilon, share, delta = 50, 0.2, 1e-8, 1e-5
    claimed = composed_epsilon([(epsilon, share)] * count, delta)
    k, chance = np.arange(count + 1), 1 / (1 + math.exp(-epsilon))
    P, Q = binom.pmf(k, count, chance), binom.pmf(k, count, 1 - chance)

    def exact(e):
        return 1 - (1 - share) ** count * (1 - np.maximum(P - math.exp(e) * Q, 0).sum())

    assert exact(claimed) <= delta * (1 + 1e-6)
    assert exact(0.97 * claimed) > delta


CASES = {
    "gaussian": [Gaussian(2.0)],
    "gaussians": [Gaussian(4.0, 3), Gaussian(2.5)],
    "laplace": [Laplace(0.8, dimension=1)],
    "perturbed": [PerturbedMinimum(3.0, 0.3, "one_signed")],
}


@pytest.mark.parametrize("name", CASES)
def test_delta_is_the_mean_excess_of_the_loss(name):
    """delta(epsilon) = E(1 - e^(epsilon - W))_+, the integral of e^(epsilon - t) P(W > t) over t > epsilon."""
    loss = PrivacyLoss.of(CASES[name], "zero_out")
    for epsilon in (0.2, 0.7, 1.3):
        end = max(loss.reach, epsilon)

        def excess(t, epsilon=epsilon):
            return math.exp(epsilon - t) * float(np.ravel(loss.survival(np.array([t])))[0])

        tail = quad(excess, epsilon, end + 20.0, points=[end], limit=400)[0]
        assert loss.delta(epsilon) == pytest.approx(tail, rel=2e-3, abs=1e-7)
