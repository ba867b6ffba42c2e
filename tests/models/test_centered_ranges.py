"""Ranges that leave out 0 are centered at their middle: a public map, exact on the way back."""

import numpy as np
import pytest

from discreet import Bounds, DPLasso, DPLinearRegression, DPLogisticRegression, DPRidge
from discreet.curator import PrivateData
from discreet.curator.records import admission
from discreet.losses import Squared
from discreet.models.starting_point import starting_point
from discreet.testing import seeded

LOW, HIGH = np.array([1950.0, -120.0, -1.0]), np.array([2020.0, -70.0, 1.0])
RANGES = list(zip(LOW.tolist(), HIGH.tolist(), strict=True))
MIDDLE, HALF = np.array([1985.0, -95.0, 0.0]), np.array([35.0, 25.0, 1.0])


def table(n=4000):
    rng = np.random.default_rng(0)
    U = rng.uniform(-1, 1, (n, 3))
    return MIDDLE + HALF * U, U, 5.0 + U @ [2.0, -1.0, 0.5] + rng.normal(0, 0.5, n)


def test_only_ranges_without_zero_are_moved():
    found = admission.scaling_for(Bounds([*RANGES, (0, 1), (3, 3)]), 5, None, True)
    np.testing.assert_allclose(found.center, [*MIDDLE, 0, 0])
    np.testing.assert_allclose(found.scale, [*HALF, 1, 3])
    np.testing.assert_allclose(found.ranges[:2], [[-1, 1], [-1, 1]])
    assert found.grid is admission.COARSE


@pytest.mark.parametrize("facts", [{"intercept": False}, {"row_norm": 1.0}, {"scale": "global"}])
def test_nothing_is_moved_where_the_raw_geometry_counts(facts):
    intercept = facts.pop("intercept", True)
    assert not admission.scaling_for(Bounds(RANGES, **facts), 3, None, intercept).center.any()


def test_the_shifted_table_is_the_same_problem():
    """The same noise on years and on their distance from the middle gives the same model, and the same intervals."""
    X, U, y = table()
    for kind, alpha in ((DPRidge, 1e-2), (DPLasso, 1e-2)):
        made = []
        for rows, ranges in ((X, RANGES), (U, [(-1, 1)] * 3)):
            with seeded(1):
                made.append(kind(1.0, bounds=ranges, target=(0, 10), alpha=alpha).fit(rows, y))
        far, near = made
        np.testing.assert_allclose(far.coef_, near.coef_ / HALF, rtol=1e-9)
        np.testing.assert_allclose(far.predict(X), near.predict(U), rtol=1e-9)
        np.testing.assert_allclose(far.coef_noise_, near.coef_noise_ / HALF, rtol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "gd", "cd"])
def test_without_noise_it_is_the_minimizer_in_centered_coordinates(solver):
    X, U, y = table()
    model = DPRidge(np.inf, bounds=RANGES, target=(0, 10), alpha=0.1, solver=solver).fit(X, y)
    rows = np.column_stack([U, np.ones(len(U))])
    best = np.linalg.solve(rows.T @ rows / len(U) + 0.1 * np.eye(4), rows.T @ (y / 10) / len(U)) * 10
    np.testing.assert_allclose(model.coef_, best[:3] / HALF, rtol=2e-2)
    np.testing.assert_allclose(model.predict(X), rows @ best, atol=0.05)


def test_the_noise_in_a_far_intercept_is_that_of_its_slopes():
    X, _, y = table()
    for solver in ("auto", "gd"):
        model = DPLinearRegression(1.0, bounds=RANGES, target=(0, 10), solver=solver).fit(X, y)
        slopes = np.linalg.norm(model.coef_noise_ * MIDDLE)
        assert 0.5 * slopes < model.intercept_noise_ < 3 * slopes


def test_a_start_in_own_units_is_mapped_there_and_back():
    data = PrivateData(*table(10)[::2], Bounds(RANGES, target=(0, 10)), ledger=False)
    start = np.array([0.05, -0.04, 0.5]), -98.0
    found = starting_point(start, data, Squared())
    np.testing.assert_allclose(found, [*(start[0] * HALF / 10), (start[0] @ MIDDLE - 98.0) / 10])


def test_labels_too():
    X, U, _ = table()
    y = (U[:, 0] > 0.1).astype(int)
    with seeded(0):
        model = DPLogisticRegression(1.0, bounds=RANGES, classes=(0, 1), solver="gd").fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.9
