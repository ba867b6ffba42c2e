"""Predictions of a skewed target come back to its mean, with one gradient of the plan."""

import numpy as np
import pytest

from discreet import Bounds, DPLasso, DPLinearRegression, DPRidge
from discreet.solvers import NewtonDescent, Whitened
from discreet.testing import seeded


def skewed(n=8000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.clip(np.exp(0.5 * X[:, 0] + rng.normal(0, 0.9, n)), 0, 30)


def fitted(clip, kind=DPLinearRegression, **settings):
    X, y = skewed()
    solver = Whitened(
        NewtonDescent(relative_clip=0.75), constant=None, relative_row_norm=2.0, calibrate_predictions=clip
    )
    with seeded(0):
        model = kind(2.0, bounds=Bounds([(-4.0, 4.0)] * 3, target=(0.0, 30.0)), solver=solver, **settings).fit(X, y)
    return model, model.predict(X).mean() - y.mean(), y.std()


def test_the_mean_of_predictions_comes_back():
    (plain, before, spread), (calibrated, after, _) = fitted(0.0), fitted(8.0)
    assert before < -0.1 * spread
    assert abs(after) < 0.5 * abs(before)  # shrunk rows keep the rest
    assert abs(calibrated.coef_[0]) > abs(plain.coef_[0])
    assert (calibrated.coef_noise_ > 0).all()


def test_it_is_one_gradient_of_the_plan():
    counts = [[event.count for event in fitted(clip)[0].certificate_.events] for clip in (0.0, 8.0)]
    assert sum(counts[1]) == sum(counts[0]) + 1
    assert fitted(8.0)[0].certificate_.epsilon == 2.0


def test_a_penalty_is_followed():
    """A strong L2 penalty keeps slopes flat; corners are left alone, since they mean to shrink."""
    assert np.abs(fitted(8.0, DPRidge, alpha=100.0)[0].coef_).max() < 0.1
    lasso = [fitted(clip, DPLasso, alpha=0.01)[0].coef_ for clip in (0.0, 8.0)]
    np.testing.assert_array_equal(*lasso)


def test_without_noise_nothing_is_calibrated():
    X, y = skewed(500)
    solver = Whitened(NewtonDescent(floor=1e-9), constant=None, calibrate_predictions=8.0)
    bounds = Bounds([(-4.0, 4.0)] * 3, target=(0.0, 30.0))
    found = DPLinearRegression(np.inf, bounds=bounds, solver=solver).fit(X, y)
    exact = np.linalg.lstsq(np.column_stack([np.clip(X, -4, 4), np.ones(500)]), y, rcond=None)[0]
    np.testing.assert_allclose(found.coef_, exact[:3], rtol=0.01, atol=0.01)
    assert found.intercept_ == pytest.approx(exact[3], rel=0.01)
