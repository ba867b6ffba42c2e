"""Accuracy on held-out rows: of a private fit, of the same model without privacy, and of the majority class.

Accuracies on held-out rows are exact, which on people's data would be a release of its own.
"""

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from benchmarks.methods.defaults import Method
from benchmarks.seeded import SeededWords
from discreet.budget import Budget, Neighbors
from discreet.curator import use_entropy
from discreet.datasets import Table
from discreet.models import DPLogisticRegression

NEIGHBORS = Neighbors.ZERO_OUT
Rows = NDArray[np.int64]


def private_accuracy(
    table: Table, train: Rows, held: Rows, method: Method, epsilon: float, *, delta: float, alpha: float, seed: int
) -> float:
    """The accuracy on the held-out rows of one private fit, whose noise is replayable."""
    model = DPLogisticRegression(
        epsilon=epsilon,
        delta=delta,
        bounds=table.bounds,
        alpha=alpha,
        solver=method.solver(Budget(epsilon, delta, NEIGHBORS)),
        neighbors=str(NEIGHBORS),
        ledger=False,
    )
    with use_entropy(SeededWords(seed)):
        model.fit(table.X[train], table.y[train])
    return float(np.mean(model.predict(table.X[held]) == table.y[held]))


def free_accuracy(table: Table, train: Rows, held: Rows, alpha: float) -> float:
    """That of the same objective's minimizer without privacy; scikit-learn leaves its intercept unpenalized."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / (alpha * len(train)), solver="newton-cholesky", max_iter=500)
    return float(model.fit(table.X[train], table.y[train]).score(table.X[held], table.y[held]))


def majority_accuracy(table: Table, train: Rows, held: Rows) -> float:
    """That of always saying what is commoner among the training rows."""
    commoner = int(2 * np.sum(table.y[train]) > len(train))
    return float(np.mean(table.y[held] == commoner))


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error, as if folds were independent (their training rows overlap)."""
    return fmean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
