"""Exact scores of rows that are declared public, with the usual intervals for the sampling of the rows."""

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from discreet.curator.metrics import METRICS
from discreet.curator.metrics.measurement import Measured, Part, half_width
from discreet.curator.metrics.noise_bounds import Noise
from discreet.curator.metrics.prediction_errors import width
from discreet.curator.metrics.predictions import Groups, Released, read
from discreet.curator.metrics.r_squared import ROOT_ERROR
from discreet.typing import Floats


class ExactScore(NamedTuple):
    """A score, the number of rows, the interval's name, and its ends where they are not value -+ sampling."""

    found: Measured
    n: int
    sampling: str
    ends: tuple[float, float] | None = None


class ExactSums:
    """Sums without noise, where a metric asks for noisy ones: for rows that are declared public."""

    def release(self, table: Any) -> tuple[Floats, Noise]:
        """Return the sum of the squared rows."""
        return np.asarray(table.power(2).sum(axis=0), dtype=np.float64).ravel(), Noise(0.0)


def measure_public(
    metric: str, model: Released, X: Any, y: Any, level: float, groups: Groups | None = None
) -> ExactScore:
    """Return the exact score: Wilson's interval for accuracy, DeLong's for the area, the delta method's for R2."""
    kind = METRICS[metric]
    rows, _ = read(model, X, y, partial(kind.row_values, model), groups=groups)
    if metric not in ("auc", "r2") and (metric != "accuracy" or groups is not None):
        found = kind.measure(model, rows, ExactSums(), level, () if groups is None else groups.names)
        exact = tuple(replace(part, low=part.value, high=part.value) for part in found.parts)
        return ExactScore(replace(found, low=found.value, high=found.value, parts=exact), len(rows), kind.sampling)
    kept = rows[~np.isnan(rows).any(axis=1)]
    if metric == "accuracy":
        value, low, high = _wilson(kept[:, 0], level)
        return ExactScore(Measured(value, value, value, 0.0), len(rows), "Wilson", (low, high))
    value, deviation = area(*kept.T) if metric == "auc" else r_squared_of(*kept.T)
    parts = () if metric == "auc" else (_exact_root(width(model), *kept.T),)
    found = Measured(value, value, value, half_width(level) * deviation, parts)
    return ExactScore(found, len(rows), "DeLong" if metric == "auc" else "delta method")


def _exact_root(scale: float, u: Floats, v: Floats) -> Part:
    value = scale * math.sqrt(float(((u - v) ** 2).mean()) / 4) if len(u) else math.nan
    return Part(ROOT_ERROR, value, value, value, 0.0, most=scale)


def _wilson(right: Floats, level: float) -> tuple[float, float, float]:
    n, z = len(right), half_width(level)
    if n == 0:
        return math.nan, 0.0, 1.0
    share = float(right.mean())
    center, spread = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return share, max(0.0, (center - spread) / (1 + z * z / n)), min(1.0, (center + spread) / (1 + z * z / n))


def area(margins: Floats, classes: Floats) -> tuple[float, float]:
    """The area under the ROC curve, ties counted half, and DeLong's standard error."""
    positive, negative = np.sort(margins[classes > 0]), np.sort(margins[classes <= 0])
    if not (len(positive) and len(negative)):
        return math.nan, math.inf
    below = _ranks(negative, positive) / len(negative)
    above = 1 - _ranks(positive, negative) / len(positive)
    value = float(below.mean())
    variance = sum(float(np.var(part, ddof=1)) / len(part) if len(part) > 1 else 0.25 for part in (below, above))
    return value, math.sqrt(variance)


def _ranks(ordered: Floats, values: Floats) -> Floats:
    """How many of ``ordered`` lie below each value, those equal to it half."""
    ends = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return np.asarray(sum(ends) / 2.0)


def r_squared_of(u: Floats, v: Floats) -> tuple[float, float]:
    """R2 and its standard error: each row's influence on the ratio of the two sums of squares."""
    around, error = (u - u.mean()) ** 2 if len(u) else u, (u - v) ** 2
    if not (len(u) and around.sum() > 0):
        return math.nan, math.inf
    ratio = float(error.sum() / around.sum())
    influence = (error - ratio * around) / float(around.mean())
    return 1 - ratio, float(influence.std()) / math.sqrt(len(u))
