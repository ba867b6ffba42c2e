"""Rivals get noise that meets their claim, and find least squares without noise."""

import numpy as np
import pytest

from benchmarks.methods import least_squares_rivals as rivals


def test_the_divergence_of_a_sketch_is_that_of_two_normal_laws():
    """Against a numerical integral of one row in one dimension: N(0, gamma) and N(0, gamma - 1)."""
    gamma, x = 6.0, np.linspace(-60, 60, 400_001)
    p, q = (-(x**2) / (2 * s) - np.log(2 * np.pi * s) / 2 for s in (gamma, gamma - 1.0))
    for place in np.searchsorted(rivals.ORDERS, [1.5, 2.0, 4.0]):
        order = rivals.ORDERS[place]
        by_hand = max(
            np.log(np.trapezoid(np.exp(order * one + (1 - order) * other), x)) / (order - 1)
            for one, other in ((p, q), (q, p))
        )
        assert rivals.sketch_divergence(1, gamma)[place] == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_mixing_spends_its_budget_and_no_more(epsilon):
    gamma, z = rivals.mixing_noise(60, epsilon, 1e-6)
    spent = rivals.STEPS * rivals.sketch_divergence(60, gamma) + (rivals.STEPS + 1) * rivals.ORDERS / (2 * z**2)
    assert rivals.epsilon_of(spent, 5e-7) == pytest.approx(epsilon, rel=1e-6)
