"""Balanced accuracy: the mean over the classes of the share of right rows among those of the class.

The interval is the mean of the classes' intervals, each at a level that makes all of them hold at once.
"""

import numpy as np

from discreet.curator.metrics import accuracy
from discreet.curator.metrics.measurement import Measured, Metric
from discreet.curator.metrics.noisy_sums import NoisySums
from discreet.curator.metrics.predictions import Released
from discreet.curator.metrics.shares import measure_shares
from discreet.typing import Floats


def row_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """Whether a row is right, and its class."""
    return np.column_stack([accuracy.row_values(model, margins, targets), targets])


def measure(model: Released, rows: Floats, noisy: NoisySums, level: float, names: tuple[str, ...] = ()) -> Measured:
    """The mean of the classes' shares; a class without rows leaves it open."""
    classes = model.class_names
    parts = measure_shares(rows, classes, noisy, 1 - (1 - level) / len(classes), counted=True).parts
    value, low, high = (float(np.mean([getattr(part, end) for part in parts])) for end in ("value", "low", "high"))
    sampling = float(np.linalg.norm([part.sampling for part in parts])) / len(classes)
    return Measured(value, low, high, sampling, parts)


METRIC: Metric = Metric("balanced accuracy", row_values, measure, "binomial")
