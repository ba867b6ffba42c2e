"""Small fits that a ledger is charged for, and how many of them its cap allows."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq

from discreet import BudgetExceeded, DPLogisticRegression, Ledger
from discreet.solvers import GradientDescent
from tests.promises.crash.observing import delta_of

DATASET, N, STEPS = "census", 60, 3
CAP_EPSILON, CAP_DELTA = 2.0, 1e-6
EPSILON, DELTA = 0.5, 1e-7


def model(ledger: Any, epsilon: float = EPSILON, **settings: Any) -> DPLogisticRegression:
    facts = {"bounds": 1.0, "classes": (0, 1), "solver": GradientDescent(n_steps=STEPS)} | settings
    return DPLogisticRegression(epsilon, DELTA, ledger=ledger, dataset=DATASET, **facts)


def mu_squared(epsilon: float, delta: float) -> float:
    """The Gaussian mu^2 that costs exactly this much."""
    return float(brentq(lambda square: delta_of(square, epsilon) - delta, 1e-6, 50.0, xtol=1e-15))


def affordable(epsilon: float = EPSILON) -> int:
    """How many fits of this budget fit the cap, by the Gaussian formula alone: half of delta is the filter's."""
    share = mu_squared(CAP_EPSILON, CAP_DELTA / 2) / mu_squared(epsilon, DELTA)
    assert 0.01 < share % 1 < 0.99  # rounding does not decide
    return math.floor(share)


def exhaust(ledger: Ledger, X: np.ndarray, y: np.ndarray) -> None:
    while True:
        try:
            model(ledger, 0.9).fit(X, y)
        except BudgetExceeded:
            return


class Watched(np.ndarray):
    """An array that calls ``when_read`` whenever rows of it are taken."""

    when_read: Callable[[], None]

    def __getitem__(self, index: Any) -> Any:
        if hasattr(self, "when_read"):
            self.when_read()
        return np.asarray(self)[index]


def frame(X: np.ndarray) -> Any:
    return pytest.importorskip("pandas").DataFrame(X, columns=["a", "b"], copy=False)


def compressed(X: np.ndarray) -> Any:
    table = sparse.csr_array(np.ones(X.shape))
    table.data = X.reshape(-1)
    return table
