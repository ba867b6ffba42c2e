"""Exact Gaussian DP against published numbers and 60-digit arithmetic."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import gaussian
from discreet.errors import AccountingError

SIGMAS = {
    (0.1, 1e-5): 30.7495661320,
    (0.5, 1e-5): 7.0318266756,
    (1, 1e-5): 3.7306316348,
    (1, 1e-6): 4.2246788893,
    (1, 1e-8): 5.1003087875,
    (2, 1e-6): 2.2304762712,
    (5, 1e-6): 0.9800490003,
    (8, 1e-5): 0.6002290722,
    (0.5, 1e-6): 8.0576184807,
    (1, 1 / 45312**2): 5.6138897682,
}


@pytest.mark.parametrize(("budget", "sigma"), SIGMAS.items())
def test_analytic_gaussian_noise(budget, sigma):
    assert 1 / gaussian.mu_of(*budget) == pytest.approx(sigma, rel=1e-10)


@pytest.mark.parametrize("mu", [1e-8, 1e-5, 1e-3, 0.01, 0.1, 1, 3, 10, 40, 100, 1000])
def test_delta_is_never_below_the_truth(mu):
    with mpmath.workdps(80):
        for epsilon in [0, 1e-10, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1, 2, 5, 10, 50, 300, 1e4, 1e5]:
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            truth = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            if truth < mpmath.mpf(10) ** -290:
                continue
            excess = mpmath.mpf(gaussian.log_delta_of(epsilon, mu)) - mpmath.log(truth)
            assert 0 <= excess < 1e-5 * (1 if mu < 1e-4 else 1e-4)


def test_limits():
    assert gaussian.delta_of(1.0, 0.0) == 0
    assert gaussian.delta_of(1.0, math.inf) == 1
    assert gaussian.epsilon_of(0.0, 1e-6) == 0
    assert gaussian.epsilon_of(math.inf, 1e-6) == math.inf
    assert gaussian.epsilon_of(1e-8, 1e-6) == 0
    with pytest.raises(AccountingError, match="Laplace"):
        gaussian.mu_of(1.0, 0.0)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 50), st.floats(1e-14, 0.5))
def test_inverses_end_on_the_private_side(epsilon, delta):
    mu = gaussian.mu_of(epsilon, delta)
    assert gaussian.delta_of(epsilon, mu) <= delta
    assert gaussian.delta_of(epsilon, mu * (1 + 1e-9)) > delta * (1 - 1e-6)
    back = gaussian.epsilon_of(mu, delta)
    assert gaussian.delta_of(back, mu) <= delta
    assert back == pytest.approx(epsilon, rel=1e-6, abs=1e-9)
