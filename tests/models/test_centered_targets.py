"""Targets whose declared range leaves out 0 are centered at its middle: a public map, exact on the way back."""

import numpy as np
import pytest

from discreet import Bounds, DPHuberRegressor, DPLasso, DPLinearRegression, DPPoissonRegressor, DPRegressor, DPRidge
from discreet.bounds import target_place
from discreet.curator import PrivateData
from discreet.losses import Huber, Squared
from discreet.models.starting_point import starting_point
from discreet.testing import neighbor_pairs, seeded
from tests.replaying import worst_ratio

MIDDLE, HALF = 105.0, 5.0
NEAR, FAR = (-HALF, HALF), (MIDDLE - HALF, MIDDLE + HALF)


def table(n=3000):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.clip(X @ [2.0, -1.0, 0.5] + rng.normal(0, 0.5, n), *NEAR)


def both(kind, **words):
    """Fit the same rows with targets around 0 and far from it, by the same noise."""
    X, y = table()
    made = []
    for ends, shift in ((NEAR, 0.0), (FAR, MIDDLE)):
        with seeded(1):
            made.append(kind(bounds=1.0, target=ends, neighbors="zero_out", ledger=False, **words).fit(X, y + shift))
    return made


@pytest.mark.parametrize("epsilon", [1.0, np.inf])
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (DPLinearRegression, {}),
        (DPLinearRegression, {"solver": "gd"}),
        (DPRidge, {"alpha": 0.01}),
        (DPLasso, {"alpha": 0.01}),
        (DPHuberRegressor, {"width": 2.0}),
        (DPRegressor, {"loss": Huber(2.0)}),
    ],
)
def test_the_shifted_targets_are_the_same_problem(kind, words, epsilon):
    near, far = both(kind, epsilon=epsilon, **words)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(far.intercept_, near.intercept_ + MIDDLE, rtol=1e-9)
    np.testing.assert_allclose(far.coef_noise_, near.coef_noise_, rtol=1e-6)
    np.testing.assert_allclose(far.intercept_noise_, near.intercept_noise_, rtol=1e-6)


def test_effects_and_their_intervals_are_the_same():
    near, far = both(DPLinearRegression, epsilon=4.0, inference="sandwich")
    np.testing.assert_allclose(far.effects_.covariance, near.effects_.covariance, rtol=1e-6, atol=1e-12)
    assert far.effects_.deviation == pytest.approx(near.effects_.deviation)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-6)
    np.testing.assert_allclose(far.intercept_, near.intercept_ + MIDDLE, rtol=1e-9)


def test_only_ranges_without_zero_are_moved_and_only_where_an_intercept_takes_them_back():
    assert target_place(FAR, moves=True) == (MIDDLE, HALF)
    assert target_place((-FAR[1], -FAR[0]), moves=True) == (-MIDDLE, HALF)
    for ends, moves in ((FAR, False), ((0.0, 110.0), True), ((-5.0, 110.0), True), ((110.0, 110.0), True)):
        assert target_place(ends, moves=moves) == (0.0, 110.0)
    data = PrivateData(*table(10), Bounds(1.0, target=FAR), fit_intercept=False, ledger=False)
    assert data.target_place(Squared()) == (0.0, 110.0)


def test_counts_stay_where_they_are():
    X, y = table()
    model = DPPoissonRegressor(np.inf, bounds=1.0, target=(1, 20), ledger=False).fit(X, np.round(y + 6.0))
    assert np.mean(model.predict(X)) == pytest.approx(np.mean(np.round(y + 6.0)), rel=0.01)


def test_a_start_in_own_units_is_mapped_there():
    data = PrivateData(*table(10), Bounds(1.0, target=FAR), ledger=False)
    found = starting_point((np.array([2.0, -1.0, 0.5]), 106.0), data, Squared())
    np.testing.assert_allclose(found, [2.0 / HALF, -1.0 / HALF, 0.5 / HALF, 1.0 / HALF])


@pytest.mark.parametrize("relation", ["replace_one", "zero_out", "add_remove"])
def test_fits_replay_on_neighbors(relation):
    X, y = table(9)
    bounds = Bounds(1.0, target=FAR)

    def fit(X, y, groups=None):
        return DPRidge(2.0, delta=1e-6, bounds=bounds, alpha=0.1, neighbors=relation, ledger=False).fit(X, y)

    pairs = list(neighbor_pairs(X, y + MIDDLE, relation=relation, bounds=bounds))
    assert worst_ratio(fit, pairs[::6], relation) <= 1.0
