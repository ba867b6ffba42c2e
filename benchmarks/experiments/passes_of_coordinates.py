"""DP-CD with uniform and with smoothness clips against DP-GD and DP-SGD, over passes, raw and standardized. Epsilon 1.

The slides' own axis, on the problems of ``clips_of_coordinates``. Clip and step are chosen among a few by tuning seeds
at each number of passes; what is reported are other seeds.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import geometric_mean
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.experiments.clips_of_coordinates import LABELS, METHODS, PROBLEMS, SAME, TUNING
from benchmarks.experiments.harness import Claim, Experiment, Row, mean
from benchmarks.measures.excess_risk import EPSILON, excess_risk
from benchmarks.methods.setting import Setting
from benchmarks.methods.tuned import DENSE, Method
from benchmarks.pages.curve_panels import Curve, Panel, curve_panels
from benchmarks.problems.linear import problem as drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PASSES = (2, 10, 50)
FEW, MANY = PASSES[:2], PASSES[2:]
CLIPS, STEPS = (0.25, 1.0, 4.0), (1.0, 0.5)


def points(quick: bool) -> list[Row]:
    """Problems, scalings, methods, passes."""
    return [
        {"problem": name, "scale": scale, "method": method, "passes": passes}
        for name in (PROBLEMS[1:2] if quick else PROBLEMS)
        for scale in (("global",) if quick else ("global", "feature"))
        for method in METHODS
        for passes in (PASSES[:2] if quick else PASSES)
    ]


def _method(name: str, scale: str) -> Method:
    return replace(next(one for one in DENSE if one.name == name), scale=scale)


@lru_cache(maxsize=256)
def _tuned(name: str, scale: str, method: str, passes: int) -> Setting:
    """The setting that is best on the tuning seeds."""
    made, given = _method(method, scale), drawn(name)
    grid = [Setting(passes, clip, step) for clip in CLIPS for step in STEPS]
    return min(grid, key=lambda at: float(np.mean([excess_risk(given, made, at, seed) for seed in TUNING])))


def run(problem: str, scale: str, method: str, passes: int, seed: int) -> Row:
    """Return the relative excess risk of the tuned setting."""
    chosen = _tuned(problem, scale, method, passes)
    risk = excess_risk(drawn(problem), _method(method, scale), chosen, seed)
    return {"excess": risk, "clip": chosen.clip, "step": chosen.step}


def _over(
    rows: Sequence[Row], name: str, other: str, method: str, passes: Sequence[int], scale: str = "global"
) -> float:
    """The geometric mean over passes of one method's mean excess over another's."""
    here = {"problem": name, "scale": scale}
    ran = [at for at in passes if any(row["point"] == {**here, "method": method, "passes": at} for row in rows)]
    if not ran:
        return float("nan")
    return geometric_mean(
        mean(rows, "excess", method=other, passes=at, **here) / mean(rows, "excess", method=method, passes=at, **here)
        for at in ran
    )


def figure(rows: Sequence[Row]) -> "Figure":
    """A panel per problem and scaling."""
    panels = []
    for name in PROBLEMS:
        for scale, word in (("global", "raw"), ("feature", "standardized")):
            here = [row for row in rows if (row["point"]["problem"], row["point"]["scale"]) == (name, scale)]
            if not here:
                continue
            passes = sorted({row["point"]["passes"] for row in here})
            curves = [
                Curve(LABELS[method], passes, [_values(here, method, at) for at in passes], look)
                for look, method in enumerate(METHODS)
            ]
            given = drawn(name)
            panels.append(Panel(f"{name}, {word}", curves, given.excess(np.zeros(given.X.shape[1]))))
    return curve_panels(
        panels, title="Clips of coordinates, over passes",
        subtitle=f"Tuned at each number of passes, epsilon {EPSILON:g}, delta = 1/n², replace_one. {SAME}",
        x_label="passes", y_label="relative excess risk",
    )  # fmt: skip


def _values(rows: Sequence[Row], method: str, passes: int) -> list[float]:
    return [r["excess"] for r in rows if (r["point"]["method"], r["point"]["passes"]) == (method, passes)]


EXPERIMENT = Experiment(
    "passes_of_coordinates",
    "Coordinate descent with uniform and smoothness clips, over passes",
    "After how many passes does DP-CD gain on imbalanced columns, and when is the right clip crucial?",
    points,
    run,
    (
        Claim("lognormal: uniform clips have more excess risk than smoothness clips, ratio",
              lambda rows: _over(rows, "lognormal", "cd-uniform", "cd-smoothness", PASSES), low=1.2),
        Claim("firstbig, up to 10 passes: so have they there",
              lambda rows: _over(rows, "firstbig", "cd-uniform", "cd-smoothness", FEW), low=1.0),
        Claim("firstbig, up to 10 passes: DP-GD has more than DP-CD with smoothness clips, ratio",
              lambda rows: _over(rows, "firstbig", "gd", "cd-smoothness", FEW), low=1.2),
        Claim("lognormal, up to 10 passes: the same",
              lambda rows: _over(rows, "lognormal", "gd", "cd-smoothness", FEW), low=1.2),
        Claim("firstbig, standardized: DP-GD over DP-CD is that of balanced columns, within a factor",
              lambda rows: _over(rows, "firstbig", "gd", "cd-smoothness", MANY, "feature")
              / _over(rows, "balanced", "gd", "cd-smoothness", MANY), low=0.6, high=1.6),
    ),
    figure,
    seeds=8,
)  # fmt: skip
