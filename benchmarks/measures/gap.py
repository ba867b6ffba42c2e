"""What a model scores on the test part of a table, and what that is worth.

A *gap* is 0 for the model without privacy and 1 for the trivial predictor: for labels the mean of the gaps in accuracy
and in the area under the ROC curve, for numbers the gap in R^2. It may be negative, and greater than 1.

Where a table is split several times, a run is compared with the model without privacy on its own split, and what that
model learned is its mean over all splits: a ratio of means. A mean of ratios would hang on the split where it happened
to learn least.
"""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems.declared_tables import DeclaredTable

Metrics = dict[str, float]


def scores(table: DeclaredTable, predicted: NDArray[Any], margins: NDArray[Any] | None = None) -> Metrics:
    """Accuracy and the area under the ROC curve, or R^2 of predictions clipped to the declared range (free)."""
    from sklearn.metrics import roc_auc_score

    if margins is not None:
        finite = np.nan_to_num(margins)  # a score beyond all numbers still ranks
        return {"accuracy": float(np.mean(predicted == table.y)), "auc": float(roc_auc_score(table.y, finite))}
    low, high = table.bounds.target or (-np.inf, np.inf)
    residual = table.y - np.clip(np.nan_to_num(predicted), low, high)
    return {"r2": float(1.0 - np.sum(residual**2) / np.sum((table.y - table.y.mean()) ** 2))}


def references(train: DeclaredTable, test: DeclaredTable) -> dict[str, Any]:
    """What a model without privacy and the trivial predictor score on one split.

    The model without privacy is scikit-learn's, on columns standardized by their own rows: it sees the values as they
    are, not clipped to what was declared, so a private model may pass it where values are far out.
    """
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if train.is_classification:
        model = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky", max_iter=500))
        model.fit(train.X, train.y)
        free = scores(test, model.predict(test.X), model.decision_function(test.X))
        commoner = float(np.mean(train.y) > 0.5)
        trivial = {"accuracy": float(np.mean(test.y == commoner)), "auc": 0.5}
    else:
        model = make_pipeline(StandardScaler(), Ridge()).fit(train.X, train.y)
        free = scores(test, model.predict(test.X))
        trivial = scores(test, np.full(len(test.y), train.y.mean()))
    return {"non_private": free, "trivial": trivial}


def table_facts(table: DeclaredTable) -> dict[str, Any]:
    """What a table is, however it is split."""
    task = "classification" if table.is_classification else "regression"
    return {"title": table.title, "task": task, "rows": len(table.y), "columns": table.X.shape[1]}


def learned(splits: Iterable[Mapping[str, Any]]) -> Metrics:
    """How far the model without privacy is above the trivial predictor in each metric: the mean over splits."""
    found = list(splits)
    return {
        name: fmean(split["non_private"][name] - split["trivial"][name] for split in found)
        for name in found[0]["non_private"]
    }


def gap(metrics: Mapping[str, float], split: Mapping[str, Any], scale: Mapping[str, float]) -> float:
    """How much of what the model without privacy learned is lost in a run; ``scale`` is what it learned."""
    free = split["non_private"]
    return fmean((free[name] - metrics[name]) / scale[name] for name in free)
