"""The problems on which coordinate methods are compared: synthetic, so that everything about them is public.

The slides name three linear regressions (n = 1000, p = 10) and do not say how they were drawn; these are
reconstructions of ours. X has independent normal columns times a scale s_j for each, y = X w + N(0, 1):
``balanced`` (s = 1), ``firstbig`` (10 on the first column), ``lognormal`` (exp(N(0, 1))). The scales are taken to
be units of measurement, which say nothing of relevance: w_j = N(0, 1) / s_j. ``lognormal-raw`` has w_j = N(0, 1)
instead, so that small columns hardly matter. ``sparse`` is ours too, after the papers' sparse lasso:
n = p = 1000, ten relevant features, an L1 penalty.

Objectives are in the raw units of X and y; training divides all features by one number and the target by another,
which changes nothing but the penalty's strength.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.bounds import Bounds
from discreet.penalties import L1, NoPenalty
from discreet.penalties.base import Penalty

Vector = NDArray[np.float64]

DEVIATIONS = 4.0  # declared ranges, in standard deviations of the law that a column or the target is drawn from
NAMES = ("balanced", "firstbig", "lognormal", "sparse", "lognormal-raw")


@dataclass(frozen=True, eq=False)
class Problem:
    """A least-squares problem, drawn from a law that is public: column ``scales``, ``target_deviation``."""

    name: str
    X: Vector
    y: Vector
    scales: Vector
    target_deviation: float
    l1: float = 0.0

    @property
    def bounds(self) -> Bounds:
        """What the law implies; one common scale, so that the raw geometry is what training sees."""
        reach = DEVIATIONS * self.target_deviation
        ranges = [(-DEVIATIONS * scale, DEVIATIONS * scale) for scale in self.scales.tolist()]
        return Bounds(features=ranges, target=(-reach, reach), scale="global")

    @property
    def feature_unit(self) -> float:
        """What features are divided by for training."""
        return DEVIATIONS * float(self.scales.max())

    @property
    def target_unit(self) -> float:
        """What the target is divided by for training."""
        return DEVIATIONS * self.target_deviation

    @property
    def penalty(self) -> Penalty:
        """The penalty in training coordinates."""
        return L1(self.l1 / (self.feature_unit * self.target_unit)) if self.l1 else NoPenalty()

    @property
    def row_norm(self) -> float:
        """The root mean square of a record's norm, in training coordinates."""
        return float(np.linalg.norm(self.scales)) / self.feature_unit

    @property
    def curvature(self) -> float:
        """The largest eigenvalue to expect of X'X / n, in training coordinates."""
        n, p = self.X.shape
        return (float(self.scales.max()) / self.feature_unit * (1 + math.sqrt(p / n))) ** 2

    def objective(self, w: Vector) -> float:
        """F at raw coefficients."""
        return float(np.mean((self.X @ w - self.y) ** 2) / 2 + self.l1 * np.abs(w).sum())

    @cached_property
    def minimum(self) -> float:
        """F*, without privacy."""
        if not self.l1:
            return self.objective(np.asarray(np.linalg.lstsq(self.X, self.y, rcond=None)[0], dtype=np.float64))
        from sklearn.linear_model import Lasso

        fitted = Lasso(alpha=self.l1, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(self.X, self.y)
        return self.objective(fitted.coef_)

    def excess(self, trained: Vector) -> float:
        """(F - F*) / F* of coefficients in training coordinates."""
        raw = np.asarray(trained) * (self.target_unit / self.feature_unit)
        return self.objective(raw) / self.minimum - 1


def problem(name: str, *, n: int = 1000, p: int | None = None, seed: int = 0) -> Problem:
    """The problem of this name; the same for the same seed."""
    rng = np.random.default_rng(seed)
    p = (1000 if name == "sparse" else 10) if p is None else p
    if name == "sparse":
        return _sparse(rng, n, p)
    scales = np.ones(p)
    if name == "firstbig":
        scales[0] = 10.0
    elif name.startswith("lognormal"):
        scales = np.exp(rng.normal(size=p))
    effects = rng.normal(size=p)
    return _drawn(name, rng, n, scales, effects if name.endswith("raw") else effects / scales)


def _sparse(rng: np.random.Generator, n: int, p: int, relevant: int = 10) -> Problem:
    """Ten relevant features of log-normal weights and random signs; a penalty of a tenth of what would leave none."""
    w = np.zeros(p)
    w[:relevant] = np.exp(rng.normal(size=relevant)) * rng.choice([-1.0, 1.0], size=relevant)
    return _drawn("sparse", rng, n, np.ones(p), w, l1=0.1 * float(np.abs(w).max()))


def _drawn(name: str, rng: np.random.Generator, n: int, scales: Vector, w: Vector, l1: float = 0.0) -> Problem:
    X = rng.normal(size=(n, scales.size)) * scales
    y = X @ w + rng.normal(size=n)
    return Problem(name, X, y, scales, math.sqrt(float(np.sum((scales * w) ** 2)) + 1.0), l1)
