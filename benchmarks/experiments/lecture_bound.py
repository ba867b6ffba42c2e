"""Projected private gradient descent as the lecture has it, against its own bound R G / sqrt(T).

G^2 = L^2 + p s^2 bounds the second moment of a noisy mean gradient, s the noise's deviation; the average of all
iterates is released. T, n, epsilon and d grow one at a time.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.experiments.harness import Claim, Experiment, Row, largest_share, mean, slope
from benchmarks.experiments.logistic_cube import logistic_cube
from benchmarks.experiments.private_fit import private_fit
from benchmarks.pages.bound_panels import BoundPanel, bound_panels
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses import Logistic
from discreet.losses.base import gradient_bound
from discreet.solvers import GradientDescent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RADIUS = 1.0
USUAL = {"T": 100, "n": 4000, "epsilon": 1.0, "d": 5}
AXES = {
    "T": (10, 30, 100, 300, 1000),
    "n": (500, 1000, 4000, 16_000, 64_000),
    "epsilon": (0.1, 0.3, 1.0, 3.0, 10.0),
    "d": (2, 5, 10, 20, 50),
}


def points(quick: bool) -> list[Row]:
    """One axis at a time, all else as usual."""
    made = []
    for axis, values in AXES.items():
        for value in values[1:4:2] if quick else values:
            made.append({"axis": axis, **USUAL, axis: value})
    return made


def run(axis: str, T: int, n: int, epsilon: float, d: int, seed: int) -> Row:
    """Return the excess risk of one run, and its bound."""
    problem, loss = logistic_cube(n, d, RADIUS), Logistic()
    budget, bounds = Budget(epsilon, 1.0 / n**2), []

    def lecture(domain: Domain) -> GradientDescent:
        lipschitz = gradient_bound(loss, domain, RADIUS)
        plan = Plan([Release("noisy_gradient", T, clip=lipschitz)])
        s = 2.0 * price_plan(plan, budget).noise_multiplier * lipschitz / n
        bounds.append(RADIUS * math.sqrt((lipschitz**2 + d * s**2) / T))
        return GradientDescent.lecture(domain, loss, n_steps=T, radius=RADIUS, budget=budget)

    w = private_fit(problem.X, problem.y, problem.bounds, loss, lecture, budget, seed)
    return {"excess": problem.excess(w), "bound": bounds[0]}


def _slope(rows: Sequence[Row], axis: str, value: str) -> float:
    ats = sorted({row["point"][axis] for row in rows if row["point"]["axis"] == axis})
    return slope([(at, mean(rows, value, axis=axis, **{axis: at})) for at in ats])


def _steps(rows: Sequence[Row]) -> float:
    return _slope(rows, "T", "excess")


def _noise(rows: Sequence[Row]) -> float:
    ats = sorted({row["point"]["epsilon"] for row in rows if row["point"]["axis"] == "epsilon"})
    least, most = (mean(rows, "excess", axis="epsilon", epsilon=at) for at in (ats[0], ats[-1]))
    return least / most


def figure(rows: Sequence[Row]) -> "Figure":
    """One panel per axis: what was measured, and the bound."""
    names = {"T": "steps T", "n": "records n", "epsilon": "epsilon", "d": "columns d"}
    panels = []
    for axis, name in names.items():
        ats = sorted({row["point"][axis] for row in rows if row["point"]["axis"] == axis})
        here = [row for row in rows if row["point"]["axis"] == axis]
        values = [[row["excess"] for row in here if row["point"][axis] == at] for at in ats]
        panels.append(BoundPanel(name, ats, values, [mean(here, "bound", **{axis: at}) for at in ats]))
    return bound_panels(panels, title="The lecture's bound holds, with room", y_label="excess risk")


EXPERIMENT = Experiment(
    "lecture_bound",
    "The lecture's bound against measured excess risk",
    "Does projected private gradient descent stay below R G / √T as T, n, epsilon and d grow?",
    points,
    run,
    (
        Claim(
            "every run is below the bound, which is one on the mean: largest share of it",
            lambda rows: largest_share(rows, "excess", of="bound"),
            high=1.0,
        ),
        Claim("more steps lower it; the bound's slope in T is -1/2: slope", _steps, low=-1.2, high=-0.1),
        Claim(
            "100 steps, not noise, are the limit: risk at the least epsilon over that at the largest", _noise, 0.7, 1.5
        ),
        Claim(
            "the bound grows as the root of d: slope in d", lambda rows: _slope(rows, "d", "bound"), low=0.4, high=0.8
        ),
    ),
    figure,
    seeds=5,
)
