"""DP-GCD by its default against DP-CD and DP-SGD by theirs, where few columns matter. Epsilon 1, delta 1/n^2.

Generated problems with more columns than a dense answer can bear: ``logistic`` (n = 1,000, p = 100, ten effects) and
``square`` (n = 1,000, p = 1,000, ten effects, a lasso penalty), after the paper's; our own draws, since theirs are not
documented. With a folder of public tables (``DISCREET_DATA``), those of the papers join: madelon and melting point
(columns in units of their declared ranges), California housing and electricity.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.experiments.harness import Claim, Experiment, Row, mean
from benchmarks.seeded import SeededWords
from discreet.bounds import Bounds
from discreet.curator import use_entropy
from discreet.models import DPLasso, DPLogisticRegression
from discreet.report.figures import LIGHT, blank, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vector = NDArray[np.float64]
METHODS = ("gcd", "cd", "sgd", "auto")
GENERATED = ("logistic", "square")
TABLES = {"madelon": True, "electricity": True, "california_housing": False, "melting_point": False}
"""Public tables of the papers, and whether their target is a label."""


@dataclass(frozen=True, eq=False)
class Sparse:
    """A table with declared ranges of 1, and an L1 penalty's strength in these units."""

    X: Vector
    y: Vector
    labels: bool
    strength: float

    def model(self, **settings: Any) -> Any:
        """The estimator."""
        ranges = [(-1.0, 1.0)] * self.X.shape[1]
        if self.labels:
            return DPLogisticRegression(
                bounds=Bounds(ranges, classes=(0, 1)), penalty="l1", alpha=self.strength, **settings
            )
        return DPLasso(bounds=Bounds(ranges, target=(-1.0, 1.0)), alpha=self.strength, **settings)

    def objective(self, model: Any) -> float:
        """The mean loss on these records, and the penalty."""
        w = np.ravel(model.coef_)
        margins = self.X @ w + float(np.ravel(model.intercept_)[0])
        if self.labels:
            return float(np.mean(np.logaddexp(0.0, margins) - self.y * margins) + self.strength * np.abs(w).sum())
        return float(np.mean(np.square(margins - self.y)) / 2 + self.strength * np.abs(w).sum())


@lru_cache(maxsize=2)
def sparse_problem(name: str) -> tuple[Sparse, float, float]:
    """Return a problem, its objective without privacy, and that of a model without columns."""
    made = _generated(name) if name in GENERATED else _table(name)
    best = made.model(epsilon=np.inf, solver="gd", ledger=False).fit(made.X, made.y)
    trivial = made.model(epsilon=np.inf, solver="gd", ledger=False).fit(np.zeros_like(made.X), made.y)
    return made, made.objective(best), made.objective(trivial)


def _generated(name: str) -> Sparse:
    rng = np.random.default_rng([7, GENERATED.index(name)])
    n, p = 1000, 100 if name == "logistic" else 1000
    X = np.clip(rng.normal(size=(n, p)) / 4.0, -1.0, 1.0)
    w = np.zeros(p)
    w[:10] = np.exp(rng.normal(size=10)) * rng.choice([-1.0, 1.0], 10)
    margins = 4.0 * X @ w
    if name == "logistic":
        return Sparse(X, (rng.random(n) < expit(margins)).astype(np.float64), True, 1e-3)
    y = margins + 0.1 * rng.normal(size=n)
    return Sparse(X, np.clip(y / (4.0 * y.std()), -1.0, 1.0), False, 1e-3)


def _table(name: str) -> Sparse:
    """A public table, each column divided by its largest size: what its publishers say of it."""
    import pandas

    [path] = Path(os.environ["DISCREET_DATA"]).glob(f"{name}.csv.*")
    frame = pandas.get_dummies(pandas.read_csv(path), dtype=float)
    y = frame.pop("target").to_numpy(dtype=np.float64)
    X = frame.to_numpy(dtype=np.float64)
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    return Sparse(X, y if TABLES[name] else 2 * (y - y.min()) / (y.max() - y.min()) - 1, TABLES[name], 1e-4)


def points(quick: bool) -> list[Row]:
    """Problems and methods; public tables where their folder is given."""
    names = [*GENERATED, *(TABLES if os.environ.get("DISCREET_DATA") and not quick else ())]
    return [{"problem": name, "method": method} for name in (names[:1] if quick else names) for method in METHODS]


def run(problem: str, method: str, seed: int) -> Row:
    """Return the excess objective of one fit, where 1 is a model without columns."""
    made, best, trivial = sparse_problem(problem)
    model = made.model(epsilon=1.0, solver=method, ledger=False, delta=1.0 / len(made.y) ** 2)
    with use_entropy(SeededWords(seed)):
        model.fit(made.X, made.y)
    return {"excess": (made.objective(model) - best) / (trivial - best)}


def _least_ratio(rows: Sequence[Row], other: str, method: str, names: Sequence[str] = GENERATED) -> float:
    """The least over problems of one method's mean excess over another's."""
    here = [name for name in names if any(row["point"]["problem"] == name for row in rows)]
    return min(
        mean(rows, "excess", problem=name, method=other) / mean(rows, "excess", problem=name, method=method)
        for name in here
    )


def figure(rows: Sequence[Row]) -> "Figure":
    """Bars per problem."""
    names = list(dict.fromkeys(row["point"]["problem"] for row in rows))
    drawn = blank(1.4 * len(names) + 4.0, 3.6, LIGHT)
    drawn.set_layout_engine("constrained")
    axes, width = drawn.subplots(), 0.8 / len(METHODS)
    colors = (LIGHT.private, LIGHT.reference, LIGHT.quiet, LIGHT.ink)
    for k, method in enumerate(METHODS):
        heights = [mean(rows, "excess", problem=name, method=method) for name in names]
        axes.bar(np.arange(len(names)) + k * width, heights, width, color=colors[k], label=method)
    axes.axhline(1.0, color=LIGHT.quiet, linewidth=1)
    axes.set_xticks(np.arange(len(names)) + 0.4 - width / 2, names)
    axes.set_ylim(0, 1.6)
    axes.set_ylabel("excess (1: no columns)", color=LIGHT.ink)
    axes.legend(frameon=False, fontsize=9, ncols=len(METHODS))
    axes.set_title("Greedy coordinates where few columns matter", loc="left", fontsize=12, color=LIGHT.ink)
    frame(axes, LIGHT)
    return drawn


EXPERIMENT = Experiment(
    "greedy_coordinates",
    "Greedy coordinate descent where few columns matter",
    "Does DP-GCD, with nothing set, beat DP-CD and DP-SGD on wide problems with few relevant columns?",
    points,
    run,
    (
        Claim(
            "DP-CD's excess over DP-GCD's, least over generated problems",
            lambda rows: _least_ratio(rows, "cd", "gcd"),
            low=1.0,
        ),
        Claim("DP-SGD's excess over DP-GCD's", lambda rows: _least_ratio(rows, "sgd", "gcd"), low=1.0),
        Claim(
            "auto is near the best: DP-GCD's excess over auto's",
            lambda rows: _least_ratio(rows, "gcd", "auto"),
            low=1 / 1.2,
        ),
    ),
    figure,
    seeds=8,
)
