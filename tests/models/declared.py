"""The six estimators with the facts of the small table declared."""

import numpy as np
import pytest

from discreet import (
    DPHuberRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.models import DPGammaRegressor
from discreet.solvers import GradientDescent

CLASSIFIERS = [DPLogisticRegression, DPLinearSVC]
REGRESSORS = [DPLinearRegression, DPRidge, DPHuberRegressor, DPPoissonRegressor, DPGammaRegressor]
GD = GradientDescent(n_steps=5)


def make(kind, epsilon=1.0, **settings):
    """An estimator with the facts of ``small_table``."""
    facts = {"classes": (0, 1)} if kind in CLASSIFIERS else {"target": (0, 10)}
    return kind(epsilon, **({"bounds": 1.0, "solver": GD} | facts | settings))


def fit(kind, table, epsilon=1.0, groups=None, **settings):
    y = (table.signs > 0).astype(int) if kind in CLASSIFIERS else np.minimum(table.counts, 10)
    return make(kind, epsilon, **settings).fit(table.X, y, groups=groups)


every = pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
