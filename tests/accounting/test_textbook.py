"""Textbook theorems: known answers, their conditions, and that exact prices are below them."""

import math

import pytest
from scipy.stats import binom

from discreet import Budget
from discreet.accounting import (
    Plan,
    Release,
    advanced_composition,
    advanced_share,
    basic_composition,
    calibrate,
    classical_gaussian,
    gaussian,
    lecture_epsilon,
    population_gap,
    price,
    records_for_uniform_convergence,
)
from discreet.errors import AccountingError, Unsupported


def test_unequal_claims_add_up():
    assert basic_composition([(0.1, 1e-6), (0.3, 0.0), (0.2, 2e-6)]) == pytest.approx((0.6, 3e-6))
    assert basic_composition([]) == (0.0, 0.0)
    assert basic_composition([(0.1, 0.7), (0.1, 0.7)])[1] == 1.0
    with pytest.raises(AccountingError):
        basic_composition([(-0.1, 0.0)])


def test_advanced_composition_and_its_corollary():
    assert advanced_composition(0.1, 0.0, 100, 1e-6)[0] == pytest.approx(6.308231, abs=1e-6)
    share = advanced_share(0.9, 100, 1e-6)
    assert share == pytest.approx(0.9 / math.sqrt(800 * math.log(1e6)))
    assert advanced_composition(share, 0.0, 100, 1e-6)[0] == pytest.approx(0.457, abs=1e-3)
    with pytest.raises(Unsupported, match="advanced_composition"):
        advanced_share(1.5, 100, 1e-6)


def test_the_classical_gaussian_holds_below_one_and_is_refused_beyond():
    for epsilon in (0.1, 0.5, 0.99):
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
