"""Ranges of features and targets that leave out 0 are centered at their middle: public maps, exact on the way back."""

import numpy as np
import pytest

from discreet import Bounds, DPHuberRegressor, DPLasso, DPLinearRegression, DPRegressor, DPRidge
from discreet.curator.records import admission
from discreet.losses import Huber
from discreet.testing import seeded

RANGES = [(1950.0, 2020.0), (-120.0, -70.0), (-1.0, 1.0)]
MIDDLES, HALVES = np.array([1985.0, -95.0, 0.0]), np.array([35.0, 25.0, 1.0])
MIDDLE, HALF = 105.0, 5.0
NEAR, FAR = (-HALF, HALF), (MIDDLE - HALF, MIDDLE + HALF)
SLOPES = np.array([2.0, -1.0, 0.5])


def table(n=4000):
    """Return rows around 0, and targets within NEAR."""
    rng = np.random.default_rng(0)
    U = rng.uniform(-1, 1, (n, 3))
    return U, np.clip(U @ SLOPES + rng.normal(0, 0.5, n), *NEAR)


def far_rows(U):
    return MIDDLES + HALVES * U


def fitted_twice(kind, *cases, **settings):
    """Return fits of (rows, targets, bounds, target), by the same noise."""
    models = []
    for X, y, bounds, target in cases:
        with seeded(1):
            models.append(kind(bounds=bounds, target=target, ledger=False, **settings).fit(X, y))
    return models


# ------------------------------------------------------------------------------------------------ features


def test_only_ranges_without_zero_are_moved():
    scaling = admission.scaling_for(Bounds([*RANGES, (0, 1), (3, 3)]), 5, None, True)
    np.testing.assert_allclose(scaling.center, [*MIDDLES, 0, 0])
    np.testing.assert_allclose(scaling.scale, [*HALVES, 1, 3])
    np.testing.assert_allclose(scaling.ranges[:2], [[-1, 1], [-1, 1]])
    assert scaling.grid is admission.COARSE


@pytest.mark.parametrize("facts", [{"intercept": False}, {"row_norm": 1.0}, {"scale": "global"}])
def test_nothing_is_moved_where_the_raw_geometry_counts(facts):
    intercept = facts.pop("intercept", True)
    assert not admission.scaling_for(Bounds(RANGES, **facts), 3, None, intercept).center.any()


@pytest.mark.parametrize("kind", [DPRidge, DPLasso])
def test_the_shifted_table_is_the_same_problem(kind):
    """The same noise on years and on their distance from the middle gives the same model, and the same intervals."""
    U, y = table()
    X = far_rows(U)
    far, near = fitted_twice(kind, (X, y, RANGES, NEAR), (U, y, [(-1, 1)] * 3, NEAR), epsilon=1.0, alpha=1e-2)
    np.testing.assert_allclose(far.coef_, near.coef_ / HALVES, rtol=1e-9)
    np.testing.assert_allclose(far.predict(X), near.predict(U), rtol=1e-9)
    np.testing.assert_allclose(far.coef_noise_, near.coef_noise_ / HALVES, rtol=1e-9)


# ------------------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize("epsilon", [1.0, np.inf])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (DPLinearRegression, {}),
        (DPLinearRegression, {"solver": "gd"}),
        (DPRidge, {"alpha": 0.01}),
        (DPLasso, {"alpha": 0.01}),
        (DPHuberRegressor, {"width": 2.0}),
        (DPRegressor, {"loss": Huber(2.0)}),
    ],
)
def test_the_shifted_targets_are_the_same_problem(kind, settings, epsilon):
    X, y = table()
    near, far = fitted_twice(kind, (X, y, 1.0, NEAR), (X, y + MIDDLE, 1.0, FAR), epsilon=epsilon, **settings)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(far.intercept_, near.intercept_ + MIDDLE, rtol=1e-9)
    np.testing.assert_allclose(far.coef_noise_, near.coef_noise_, rtol=1e-6)
    np.testing.assert_allclose(far.intercept_noise_, near.intercept_noise_, rtol=1e-6)


def test_effects_and_their_intervals_are_the_same():
    X, y = table()
    settings = {"epsilon": 4.0, "inference": "sandwich", "neighbors": "zero_out"}
    near, far = fitted_twice(DPLinearRegression, (X, y, 1.0, NEAR), (X, y + MIDDLE, 1.0, FAR), **settings)
    np.testing.assert_allclose(far.effects_.covariance, near.effects_.covariance, rtol=1e-6, atol=1e-12)
    assert far.effects_.deviation == pytest.approx(near.effects_.deviation)
