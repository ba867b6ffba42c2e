"""DP-SGD against what no private method can beat: a nearly linear loss in a small ball.

On the worst problems the excess risk of every private method is of the order L R sqrt(d) / (n epsilon) (Bassily, Smith
& Thakurta 2014): those whose loss is linear and whose rows are corners of a cube with a mean that noise can hide. In a
small ball the logistic loss is nearly that. The method samples a tenth of the records a step, and the average is
released. There are (n epsilon)^2 / 100 d steps, so that noise and too few steps weigh about the same in its bound.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.experiments.harness import Claim, Experiment, Row, largest_share, mean, slope
from benchmarks.experiments.logistic_cube import LogisticCube
from benchmarks.experiments.private_fit import private_fit
from benchmarks.pages.bound_panels import BoundPanel, bound_panels
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses import Logistic
from discreet.solvers import StochasticGradientDescent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLED, EPSILON = 0.1, 1.0
USUAL = {"n": 1000, "d": 10}
AXES = {"n": (250, 500, 1000, 2000, 4000), "d": (2, 5, 10, 20, 50)}


def points(quick: bool) -> list[Row]:
    """One axis at a time."""
    return [
        {"axis": axis, **USUAL, axis: value}
        for axis, values in AXES.items()
        for value in (values[::2] if quick else values)
    ]


@lru_cache(maxsize=8)
def corners(n: int, d: int, seed: int = 0) -> LogisticCube:
    """Rows at corners; their mean, the same in every column, is as long as noise of the bound's order can hide."""
    lean = min(0.5, math.sqrt(d) / (n * EPSILON) * 4.0)
    column = np.where(np.arange(n) < round(n * (0.5 + lean)), 1.0, -1.0)
    X = np.random.default_rng([seed, n, d]).permuted(np.tile(column[:, None], d), axis=0)
    return LogisticCube(X, np.ones(n), 0.002 / math.sqrt(d))


def run(axis: str, n: int, d: int, seed: int) -> Row:
    """Return the excess risk of one run, its bound, and the order of the lower bound."""
    problem, loss, budget = corners(n, d), Logistic(), Budget(EPSILON, 1.0 / n**2)
    steps = max(10, round((n * EPSILON) ** 2 / (100 * d)))
    found = {}

    def sgd(domain: Domain) -> StochasticGradientDescent:
        lipschitz = domain.row_norm  # of the logistic loss, whose slope is at most 1
        plan = Plan([Release("noisy_gradient", steps, sampling_probability=SAMPLED, clip=lipschitz)])
        s = 2.0 * price_plan(plan, budget).noise_multiplier * lipschitz / (SAMPLED * n)
        moment = math.sqrt(lipschitz**2 + lipschitz**2 * (1 - SAMPLED) / (SAMPLED * n) + d * s**2)
        found["bound"] = problem.radius * moment / math.sqrt(steps)
        step = problem.radius / (moment * math.sqrt(steps))
        return StochasticGradientDescent(
            n_steps=steps, clip=lipschitz, step_size=step, average="uniform", radius=problem.radius,
            sampling_probability=SAMPLED,
        )  # fmt: skip

    w = private_fit(problem.X, problem.y, problem.bounds, loss, sgd, budget, seed)
    lower = 0.5 * math.sqrt(d) * problem.radius * min(1.0, math.sqrt(d) / (n * EPSILON))
    return {"excess": problem.excess(w), "bound": found["bound"], "lower": lower}


def _over_lower(rows: Sequence[Row]) -> list[float]:
    """The mean excess over the order of the lower bound, which is one on the mean, at every point."""
    places = {tuple(row["point"].items()) for row in rows}
    return [mean(rows, "excess", **dict(at)) / mean(rows, "lower", **dict(at)) for at in places]


def _slope(rows: Sequence[Row], axis: str) -> float:
    ats = sorted({row["point"][axis] for row in rows if row["point"]["axis"] == axis})
    return slope([(at, mean(rows, "excess", axis=axis, **{axis: at})) for at in ats])


def figure(rows: Sequence[Row]) -> "Figure":
    """Records, and columns."""
    panels = []
    for axis, name in (("n", "records n"), ("d", "columns d")):
        here = [row for row in rows if row["point"]["axis"] == axis]
        ats = sorted({row["point"][axis] for row in here})
        values = [[row["excess"] for row in here if row["point"][axis] == at] for at in ats]
        ends = [[mean(here, end, **{axis: at}) for at in ats] for end in ("bound", "lower")]
        panels.append(BoundPanel(name, ats, values, *ends))
    return bound_panels(panels, title="DP-SGD between its bound and the order of the best", y_label="excess risk")


EXPERIMENT = Experiment(
    "sgd_lower_bound",
    "DP-SGD's utility against the lower bound",
    "On problems as hard as theory allows, has DP-SGD's excess risk the order that no private method can beat?",
    points,
    run,
    (
        Claim(
            "every run is below the upper bound, which is one on the mean: largest share of it",
            lambda rows: largest_share(rows, "excess", of="bound"),
            high=1.0,
        ),
        Claim("the mean over the lower bound's order, least over points", lambda rows: min(_over_lower(rows)), low=0.1),
        Claim("and largest; coefficients of 0 have 8", lambda rows: max(_over_lower(rows)), high=10.0),
        Claim("slope in n (theory: -1)", lambda rows: _slope(rows, "n"), low=-1.15, high=-0.85),
        Claim("slope in d (theory: 1/2)", lambda rows: _slope(rows, "d"), low=0.35, high=0.65),
    ),
    figure,
    seeds=10,
)
