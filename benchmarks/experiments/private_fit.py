"""One private fit by its parts: declared facts, a solver made for them, a priced plan, a curator."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.seeded import SeededWords
from discreet.accounting.pricing import price_plan
from discreet.bounds import Bounds, Domain
from discreet.budget import Budget
from discreet.curator import PrivateData, use_entropy
from discreet.losses.base import Loss
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty

Vector = NDArray[np.float64]


def private_fit(
    X: Vector,
    y: Vector,
    bounds: Bounds,
    loss: Loss,
    solver: Callable[[Domain], Any],
    budget: Budget,
    seed: int,
    penalty: Penalty | None = None,
) -> Vector:
    """Return coefficients in training coordinates, without an intercept; its noise is replayable."""
    chosen = penalty or NoPenalty()
    data = PrivateData(X, y, bounds, fit_intercept=False, ledger=False)
    domain = data.domain(budget.neighbors, loss)
    made = solver(domain)
    priced = price_plan(made.plan(domain, loss, chosen), budget)
    with use_entropy(SeededWords(seed)):
        return np.asarray(made.solve(data.open(priced, loss), chosen).coefficients)
