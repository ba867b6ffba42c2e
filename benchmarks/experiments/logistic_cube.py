"""Logistic problems with features in a cube, and their least loss within a ball: constants that theorems speak of."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from discreet.bounds import Bounds

Vector = NDArray[np.float64]
CLASSES = (-1, 1)


@dataclass(frozen=True, eq=False)
class LogisticCube:
    """Features in [-1, 1]^d, labels -1 and 1, and the least mean loss within a ball of this radius."""

    X: Vector
    y: Vector
    radius: float

    @property
    def bounds(self) -> Bounds:
        """What is declared."""
        return Bounds(features=[(-1.0, 1.0)] * self.X.shape[1], classes=CLASSES)

    def loss(self, w: Vector) -> float:
        """The mean loss."""
        return float(np.mean(np.logaddexp(0.0, -self.y * (self.X @ w))))

    @property
    def least(self) -> float:
        """The least mean loss within the ball: by steps along the projected gradient, to high accuracy."""
        return _least(self)

    def excess(self, w: Vector) -> float:
        """The loss above the least."""
        return max(self.loss(w) - self.least, 0.0)


@lru_cache(maxsize=8)
def _least(problem: LogisticCube) -> float:
    X, y, radius = problem.X, problem.y, problem.radius

    def inside(v: Vector) -> Vector:
        """A smooth map of all vectors onto the ball."""
        return np.asarray(radius * v / np.sqrt(1.0 + v @ v))

    def gradient(v: Vector) -> Vector:
        slope = -X.T @ (y * expit(-y * (X @ inside(v)))) / len(y)
        root = np.sqrt(1.0 + v @ v)
        return np.asarray(radius * (slope / root - v * (v @ slope) / root**3))

    starts = (np.zeros(X.shape[1]), X.T @ y / len(y) * 10.0)
    found = [minimize(lambda v: problem.loss(inside(v)), v, jac=gradient, options={"gtol": 1e-10}) for v in starts]
    edge = X.T @ y
    return min(*(float(one.fun) for one in found), problem.loss(radius * edge / np.linalg.norm(edge)))


@lru_cache(maxsize=8)
def logistic_cube(n: int, d: int, radius: float = 1.0, strength: float = 3.0, seed: int = 0) -> LogisticCube:
    """Return a problem; the same for the same settings."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.uniform(-1.0, 1.0, (n, d))
    w = rng.normal(size=d)
    chances = expit(strength * (X @ w) / np.linalg.norm(w))
    return LogisticCube(X, np.where(rng.random(n) < chances, 1.0, -1.0), radius)
