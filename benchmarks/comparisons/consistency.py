"""Does the default tend to the minimizer of its own objective as the budget grows?

An estimator with nothing set minimizes a declared objective on records clipped to their declared ranges. Its minimizer
is found without privacy, by Newton's method (labels) or least squares (numbers). For each budget: the *excess* is the
objective on training rows above its minimum, and the *gap* what is lost on test rows of the minimizer's score, each
over what the minimizer gains on the trivial predictor (the share of positives; the mean). 0 is the minimizer.

``HELD_BACK``: tables on which no rule was chosen.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparisons.accuracy import SYNTHETIC, synthetic
from benchmarks.measures.gap import scores
from benchmarks.problems import declared_tables as declared
from benchmarks.problems.declared_tables import DeclaredTable
from benchmarks.seeded import SeededWords
from discreet.curator import use_entropy
from discreet.models import DPLinearRegression, DPLogisticRegression

Array = NDArray[np.float64]
LABELS = ("adult", "covertype_177k", "spambase", "bank_marketing", "credit_default_taiwan", "ipums_br")
NUMBERS = ("diamonds", "wine_quality", "medical_cost", "california_housing", "melting_point", "rand_health")
HELD_BACK = (*LABELS[:3], *NUMBERS[:3])
EPSILONS = (0.5, 1.0, 4.0, 16.0, 64.0, 256.0)
ALPHA = 1e-8  # of the L2 penalty that DPLogisticRegression has as it comes
NEWTON_STEPS = 60


@dataclass(frozen=True)
class Optimum:
    """The least objective on training rows, the trivial predictor's, and what both score on test rows."""

    objective: float
    trivial: float
    score: dict[str, float]
    trivial_score: dict[str, float]


def load(name: str, folder: Path | None) -> DeclaredTable:
    """Return the table of this name; a synthetic one needs no folder."""
    return synthetic(name) if name in SYNTHETIC else declared.load(name, folder or Path("data"))


def clipped(table: DeclaredTable) -> tuple[Array, Array, Array]:
    """Return the features within their ranges, with a constant; their bounds; and the target within its range."""
    low, high = table.bounds.ranges(table.X.shape[1])
    X = np.column_stack([np.clip(table.X, low, high), np.ones(len(table.X))])
    bounds = np.maximum(np.maximum(np.abs(low), np.abs(high)), 0.0)
    y = table.y if table.bounds.target is None else np.clip(table.y, *table.bounds.target)
    return X, np.append(np.where(bounds > 0, bounds, 1.0), 1.0), y


def objective(table: DeclaredTable, w: Array) -> float:
    """Return the declared objective at coefficients (with the intercept last) in the table's own units."""
    X, bounds, y = clipped(table)
    margins = X @ w
    if not table.is_classification:
        return float(np.mean(np.square(margins - y)))
    penalty = 0.5 * ALPHA * float(np.sum(np.square(w * bounds)))
    return float(np.mean(np.logaddexp(0.0, np.where(y > 0.5, -margins, margins)))) + penalty


def minimizer(table: DeclaredTable) -> Array:
    """Return the coefficients of the least objective, in the table's own units."""
    X, bounds, y = clipped(table)
    Z = X / bounds
    if not table.is_classification:
        return np.asarray(np.linalg.lstsq(Z, y, rcond=None)[0] / bounds)
    w, n = np.zeros(Z.shape[1]), len(y)
    for _ in range(NEWTON_STEPS):
        chances = 1.0 / (1.0 + np.exp(-np.clip(Z @ w, -500.0, 500.0)))
        gradient = Z.T @ (chances - y) / n + ALPHA * w
        hessian = (Z.T * (chances * (1.0 - chances))) @ Z / n + ALPHA * np.eye(len(w))
        move, length, before = np.linalg.solve(hessian, gradient), 1.0, objective(table, w / bounds)
        while objective(table, (w - length * move) / bounds) > before and length > 1e-6:
            length /= 2.0
        w = w - length * move
        if float(gradient @ move) < 1e-12:
            break
    return np.asarray(w / bounds)


def score(table: DeclaredTable, w: Array) -> dict[str, float]:
    """Return accuracy and AUC, or R^2, of coefficients in the table's own units."""
    X, _, _ = clipped(table)
    margins = X @ w
    return scores(
        table,
        (margins > 0).astype(float) if table.is_classification else margins,
        margins if table.is_classification else None,
    )


def optimum(train: DeclaredTable, test: DeclaredTable) -> Optimum:
    """Return what there is to be reached on one split."""
    w, nothing = minimizer(train), np.zeros(train.X.shape[1] + 1)
    mean = float(np.mean(train.y))
    nothing[-1] = np.log(mean / (1.0 - mean)) if train.is_classification else mean
    return Optimum(objective(train, w), objective(train, nothing), score(test, w), score(test, nothing))


def run_one(
    name: str, train: DeclaredTable, test: DeclaredTable, best: Optimum, epsilon: float, seed: int
) -> dict[str, Any]:
    """Fit the default once, and compare it with the minimizer."""
    kind: Any = DPLogisticRegression if train.is_classification else DPLinearRegression
    model = kind(epsilon=epsilon, bounds=train.bounds, neighbors="zero_out", ledger=False)
    with use_entropy(SeededWords(zlib.crc32(f"consistency {name} {epsilon:g} {seed}".encode()))):
        model.fit(train.X, train.y)
    w = np.append(np.ravel(model.coef_), np.ravel(model.intercept_))
    found = score(test, w)
    lost = [(best.score[k] - found[k]) / (best.score[k] - best.trivial_score[k]) for k in found]
    excess = objective(train, w) - best.objective
    share = excess / (best.trivial - best.objective)
    facts = {
        "set": name,
        "epsilon": epsilon,
        "seed": seed,
        "excess": excess,
        "share": share,
        "gap": float(np.mean(lost)),
    }
    return {**facts, "labels": train.is_classification, "rows": len(train.y), "columns": train.X.shape[1]}


def run(sets: Sequence[str], epsilons: Sequence[float], seeds: int, folder: Path | None) -> Iterator[dict[str, Any]]:
    """Fit every table at every budget, table by table; small tables are split afresh for each seed."""
    for name in sets:
        whole, best = load(name, folder), {}
        for seed in range(1, seeds + 1):
            split = 0 if name in SYNTHETIC else declared.split_seed(name, seed)
            train, test = declared.split(whole, split)
            if split not in best:
                best[split] = optimum(train, test)
            for epsilon in epsilons:
                yield {**run_one(name, train, test, best[split], epsilon, seed), **asdict(best[split])}
