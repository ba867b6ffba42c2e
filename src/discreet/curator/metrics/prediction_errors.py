"""Errors of numeric predictions in the target's own unit: the mean absolute error and the root mean squared error.

Targets and predictions are clipped into the declared range, of width D, as for R2. A row's share of the largest
possible error is a = |target - prediction| / D in [0, 1]. The mean absolute error is D times the mean of a, the root
mean squared error D times the root of the mean of a^2. Unlike R2, neither divides by the target's variance, so their
intervals stay within [0, D] however few rows there are.

Privacy
-------
Relation and sensitivity: a row brings v = a, or v = a^2, in [0, 1], and becomes the two cells 1 - v and v of
``shares``, not negative and adding up to 1: their length is at most 1, as for one count. Mechanism and event: those of
``noisy_sums``. The square root and the factor D are taken of what was released. Conditions: a row's number follows from
that row and from released or declared values, namely the model's coefficients and the target's range.
"""

import math
from dataclasses import replace

import numpy as np

from discreet.curator.metrics import r_squared, shares
from discreet.curator.metrics.measurement import Measured, Metric, Part
from discreet.curator.metrics.noisy_sums import NoisySums
from discreet.curator.metrics.predictions import Released
from discreet.typing import Floats


def row_errors(model: Released, margins: Floats, targets: Floats) -> Floats:
    """The absolute error over the range's width; NaN for a row that cannot be scored."""
    u, v = r_squared.row_values(model, margins, targets).T
    return np.asarray(np.abs(u - v) / 2.0)[:, None]


def row_squares(model: Released, margins: Floats, targets: Floats) -> Floats:
    """The square of that."""
    return row_errors(model, margins, targets) ** 2


def measure_absolute(
    model: Released, rows: Floats, noisy: NoisySums, level: float, names: tuple[str, ...] = ()
) -> Measured:
    """The mean absolute error."""
    return shares.measure_shares(rows, names, noisy, level, scale=width(model))


def measure_root(
    model: Released, rows: Floats, noisy: NoisySums, level: float, names: tuple[str, ...] = ()
) -> Measured:
    """The root of the mean square: of each end of an interval, as the root rises."""
    found = shares.measure_shares(rows, names, noisy, level)
    parts = tuple(Part(part.name, *root(width(model), part)) for part in found.parts)
    return replace(Measured(*root(width(model), found)), parts=parts)


def root(scale: float, found: Measured | Part) -> tuple[float, float, float, float]:
    """Return ``scale`` times the root of a mean square and of its interval, and the wider of what sampling adds."""
    value, low, high = (scale * math.sqrt(max(end, 0.0)) for end in (found.value, found.low, found.high))
    below = low - scale * math.sqrt(max(found.low - found.sampling, 0.0))
    above = scale * math.sqrt(max(found.high, 0.0) + found.sampling) - high
    return value if not math.isnan(found.value) else math.nan, low, high, max(below, above)


def width(model: Released) -> float:
    """Return the width of the declared range of targets."""
    low, high = model.bounds.target or (0.0, 1.0)
    return high - low


ABSOLUTE: Metric = Metric(
    "mean absolute error", row_errors, measure_absolute, shares.SAMPLING, most=math.inf, by_group=True, numbers=True
)
ROOT: Metric = Metric(
    "root mean squared error", row_squares, measure_root, shares.SAMPLING, most=math.inf, by_group=True, numbers=True
)
