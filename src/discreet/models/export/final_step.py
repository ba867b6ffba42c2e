"""The last step of an exported pipeline: scikit-learn's own linear model with released coefficients."""

from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from discreet.errors import Unsupported
from discreet.losses.base import loss_of
from discreet.models.base import DPLinearModel
from discreet.models.regression import DPPoissonRegressor
from discreet.typing import Floats


def final_step(model: DPLinearModel, coef: Floats, intercept: Floats) -> Any:
    """Return a scikit-learn estimator that maps features to the model's predictions by these coefficients.

    Parameters
    ----------
    model : estimator
        The fitted private model, which says what its margins mean.
    coef : ndarray of shape (n_outputs, n_features)
        Coefficients of the features that the estimator is given.
    intercept : ndarray of shape (n_outputs,)
        The intercepts.

    Returns
    -------
    estimator
        ``LogisticRegression`` where the model has probabilities, ``LinearSVC`` for other classifiers,
        ``LinearRegression`` for numbers, within ``TransformedTargetRegressor`` for counts.
    """
    if hasattr(model, "classes_"):
        made = LogisticRegression() if hasattr(model, "predict_proba") else LinearSVC()
        made.classes_, made.coef_, made.intercept_ = model.classes_.copy(), coef, intercept
        made.n_features_in_, made.n_iter_ = coef.shape[1], np.zeros(1, dtype=np.int32)
        return made
    limit = log_limit(model)
    return _linear(LinearRegression(), coef, intercept) if limit is None else _counts(limit, coef, intercept)


def log_limit(model: Any) -> float | None:
    """Return the bound on the logarithm of the mean where predictions are exponentials, None where they are margins."""
    if isinstance(model, DPPoissonRegressor):
        return float(model.limit)
    loss = loss_of(model.loss) if hasattr(model, "loss") else None
    probe = np.array([-2.0, 0.5, 3.0])
    mean = model._mean(probe)
    if loss is not None and loss.log_link and np.array_equal(mean, np.exp(np.clip(probe, -loss.limit, loss.limit))):
        return float(loss.limit)
    if not np.array_equal(mean, probe):
        raise Unsupported(f"{type(model).__name__} predicts by a link of its own, which scikit-learn does not have")
    return None


def _linear(made: Any, coef: Floats, intercept: Floats) -> Any:
    made.coef_, made.intercept_, made.n_features_in_ = coef[0], float(intercept[0]), coef.shape[1]
    return made


def _counts(limit: float, coef: Floats, intercept: Floats) -> Any:
    """Return exp of the margin, which is first clipped to the limit: the inverse of the transforms, last one first."""
    link = Pipeline(
        [
            ("exp", FunctionTransformer(np.log, np.exp)),
            ("limit", FunctionTransformer(None, np.clip, inv_kw_args={"a_min": -limit, "a_max": limit})),
        ]
    )
    made = TransformedTargetRegressor(LinearRegression(), transformer=link, check_inverse=False)
    made.fit(np.zeros((2, coef.shape[1])), np.ones(2))  # made-up rows: a fit sets how predictions are shaped
    _linear(made.regressor_, coef, intercept)
    return made
