"""Accuracy against epsilon: many private fits on synthetic rows, judged on rows that are declared public.

Each fit spends its epsilon, so a sweep spends their sum. That is harmless here, because the rows are
synthetic; with people's data, choosing among such fits is a release that has to be paid for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.experiments.synthetic import Table
from discreet.models import DPLogisticRegression

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class References:
    """Accuracies on the public rows without noise (scikit-learn), and of always saying the commoner class."""

    non_private: float
    majority: float


@dataclass(frozen=True)
class Sweep:
    """``accuracies[i][k]``: the k-th repetition at ``epsilons[i]``."""

    epsilons: tuple[float, ...]
    accuracies: tuple[tuple[float, ...], ...]

    @property
    def spent(self) -> float:
        """The epsilon of all fits together, by basic composition."""
        return float(sum(epsilon * len(row) for epsilon, row in zip(self.epsilons, self.accuracies, strict=True)))


def references(train: Table, public: Table) -> References:
    """What no privacy gives, and what no data at all gives."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    free = make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=500)).fit(train.X, train.y)
    rate = float(public.y.mean())
    return References(float(free.score(public.X, public.y)), max(rate, 1 - rate))


def accuracy_sweep(
    train: Table,
    public: Table,
    *,
    epsilons: Sequence[float] = EPSILONS,
    repeats: int = 5,
    done: Callable[[], None] = lambda: None,
) -> Sweep:
    """Fit ``repeats`` models at each epsilon with the default solver; ``done`` is called after each."""

    def accuracy(epsilon: float) -> float:
        model = DPLogisticRegression(epsilon=epsilon, bounds=train.bounds, ledger=False).fit(train.X, train.y)
        done()
        return float(np.mean(model.predict(public.X) == public.y))

    rows = tuple(tuple(accuracy(epsilon) for _ in range(repeats)) for epsilon in epsilons)
    return Sweep(tuple(float(epsilon) for epsilon in epsilons), rows)
