"""Our own Renyi-DP and zCDP accountant."""

import math

import numpy as np
import pytest

from discreet.accounting import gaussian, rdp
from discreet.accounting.events import ZCDP, BoundedRange, Gaussian, PureDP, renyi_epsilon
from discreet.budget import Neighbors
from tests.accounting import published


@pytest.mark.parametrize(
    ("budget", "simple", "tight", "exact"),
    [
        ((1, 1e-5), 0.020819938340, 0.030556595198, 0.035925702327),
        ((0.1, 1e-8), 0.000135349889, 0.000208816381, 0.000236939755),
        ((1.6, 1e-8), 0.033311901343, 0.041975776304, 0.046724957434),
        ((1, 1e-6), 0.017468904769, 0.024355970360, 0.028014481913),
    ],
)
def test_rho_of_a_budget(budget, simple, tight, exact):
    epsilon, delta = budget
    log = math.log(1 / delta)
    assert (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2 == pytest.approx(simple, rel=1e-6)
    assert published.loose_epsilon_of_zcdp(simple, delta) == pytest.approx(epsilon, rel=1e-6)
    assert rdp.zcdp_of_budget(epsilon, delta) == pytest.approx(tight, rel=1e-6)
    assert gaussian.mu_of(epsilon, delta) ** 2 / 2 == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "pure", "laplace", "bounded", "kl"),
    [
        (1, 0.46211716, 0.36787944, 0.125, 0.12330156),
        (2, 1.52318831, 1.13533528, 0.5, 0.47447465),
        (0.5, 0.12245933, 0.10653066, 0.03125, 0.03114209),
    ],
)
def test_zcdp_of_mechanisms(epsilon, pure, laplace, bounded, kl):
    assert rdp.zcdp_of_pure(epsilon) == pytest.approx(pure, abs=1e-8)
    assert rdp.zcdp_of_laplace(epsilon) == pytest.approx(laplace, abs=1e-8)
    assert rdp.zcdp_of_bounded_range(epsilon) == bounded
    # The largest KL divergence at bounded range is the limit of order 1: a lower bound on the best rho.
    u = epsilon / -math.expm1(-epsilon)
    assert u - 1 - math.log(u) == pytest.approx(kl, abs=1e-8)
    assert kl <= bounded


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2, 5, 8])
def test_renyi_curves_stay_below_their_zcdp_line(epsilon):
    orders = np.concatenate([1 + np.logspace(-4, 0, 30), rdp.orders()])
    line = (orders - 1) * orders
    assert np.all(rdp.moments_of_pure(epsilon, orders) <= line * rdp.zcdp_of_pure(epsilon) * (1 + 1e-6))
    assert np.all(rdp.moments_of_laplace(epsilon, orders) <= line * rdp.zcdp_of_laplace(epsilon) * (1 + 1e-6) + 1e-15)


def test_curve_search_is_close_to_the_continuous_one():
    assert renyi_epsilon([ZCDP(0.5)], 1e-6, Neighbors.REPLACE_ONE) == pytest.approx(5.22153444, rel=1e-2)
    assert renyi_epsilon([ZCDP(0.5)], 1e-6, Neighbors.REPLACE_ONE) >= 5.22153444
    assert renyi_epsilon([Gaussian(1.0)], 1e-6, Neighbors.REPLACE_ONE) >= 5.22153444
    assert 2.41909 <= renyi_epsilon([BoundedRange(0.1, 100)], 1e-6, Neighbors.ADD_REMOVE) <= 2.43
    assert renyi_epsilon([PureDP(0.1, 100)], 1e-6, Neighbors.ADD_REMOVE) <= 5.23


@pytest.mark.parametrize(("q", "z"), [(0.1, 1.0), (0.01, 0.6), (0.5, 3.0), (0.9, 2.0)])
def test_sampled_gaussian_moments_by_integration(q, z):
    """Both directions of add/remove, and replace-one, by a fine sum over the real line."""
    x, step = np.linspace(-60 * z - 20, 60 * z + 20, 200_001, retstep=True)

    def log_mixture(center):
        drawn = math.log(q) - 0.5 * ((x - center) / z) ** 2
        return np.logaddexp(math.log1p(-q) - 0.5 * (x / z) ** 2, drawn) - math.log(z * math.sqrt(2 * math.pi))

    def moment(first, second, order):
        return float(np.logaddexp.reduce(order * first + (1 - order) * second)) + math.log(step)

    none = -0.5 * (x / z) ** 2 - math.log(z * math.sqrt(2 * math.pi))
    for order in (2, 3, 8):
        bound = rdp.moments_of_sampled_gaussian(q, z, np.array([order], dtype=float))[0]
        assert moment(log_mixture(1.0), none, order) == pytest.approx(bound, abs=1e-8)
        assert moment(none, log_mixture(1.0), order) <= bound + 1e-9
        replaced = rdp.replace_moments_of_sampled_gaussian(q, z, np.array([order], dtype=float))[0]
        assert moment(log_mixture(0.5), log_mixture(-0.5), order) <= replaced + 1e-9


@pytest.mark.parametrize("q", [0.01, 0.3, 1.0])
def test_pure_amplification_holds_on_the_worst_binary_mechanism(q):
    """Replace-one: the record says 1, its replacement 0; not drawn, the answer may lean either way."""
    epsilon = 1.3
    bound = rdp.amplified_pure(epsilon, q)
    p1, p1_replaced = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    for p0 in np.linspace(p1_replaced, p1, 50):
        p, r = (1 - q) * p0 + q * p1, (1 - q) * p0 + q * p1_replaced
        assert math.log(p / r) <= bound + 1e-12
        assert math.log((1 - r) / (1 - p)) <= bound + 1e-12
