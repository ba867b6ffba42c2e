"""Problems in which few columns matter: those of the poster on greedy coordinates, generated ones and public tables.

``log1`` and ``log2`` (logistic, n = 1,000, p = 100, an L2 penalty of 1/1,000, effects lognormal with deviation 1 and 2)
and ``square`` (least squares, n = 1,000, p = 1,000, ten effects, an L1 penalty) follow the authors' settings; the draws
are ours, since theirs are not published. With a folder of public tables (``DISCREET_DATA``), those it has join: madelon
with the poster's L2 penalty of 1, and melting point, California housing, electricity and dorothea (100,000 sparse
columns) with an L1 penalty.

A column is taken from the middle of its range and divided by half of the range's width, so that it lies in [-1, 1]
without being collinear with an intercept: madelon's columns are 480 give or take 6 to 40. Sparse columns are divided
by their largest size. An L2 penalty is on coefficients of columns of deviation 1, as the authors have it.
"""

import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.special import entr, expit

from discreet.bounds import Bounds
from discreet.losses import Logistic, Squared
from discreet.losses.base import Loss
from discreet.models import DPLasso, DPLogisticRegression
from discreet.penalties import L1, L2
from discreet.penalties.base import Penalty

Vector = NDArray[np.float64]
GENERATED = ("log1", "log2", "square")
TABLES = {"madelon": True, "electricity": True, "california_housing": False, "melting_point": False, "dorothea": True}
"""Public tables of the papers, and whether their target is a label."""
RIDGES = {"log1": 1e-3, "log2": 1e-3, "madelon": 1.0}
"""The strength of the L2 penalty on columns of deviation 1; other problems have an L1 penalty."""
LASSOS = {"square": 1e-3}
L1_STRENGTH = 1e-4
MARGINS = 1.75
"""The deviation of generated margins, at which (F(0) - F*) / F* of ``log1`` is about the poster's .63."""
DEVIATIONS = 4.0
"""Half the width of a generated column's range, in deviations."""


@dataclass(frozen=True, eq=False)
class Sparse:
    """A table with ranges of 1, and the strength of an L1 or of an L2 penalty in these units."""

    X: Any
    y: Vector
    labels: bool
    l1: float = 0.0
    l2: float = 0.0

    @property
    def bounds(self) -> Bounds:
        """The declared facts."""
        ranges = [(-1.0, 1.0)] * self.X.shape[1]
        return Bounds(ranges, classes=(0, 1)) if self.labels else Bounds(ranges, target=(-1.0, 1.0))

    @property
    def loss(self) -> Loss:
        """The loss."""
        return Logistic() if self.labels else Squared()

    @property
    def penalty(self) -> Penalty:
        """The penalty."""
        return L2(self.l2) if self.l2 else L1(self.l1)

    def model(self, **settings: Any) -> Any:
        """Return the estimator."""
        if not self.labels:
            return DPLasso(bounds=self.bounds, alpha=self.l1, **settings)
        kind = {"penalty": "l2", "alpha": self.l2} if self.l2 else {"penalty": "l1", "alpha": self.l1}
        return DPLogisticRegression(bounds=self.bounds, **kind, **settings)

    @property
    def trivial(self) -> float:
        """The least objective of a model without columns."""
        if self.labels:
            share = float(np.mean(self.y))
            return float(entr(share) + entr(1.0 - share))
        return float(np.var(self.y)) / 2

    def objective_at(self, w: Vector, intercept: float = 0.0) -> float:
        """Return the mean loss on these records, and the penalty."""
        margins = self.X @ w + intercept
        penalty = self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(w @ w)
        if self.labels:
            return float(np.mean(np.logaddexp(0.0, margins) - self.y * margins)) + penalty
        return float(np.mean(np.square(margins - self.y))) / 2 + penalty

    def objective(self, model: Any) -> float:
        """Return the objective of a fitted model."""
        return self.objective_at(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))

    @cached_property
    def minimum(self) -> float:
        """The least objective without an intercept."""
        fitted = self.model(epsilon=np.inf, solver="gd", ledger=False, fit_intercept=False).fit(self.X, self.y)
        return self.objective_at(np.ravel(fitted.coef_))


@lru_cache(maxsize=4)
def drawn(name: str) -> Sparse:
    """Return the problem of this name."""
    return _generated(name) if name in GENERATED else _table(name)


@lru_cache(maxsize=4)
def sparse_problem(name: str) -> tuple[Sparse, float, float]:
    """Return a problem, its objective without privacy, and that of a model without columns."""
    made = drawn(name)
    return made, made.objective(_best(made)), made.trivial


def _best(made: Sparse) -> Any:
    """Return a model without privacy; scikit-learn's where columns are so many that full gradients take long."""
    if not issparse(made.X):
        return made.model(epsilon=np.inf, solver="gd", ledger=False).fit(made.X, made.y)
    from sklearn.linear_model import LogisticRegression

    words = {"solver": "liblinear", "intercept_scaling": 100.0, "tol": 1e-6}
    return LogisticRegression(l1_ratio=1.0, C=1.0 / (made.l1 * len(made.y)), **words).fit(made.X, made.y)


def _generated(name: str) -> Sparse:
    rng = np.random.default_rng([7, GENERATED.index(name)])
    n, p = 1000, 1000 if name == "square" else 100
    columns = rng.normal(size=(n, p))
    X = np.clip(columns / DEVIATIONS, -1.0, 1.0)
    if name == "square":
        w = np.zeros(p)
        w[:10] = np.exp(rng.normal(size=10)) * rng.choice([-1.0, 1.0], 10)
        y = columns @ w + 0.1 * rng.normal(size=n)
        return Sparse(X, np.clip(y / (DEVIATIONS * y.std()), -1.0, 1.0), False, l1=LASSOS[name])
    w = np.exp((1.0 if name == "log1" else 2.0) * rng.normal(size=p)) * rng.choice([-1.0, 1.0], p)
    labels = (rng.random(n) < expit(columns @ (w / np.linalg.norm(w) * MARGINS))).astype(np.float64)
    return Sparse(X, labels, True, l2=RIDGES[name] / DEVIATIONS**2)


def _table(name: str) -> Sparse:
    """Return a public table, its columns in units of their ranges."""
    import pandas

    path = file_of(name)
    assert path is not None
    if path.suffix == ".npz":
        stored = np.load(path)
        cells = (stored["data"].astype(np.float64), stored["indices"], stored["indptr"])
        X = csr_matrix(cells, shape=tuple(stored["shape"]))
        return Sparse(X, (stored["target"] > 0).astype(float), True, l1=L1_STRENGTH)
    frame = pandas.get_dummies(pandas.read_csv(path), dtype=float)
    y = frame.pop("target").to_numpy(dtype=np.float64)
    X = _within(frame.to_numpy(dtype=np.float64))
    target = y if TABLES[name] else _within(y[:, None])[:, 0]
    if name not in RIDGES:
        return Sparse(X, target, TABLES[name], l1=L1_STRENGTH)
    return Sparse(X, target, TABLES[name], l2=RIDGES[name] * float(np.mean(X.var(axis=0))))


def _within(columns: Vector) -> Vector:
    """Return columns from the middle of their ranges, over half of the ranges' widths."""
    low, high = columns.min(axis=0), columns.max(axis=0)
    return np.asarray((columns - (low + high) / 2) / np.maximum((high - low) / 2, 1e-300))


def file_of(name: str) -> Path | None:
    """Return a public table's file, if it is there."""
    folder = os.environ.get("DISCREET_DATA")
    return (
        next((path for end in ("csv.*", "npz") for path in Path(folder).glob(f"{name}.{end}")), None)
        if folder
        else None
    )
