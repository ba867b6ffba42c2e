"""How well a model predicts: exact values of rows, and what of them is released with noise."""

from functools import partial
from types import ModuleType
from typing import Any

from discreet.curator.metrics import accuracy, r_squared, roc
from discreet.curator.metrics.measurement import Measured
from discreet.curator.metrics.noisy_sums import NoisySums
from discreet.curator.metrics.predictions import Released, read
from discreet.ledger.reservation import Reservation

METRICS: dict[str, ModuleType] = {"accuracy": accuracy, "auc": roc, "r2": r_squared}


def measure_private(
    metric: str, model: Released, X: Any, y: Any, noisy: NoisySums, *, level: float, reservation: Reservation | None
) -> Measured:
    """Read the rows once, keep what the metric needs of each, and release the score from noisy sums of that.

    A stream names its own persons; ``reservation`` is what its features are shown to the ledger under.
    """
    kind = METRICS[metric]
    rows, persons = read(model, X, y, partial(kind.row_values, model), reservation)
    noisy.groups = noisy.groups if persons is None else persons
    found: Measured = kind.measure(model, rows, noisy, level)
    return found
