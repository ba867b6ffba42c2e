"""DP-CD with uniform and with smoothness clips against DP-GD and DP-SGD, over epsilon, raw and standardized.

The problems of the slides, as reconstructed in ``problems.linear``. Each method has passes, clip and step chosen among
a few by tuning seeds, at each epsilon; what is reported are other seeds. *Standardized* divides every column by its own
range before training.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.experiments.harness import Claim, Experiment, Row, mean
from benchmarks.measures.excess_risk import excess_risk
from benchmarks.methods.setting import Setting
from benchmarks.methods.tuned import DENSE, Method
from benchmarks.pages.curve_panels import Curve, Panel, curve_panels
from benchmarks.problems.linear import problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("cd-smoothness", "cd-uniform", "gd", "sgd")
PROBLEMS = ("balanced", "firstbig", "lognormal")
LABELS = {method.name: method.label for method in DENSE}
EPSILONS = (0.3, 1.0, 3.0, 10.0)
TUNING = (900_001, 900_002)
PASSES = {"cd-smoothness": (10, 100), "cd-uniform": (10, 100), "gd": (100, 1000), "sgd": (10, 100)}
CLIPS, STEPS = (0.25, 1.0), (1.0, 0.25)
SAME = "Where all columns have one range, both clips are the same."


def points(quick: bool) -> list[Row]:
    """Problems, scalings, methods, budgets."""
    epsilons = (1.0,) if quick else EPSILONS
    return [
        {"problem": name, "scale": scale, "method": method, "epsilon": epsilon}
        for name in (PROBLEMS[1:2] if quick else PROBLEMS)
        for scale in ("global", "feature")
        for method in METHODS
        for epsilon in epsilons
    ]


def _method(name: str, scale: str) -> Method:
    return replace(next(one for one in DENSE if one.name == name), scale=scale)


@lru_cache(maxsize=64)
def _tuned(name: str, scale: str, method: str, epsilon: float) -> Setting:
    """The setting that is best on the tuning seeds."""
    made, given = _method(method, scale), problem(name)
    grid = [Setting(passes, clip, step) for passes in PASSES[method] for clip in CLIPS for step in STEPS]
    return min(grid, key=lambda at: float(np.mean([excess_risk(given, made, at, seed, epsilon) for seed in TUNING])))


def run(problem: str, scale: str, method: str, epsilon: float, seed: int) -> Row:
    """Return the relative excess risk of the tuned setting."""
    from benchmarks.problems.linear import problem as drawn

    chosen = _tuned(problem, scale, method, epsilon)
    risk = excess_risk(drawn(problem), _method(method, scale), chosen, seed, epsilon)
    return {"excess": risk, "passes": chosen.passes, "clip": chosen.clip, "step": chosen.step}


def _over(rows: Sequence[Row], name: str, other: str, method: str) -> float:
    """The geometric mean over epsilons of one method's mean excess over another's, in raw columns."""
    epsilons = {row["point"]["epsilon"] for row in rows if row["point"]["problem"] == name}
    if not epsilons:
        return math.nan
    here = {"problem": name, "scale": "global"}
    logs = [
        np.log(mean(rows, "excess", method=other, epsilon=at, **here))
        - np.log(mean(rows, "excess", method=method, epsilon=at, **here))
        for at in epsilons
    ]
    return float(np.exp(np.mean(logs)))


def figure(rows: Sequence[Row]) -> "Figure":
    """A panel per problem and scaling."""
    panels = []
    for name in PROBLEMS:
        for scale, word in (("global", "raw"), ("feature", "standardized")):
            here = [row for row in rows if (row["point"]["problem"], row["point"]["scale"]) == (name, scale)]
            if not here:
                continue
            epsilons = sorted({row["point"]["epsilon"] for row in here})
            curves = [
                Curve(LABELS[method], epsilons, [_values(here, method, at) for at in epsilons], look)
                for look, method in enumerate(METHODS)
            ]
            given = problem(name)
            panels.append(Panel(f"{name}, {word}", curves, given.excess(np.zeros(given.X.shape[1]))))
    return curve_panels(
        panels, title="Clips of coordinates", subtitle=f"Tuned at each epsilon, delta = 1/n², replace_one. {SAME}",
        x_label="epsilon", y_label="relative excess risk",
    )  # fmt: skip


def _values(rows: Sequence[Row], method: str, epsilon: float) -> list[float]:
    return [r["excess"] for r in rows if (r["point"]["method"], r["point"]["epsilon"]) == (method, epsilon)]


EXPERIMENT = Experiment(
    "clips_of_coordinates",
    "Coordinate descent with uniform and smoothness clips, over epsilon",
    "Does DP-CD gain on imbalanced columns and pay on balanced ones, and do smoothness clips matter?",
    points,
    run,
    (
        Claim("on firstbig, DP-GD has more excess risk than DP-CD with smoothness clips: ratio",
              lambda rows: _over(rows, "firstbig", "gd", "cd-smoothness"), low=1.2),
        Claim("on lognormal too",
              lambda rows: _over(rows, "lognormal", "gd", "cd-smoothness"), low=1.2),
        Claim("on balanced columns DP-CD pays: DP-GD's excess risk over DP-CD's",
              lambda rows: _over(rows, "balanced", "gd", "cd-smoothness"), high=1.0),
        Claim("smoothness clips are no worse than uniform ones on firstbig: ratio",
              lambda rows: _over(rows, "firstbig", "cd-uniform", "cd-smoothness"), low=0.9),
    ),
    figure,
    seeds=24,
)  # fmt: skip
