"""Problems in which few columns matter: generated ones, and tables of the papers on greedy coordinates.

``logistic`` (n = 1,000, p = 100, ten effects) and ``square`` (n = 1,000, p = 1,000, ten effects) are after the paper's,
our own draws, since theirs are not documented. With a folder of public tables (``DISCREET_DATA``), those it has join:
madelon, melting point, California housing and electricity, columns in units of their declared ranges, and dorothea,
100,000 sparse ones.
"""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, isspmatrix_csr
from scipy.special import entr, expit

from discreet.bounds import Bounds
from discreet.models import DPLasso, DPLogisticRegression

Vector = NDArray[np.float64]
GENERATED = ("logistic", "square")
TABLES = {"madelon": True, "electricity": True, "california_housing": False, "melting_point": False, "dorothea": True}
"""Public tables of the papers, and whether their target is a label."""


@dataclass(frozen=True, eq=False)
class Sparse:
    """A table with declared ranges of 1, and an L1 penalty's strength in these units."""

    X: Any
    y: Vector
    labels: bool
    strength: float

    def model(self, **settings: Any) -> Any:
        """The estimator."""
        ranges = [(-1.0, 1.0)] * self.X.shape[1]
        if self.labels:
            return DPLogisticRegression(
                bounds=Bounds(ranges, classes=(0, 1)), penalty="l1", alpha=self.strength, **settings
            )
        return DPLasso(bounds=Bounds(ranges, target=(-1.0, 1.0)), alpha=self.strength, **settings)

    @property
    def trivial(self) -> float:
        """The least objective of a model without columns."""
        if self.labels:
            share = float(np.mean(self.y))
            return float(entr(share) + entr(1.0 - share))
        return float(np.var(self.y)) / 2

    def objective(self, model: Any) -> float:
        """The mean loss on these records, and the penalty."""
        w = np.ravel(model.coef_)
        margins = self.X @ w + float(np.ravel(model.intercept_)[0])
        if self.labels:
            return float(np.mean(np.logaddexp(0.0, margins) - self.y * margins) + self.strength * np.abs(w).sum())
        return float(np.mean(np.square(margins - self.y)) / 2 + self.strength * np.abs(w).sum())


@lru_cache(maxsize=2)
def sparse_problem(name: str) -> tuple[Sparse, float, float]:
    """Return a problem, its objective without privacy, and that of a model without columns."""
    made = _generated(name) if name in GENERATED else _table(name)
    return made, made.objective(_best(made)), made.trivial


def _best(made: Sparse) -> Any:
    """A model without privacy; scikit-learn's where columns are so many that full gradients take long."""
    if not isspmatrix_csr(made.X):
        return made.model(epsilon=np.inf, solver="gd", ledger=False).fit(made.X, made.y)
    from sklearn.linear_model import LogisticRegression

    words = {"solver": "liblinear", "intercept_scaling": 100.0, "tol": 1e-6}
    return LogisticRegression(l1_ratio=1.0, C=1.0 / (made.strength * len(made.y)), **words).fit(made.X, made.y)


def _generated(name: str) -> Sparse:
    rng = np.random.default_rng([7, GENERATED.index(name)])
    n, p = 1000, 100 if name == "logistic" else 1000
    X = np.clip(rng.normal(size=(n, p)) / 4.0, -1.0, 1.0)
    w = np.zeros(p)
    w[:10] = np.exp(rng.normal(size=10)) * rng.choice([-1.0, 1.0], 10)
    margins = 4.0 * X @ w
    if name == "logistic":
        return Sparse(X, (rng.random(n) < expit(margins)).astype(np.float64), True, 1e-3)
    y = margins + 0.1 * rng.normal(size=n)
    return Sparse(X, np.clip(y / (4.0 * y.std()), -1.0, 1.0), False, 1e-3)


def _table(name: str) -> Sparse:
    """A public table, each column divided by its largest size: what its publishers say of it."""
    import pandas

    path = file_of(name)
    assert path is not None
    if path.suffix == ".npz":
        stored = np.load(path)
        cells = (stored["data"].astype(np.float64), stored["indices"], stored["indptr"])
        return Sparse(csr_matrix(cells, shape=tuple(stored["shape"])), (stored["target"] > 0).astype(float), True, 1e-4)
    frame = pandas.get_dummies(pandas.read_csv(path), dtype=float)
    y = frame.pop("target").to_numpy(dtype=np.float64)
    X = frame.to_numpy(dtype=np.float64)
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    return Sparse(X, y if TABLES[name] else 2 * (y - y.min()) / (y.max() - y.min()) - 1, TABLES[name], 1e-4)


def file_of(name: str) -> Path | None:
    """A public table's file, if it is there."""
    folder = os.environ.get("DISCREET_DATA")
    return (
        next((path for end in ("csv.*", "npz") for path in Path(folder).glob(f"{name}.{end}")), None)
        if folder
        else None
    )
