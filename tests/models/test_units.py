"""Coefficients in the user's units, persons behind rows, and what is predicted."""

import numpy as np
import pytest

from discreet import DPHuberRegressor, DPLinearRegression, DPLogisticRegression, DPRidge
from tests.models.declared import CLASSIFIERS, GD, every, make

# --------------------------------------------------------------------------------------------------- units


@every
def test_coefficients_are_in_the_users_units(kind, small_table, seeded):
    """Ten times the features with ten times the bounds is the same training problem: coefficients divided by ten."""
    fits = []
    for factor in (1.0, 10.0):
        model = make(kind, bounds=factor, epsilon=2.0)
        y = (small_table.signs > 0).astype(int) if kind in CLASSIFIERS else np.minimum(small_table.counts, 10)
        with seeded(3):
            fits.append(model.fit(small_table.X * factor, y))
    np.testing.assert_allclose(fits[1].coef_ * 10, fits[0].coef_, rtol=1e-12)
    np.testing.assert_allclose(fits[1].intercept_, fits[0].intercept_, rtol=1e-12)
    np.testing.assert_allclose(fits[1].predict(small_table.X * 10), fits[0].predict(small_table.X), rtol=1e-9)


@pytest.mark.parametrize("kind", [DPLinearRegression, DPRidge, DPHuberRegressor])
def test_targets_are_scaled_by_their_bound(kind, small_table, seeded):
    fits = []
    for factor in (1.0, 1000.0):
        with seeded(4):
            model = kind(2.0, bounds=1.0, target=(-factor, factor), solver=GD)
            fits.append(model.fit(small_table.X, small_table.numbers * factor))
    np.testing.assert_allclose(fits[1].coef_, 1000 * fits[0].coef_, rtol=1e-9)
    np.testing.assert_allclose(fits[1].intercept_, 1000 * fits[0].intercept_, rtol=1e-9)


# ----------------------------------------------------------------------------------------------- predictions


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(n_classes, small_table):
    y = small_table.labels % n_classes
    model = DPLogisticRegression(1.0, bounds=1.0, classes=tuple(range(n_classes)), solver=GD).fit(small_table.X, y)
    far = np.vstack([small_table.X, 1e6 * small_table.X])  # margins that overflow a careless exp
    probabilities = model.predict_proba(far)
    assert probabilities.shape == (240, n_classes)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(far))
    near = model.predict_proba(small_table.X)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(small_table.X)), near)
    assert model.coef_.shape == ((1, 3) if n_classes == 2 else (3, 3))
    assert model.intercept_.shape == ((1,) if n_classes == 2 else (3,))
