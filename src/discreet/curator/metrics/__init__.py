"""How well a model predicts: exact values of rows, and what of them is released with noise."""

from functools import partial
from typing import Any

import numpy as np

from discreet.curator.metrics import (
    accuracy,
    balanced_accuracy,
    brier,
    calibration,
    confusion,
    log_loss,
    r_squared,
    roc,
)
from discreet.curator.metrics.measurement import Measured, Metric
from discreet.curator.metrics.noisy_sums import NoisySums
from discreet.curator.metrics.predictions import Groups, Released, read
from discreet.ledger.reservation import Reservation

METRICS: dict[str, Metric] = {
    "accuracy": accuracy.METRIC,
    "auc": roc.METRIC,
    "balanced_accuracy": balanced_accuracy.METRIC,
    "brier": brier.METRIC,
    "calibration": calibration.METRIC,
    "confusion": confusion.METRIC,
    "log_loss": log_loss.METRIC,
    "r2": r_squared.METRIC,
}


def measure_private(
    metric: str,
    model: Released,
    X: Any,
    y: Any,
    noisy: NoisySums,
    *,
    level: float,
    reservation: Reservation | None,
    groups: Groups | None = None,
) -> Measured:
    """Read the rows once, keep what the metric needs of each, and release the score from noisy sums of that.

    A stream names its own persons; ``reservation`` is what its features are shown to the ledger under.
    """
    kind = METRICS[metric]
    with np.errstate(all="ignore"):  # a product that overflows would warn, and a warning is an answer
        rows, persons = read(model, X, y, partial(kind.row_values, model), reservation, groups)
        noisy.groups = noisy.groups if persons is None else persons
        return kind.measure(model, rows, noisy, level, () if groups is None else groups.names)
