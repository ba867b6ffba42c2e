"""Output against objective perturbation for a convex loss, each with the regularizer that is best for its bound.

Without strong convexity both add a regularizer, for coefficients of a given length. Output perturbation, as the lecture
has it, then has an excess risk of the order (1 / (n epsilon))^(1/2), objective perturbation one of 1 / (n epsilon).
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from benchmarks.experiments.harness import Claim, Experiment, Row, largest_share, mean, slope
from benchmarks.experiments.logistic_cube import logistic_cube
from benchmarks.experiments.private_fit import private_fit
from benchmarks.pages.bound_panels import BoundPanel, bound_panels
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import PrivateData
from discreet.errors import DiscreetError
from discreet.losses import Logistic
from discreet.solvers import ObjectivePerturbation, OutputPerturbation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RADIUS, COLUMNS, EPSILON = 4.0, 5, 1.0
SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
METHODS = ("output", "objective")


def points(quick: bool) -> list[Row]:
    """Both methods at every size."""
    return [{"method": method, "n": n} for method in METHODS for n in (SIZES[1:6:2] if quick else SIZES)]


@lru_cache(maxsize=16)
def _solver(method: str, n: int) -> tuple[Any, float]:
    """The method with its regularizer, and its bound; the search for objective's is over factors of 2."""
    problem, loss, budget = logistic_cube(n, COLUMNS, 2 * RADIUS), Logistic(), Budget(EPSILON, 1.0 / n**2)
    data = PrivateData(problem.X, problem.y, problem.bounds, fit_intercept=False, ledger=False)
    domain = data.domain(budget.neighbors, loss)
    if method == "output":
        made = OutputPerturbation.lecture(domain, loss, radius=RADIUS, budget=budget)
        return made, made.bound(domain, loss, budget, radius=RADIUS).upper
    bounds = {}
    for k in range(-4, 9):
        one = ObjectivePerturbation(regularization=2.0**-k / n**0.5)
        with suppress(DiscreetError):  # no noise meets this epsilon with so little regularization
            bounds[one] = one.bound(domain, loss, budget, radius=RADIUS).upper
    return min(bounds.items(), key=lambda found: found[1])


def run(method: str, n: int, seed: int) -> Row:
    """Return the excess risk of one run, and its bound."""
    problem, (solver, bound) = logistic_cube(n, COLUMNS, 2 * RADIUS), _solver(method, n)

    def made(domain: Domain) -> Any:
        return solver

    w = private_fit(problem.X, problem.y, problem.bounds, Logistic(), made, Budget(EPSILON, 1.0 / n**2), seed)
    return {"excess": problem.excess(w), "bound": bound}


def _slope(rows: Sequence[Row], method: str, value: str) -> float:
    sizes = sorted({row["point"]["n"] for row in rows})
    return slope([(n, mean(rows, value, method=method, n=n)) for n in sizes])


def _last(rows: Sequence[Row]) -> float:
    n = max(row["point"]["n"] for row in rows)
    return mean(rows, "excess", method="output", n=n) / mean(rows, "excess", method="objective", n=n)


def figure(rows: Sequence[Row]) -> "Figure":
    """A panel per method."""
    sizes = sorted({row["point"]["n"] for row in rows})
    panels = [
        BoundPanel(
            f"records n, {method} perturbation",
            sizes,
            [[r["excess"] for r in rows if r["point"] == {"method": method, "n": n}] for n in sizes],
            [mean(rows, "bound", method=method, n=n) for n in sizes],
        )
        for method in METHODS
    ]
    return bound_panels(panels, title="Output against objective perturbation", y_label="excess risk")


EXPERIMENT = Experiment(
    "output_or_objective",
    "Output against objective perturbation: two rates",
    "Do the rates of theory show, -1/2 and -1 in n epsilon?",
    points,
    run,
    (
        Claim("every run is below its bound, which is one on the mean: largest share of it",
              lambda rows: largest_share(rows, "excess", of="bound"), high=1.0),
        Claim("output perturbation's bound: slope in n (theory: -1/2)", lambda rows: _slope(rows, "output", "bound"),
              low=-0.6, high=-0.4),
        Claim("objective perturbation's bound: slope in n (theory: -1)", lambda rows: _slope(rows, METHODS[1], "bound"),
              low=-1.15, high=-0.8),
        Claim("measured, output: slope in n", lambda rows: _slope(rows, "output", "excess"), low=-1.1, high=-0.3),
        Claim("measured, objective: slope in n", lambda rows: _slope(rows, "objective", "excess"), high=-0.8),
        Claim("at the largest n, output's excess risk over objective's", _last, low=2.0),
    ),
    figure,
    seeds=10,
)  # fmt: skip
