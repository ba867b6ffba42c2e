"""DP-SGD against what no private method can beat: a nearly linear loss in a small ball.

On the worst problems the excess risk of every private method is of the order L R sqrt(d) / (n epsilon) (Bassily, Smith
& Thakurta 2014): those whose loss is linear and whose rows are corners of a cube. In a ball of radius 1/(10 sqrt(d))
the logistic loss is nearly that. The method samples a tenth of the records a step, and the average is released.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.experiments.harness import Claim, Experiment, Row, mean, slope
from benchmarks.experiments.logistic_cube import LogisticCube
from benchmarks.experiments.private_fit import private_fit
from benchmarks.pages.bound_panels import BoundPanel, bound_panels
from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses import Logistic
from discreet.solvers import StochasticGradientDescent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS, SAMPLED, EPSILON = 100, 0.1, 1.0
USUAL = {"n": 4000, "d": 10}
AXES = {"n": (1000, 2000, 4000, 8000, 16_000), "d": (2, 5, 10, 20, 50)}


def points(quick: bool) -> list[Row]:
    """One axis at a time."""
    return [
        {"axis": axis, **USUAL, axis: value}
        for axis, values in AXES.items()
        for value in (values[::2] if quick else values)
    ]


@lru_cache(maxsize=8)
def corners(n: int, d: int, seed: int = 0) -> LogisticCube:
    """Rows at corners, whose mean is as long as noise of the order of the bound can hide."""
    rng = np.random.default_rng([seed, n, d])
    lean = min(0.5, math.sqrt(d) / (n * EPSILON) * 4.0)
    X = np.where(rng.random((n, d)) < 0.5 + lean, 1.0, -1.0)
    return LogisticCube(X, np.ones(n), 0.1 / math.sqrt(d))


def run(axis: str, n: int, d: int, seed: int) -> Row:
    """Return the excess risk of one run, its bound, and the order of the lower bound."""
    problem, loss, budget = corners(n, d), Logistic(), Budget(EPSILON, 1.0 / n**2)
    found = {}

    def sgd(domain: Domain) -> StochasticGradientDescent:
        lipschitz = domain.row_norm  # of the logistic loss, whose slope is at most 1
        plan = Plan([Release("noisy_gradient", STEPS, sampling_probability=SAMPLED, clip=lipschitz)])
        s = 2.0 * price_plan(plan, budget).noise_multiplier * lipschitz / (SAMPLED * n)
        moment = math.sqrt(lipschitz**2 + lipschitz**2 * (1 - SAMPLED) / (SAMPLED * n) + d * s**2)
        found["bound"] = problem.radius * moment / math.sqrt(STEPS)
        step = problem.radius / (moment * math.sqrt(STEPS))
        return StochasticGradientDescent(
            n_steps=STEPS, clip=lipschitz, step_size=step, average="uniform", radius=problem.radius,
            sampling_probability=SAMPLED,
        )  # fmt: skip

    w = private_fit(problem.X, problem.y, problem.bounds, loss, sgd, budget, seed)
    lower = 0.5 * math.sqrt(d) * problem.radius * min(1.0, math.sqrt(d) / (n * EPSILON))
    return {"excess": problem.excess(w), "bound": found["bound"], "lower": lower}


def _worst(rows: Sequence[Row], over: str) -> float:
    places = {tuple(row["point"].items()) for row in rows}
    ratios = [mean(rows, "excess", **dict(at)) / mean(rows, over, **dict(at)) for at in places]
    return max(ratios) if over == "bound" else min(ratios)


def _slope(rows: Sequence[Row]) -> float:
    ats = sorted({row["point"]["n"] for row in rows if row["point"]["axis"] == "n"})
    return slope([(at, mean(rows, "excess", axis="n", n=at)) for at in ats])


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
    "On problems as hard as theory allows, how far is DP-SGD from the order that no private method can beat?",
    points,
    run,
    (
        Claim(
            "the mean excess risk is below the upper bound at every point", lambda rows: _worst(rows, "bound"), high=1.0
        ),
        Claim("and above a tenth of the lower bound's order", lambda rows: _worst(rows, "lower"), low=0.1),
        Claim("it falls with n: slope", _slope, high=-0.4),
    ),
    figure,
    seeds=10,
)
