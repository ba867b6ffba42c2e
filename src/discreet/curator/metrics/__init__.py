"""How well a model predicts: exact values of rows, and what of them is released with noise."""

from contextvars import Context
from functools import partial
from typing import Any

import numpy as np

from discreet.accounting.priced_plan import PricedPlan
from discreet.curator.metrics import (
    accuracy,
    balanced_accuracy,
    brier,
    calibration,
    confusion,
    log_loss,
    prediction_errors,
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
    "mae": prediction_errors.ABSOLUTE,
    "r2": r_squared.METRIC,
    "rmse": prediction_errors.ROOT,
}


def check_measurable(
    metric: str, model: Released, priced: PricedPlan, *, level: float, groups: Groups | None = None
) -> None:
    """Score a table of one null row, to refuse before the charge what public facts alone make impossible.

    Nothing of the rows is in it. It runs in a context of its own, so that no observer and no seeded noise notices.
    """
    kind = METRICS[metric]

    def rehearse() -> None:
        with np.errstate(all="ignore"):
            null = kind.row_values(model, np.full((1, len(model.coef)), np.nan), np.full(1, np.nan))
            names = () if groups is None else groups.names
            null = null if groups is None else np.column_stack([null, np.full(1, np.nan)])
            kind.measure(model, null, NoisySums(priced, None), level, names)

    Context().run(rehearse)


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
