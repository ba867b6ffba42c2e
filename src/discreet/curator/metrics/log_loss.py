"""The logarithmic loss, with probabilities held at 1 % or more: a row costs between 0 and -log(0.01) = 4.6.

Without that limit one row could cost anything, and no noise would hide it.
"""

import math

import numpy as np

from discreet.curator.metrics import shares
from discreet.curator.metrics.measurement import Measured, Metric
from discreet.curator.metrics.noisy_sums import NoisySums
from discreet.curator.metrics.predictions import Released
from discreet.typing import Floats

LEAST_PROBABILITY = 0.01
MOST = -math.log(LEAST_PROBABILITY)


def row_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """A row's loss as a part of the most it can be; NaN where it cannot be scored."""
    known = np.isfinite(targets) & np.isfinite(margins).all(axis=1)
    chances = model.probabilities(margins)
    happened = chances[np.arange(len(targets)), np.where(known, targets, 0.0).astype(np.int64)]
    parts = [-math.log(max(p, LEAST_PROBABILITY)) / MOST if p == p else math.nan for p in happened.tolist()]
    return np.where(known, np.clip(np.array(parts, dtype=np.float64), 0.0, 1.0), np.nan)[:, None]


def measure(model: Released, rows: Floats, noisy: NoisySums, level: float, names: tuple[str, ...] = ()) -> Measured:
    """The mean of the rows' losses."""
    return shares.measure_shares(rows, names, noisy, level, scale=MOST)


METRIC: Metric = Metric("log loss", row_values, measure, shares.SAMPLING, most=MOST, by_group=True, probabilities=True)
