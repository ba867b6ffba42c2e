"""Small fits of every kind, for the replay tests: cheap, with clips that bite and rows at the edge."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from discreet import (
    Bounds,
    DPHuberRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.solvers import GradientDescent, StochasticGradientDescent
from discreet.testing import Data

N, P = 40, 3
CLIP = 0.05

ESTIMATORS: dict[str, type] = {
    "logistic": DPLogisticRegression,
    "softmax": DPLogisticRegression,
    "svc": DPLinearSVC,
    "linear": DPLinearRegression,
    "ridge": DPRidge,
    "huber": DPHuberRegressor,
    "poisson": DPPoissonRegressor,
}
CLASSES = {"logistic": (0, 1), "svc": (0, 1), "softmax": (0, 1, 2)}


def bounds_of(name: str) -> Bounds:
    """What is declared for a model: unlike ranges, so that scaling matters."""
    features = [(-1.0, 1.0), (0.0, 10.0), (-5.0, 3.0)]
    if name in CLASSES:
        return Bounds(features, classes=CLASSES[name])
    return Bounds(features, target=(0.0, 4.0))


def table(name: str, engine: str = "dense", groups: bool = False, n: int = N) -> Data:
    """Synthetic data for a model; of three classes, the last row is the only one of the third."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (n, P)) * [1.0, 5.0, 4.0] + [0.0, 5.0, -1.0]
    score = X[:, 0] - 0.2 * X[:, 2] + rng.normal(0, 0.3, n)
    if name in CLASSES:
        y: Any = (score > 0).astype(float)
        y[-1] = CLASSES[name][-1]
    else:
        y = np.clip(2.0 + score, 0, 4)
    if engine == "sparse":
        X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    return Data(X, y, np.arange(n) // 4 if groups else None)


def solver_of(kind: str) -> Any:
    """A short run of each solver with a clip that bites."""
    if kind == "sgd":
        return StochasticGradientDescent(n_steps=3, sampling_probability=0.5, clip=CLIP, step_size=2.0)
    return GradientDescent(n_steps=3, clip=CLIP, step_size=2.0, momentum="nesterov")


def fit_of(name: str, kind: str = "gd", relation: str = "replace_one", **settings: Any) -> Callable[..., Any]:
    """A fit for replay: a new estimator each time."""
    solver = settings.pop("solver", None) or solver_of(kind)
    given = {"bounds": bounds_of(name), "neighbors": relation, "solver": solver, **settings}
    delta = 0.0 if kind == "pure" else 1e-5

    def fit(X: Any, y: Any, groups: Any = None) -> Any:
        return ESTIMATORS[name](2.0, delta, **given).fit(X, y, groups=groups)

    return fit
