"""The confusion matrix: noisy counts of rows by their class and by the predicted one. Its score is the accuracy.

Each row is a 1 in one of K^2 cells, so the matrix costs no more than one count.
"""

import numpy as np

from discreet.curator.metrics.measurement import Measured, Metric, Part, half_width
from discreet.curator.metrics.noisy_sums import NoisySums, one_hot
from discreet.curator.metrics.predictions import Released
from discreet.curator.metrics.shares import share
from discreet.typing import Floats


def row_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """A row's class and the predicted one."""
    pair = np.column_stack([targets, model.classes(margins)])
    pair[np.isnan(targets) | np.isnan(margins).any(axis=1)] = np.nan
    return pair


def measure(model: Released, rows: Floats, noisy: NoisySums, level: float, names: tuple[str, ...] = ()) -> Measured:
    """The counts, each with an interval of its own, and the accuracy."""
    classes = model.class_names
    size = len(classes)
    scored = np.isfinite(rows).all(axis=1)
    cells = np.where(scored, rows[:, 0] * size + rows[:, 1], -1.0).astype(np.int64)
    counts, noise = noisy.release(one_hot(cells, size * size))
    off = noise.combined([1.0], 1 - level)
    parts = tuple(
        Part(f"{one} predicted as {other}", count, max(0.0, count - off), max(0.0, count + off), 0.0)
        for (one, other), count in zip(((a, b) for a in classes for b in classes), counts.tolist(), strict=True)
    )
    right = float(np.trace(counts.reshape(size, size)))
    wrong = float(counts.sum()) - right
    value, low, high = share(right, wrong, noise, 1 - level, count=size * size - size)
    spread = 0.5 if np.isnan(value) else float(np.sqrt(value * (1 - value)))
    return Measured(value, low, high, half_width(level) * spread / max(right + wrong, 1.0) ** 0.5, parts)


METRIC: Metric = Metric("accuracy", row_values, measure, "binomial")
