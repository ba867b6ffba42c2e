"""``public_score``: the same scores of rows that are not private, exactly."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.metrics.measurement import Measured, half_width
from discreet.curator.metrics.predictions import read
from discreet.curator.records.containers import container_of
from discreet.curator.records.stream import is_stream
from discreet.errors import Unsupported
from discreet.models.scoring.private import metric_of, scored
from discreet.models.scoring.released import released
from discreet.models.scoring.result import PrivateScore

Vector = NDArray[np.float64]


def public_score(model: Any, X: Any, y: Any = None, metric: str = "auto", level: float = 0.95) -> PrivateScore:
    """Score a model on rows that are declared public: exact, without noise and without a guarantee.

    ``population_low`` and ``population_high`` are the usual interval for the sampling of the rows: Wilson's for
    accuracy, DeLong's for the area under the curve, the delta method's for R2.

    Parameters
    ----------
    model : estimator
        A fitted estimator of discreet's.
    X, y : array-like
        Rows that everybody may see, in the model's features, and their targets.
    metric : {"auto", "accuracy", "auc", "r2"}, default="auto"
        ``"auto"``: accuracy for classes, R2 for numbers; ``"auc"`` is for two classes.
    level : float, default=0.95
        The level of the interval.

    Returns
    -------
    PrivateScore
        The exact score; its ``certificate`` is None.

    Raises
    ------
    Unsupported
        If the targets are missing, or the model cannot be scored.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge, public_score
    >>> X, y = np.linspace(-1, 1, 100).reshape(50, 2), np.linspace(0, 1, 50)
    >>> model = DPRidge(epsilon=1.0, bounds=1.0, target=(0, 1)).fit(X, y)
    >>> public_score(model, X, y).metric
    'r2'
    """
    X = container_of(X)
    known = released(model, X)
    kind, name = metric_of(known, metric, level)
    if y is None and not is_stream(X):
        raise Unsupported("a score needs the targets: pass y")
    if y is not None and is_stream(X):
        raise Unsupported("a stream brings its own targets: leave y out")
    rows, _ = read(known, X, y, partial(kind.seen, known))
    kept = rows[~np.isnan(rows).any(axis=1)]
    if name == "accuracy":
        value, low, high = _wilson(kept[:, 0], level)
        result = scored(name, Measured(value, value, value, 0.0), level, None, len(rows), "Wilson")
        return replace(result, population_low=low, population_high=high)
    value, spread = area(*kept.T) if name == "auc" else r_squared_of(*kept.T)
    sampling = half_width(level) * spread
    found = Measured(value, value, value, sampling)
    return scored(name, found, level, None, len(rows), "DeLong" if name == "auc" else "delta method")


def _wilson(right: Vector, level: float) -> tuple[float, float, float]:
    n, z = len(right), half_width(level)
    if n == 0:
        return math.nan, 0.0, 1.0
    share = float(right.mean())
    center, spread = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return share, max(0.0, (center - spread) / (1 + z * z / n)), min(1.0, (center + spread) / (1 + z * z / n))


def area(margins: Vector, classes: Vector) -> tuple[float, float]:
    """The area under the ROC curve, ties counted half, and DeLong's standard error."""
    positive, negative = np.sort(margins[classes > 0]), np.sort(margins[classes <= 0])
    if not (len(positive) and len(negative)):
        return math.nan, math.inf
    below = _ranks(negative, positive) / len(negative)
    above = 1 - _ranks(positive, negative) / len(positive)
    value = float(below.mean())
    variance = sum(float(np.var(part, ddof=1)) / len(part) if len(part) > 1 else 0.25 for part in (below, above))
    return value, math.sqrt(variance)


def _ranks(ordered: Vector, values: Vector) -> Vector:
    """How many of ``ordered`` lie below each value, those equal to it half."""
    ends = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return np.asarray(sum(ends) / 2.0)


def r_squared_of(u: Vector, v: Vector) -> tuple[float, float]:
    """R2 and its standard error: each row's influence on the ratio of the two sums of squares."""
    around, error = (u - u.mean()) ** 2 if len(u) else u, (u - v) ** 2
    if not (len(u) and around.sum() > 0):
        return math.nan, math.inf
    ratio = float(error.sum() / around.sum())
    influence = (error - ratio * around) / float(around.mean())
    return 1 - ratio, float(influence.std()) / math.sqrt(len(u))
