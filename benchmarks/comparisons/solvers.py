"""Solvers with their default settings against each other: accuracy by cross validation, at equal epsilon.

The protocol is that of Lee & Kifer (KDD 2018): logistic loss with an intercept, features in [0, 1], an L2 penalty of
1e-3, five folds, epsilon from 0.05 to 1.6, delta = 1e-8. The relation is ``zero_out``, whose noise is that of adding or
removing a record while n stays public. Settings are the library's defaults, the same rules for every table.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from benchmarks.measures.accuracy import NEIGHBORS, Rows, free_accuracy, majority_accuracy, private_accuracy
from benchmarks.methods.defaults import METHODS, Method
from benchmarks.problems.measured_tables import TITLES
from discreet.datasets import Table
from discreet.errors import Unsupported


@dataclass(frozen=True)
class Protocol:
    """What is compared, and how."""

    epsilons: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
    methods: tuple[str, ...] = field(default=tuple(method.name for method in METHODS))
    folds: int = 5
    repeats: int = 1
    seed: int = 0
    delta: float = 1e-8
    alpha: float = 1e-3

    def __post_init__(self) -> None:
        known = [method.name for method in METHODS]
        unknown = [name for name in self.methods if name not in known]
        if unknown:
            raise Unsupported(f"there is no method called {', '.join(unknown)}: choose among {', '.join(known)}")
        if self.folds < 2 or self.repeats < 1 or not self.epsilons or not self.methods:
            raise Unsupported("a comparison needs two folds, one repeat, one epsilon and one method at least")
        if not all(0 < epsilon < math.inf for epsilon in self.epsilons):
            raise Unsupported("every epsilon must be a positive number")

    @property
    def chosen(self) -> list[Method]:
        """The methods, in the order of ``METHODS``."""
        return [method for method in METHODS if method.name in self.methods]

    def splits(self, rows: int) -> Iterator[tuple[Rows, Rows]]:
        """Training and held-out rows of every fold of every repeat; the same for the same seed."""
        for repeat in range(self.repeats):
            order = np.random.default_rng([self.seed, repeat]).permutation(rows)
            for held in np.array_split(order, self.folds):
                yield np.setdiff1d(order, held), np.sort(held)

    def fit_count(self, tables: int) -> int:
        """How many private fits a run has."""
        return tables * self.repeats * self.folds * len(self.epsilons) * len(self.methods)


def run(tables: Mapping[str, Table], protocol: Protocol, *, done: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Every method on every table, as plain numbers; ``done`` is called after each of ``fit_count`` fits."""
    facts = {**asdict(protocol), "neighbors": str(NEIGHBORS), "loss": "logistic"}
    return {"protocol": facts, "tables": [_on_table(name, tables[name], protocol, done) for name in tables]}


def _on_table(name: str, table: Table, protocol: Protocol, done: Callable[[], None]) -> dict[str, Any]:
    splits = list(protocol.splits(len(table.y)))
    methods = [
        {"method": method.name, "label": method.label, "points": _points(table, splits, method, protocol, done)}
        for method in protocol.chosen
    ]
    return {
        "name": name,
        "title": TITLES.get(name, name),
        "rows": len(table.y),
        "columns": table.X.shape[1],
        "majority": [majority_accuracy(table, *split) for split in splits],
        "non_private": [free_accuracy(table, *split, protocol.alpha) for split in splits],
        "methods": methods,
    }


def _points(
    table: Table, splits: Sequence[tuple[Rows, Rows]], method: Method, protocol: Protocol, done: Callable[[], None]
) -> list[dict[str, Any]]:
    points = []
    for epsilon in protocol.epsilons:
        accuracies, start = [], time.perf_counter()
        for number, (train, held) in enumerate(splits):
            seed = 10_000 * protocol.seed + number
            facts = {"delta": protocol.delta, "alpha": protocol.alpha, "seed": seed}
            accuracies.append(private_accuracy(table, train, held, method, epsilon, **facts))
            done()
        seconds = (time.perf_counter() - start) / len(splits)
        points.append({"epsilon": epsilon, "accuracies": accuracies, "seconds_per_fit": seconds})
    return points
