"""The statistics of audits against other implementations, by enumeration, and at their worst cases."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet.accounting import gaussian, pld
from discreet.accounting.events import ZCDP, BoundedRange, Gaussian, Laplace, PoissonSampled, PureDP
from discreet.accounting.pricing import epsilon_of
from discreet.audit import guessing
from discreet.budget import Neighbors
from tests.audit.laws import accuracy_of, laplace_distance, least_refuting
from tests.covering import covering

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_REMOVE


@covering(("chance", [0.05, 1e-3, 1e-7]), ("trials", [1, 7, 300, 200_000]))
def test_rates_are_those_of_clopper_and_pearson(trials, chance):
    for count in {0, 1, trials // 3, trials - 1, trials}:
        low, high = (guessing.least_rate(count, trials, chance), guessing.largest_rate(count, trials, chance))
        exact = stats.binomtest(count, trials).proportion_ci(1 - 2 * chance, method="exact")
        assert low == pytest.approx(exact.low, rel=1e-6, abs=1e-12)
        assert high == pytest.approx(exact.high, rel=1e-6, abs=1e-12)
        assert low <= count / trials <= high


@covering(("confidence", [0.75, 0.95, 0.999]), ("trials", [1, 2, 10, 33]))
def test_pooled_guesses_have_no_heavier_tail_than_the_binomial(trials, confidence):
    """Every pair of rates on a grid, exactly: the bound is above the mean rate no more often than it may be."""
    rates = np.linspace(0, 1, 41)
    for one in rates:
        for other in rates[rates >= one]:
            law = np.convolve(*(stats.binom.pmf(np.arange(trials + 1), trials, rate) for rate in (one, other)))
            needed = least_refuting((one + other) / 2, 2 * trials, confidence)
            assert law[needed:].sum() <= (1 - confidence) * (1 + 1e-9), (one, other)


@pytest.mark.parametrize("confidence", [0.95, 0.9999])
def test_rates_bound_epsilon_no_more_often_than_they_may(confidence):
    """Randomized response is exactly epsilon-DP, and the event tells all: by enumeration of both counts."""
    trials, epsilon = 60, 1.0
    rate = 1 / (1 + math.exp(-epsilon))
    counts = np.arange(trials + 1)
    here, there = stats.binom.pmf(counts, trials, rate), stats.binom.pmf(counts, trials, 1 - rate)
    for bound in (guessing.rate_epsilon, guessing.either_epsilon):
        wrong = math.fsum(
            here[a] * there[b]
            for a in counts
            for b in counts
            if bound(int(a), trials, int(b), trials, 0.0, confidence) > epsilon
        )
        assert wrong <= 1 - confidence


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (8.0, 1e-3)])
def test_the_accuracy_of_gaussian_dp_costs_its_epsilon(epsilon, delta):
    """In 40 digits: the delta of that mu at the answer is the delta asked for."""
    mu = gaussian.mu_of(epsilon, delta)
    events = (Gaussian(2 / mu, 4),)
    found = guessing.accuracy_epsilon(accuracy_of(mu), events, delta, REPLACE)
    assert found == pytest.approx(epsilon, rel=1e-7)
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(found)
        at = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert float(at) == pytest.approx(delta, rel=1e-6)


@covering(("z", [0.7, 2.0]), ("relation", [REPLACE, ADD]))
def test_the_distance_of_samples_is_bounded_by_the_loss_distribution(relation, z):
    """By quadrature of the mixtures themselves, in both directions, which agree."""
    q, x = 0.25, np.linspace(-60, 60, 400_001)
    scale = 2 * z if relation is REPLACE else z
    base, moved = stats.norm.pdf(x, 0, scale), stats.norm.pdf(x, 1, scale)
    other = stats.norm.pdf(x, -1, scale) if relation is REPLACE else base
    p, r = (1 - q) * base + q * moved, (1 - q) * base + q * other
    forth, back = (np.trapezoid(np.maximum(a - b, 0), x) for a, b in ((p, r), (r, p)))
    assert forth == pytest.approx(back, rel=1e-6)
    bound = pld.delta_of((PoissonSampled(2**14, Gaussian(z)),), 0.0, relation)
    assert forth * (1 - 1e-7) <= bound <= forth * 1.01 + 1e-6


@pytest.mark.parametrize(
    "events", [(Gaussian(3.0, 2), BoundedRange(0.3, 5)), (ZCDP(0.3),), (Gaussian(5.0), ZCDP(0.01))]
)
def test_the_farthest_concentrated_claim_is_never_refuted(events):
    """At the largest distance that Pinsker's inequality leaves."""
    rho = math.fsum(event.zcdp for event in events)
    price = epsilon_of(events, 1e-5, REPLACE).epsilon
    found = guessing.accuracy_epsilon((1 + math.sqrt(min(rho / 2, 1))) / 2, events, 1e-5, REPLACE)
    assert found <= price * (1 + 1e-4)


PURE = [(Laplace(1.0), laplace_distance(1.0)), (PureDP(1.0), math.tanh(0.5)), (BoundedRange(0.1), math.tanh(0.025))]


@pytest.mark.parametrize(("event", "distance"), PURE)
def test_an_honest_pure_release_beside_a_delta_is_not_refuted(event, distance):
    """The laws are known to the last digit: two Laplace laws, randomized response, a choice between two."""
    price = epsilon_of((event,), 1e-5, REPLACE).epsilon
    found = guessing.accuracy_epsilon((1 + distance) / 2, (event,), 1e-5, REPLACE)
    assert found is None or found <= price * (1 + 1e-6)
