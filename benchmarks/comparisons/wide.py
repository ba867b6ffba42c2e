"""Wide and sparse tables: the default against every other solver, at four budgets.

*Score* is the accuracy on test rows, for numbers R^2. *Excess* is the objective on training rows (mean loss and an L1
penalty) above that of the best model that is known, in units of what that gains on a model without columns.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from benchmarks.problems.wide_tables import ALL, Vector, WideTable
from benchmarks.seeded import SeededWords
from discreet.curator import use_entropy
from discreet.errors import DiscreetError

EPSILONS = (1.0, 4.0, 8.0, 1000.0)
SOLVERS = ("auto", "gd", "sgd", "objective", "gcd", "cd", "output")
CEILING = "without privacy"


@dataclass(frozen=True)
class Cell:
    """One fit."""

    table: str
    solver: str
    epsilon: float
    seed: int
    relation: str = "zero_out"


def score(test: WideTable, margins: Vector) -> float:
    """Return accuracy, or R^2."""
    if test.target is None:
        return float(np.mean((margins > 0) == (test.y > 0.5)))
    return float(1.0 - np.mean(np.square(margins - test.y)) / np.var(test.y))


def objective(train: WideTable, w: Vector, intercept: float) -> float:
    """Return the mean loss on training rows and an L1 penalty, in declared units."""
    margins = train.X @ w + intercept
    if train.target is None:
        loss, unit = np.logaddexp(0.0, margins) - train.y * margins, 1.0
    else:
        unit = max(map(abs, train.target))
        loss = np.square((margins - train.y) / unit) / 2
    size = max(abs(train.low), abs(train.high)) / unit
    return float(np.mean(loss)) + (train.strength or 0.0) * float(np.abs(w * size).sum())


def without_privacy(train: WideTable) -> Any:
    """Return scikit-learn's model of the same kind on columns in declared units: what there is to be learned."""
    n = len(train.y)
    if train.target is not None:
        return (Ridge(1.0) if train.strength is None else Lasso(train.strength, max_iter=10_000)).fit(*_unit(train))
    if train.strength is None:
        return LogisticRegression(max_iter=2000).fit(*_unit(train))
    return LogisticRegression(l1_ratio=1.0, C=1.0 / (n * train.strength), solver="saga", max_iter=2000).fit(
        *_unit(train)
    )


def _unit(train: WideTable) -> tuple[Any, Vector]:
    unit = 1.0 if train.target is None else max(map(abs, train.target))
    return train.X / max(abs(train.low), abs(train.high)), train.y / unit


def run_ceiling(name: str, train: WideTable, test: WideTable, seed: int) -> dict[str, Any]:
    """Return what the model without privacy reaches, and the objective of one without columns."""
    found = without_privacy(train)
    unit = 1.0 if train.target is None else max(map(abs, train.target))
    w, intercept = np.ravel(found.coef_) * unit, float(np.ravel(found.intercept_)[0]) * unit
    w = w / max(abs(train.low), abs(train.high))
    mean = float(np.mean(train.y))
    constant = mean if train.target is not None else float(np.log(mean / (1.0 - mean)))
    return {
        "table": name, "solver": CEILING, "seed": seed, "rows": len(train.y), "columns": train.X.shape[1],
        "score": score(test, test.X @ w + intercept), "objective": objective(train, w, intercept),
        "trivial": objective(train, np.zeros_like(w), constant),
    }  # fmt: skip


def run_cell(cell: Cell, train: WideTable, test: WideTable) -> dict[str, Any]:
    """Fit once; a refusal is kept as one."""
    model = train.model(epsilon=cell.epsilon, solver=cell.solver, neighbors=cell.relation)
    facts = {**vars(cell)}
    try:
        with use_entropy(SeededWords(zlib.crc32(f"{cell}".encode()))):
            model.fit(train.X, train.y)
    except DiscreetError as refused:
        return {**facts, "absent": f"{type(refused).__name__}: {refused}"}
    w, intercept = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    return {
        **facts, "score": score(test, test.X @ w + intercept), "objective": objective(train, w, intercept),
    }  # fmt: skip


def run(
    tables: Sequence[str], solvers: Sequence[str], epsilons: Sequence[float], seeds: Sequence[int], relation: str,
    folder: Path, known: Sequence[dict[str, Any]] = (),
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Run what is not known yet, table by table; each seed splits afresh."""
    have = {(run["table"], run["solver"], run.get("epsilon"), run["seed"], run.get("relation")) for run in known}
    for name in tables:
        whole = ALL[name](folder)
        for seed in seeds:
            train, test = whole.split(seed)
            if (name, CEILING, None, seed, None) not in have:
                yield run_ceiling(name, train, test, seed)
            for solver in solvers:
                for epsilon in epsilons:
                    if (name, solver, epsilon, seed, relation) not in have:
                        yield run_cell(Cell(name, solver, epsilon, seed, relation), train, test)
