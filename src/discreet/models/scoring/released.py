"""A fitted estimator as the plain numbers that a score needs."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.curator import Groups, Metric, Released, is_stream, two_dimensional
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


def groups_of(model: Any, known: Released, by: Any, metric: Metric) -> Groups:
    """Return the groups that one feature makes, cut in the middle of its range, or several of which one is 1."""
    if not metric.by_group:
        raise Unsupported(
            f"{metric.words} is not taken by group: use accuracy, brier, log_loss, rmse or mae, or leave by out"
        )
    if isinstance(by, Groups):
        return by
    names = [str(name) for name in getattr(model, "feature_names_in_", range(known.coef.shape[1]))]
    columns = tuple(_place(one, names) for one in (by if isinstance(by, list | tuple) else [by]))
    if not columns:
        raise Unsupported("by must name a feature, or several")
    low, high = float(known.low[columns[0]]), float(known.high[columns[0]])
    middle = (low + high) / 2
    if len(columns) > 1:
        if any((known.low[j], known.high[j]) != (0.0, 1.0) for j in columns):
            raise Unsupported("by takes one feature, or several with the declared range (0, 1) of which one is 1")
        return Groups(tuple(names[j] for j in columns), columns, middle)
    name = names[columns[0]]
    ends = (
        (f"{name} = 0", f"{name} = 1")
        if (low, high) == (0.0, 1.0)
        else (f"{name} < {middle:g}", f"{name} > {middle:g}")
    )
    return Groups(ends, columns, middle)


def _place(feature: Any, names: list[str]) -> int:
    if isinstance(feature, int) and not isinstance(feature, bool) and 0 <= feature < len(names):
        return feature
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    raise Unsupported("by must name features of the model, or their places")
