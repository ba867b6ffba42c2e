"""Predictions see features within their declared ranges, as training did: beyond them nothing was learned."""

import numpy as np
import pandas as pd
import pytest

from discreet import (
    DPHuberRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.solvers import GradientDescent

RANGES = [(-1.0, 1.0), (0.0, 3.0), (-2.0, 0.5)]
LOW, HIGH = np.array(RANGES).T
NAMES = ["age", "income", "debt"]
GD = GradientDescent(n_steps=4)

MODELS = {
    "logistic": DPLogisticRegression(4.0, 1e-5, bounds=RANGES, classes=(0, 1), solver=GD),
    "softmax": DPLogisticRegression(4.0, 1e-5, bounds=RANGES, classes=(0, 1, 2), solver=GD),
    "svc": DPLinearSVC(4.0, 1e-5, bounds=RANGES, classes=(0, 1), solver=GD),
    "linear": DPLinearRegression(4.0, 1e-5, bounds=RANGES, target=(0, 1), solver=GD),
    "ridge": DPRidge(4.0, 1e-5, bounds=RANGES, target=(0, 1), solver="auto"),
    "huber": DPHuberRegressor(4.0, 1e-5, bounds=RANGES, target=(0, 1), solver=GD, fit_intercept=False),
    "poisson": DPPoissonRegressor(4.0, 1e-5, bounds=RANGES, target=(0, 1), solver=GD),
}
EACH = pytest.mark.parametrize("name", MODELS)


def a_table(n=60):
    rng = np.random.default_rng(0)
    return rng.uniform(LOW, HIGH, (n, 3)), rng.integers(0, 2, n)


def beyond():
    """Records far out in some features or all, and one at the ends."""
    rng = np.random.default_rng(1)
    return np.vstack([rng.normal(0, 4, (30, 3)), LOW - 1e6, HIGH + 1e6, LOW, HIGH, [1e300, -1e300, 0.0]])


def fitted(name, X=None, **settings):
    table, y = a_table()
    model = MODELS[name].__class__(**{**MODELS[name].get_params(deep=False), **settings})
    return model.fit(table if X is None else X, y)


def answers(model, X):
    """All that a model says about records."""
    asked = [getattr(model, name) for name in ("predict", "decision_function", "predict_proba") if hasattr(model, name)]
    return [ask(X) for ask in asked]


def same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@EACH
def test_records_beyond_are_predicted_like_the_nearest_within(name):
    model, X = fitted(name), beyond()
    same(answers(model, X), answers(model, np.clip(X, LOW, HIGH)))
    inside = a_table()[0]
    linear = inside @ np.atleast_2d(model.coef_).T + model.intercept_
    np.testing.assert_allclose(model._margins(inside), linear, rtol=1e-12, atol=1e-12)
    assert np.ptp(model._margins(X), axis=0).max() <= np.abs(model.coef_).sum() * 3 + 1e-12


@pytest.mark.parametrize("name", ["logistic", "softmax", "ridge"])
def test_ranges_by_name(name):
    """Each column meets its own range, in whatever order the ranges were declared."""
    named = {NAMES[j]: RANGES[j] for j in (2, 0, 1)}
    frame = pd.DataFrame(a_table()[0], columns=NAMES)
    model, X = fitted(name, frame, bounds=named), beyond()
    inside = pd.DataFrame(np.clip(X, LOW, HIGH), columns=NAMES)
    same(answers(model, pd.DataFrame(X, columns=NAMES)), answers(model, inside))
    linear = inside.to_numpy() @ np.atleast_2d(model.coef_).T + model.intercept_
    np.testing.assert_allclose(model._margins(pd.DataFrame(X, columns=NAMES)), linear, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["linear", "ridge", "huber", "poisson"])
def test_predictions_lie_in_the_declared_range_of_the_target(name):
    """What noise makes of rows far out in a wide range does not leave the range, here and in exports."""
    model = fitted(name)
    model.coef_, model.intercept_ = 50.0 * np.ones(3), 0.5
    predictions = model.predict(beyond())
    assert predictions.min() >= 0.0
    assert predictions.max() == 1.0
    exported = model.to_sklearn().predict(np.clip(beyond(), -1e200, 1e200))
    np.testing.assert_allclose(exported, predictions, atol=1e-12)
