"""A fitted estimator as the plain numbers that a score needs."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.curator import Released, is_stream, two_dimensional
from discreet.errors import Unsupported
from discreet.models.base import DPLinearModel
from discreet.models.selection.search_price import facts_of


def released(model: Any, X: Any) -> Released:
    """The model's numbers, after a check that these columns are its own: by names and shapes only."""
    if not isinstance(model, DPLinearModel):
        raise Unsupported("a private score needs one of discreet's fitted estimators, such as DPLogisticRegression")
    check_is_fitted(model)
    facts = facts_of(model)
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    names = getattr(model, "feature_names_in_", None)
    if is_stream(X):
        if X.shape[1] != coef.shape[1] or (names is not None and list(X.columns) != [str(name) for name in names]):
            raise Unsupported("these columns are not the ones that the model was fitted on")
    else:
        two_dimensional(X)  # else the message of the check below would have the number of rows
        validate_data(model, X, reset=False, skip_check_array=True)
    if not (np.isfinite(coef).all() and np.isfinite(np.asarray(model.intercept_)).all()):
        raise Unsupported("the model's coefficients are not finite: it predicts nothing that could be scored")
    low, high = facts.bounds.ranges(coef.shape[1], names)
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    return Released(type(model).__name__, facts.bounds.with_facts(n=None), facts.loss, coef, intercept, low, high)
