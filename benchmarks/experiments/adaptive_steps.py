"""DP-GD over a fixed number of steps T, and DP-AGD, which needs none: what a wrong T costs. Synthetic hospital stays.

Few steps do not arrive, many have more noise each: excess risk over T has the shape of a U whose minimum moves with the
budget and is not known before. DP-AGD chooses step sizes and budgets of steps on the way. Logistic loss, delta = 1e-8,
``zero_out``; both in declared coordinates, clips and step sizes by their defaults, fixed steps with momentum.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.experiments.harness import Claim, Experiment, Row, mean
from benchmarks.pages.curve_panels import Curve, Panel, curve_panels
from benchmarks.problems.measured_tables import SYNTHETIC, chosen_tables
from benchmarks.seeded import SeededWords
from discreet.curator import use_entropy
from discreet.datasets import Table
from discreet.models import DPLogisticRegression
from discreet.solvers import AdaptiveDescent, GradientDescent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = (1, 3, 10, 30, 100, 300, 1000)
EPSILONS = (0.1, 0.4, 1.6)
ROWS, DELTA = 5_000, 1e-8
LEAST = 1e-5


def points(quick: bool) -> list[Row]:
    """Budgets, and numbers of steps; 0 is DP-AGD."""
    steps = (0, *STEPS[1:4:2]) if quick else (0, *STEPS)
    return [{"epsilon": epsilon, "steps": at} for epsilon in (EPSILONS[-1:] if quick else EPSILONS) for at in steps]


@lru_cache(maxsize=1)
def _table() -> Table:
    return chosen_tables(None, (SYNTHETIC,), ROWS)[SYNTHETIC]


def _model(**settings: Any) -> Any:
    bounds = _table().bounds
    return DPLogisticRegression(bounds=bounds, alpha=0.0, neighbors="zero_out", ledger=False, **settings)


def _objective(model: Any) -> float:
    table = _table()
    signs = np.where(np.asarray(table.y) == table.bounds.classes[1], 1.0, -1.0)
    losses = np.logaddexp(0.0, -signs * model.decision_function(table.X))
    return float(np.mean(losses))


@lru_cache(maxsize=1)
def _ends() -> tuple[float, float]:
    """Return the mean loss without privacy, and that of zeros."""
    table = _table()
    best = _model(epsilon=np.inf, solver="gd").fit(table.X, table.y)
    return _objective(best), float(np.log(2.0))


def run(epsilon: float, steps: int, seed: int) -> Row:
    """Return the excess risk of one fit."""
    solver = GradientDescent(n_steps=steps, momentum="nesterov") if steps else AdaptiveDescent()
    table = _table()
    with use_entropy(SeededWords(seed)):
        model = _model(epsilon=epsilon, delta=DELTA, solver=solver).fit(table.X, table.y)
    return {"excess": max(_objective(model) - _ends()[0], LEAST)}


def _over(rows: Sequence[Row], steps: Sequence[int]) -> float:
    """Return the least over budgets of the mean excess after these steps over that of the best fixed T."""
    ratios = []
    for epsilon in {row["point"]["epsilon"] for row in rows}:
        best = min(_excess(rows, epsilon, at) for at in STEPS)
        ratios.append(max(_excess(rows, epsilon, at) for at in steps) / best)
    return min(ratios, default=float("nan"))


def _excess(rows: Sequence[Row], epsilon: float, steps: int) -> float:
    value = mean(rows, "excess", epsilon=epsilon, steps=steps)
    return value if np.isfinite(value) else float("inf")


def _adaptive(rows: Sequence[Row]) -> float:
    """Return the largest over budgets of DP-AGD's mean excess over that of the best fixed T."""
    budgets = {row["point"]["epsilon"] for row in rows}
    return max(_excess(rows, budget, 0) / min(_excess(rows, budget, at) for at in STEPS) for budget in budgets)


def figure(rows: Sequence[Row]) -> "Figure":
    """A panel per budget: fixed steps as a curve, DP-AGD as a level."""
    panels = []
    for epsilon in sorted({row["point"]["epsilon"] for row in rows}):
        here = [row for row in rows if row["point"]["epsilon"] == epsilon]
        steps = sorted({row["point"]["steps"] for row in here} - {0})
        fixed = [[row["excess"] for row in here if row["point"]["steps"] == at] for at in steps]
        adaptive = [row["excess"] for row in here if row["point"]["steps"] == 0]
        curves = [
            Curve("DP-GD, T fixed steps", steps, fixed, 0),
            Curve("DP-AGD, which needs no T", [steps[0], steps[-1]], [adaptive, adaptive], 3),
        ]
        best, zeros = _ends()
        panels.append(Panel(f"epsilon = {epsilon:g}", curves, zeros - best))
    return curve_panels(
        panels, title="What a fixed number of steps costs",
        subtitle=f"Hospital stays, {ROWS:,} rows, delta = {DELTA:g}, zero_out, declared coordinates.",
        x_label="T", y_label="excess risk",
    )  # fmt: skip


EXPERIMENT = Experiment(
    "adaptive_steps",
    "DP-AGD and the number of steps",
    "Does the excess risk of fixed steps have a minimum in T, and where is DP-AGD, which needs no T?",
    points,
    run,
    (
        Claim("one step is worse than the best T, least over budgets: ratio", lambda r: _over(r, STEPS[:1]), low=1.2),
        Claim("1,000 steps are worse than the best T, least over budgets: ratio",
              lambda r: _over(r, STEPS[-1:]), low=1.2),
        Claim("DP-AGD over the best T, largest over budgets: ratio", _adaptive, high=2.0),
    ),
    figure,
    seeds=8,
)  # fmt: skip
