"""Four problems of 20,000 records and 20 columns, on which solvers with nothing set are held against tuned ones.

Labels and numbers, each in two shapes. ``even``: independent columns, uniform over their declared ranges. ``uneven``:
correlated normal columns whose spreads differ by a factor of 30 within the same declared ranges, far from the middle.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from discreet.bounds import Bounds

Vector = NDArray[np.float64]
NAMES = ("labels-even", "labels-uneven", "numbers-even", "numbers-uneven")
ROWS, COLUMNS = 20_000, 20


@dataclass(frozen=True, eq=False)
class TwentyColumns:
    """A table, what is declared of it, and its mean loss: logistic for labels, half the squared error for numbers."""

    name: str
    X: Vector
    y: Vector
    bounds: Bounds

    @property
    def has_labels(self) -> bool:
        """Whether the target is a label."""
        return self.name.startswith("labels")

    def loss(self, margins: Vector) -> float:
        """The mean loss of these predictions, before a link."""
        if self.has_labels:
            return float(np.mean(np.logaddexp(0.0, margins) - self.y * margins))
        return float(np.mean(np.square(margins - self.y)) / 2.0)

    @cached_property
    def best_loss(self) -> float:
        """The least mean loss of a linear model with an intercept."""
        columns = (self.X - self.X.mean(axis=0)) / self.X.std(axis=0)
        full = np.column_stack([columns, np.ones(len(columns))])
        if not self.has_labels:
            return self.loss(full @ np.linalg.lstsq(full, self.y, rcond=None)[0])
        found = minimize(
            lambda w: self.loss(full @ w),
            np.zeros(full.shape[1]),
            jac=lambda w: full.T @ (expit(full @ w) - self.y) / len(full),
            options={"gtol": 1e-8},
        )
        return float(found.fun)

    @property
    def trivial_loss(self) -> float:
        """The mean loss of the best constant."""
        mean = float(np.mean(self.y))
        return self.loss(np.full(len(self.y), np.log(mean / (1.0 - mean)) if self.has_labels else mean))


@lru_cache(maxsize=2)
def twenty_columns(name: str, *, n: int = ROWS, p: int = COLUMNS, seed: int = 0) -> TwentyColumns:
    """The problem of this name; the same for the same seed."""
    rng = np.random.default_rng([seed, NAMES.index(name)])
    if name.endswith("uneven"):
        spread = np.geomspace(0.01, 0.3, p)
        shared = rng.normal(size=(n, 3)) @ rng.normal(size=(3, p)) / np.sqrt(3.0)
        standard = np.sqrt(0.5) * (rng.normal(size=(n, p)) + shared)
        X = np.clip(rng.uniform(-0.5, 0.5, p) + spread * standard, -1.0, 1.0)
    else:
        spread, X = np.full(p, 1.0 / np.sqrt(3.0)), rng.uniform(-1.0, 1.0, (n, p))
    w = rng.normal(size=p) / spread / np.sqrt(p)
    margins = (X - X.mean(axis=0)) @ w + 0.5
    if name.startswith("labels"):
        y = (rng.random(n) < expit(1.5 * margins)).astype(np.float64)
        return TwentyColumns(name, X, y, Bounds(features=[(-1.0, 1.0)] * p, classes=(0, 1)))
    y = np.clip(margins + rng.normal(size=n), -8.0, 8.0)
    return TwentyColumns(name, X, y, Bounds(features=[(-1.0, 1.0)] * p, target=(-8.0, 8.0)))
