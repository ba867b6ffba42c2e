"""Accuracy: right and wrong rows are counted with noise, r and w.

At the true accuracy a, (1 - a) right - a wrong = 0, so (1 - a) r - a w is noise with the weights 1 - a and a.
"""

import math

import numpy as np

from discreet.curator.metrics.inverted_tests import kept
from discreet.curator.metrics.measurement import Measured, half_width
from discreet.curator.metrics.noise_bounds import Noise
from discreet.curator.metrics.noisy_sums import NoisySums, one_hot
from discreet.curator.metrics.predictions import Released
from discreet.typing import Floats

SHARES = (1.0,)
SAMPLING = "binomial"


def row_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """1 for a right row, 0 for a wrong one, NaN for one that cannot be scored."""
    predicted = (margins[:, 0] > 0) if margins.shape[1] == 1 else margins.argmax(axis=1)
    right: Floats = np.equal(predicted, targets).astype(np.float64)
    right[np.isnan(targets) | np.isnan(margins).any(axis=1)] = np.nan
    return right[:, None]


def measure(model: Released, rows: Floats, noisy: NoisySums, level: float) -> Measured:
    """The noisy share of right rows among those that can be scored."""
    right = rows[:, 0]
    counts, noise = noisy.release(one_hot(np.where(np.isnan(right), -1.0, right).astype(np.int64), 2))
    value, low, high = share(float(counts[1]), float(counts[0]), noise, 1 - level)
    total = max(float(counts.sum()), 1.0)
    error = half_width(level) * (0.5 if math.isnan(value) else math.sqrt(value * (1 - value))) / math.sqrt(total)
    return Measured(value, low, high, error)


def share(right: float, wrong: float, noise: Noise, alpha: float) -> tuple[float, float, float]:
    """The share, and all shares that the noise does not refute."""
    if not right + wrong > 0:
        return math.nan, 0.0, 1.0
    value = min(max(right / (right + wrong), 0.0), 1.0)

    def refuted(a: float) -> bool:
        return abs((1 - a) * right - a * wrong) > noise.combined((1 - a, a), alpha)

    if refuted(value) and noise.scale > 0:  # a count far below 0
        return value, 0.0, 1.0
    return value, kept(refuted, value, 0.0), kept(refuted, value, 1.0)
