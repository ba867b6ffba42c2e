"""Coordinate descent or stochastic gradients: known answers of the comparison."""

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.solvers import compare_bounds


def test_equal_smoothness_makes_both_the_same():
    rng = np.random.default_rng(0)
    for p in (1, 3, 10):
        found = compare_bounds(rng.uniform(0.1, 1, p), np.full(p, 0.25), rng.normal(size=p))
        assert found.ratio == pytest.approx(1.0)


def test_small_columns_that_matter_are_for_coordinate_descent():
    """By hand: ||Delta||_{M^-1} = sqrt(p), ||w||_M = sqrt(p) where Delta_j = sqrt(M_j) = 1 / w_j."""
    widths = np.array([1.0, 0.1, 0.01])
    found = compare_bounds(widths, widths**2, 1 / widths)
    assert found.cd == pytest.approx(3.0)
    assert found.sgd == pytest.approx(np.linalg.norm(widths) * np.linalg.norm(1 / widths))
    assert found.better == "cd"
    assert compare_bounds(widths, widths**2, widths**2).better == "sgd"


def test_strongly_convex_bounds_are_compared_by_their_moduli():
    """Delta^2_{M^-1} / mu_M against Delta_2^2 / mu_2: alike for equal M, else p mu_2 / (mu_M ||Delta||^2) by hand."""
    assert compare_bounds([1.0, 2.0], [0.25, 0.25], moduli=(0.4, 0.1)).ratio == pytest.approx(1.0)
    widths = np.array([1.0, 0.1, 0.01])
    found = compare_bounds(widths, widths**2, moduli=(0.5, 0.5e-4))
    assert (found.cd, found.sgd) == pytest.approx((6.0, float(widths @ widths) / 0.5e-4))
    for moduli in ((1.5, 1.0), (0.5, 1e-6), (0.5, 0.6)):
        with pytest.raises(Unsupported, match="mu_M"):
            compare_bounds(widths, widths**2, moduli=moduli)
