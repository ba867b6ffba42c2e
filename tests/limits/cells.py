"""Tables of every kind of column and range, and every estimator with the objective that its docstring states."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.measures.objectives import Coordinates, Loss, Objective
from discreet import (
    Bounds,
    DPClassifier,
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRegressor,
    DPRidge,
)
from discreet.losses import Huber, SmoothedHinge
from discreet.penalties import L1

GRID = 2**14
COLUMNS = ("rare", "collinear", "constant", "lognormal", "few", "many")
RANGES = ("fitting", "wide", "far")


@dataclass(frozen=True)
class Estimator:
    """An estimator, and what it minimizes in training coordinates."""

    kind: Any
    loss: Loss
    l1: float = 0.0
    l2: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """What it predicts."""
        named = {"logistic": "labels", "hinge": "labels", "softmax": "classes", "poisson": "counts"}
        return named.get(self.loss.name, "numbers")


LOGISTIC, SQUARED = Loss("logistic"), Loss("squared")
ESTIMATORS = {
    "logistic": Estimator(DPLogisticRegression, LOGISTIC, l2=1e-8),
    "logistic, L2 .1": Estimator(DPLogisticRegression, LOGISTIC, l2=0.1, settings={"alpha": 0.1}),
    "logistic, no penalty": Estimator(DPLogisticRegression, LOGISTIC, settings={"penalty": None}),
    "logistic, L1": Estimator(DPLogisticRegression, LOGISTIC, l1=1e-3, settings={"penalty": "l1", "alpha": 1e-3}),
    "logistic, net": Estimator(DPLogisticRegression, LOGISTIC, 1e-3, 1e-3, {"penalty": "elasticnet", "alpha": 2e-3}),
    "softmax": Estimator(DPLogisticRegression, Loss("softmax"), l2=1e-7, settings={"alpha": 1e-7}),
    "softmax, L2 .1": Estimator(DPLogisticRegression, Loss("softmax"), l2=0.1, settings={"alpha": 0.1}),
    "softmax, L1": Estimator(DPLogisticRegression, Loss("softmax"), 1e-3, 0.0, {"penalty": "l1", "alpha": 1e-3}),
    "svm": Estimator(DPLinearSVC, Loss("hinge", 0.5), l2=1e-8),
    "svm, L2 .1": Estimator(DPLinearSVC, Loss("hinge", 0.5), l2=0.1, settings={"alpha": 0.1}),
    "classifier, narrow hinge": Estimator(
        DPClassifier, Loss("hinge", 0.2), l2=1e-3, settings={"loss": SmoothedHinge(0.2), "alpha": 1e-3}
    ),
    "least squares": Estimator(DPLinearRegression, SQUARED),
    "ridge": Estimator(DPRidge, SQUARED, l2=1e-5),
    "ridge .1": Estimator(DPRidge, SQUARED, l2=0.1, settings={"alpha": 0.1}),
    "lasso": Estimator(DPLasso, SQUARED, l1=1e-3),
    "elastic net": Estimator(DPElasticNet, SQUARED, l1=5e-4, l2=5e-4),
    "huber": Estimator(DPHuberRegressor, Loss("huber", 0.3), l2=1e-5),  # the width is a share of the target's range
    "huber, narrow": Estimator(DPHuberRegressor, Loss("huber", 0.03), l2=1e-5, settings={"width": 0.03}),
    "regressor, huber and L1": Estimator(
        DPRegressor, Loss("huber", 0.3), l1=1e-3, settings={"loss": Huber(0.3), "penalty": L1(1e-3)}
    ),
    "poisson": Estimator(DPPoissonRegressor, Loss("poisson", 5.0), l2=1e-6),
    "poisson, L2 .1": Estimator(DPPoissonRegressor, Loss("poisson", 5.0), l2=0.1, settings={"alpha": 0.1}),
}


def features(columns: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return columns within [-1, 1]."""
    normal = np.clip(rng.normal(size=(n, 30)) / 4.0, -1, 1)
    if columns == "many":
        return np.clip(normal @ np.linalg.cholesky(0.5 * np.eye(30) + 0.5), -1, 1)
    X = normal[:, :5].copy()
    if columns == "few":
        return X[:, :1]
    if columns == "rare":
        X[:, 1], X[:, 2] = rng.permutation(np.arange(n) < 0.003 * n), rng.permutation(np.arange(n) < 0.02 * n)
    elif columns == "collinear":
        X[:, 1], X[:, 2] = X[:, 0], X[:, 3] + 0.04 * X[:, 2]
    elif columns == "constant":
        X[:, 1], X[:, 2] = 0.5, 0.0
    elif columns == "lognormal":
        X[:, 1:3] = np.minimum(np.exp(4.0 * X[:, 1:3]) / 20.0, 1.0)
    return X


def declared(X: np.ndarray, ranges: str) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Return columns in their declared units, and their ranges."""
    low = np.where(X.min(axis=0) >= 0, 0.0, -1.0)
    width = 100.0 if ranges == "wide" else 1.0
    away = 30.0 if ranges == "far" else 0.0
    return X + away, [(width * end + away, width + away) for end in low]


def responses(
    target: str, X: np.ndarray, rng: np.random.Generator, of_law: np.random.Generator | None = None
) -> np.ndarray:
    """Return labels, classes, numbers within [-1, 1] or counts that follow the columns, by coefficients of a law."""
    if of_law is None:
        spread = X.std(axis=0)
        Z = (X - X.mean(axis=0)) / np.where(spread > 0.02, spread, 1.0) / np.sqrt(X.shape[1])
    else:
        Z = 4.0 * X / np.sqrt(X.shape[1])
    w = (of_law or rng).normal(size=(X.shape[1], 3))
    if target == "labels":
        return (1.5 * Z @ w[:, 0] + 0.3 + rng.logistic(size=len(X)) > 0).astype(int)
    if target == "classes":
        return (1.5 * Z @ w + rng.gumbel(size=(len(X), 3))).argmax(axis=1)
    if target == "numbers":
        return np.clip(0.2 * Z @ w[:, 0] + 0.1 + 0.2 * rng.normal(size=len(X)), -1, 1)
    return np.minimum(rng.poisson(np.exp(0.4 * Z @ w[:, 0] + 0.5)), 20).astype(float)


@dataclass(frozen=True, eq=False)
class Cell:
    """A table, its public facts, an estimator's settings, and the objective."""

    X: np.ndarray
    y: np.ndarray
    settings: dict[str, Any]
    coordinates: Coordinates
    objective: Objective

    def gap(self, model: Any) -> float:
        """Return how far a model is above the least objective, as a share of it."""
        return (self.objective.value(self.coordinates.weights(model)) - self.objective.least) / self.objective.least


def make(name: str, columns: Any = "few", ranges: str = "fitting", intercept: bool = True, n: int = 4000) -> Cell:
    """Return a table whose features lie on the grid that training rounds them to; columns by kind, or as they are."""
    made, by_kind = ESTIMATORS[name], isinstance(columns, str)
    rng = np.random.default_rng([COLUMNS.index(columns) if by_kind else 9, n])
    U = features(columns, n, rng) if by_kind else columns
    y = responses(made.target, U, rng)
    X, pairs = declared(U, ranges)
    loss, settings = made.loss, dict(made.settings)
    facts: dict[str, Any] = {"classes": (0, 1) if made.target == "labels" else (0, 1, 2)}
    if made.target in ("numbers", "counts"):
        low, high = (-1.0, 1.0) if made.target == "numbers" else (0.0, 20.0)
        width = 100.0 if ranges == "wide" and made.target == "numbers" else 1.0
        away = 30.0 if ranges == "far" and made.target == "numbers" else 0.0
        y, facts = y + away, {"target": (width * low + away, width * high + away)}
    bounds = Bounds(pairs, **facts)
    place = Coordinates.of(bounds, X.shape[1], loss, intercept)
    X = place.center + place.scale * np.rint((X - place.center) / place.scale * GRID) / GRID
    if loss.name == "huber":
        own = settings.get("width", 0.3) if "loss" in settings or "width" in settings else None
        low, high = facts["target"]
        loss = Loss("huber", (0.3 * (high - low) if own is None else own) / place.target_scale)
    objective = Objective(place.rows(X), place.targets(y), loss, made.l1, made.l2, 3 if made.target == "classes" else 1)
    return Cell(X, y, {**settings, "bounds": bounds, "fit_intercept": intercept}, place, objective)
