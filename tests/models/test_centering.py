"""Ranges of features and targets that leave out 0 are centered at their middle: public maps, exact on the way back."""

import numpy as np
import pytest

from discreet import (
    Bounds,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPRegressor,
    DPRidge,
)
from discreet.bounds import target_place
from discreet.curator import PrivateData
from discreet.curator.records import admission
from discreet.losses import Huber, Squared
from discreet.models.fit import starting_point
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


@pytest.mark.parametrize("solver", ["auto", "gd", "cd"])
def test_without_noise_it_is_the_minimizer_in_centered_coordinates(solver):
    U, y = table()
    model = DPRidge(np.inf, bounds=RANGES, target=NEAR, alpha=0.1, solver=solver).fit(far_rows(U), y)
    rows = np.column_stack([U, np.ones(len(U))])
    best = np.linalg.solve(rows.T @ rows / len(U) + 0.1 * np.eye(4), rows.T @ y / len(U))
    np.testing.assert_allclose(model.coef_, best[:3] / HALVES, rtol=2e-2)
    np.testing.assert_allclose(model.predict(far_rows(U)), rows @ best, atol=0.05)


@pytest.mark.parametrize("solver", ["auto", "gd"])
def test_the_noise_in_a_far_intercept_is_that_of_its_slopes(solver):
    U, y = table()
    model = DPLinearRegression(1.0, bounds=RANGES, target=NEAR, solver=solver).fit(far_rows(U), y)
    slopes = np.linalg.norm(model.coef_noise_ * MIDDLES)
    assert 0.5 * slopes < model.intercept_noise_ < 3 * slopes


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


def test_targets_are_moved_only_where_an_intercept_takes_them_back():
    assert target_place(FAR, moves=True) == (MIDDLE, HALF)
    assert target_place((-FAR[1], -FAR[0]), moves=True) == (-MIDDLE, HALF)
    for ends, moves in ((FAR, False), ((0.0, 110.0), True), ((-5.0, 110.0), True), ((110.0, 110.0), True)):
        assert target_place(ends, moves=moves) == (0.0, 110.0)
    data = PrivateData(*table(10), Bounds(1.0, target=FAR), fit_intercept=False, ledger=False)
    assert data.target_place(Squared()) == (0.0, 110.0)


def test_a_start_in_own_units_is_mapped_there():
    U, y = table(10)
    data = PrivateData(far_rows(U), y + MIDDLE, Bounds(RANGES, target=FAR), ledger=False)
    slopes, intercept = np.array([0.05, -0.04, 0.5]), 7.0
    start = starting_point((slopes, intercept), data, Squared())
    np.testing.assert_allclose(start, [*(slopes * HALVES / HALF), (slopes @ MIDDLES + intercept - MIDDLE) / HALF])
