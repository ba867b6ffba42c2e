"""The Brier score: half the squared distance between the predicted probabilities and what happened, in [0, 1].

For two classes it is the usual (p - y)^2.
"""

import numpy as np

from discreet.curator.metrics import shares
from discreet.curator.metrics.measurement import Measured, Metric
from discreet.curator.metrics.noisy_sums import NoisySums
from discreet.curator.metrics.predictions import Released
from discreet.typing import Floats


def row_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """A row's score; NaN where it cannot be scored."""
    away = model.probabilities(margins)
    known = np.isfinite(targets)
    away[known, targets[known].astype(np.int64)] -= 1.0
    total = np.zeros(len(away))
    for k in range(away.shape[1]):  # one class after the other: no bit of a row depends on its neighbors
        total += away[:, k] * away[:, k]
    return np.where(known, np.minimum(total / 2.0, 1.0), np.nan)[:, None]


def measure(model: Released, rows: Floats, noisy: NoisySums, level: float, names: tuple[str, ...] = ()) -> Measured:
    """The mean of the rows' scores."""
    return shares.measure_shares(rows, names, noisy, level)


METRIC: Metric = Metric("Brier score", row_values, measure, shares.SAMPLING, by_group=True, probabilities=True)
