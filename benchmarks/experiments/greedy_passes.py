"""DP-GCD, DP-CD and DP-SGD over passes, each tuned on its own grid: the poster's figure. Epsilon 1, delta = 1/n^2.

The problems of ``sparse_problems``, without an intercept, and the poster's axes: (F - F*) / F* over passes over the
data, where a greedy step is a pass and a coordinate step the p-th part of one. Clip and step are chosen by tuning seeds
for each method and number of passes; what is reported are other seeds. Where the penalty is L2, DP-GCD runs with the
poster's own noise too.

The authors' plotted value at w = 0 is .63 for log1, which these draws were made to be near, and .215 for madelon, which
is not reproduced: none of four ways to normalize its columns leads to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.experiments.harness import Claim, Experiment, Row, mean
from benchmarks.experiments.private_fit import private_fit
from benchmarks.experiments.sparse_problems import GENERATED, RIDGES, TABLES, Sparse, drawn, file_of
from benchmarks.pages.curve_panels import Curve, Panel, curve_panels
from discreet.budget import Budget
from discreet.solvers import CoordinateDescent, Geometry, GreedyCoordinateDescent, StochasticGradientDescent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLED = 0.1
"""The sampling probability of DP-SGD."""
TUNING = (900_001, 900_002)
CLIPS, STEPS = (0.1, 0.3, 1.0, 3.0), (1.0, 4.0, 16.0)
"""Clips in units of a typical row's length times the slope at 0; steps in units of the declared smoothness."""
LEAST = 1e-3
"""What a curve is cut at."""


def _greedy(made: Sparse, passes: float, clip: float, step: float) -> Any:
    rule = "gs" if made.l2 else "gs-q"
    geometry = Geometry(clip=clip * _length(made))
    return GreedyCoordinateDescent(n_steps=round(passes), geometry=geometry, rule=rule, relative_step=step)


def _posters(made: Sparse, passes: float, clip: float, step: float) -> Any:
    """DP-GCD with the poster's own noise, which is private for plain GS and penalties without corners."""
    return replace(_greedy(made, passes, clip, step), rule="gs", calibration="paper")


def _cyclic(made: Sparse, passes: float, clip: float, step: float) -> Any:
    inner = max(1, round(passes * made.X.shape[1]))
    return CoordinateDescent(1, inner, Geometry(clip=clip * _length(made)), relative_step=step, average="last")


def _stochastic(made: Sparse, passes: float, clip: float, step: float) -> Any:
    count, bound = max(1, round(passes / SAMPLED)), clip * _length(made)
    smoothness = (0.25 if made.labels else 1.0) * _length(made) ** 2 * 4  # of rows of a typical length
    return StochasticGradientDescent(count, clip=bound, step_size=step / smoothness, sampling_probability=SAMPLED)


@dataclass(frozen=True)
class Method:
    """A solver for a number of passes, a clip and a step, and the passes that are tried."""

    label: str
    solver: Callable[[Sparse, float, float, float], Any]
    passes: tuple[float, ...]


METHODS = {
    "gcd": Method("DP-GCD", _greedy, (1, 2, 3, 5, 7, 10)),
    "poster": Method("DP-GCD, the poster's noise", _posters, (1, 2, 3, 5, 7, 10)),
    "cd": Method("DP-CD", _cyclic, (0.1, 0.3, 1, 3, 5, 10)),
    "sgd": Method("DP-SGD", _stochastic, (0.5, 1, 3, 5, 10)),
}
DENSE = tuple(name for name in TABLES if name != "dorothea")


def points(quick: bool) -> list[Row]:
    """Problems, methods, passes; public tables where their folder is given."""
    names = [*GENERATED, *(name for name in DENSE if not quick and file_of(name))]
    return [
        {"problem": name, "method": method, "passes": passes}
        for name in (names[:1] if quick else names)
        for method, made in METHODS.items()
        if method != "poster" or name in RIDGES
        for passes in (made.passes[:2] if quick else made.passes)
    ]


def _length(made: Sparse) -> float:
    """Return the typical length of a row, and the slope at 0."""
    return float(np.sqrt(np.mean(np.sum(np.square(made.X[:200]), axis=1)))) * (0.5 if made.labels else 0.25)


def _suboptimality(name: str, method: str, passes: float, clip: float, step: float, seed: int) -> float:
    made = drawn(name)
    budget = Budget(1.0, 1.0 / len(made.y) ** 2)
    solver = METHODS[method].solver(made, passes, clip, step)
    w = private_fit(made.X, made.y, made.bounds, made.loss, lambda _: solver, budget, seed, made.penalty)
    value = made.objective_at(w) / made.minimum - 1
    return value if np.isfinite(value) else float("inf")


@lru_cache(maxsize=256)
def _tuned(name: str, method: str, passes: float) -> tuple[float, float]:
    """Return the clip and the step that are best on the tuning seeds."""
    grid = [(clip, step) for clip in CLIPS for step in STEPS]
    return min(
        grid, key=lambda at: float(np.mean([_suboptimality(name, method, passes, *at, seed) for seed in TUNING]))
    )


def run(problem: str, method: str, passes: float, seed: int) -> Row:
    """Return the suboptimality of the tuned setting."""
    clip, step = _tuned(problem, method, passes)
    value = _suboptimality(problem, method, passes, clip, step, seed)
    return {"suboptimality": max(value, LEAST), "clip": clip, "step": step}


def _least(rows: Sequence[Row], name: str, method: str) -> float:
    """Return a method's mean suboptimality after its best number of passes."""
    passes = {row["point"]["passes"] for row in rows if row["point"]["method"] == method}
    return float(np.nanmin([mean(rows, "suboptimality", problem=name, method=method, passes=at) for at in passes]))


def _ratio(rows: Sequence[Row], other: str, names: Sequence[str]) -> float:
    """Return the least over problems of another method's best suboptimality over DP-GCD's."""
    ran = {row["point"]["problem"] for row in rows}
    ratios = [_least(rows, name, other) / _least(rows, name, "gcd") for name in names if name in ran]
    return min(ratios, default=float("nan"))


def figure(rows: Sequence[Row]) -> "Figure":
    """A panel per problem."""
    panels = []
    for name in dict.fromkeys(row["point"]["problem"] for row in rows):
        curves = []
        for look, (method, made) in enumerate(METHODS.items()):
            here = [row for row in rows if (row["point"]["problem"], row["point"]["method"]) == (name, method)]
            if not here:  # the poster's noise, where the penalty has corners
                continue
            passes = sorted({row["point"]["passes"] for row in here})
            values = [[row["suboptimality"] for row in here if row["point"]["passes"] == at] for at in passes]
            curves.append(Curve(made.label, passes, values, look))
        given = drawn(name)
        level = given.objective_at(np.zeros(given.X.shape[1])) / given.minimum - 1
        panels.append(Panel(name.replace("_", " "), curves, level))
    return curve_panels(
        panels, title="Greedy coordinates over passes",
        subtitle="Tuned at each number of passes, epsilon 1, delta = 1/n², replace_one, no intercept.",
        x_label="passes", y_label="(F - F*) / F*",
    )  # fmt: skip


EXPERIMENT = Experiment(
    "greedy_passes",
    "Greedy coordinate descent over passes",
    "With every method tuned, is DP-GCD ahead of DP-CD and DP-SGD after few passes, as on the poster?",
    points,
    run,
    (
        Claim("log1, log2 and square: DP-CD's best over DP-GCD's, least",
              lambda rows: _ratio(rows, "cd", GENERATED), low=1.0),
        Claim("log1 and log2: DP-GCD's best with the poster's noise over that with the tight noise, least",
              lambda rows: _ratio(rows, "poster", GENERATED[:2]), low=0.9),
        Claim("log2 and square: DP-SGD's best over DP-GCD's, least",
              lambda rows: _ratio(rows, "sgd", GENERATED[1:]), low=1.0),
        Claim("log1, where DP-SGD is behind on the poster and level here: the same",
              lambda rows: _ratio(rows, "sgd", GENERATED[:1]), low=0.8, high=1.25),
        *(
            (
                Claim("madelon: DP-CD's best over DP-GCD's", lambda rows: _ratio(rows, "cd", ("madelon",)), low=1.0),
                Claim("madelon: DP-SGD's best over DP-GCD's", lambda rows: _ratio(rows, "sgd", ("madelon",)), low=1.0),
            )
            if file_of("madelon")
            else ()
        ),
    ),
    figure,
    seeds=8,
)  # fmt: skip
