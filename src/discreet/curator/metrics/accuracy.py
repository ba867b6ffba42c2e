"""Accuracy: the share of right rows, counted with noise (``shares``)."""

import numpy as np

from discreet.curator.metrics.measurement import Measured, Metric
from discreet.curator.metrics.noisy_sums import NoisySums
from discreet.curator.metrics.predictions import Released
from discreet.curator.metrics.shares import measure_shares
from discreet.typing import Floats


def row_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """1 for a right row, 0 for a wrong one, NaN for one that cannot be scored."""
    right: Floats = np.equal(model.classes(margins), targets).astype(np.float64)
    right[np.isnan(targets) | np.isnan(margins).any(axis=1)] = np.nan
    return right[:, None]


def measure(model: Released, rows: Floats, noisy: NoisySums, level: float, names: tuple[str, ...] = ()) -> Measured:
    """The noisy share of right rows among those that can be scored."""
    return measure_shares(rows, names, noisy, level, counted=True)


METRIC: Metric = Metric("accuracy", row_values, measure, "binomial", by_group=True)
