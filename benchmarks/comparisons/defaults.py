"""The default against every solver by name, and against variations of its settings, on generated problems.

Settings are chosen on even seeds of the generator, and reported on odd ones. A *cell* is a problem, a relation and a
budget. The least of several noisy means is too low: so the best solver by name is chosen on one half of a cell's seeds
of the noise, and its excess is that on the other half, both ways, averaged.
"""

import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from statistics import fmean, stdev
from typing import Any

import numpy as np

from benchmarks.problems.generated import Problem, problem
from benchmarks.seeded import SeededWords
from discreet.curator import use_entropy
from discreet.default import Recipe
from discreet.default.table import COORDINATES, Facts, choose
from discreet.errors import DiscreetError

Run = Mapping[str, Any]
Runs = Sequence[Run]
EPSILONS = (0.1, 0.5, 1.0, 4.0, 16.0)
RELATIONS = ("replace_one", "zero_out", "add_remove")
SOLVERS = ("auto", "recipe", "gd", "sgd", "svrg", "cd", "gcd", "agd", "output", "objective", "exponential")
HALVES = {"choosing": 0, "reporting": 1}
REFERENCE = "without privacy"
NEAR = 1.5
"""The default is to be within this factor of the best solver by name."""


@dataclass(frozen=True)
class Variation:
    """A setting of the default that is changed: a name, and the solver for a problem and a budget."""

    name: str
    solver: Callable[[Problem, float, str], Any]


def varied(change: Callable[[Recipe], Recipe]) -> Callable[[Problem, float, str], Any]:
    """Return the default with its recipe changed; where it is no recipe, as it is."""

    def solver(made: Problem, epsilon: float, relation: str) -> Any:
        quote = made.model(epsilon, "auto", neighbors=relation, **delta_for(made, relation)).quote(made.X, made.y)
        chosen, _ = choose(Facts(*quote.facts, quote.priced.budget))
        return change(chosen) if isinstance(chosen, Recipe) else "auto"

    return solver


def _times(name: str, factor: float) -> Variation:
    """Multiply a setting, or a share of the budget."""

    def change(recipe: Recipe) -> Recipe:
        if name.startswith("shares."):
            field = name.removeprefix("shares.")
            return replace(recipe, shares=replace(recipe.shares, **{field: factor * getattr(recipe.shares, field)}))
        value = factor * getattr(recipe, name)
        return replace(recipe, **{name: round(value) if name.startswith("n_") else value})

    return Variation(f"{name} x {factor:g}", varied(change))


PARTS = ("shares.target", "shares.calibration", "n_travel", "n_newton")
NEIGHBORS = (
    "n_steps", "clip", "momentum", "constant", "row_radius", "floor", "least_scale", "weight_radius", "slope_limit",
    "shares.mean", "shares.scale", "shares.moment",
)  # fmt: skip
VARIATIONS: tuple[Variation, ...] = (
    *(_times(name, 0.0) for name in PARTS),
    *(Variation(f"{kind} coordinates", varied(partial(replace, coordinates=kind))) for kind in COORDINATES),
    *(_times(name, factor) for name in NEIGHBORS for factor in (0.7, 1.4)),
)
"""The ablation: what is taken away from the default; and settings at neighbors of what the table says."""


def delta_for(made: Problem, relation: str) -> dict[str, float]:
    """Return the delta that a private n needs to be told."""
    return {"delta": min(1e-6, len(made.y) ** -2.0)} if relation == "add_remove" else {}


@dataclass(frozen=True)
class Cell:
    """One fit."""

    problem: int
    solver: str
    epsilon: float
    relation: str
    seed: int


def seeds_of(half: str, count: int) -> list[int]:
    """Return the first problems of a half: even ones to choose by, odd ones to report."""
    return [2 * at + HALVES[half] for at in range(count)]


def run_reference(made: Problem) -> dict[str, Any]:
    """Return what can be reached without privacy, what without columns, and what by zeros."""
    found = made.scores(made.objective.minimizer)
    for name, w in (("trivial", made.nothing), ("zeros", np.zeros(made.objective.shape))):
        found |= {f"{name} {measure}": value for measure, value in made.scores(w).items()}
    return {"problem": made.seed, "solver": REFERENCE, **found, "facts": made.facts}


def run_cell(cell: Cell, made: Problem) -> dict[str, Any]:
    """Fit once; a refusal is kept as one."""
    changed = {one.name: one.solver for one in VARIATIONS}
    make = changed.get(cell.solver, lambda *_: cell.solver)
    delta = delta_for(made, cell.relation)
    start = time.process_time()
    try:
        model = made.model(cell.epsilon, make(made, cell.epsilon, cell.relation), neighbors=cell.relation, **delta)
        with use_entropy(SeededWords(zlib.crc32(f"{cell}".encode()))):
            model.fit(made.X, made.y)
    except DiscreetError as refused:
        return {**asdict(cell), "absent": f"{type(refused).__name__}: {refused}"}
    return {**asdict(cell), **made.fitted(model), "seconds": time.process_time() - start}


def run(
    problems: Sequence[int], solvers: Sequence[str], epsilons: Sequence[float], relations: Sequence[str], seeds: int,
    known: Runs = (),
) -> Iterator[list[dict[str, Any]]]:  # fmt: skip
    """Run what is not known yet, and return the new runs of each problem."""
    have = {_key(one) for one in known}
    for number in problems:
        cells = [
            Cell(number, solver, epsilon, relation, seed)
            for relation in relations for epsilon in epsilons for solver in solvers for seed in range(1, seeds + 1)
        ]  # fmt: skip
        missing = [cell for cell in cells if _key(asdict(cell)) not in have]
        made = problem(number)
        found = [run_reference(made)] if (number, REFERENCE, None, None, None) not in have else []
        yield found + [run_cell(cell, made) for cell in missing]


def _key(one: Run) -> tuple[Any, ...]:
    return tuple(one.get(name) for name in ("problem", "solver", "epsilon", "relation", "seed"))


# ------------------------------------------------------------------------------- figures


@dataclass(frozen=True)
class Compared:
    """A cell: every solver's values above the model without privacy, seed by seed, and what is told of it."""

    problem: int
    epsilon: float
    relation: str
    values: dict[str, list[float]]
    trivial: float
    negligible: float
    facts: dict[str, Any]

    def excess(self, solver: str) -> float:
        """Return a solver's mean excess, none below 0."""
        return max(fmean(self.values[solver]), 0.0)

    def error(self, solver: str) -> float:
        """Return its standard error."""
        return _error(self.values[solver])

    @cached_property
    def halves(self) -> list[tuple[str, list[float]]]:
        """The solver by name that is best on one half of the seeds, and its values on the other, both ways.

        With one seed alone there is no other half.
        """
        named = [name for name in self.values if name in SOLVERS and name != "auto"]
        even, odd = ({name: self.values[name][start::2] for name in named} for start in (0, 1))
        named = [name for name in named if odd[name]]
        if not named:
            return [(best := min(even, key=lambda name: fmean(even[name])), even[best])]
        return [
            (best := min(named, key=lambda name: fmean(chosen[name])), measured[best])
            for chosen, measured in ((even, odd), (odd, even))
        ]

    @property
    def best(self) -> str:
        """The solvers by name with the least excess on each half of the seeds."""
        return " or ".join(dict.fromkeys(name for name, _ in self.halves))

    @property
    def least(self) -> float:
        """The excess of the best solver by name, on seeds by which it was not chosen."""
        return max(fmean(fmean(values) for _, values in self.halves), 0.0)

    @property
    def least_error(self) -> float:
        """Its standard error: both halves are independent."""
        return math.sqrt(sum(_error(values) ** 2 for _, values in self.halves)) / len(self.halves)

    def ratio(self, solver: str = "auto") -> float:
        """Return a solver's excess over that of the best by name, what is negligible added to both."""
        return (self.excess(solver) + self.negligible) / (self.least + self.negligible)

    def ratio_error(self, solver: str = "auto") -> float:
        """Return the ratio's standard error, to first order."""
        return math.hypot(self.error(solver), self.ratio(solver) * self.least_error) / (self.least + self.negligible)

    @property
    def is_beyond(self) -> bool:
        """Whether the default's excess is more than ``NEAR`` times the best one's."""
        return self.ratio() > NEAR

    @property
    def is_clear(self) -> bool:
        """Whether that is so by more than two standard errors."""
        allowed = NEAR * (self.least + self.negligible) - self.negligible
        return self.excess("auto") - allowed > 2.0 * math.hypot(self.error("auto"), NEAR * self.least_error)

    @property
    def worse_than_trivial(self) -> bool:
        """Whether the default loses to the trivial predictor by more than two standard errors."""
        return self.excess("auto") - 2.0 * self.error("auto") > self.trivial + self.negligible


def compared(runs: Runs, measure: str) -> list[Compared]:
    """Return the cells in which the default and another solver ran.

    An excess is counted from the model without privacy (or from the trivial one, where that is better on test rows).
    Negligible is a fiftieth of what there is to gain, and at least a thousandth of the zeros' value: where columns say
    nothing there is nothing to gain.
    """
    references = {one["problem"]: one for one in runs if one["solver"] == REFERENCE}
    values: dict[tuple[int, float, str], dict[str, list[float]]] = {}
    for one in sorted(runs, key=lambda one: one.get("seed") or 0):
        if measure in one and one["solver"] != REFERENCE:
            cell = values.setdefault((one["problem"], one["epsilon"], one["relation"]), {})
            cell.setdefault(one["solver"], []).append(one[measure])
    found = []
    for (number, epsilon, relation), solvers in values.items():
        free = references[number]
        floor, gain = min(free[measure], free[f"trivial {measure}"]), free[f"trivial {measure}"] - free[measure]
        if "auto" not in solvers or not any(name in SOLVERS[1:] for name in solvers):
            continue
        above = {name: [value - floor for value in some] for name, some in solvers.items()}
        negligible = max(0.02 * gain, 1e-3 * abs(free[f"zeros {measure}"]))
        found.append(Compared(number, epsilon, relation, above, max(gain, 0.0), negligible, free["facts"]))
    return found


def _error(values: Sequence[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
