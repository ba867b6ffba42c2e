"""Calibration: how often what was given a chance between two tenths did happen, and the mean distance to the chance.

Rows are counted with noise by the tenth that the predicted probability of the second class lies in, and by what
happened. A part is a tenth's observed share. The score is the expected calibration error of predictions that are
rounded to the middle m_b of their tenth: sum_b |(1 - m_b) positives_b - m_b negatives_b| / all rows.
"""

import math

import numpy as np

from discreet.curator.metrics.measurement import Measured, Metric, Part, half_width
from discreet.curator.metrics.noise_bounds import Noise
from discreet.curator.metrics.noisy_sums import NoisySums, one_hot
from discreet.curator.metrics.predictions import Released
from discreet.curator.metrics.shares import share
from discreet.typing import Floats

TENTHS = 10
_ROUNDED = 1e-12
_NAMES = tuple(f"{low / TENTHS:g} to {(low + 1) / TENTHS:g}" for low in range(TENTHS))


def row_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """The tenth that a row's probability lies in, and its class."""
    chances = model.probabilities(margins)[:, 1]
    pair = np.column_stack([np.minimum(np.floor(TENTHS * chances), TENTHS - 1), targets])
    pair[~np.isfinite(pair).all(axis=1)] = np.nan
    return pair


def measure(model: Released, rows: Floats, noisy: NoisySums, level: float, names: tuple[str, ...] = ()) -> Measured:
    """The observed share in each tenth, each with an interval of its own, and the mean distance."""
    scored = np.isfinite(rows).all(axis=1)
    cells = np.where(scored, 2 * rows[:, 0] + rows[:, 1], -1.0).astype(np.int64)
    counts, noise = noisy.release(one_hot(cells, 2 * TENTHS))
    negative, positive = counts.reshape(TENTHS, 2).T
    parts = tuple(_tenth(*both, noise, level) for both in zip(_NAMES, positive, negative, strict=True))
    return Measured(*_error(positive, negative, noise, 1 - level), _sampling(counts, level), parts)


def _tenth(name: str, positive: float, negative: float, noise: Noise, level: float) -> Part:
    value, low, high = share(float(positive), float(negative), noise, 1 - level)
    spread = 0.5 if math.isnan(value) else math.sqrt(value * (1 - value))
    return Part(name, value, low, high, half_width(level) * spread / math.sqrt(max(float(positive + negative), 1.0)))


def _error(positive: Floats, negative: Floats, noise: Noise, alpha: float) -> tuple[float, float, float]:
    """The mean distance, and its range while every tenth's noise and that of the number of rows is in bounds."""
    total = float((positive + negative).sum())
    if not total > 0:
        return math.nan, 0.0, 1.0
    middle = (np.arange(TENTHS) + 0.5) / TENTHS
    away = np.abs((1 - middle) * positive - middle * negative)
    off = np.array([noise.combined([1 - m, m], alpha / (TENTHS + 1)) for m in middle.tolist()])
    rows = noise.combined([1.0] * (2 * TENTHS), alpha / (TENTHS + 1))
    low = (1 - _ROUNDED) * float(np.maximum(away - off, 0.0).sum()) / (total + rows)
    high = (1 + _ROUNDED) * float((away + off).sum()) / (total - rows) if total > rows else 1.0
    return min(float(away.sum()) / total, 1.0), min(low, 1.0), min(high, 1.0)


def _sampling(counts: Floats, level: float) -> float:
    """At most: the tenths' deviations, each half of its rows' root, added up."""
    total = max(float(counts.sum()), 1.0)
    per_tenth = np.maximum(counts.reshape(TENTHS, 2).sum(axis=1), 0.0)
    return half_width(level) * 0.5 * float(np.sqrt(per_tenth).sum()) / total


METRIC: Metric = Metric(
    "calibration error", row_values, measure, "at most that of a share", probabilities=True, two_classes=True
)
