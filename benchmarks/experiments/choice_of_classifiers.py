"""A private choice among classifiers that were fixed beforehand, by the errors that they make.

The exponential mechanism draws classifier i with probability proportional to exp(-epsilon t_i / a), t_i its errors.
Such a law has at most ln m / k more errors than the best in the mean (k = epsilon / a, m classifiers), since it
minimizes the mean of t less its entropy over k.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.experiments.harness import Claim, Experiment, Row, mean, slope
from benchmarks.pages.bound_panels import BoundPanel, bound_panels
from discreet import Bounds, DPLogisticRegression
from discreet.solvers import ExponentialMechanism
from discreet.testing import seeded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSIFIERS, FLIPPED = 1000, 0.1
SIZES, EPSILONS = (125, 250, 500, 1000, 2000), (0.05, 0.2)


def points(quick: bool) -> list[Row]:
    """Both budgets at every size."""
    return [{"n": n, "epsilon": epsilon} for epsilon in EPSILONS for n in (SIZES[::2] if quick else SIZES)]


def run(n: int, epsilon: float, seed: int) -> Row:
    """Return how many more errors the chosen classifier makes than the best, as a share of the records."""
    rng = np.random.default_rng([seed, n])
    X = rng.uniform(-1, 1, (n, 2))
    y = (X @ [0.6, 0.8] > 0) ^ (rng.random(n) < FLIPPED)
    angles = np.linspace(0, 2 * math.pi, CLASSIFIERS, endpoint=False)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    solver = ExponentialMechanism(candidates=directions, score="zero_one")
    settings = {"bounds": Bounds(features=1.0, classes=(0, 1)), "fit_intercept": False, "neighbors": "zero_out"}
    with seeded(seed):
        model = DPLogisticRegression(epsilon, 0, solver=solver, ledger=False, **settings).fit(X, y.astype(int))
    errors = np.count_nonzero((X @ directions.T > 0) != y[:, None], axis=0)
    chosen = np.count_nonzero((X @ model.coef_[0] > 0) != y)
    return {"excess": float(chosen - errors.min()) / n, "bound": math.log(CLASSIFIERS) / (epsilon * n)}


def _share(rows: Sequence[Row]) -> float:
    """Return the largest mean excess over its bound, of all points."""
    return max(
        mean(rows, "excess", n=n, epsilon=epsilon) / mean(rows, "bound", n=n, epsilon=epsilon)
        for n, epsilon in {(row["point"]["n"], row["point"]["epsilon"]) for row in rows}
    )


def _slope(rows: Sequence[Row]) -> float:
    sizes = sorted({row["point"]["n"] for row in rows})
    return slope([(n, mean(rows, "excess", n=n, epsilon=max(EPSILONS))) for n in sizes])


def figure(rows: Sequence[Row]) -> "Figure":
    """A panel per budget."""
    sizes = sorted({row["point"]["n"] for row in rows})
    panels = [
        BoundPanel(
            f"records n, epsilon = {epsilon:g}",
            sizes,
            [[row["excess"] for row in rows if row["point"] == {"n": n, "epsilon": epsilon}] for n in sizes],
            [mean(rows, "bound", n=n, epsilon=epsilon) for n in sizes],
        )
        for epsilon in EPSILONS
    ]
    return bound_panels(panels, title=f"A private choice among {CLASSIFIERS} classifiers", y_label="excess errors")


EXPERIMENT = Experiment(
    "choice_of_classifiers",
    "A private choice among a thousand classifiers",
    "Does the exponential mechanism stay below ln m / (epsilon n) excess errors, and fall as 1 / n?",
    points,
    run,
    (
        Claim("the mean is below the bound: largest share of it", _share, high=1.0),
        Claim("slope in n at the larger epsilon (theory: -1 or less)", _slope, high=-0.7),
    ),
    figure,
    seeds=20,
)
