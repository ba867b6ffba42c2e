"""Every solver with nothing set against the same solver tuned: how much a default leaves on the table.

*Excess* is the mean loss on the training records above the least that a linear model has; on drawn problems
(``generated-13``: seed 13), the whole objective's. Tuning goes through a
solver's own settings one after the other, twice, starting from its default, and takes the best of a few factors by the
mean excess over tuning seeds; what it ends with is then run on fresh seeds, as the default is. Tuning on records
without paying for it is for synthetic tables only.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.methods.own_settings import axes_of, neighbors
from benchmarks.problems import generated
from benchmarks.problems.generated import Problem
from benchmarks.problems.twenty_columns import NAMES, TwentyColumns, twenty_columns
from benchmarks.seeded import SeededWords
from discreet.curator import use_entropy
from discreet.errors import DiscreetError
from discreet.models import DPLinearRegression, DPLogisticRegression
from discreet.solvers.base import SOLVERS

FACTORS = (1 / 9, 1 / 3, 3.0, 9.0)
TUNING_SEED, FRESH_SEED = 10_000, 0
GENERATED = "generated"
LEFT_OUT = ("exponential", "recipe")
"""Unless they are asked for by name: one is slow, the other is the default, which has pages of its own."""


def solver_names() -> tuple[str, ...]:
    """The solvers that are compared unless others are named."""
    return tuple(name for name in SOLVERS.names() if name not in LEFT_OUT)


@dataclass(frozen=True)
class Protocol:
    """What is compared, and how often it is run."""

    solvers: tuple[str, ...] = ()
    problems: tuple[str, ...] = NAMES
    epsilons: tuple[float, ...] = (0.1, 1.0, 4.0)
    relations: tuple[str, ...] = ("zero_out", "replace_one")
    seeds: int = 10
    tuning_seeds: int = 2
    rounds: int = 2
    rows: int = 20_000

    def cells(self) -> Iterator["Cell"]:
        """All that is to be run."""
        for problem in self.problems:
            for solver in self.solvers or solver_names():
                for relation in self.relations:
                    for epsilon in self.epsilons:
                        yield Cell(problem, solver, relation, epsilon)


@dataclass(frozen=True)
class Cell:
    """One solver on one problem at one budget."""

    problem: str
    solver: str
    relation: str
    epsilon: float


Table = TwentyColumns | Problem


def table_of(name: str, rows: int) -> Table:
    """Return a problem by its name; ``generated-13`` is drawn by the generator from seed 13, with rows of its own."""
    prefix, _, seed = name.rpartition("-")
    return generated.problem(int(seed)) if prefix == GENERATED else twenty_columns(name, n=rows)


def held_back(count: int) -> tuple[str, ...]:
    """Return so many drawn problems that no rule was chosen by: those of odd seeds."""
    return tuple(f"{GENERATED}-{2 * place + 1}" for place in range(count))


def trivial_excess(table: Table) -> float:
    """Return what a constant has above the least."""
    if isinstance(table, Problem):
        return table.objective.value(table.nothing) - table.objective.least
    return table.trivial_loss - table.best_loss


def model_for(table: Table, cell: Cell, solver: Any) -> Any:
    """The estimator with nothing set but the solver, and a drawn problem's penalty."""
    if isinstance(table, Problem):
        return table.model(cell.epsilon, solver, neighbors=cell.relation)
    kind: Any = DPLogisticRegression if table.has_labels else DPLinearRegression
    return kind(epsilon=cell.epsilon, bounds=table.bounds, solver=solver, neighbors=cell.relation, ledger=False)


def excess(table: Table, cell: Cell, solver: Any, seed: int) -> float:
    """The excess of one fit; infinite where the library refuses the settings."""
    model = model_for(table, cell, solver)
    try:
        with use_entropy(SeededWords(seed)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(table.X, table.y)
    except DiscreetError:
        return math.inf
    if isinstance(table, Problem):
        found = table.fitted(model)["objective"] - table.objective.least
    else:
        found = table.loss(model.decision_function(table.X) if table.has_labels else model.predict(table.X))
        found -= table.best_loss
    return found if math.isfinite(found) else math.inf


def mean_excess(table: Table, cell: Cell, solver: Any, seeds: range) -> list[float]:
    """The excess at each seed."""
    return [excess(table, cell, solver, seed) for seed in seeds]


def default_of(table: Table, cell: Cell) -> Any:
    """The solver that a name stands for, complete."""
    return model_for(table, cell, cell.solver).quote(table.X, table.y).configured


def tune(table: Table, cell: Cell, start: Any, protocol: Protocol) -> Any:
    """The best settings that a search over one setting after the other finds."""
    seeds = range(TUNING_SEED, TUNING_SEED + protocol.tuning_seeds)
    best, least = start, float(np.mean(mean_excess(table, cell, start, seeds)))
    for _ in range(protocol.rounds):
        before = best
        for path in axes_of(best):
            for tried in neighbors(best, path, FACTORS):
                found = float(np.mean(mean_excess(table, cell, tried, seeds)))
                if found < least:
                    best, least = tried, found
        if best is before:
            break
    return best


def run_cell(cell: Cell, protocol: Protocol) -> dict[str, Any]:
    """The excess of the default and of the tuned settings, at fresh seeds."""
    table = table_of(cell.problem, protocol.rows)
    seeds = range(FRESH_SEED, FRESH_SEED + protocol.seeds)
    facts = {**asdict(cell), "trivial": trivial_excess(table)}
    try:
        start = default_of(table, cell)
    except DiscreetError as refused:
        return {**facts, "absent": f"{type(refused).__name__}: {refused}"}
    found = tune(table, cell, start, protocol)
    default = mean_excess(table, cell, start, seeds)
    tuned = default if found is start else mean_excess(table, cell, found, seeds)
    return {**facts, "default": default, "tuned": tuned, "settings": found.settings(), "chosen": start.settings()}


def run(
    protocol: Protocol, *, jobs: int, known: list[dict[str, Any]], done: Callable[[dict[str, Any]], None]
) -> list[dict[str, Any]]:
    """Run all cells that are not known yet."""
    have = {(cell["problem"], cell["solver"], cell["relation"], cell["epsilon"]) for cell in known}
    wanted = [cell for cell in protocol.cells() if (cell.problem, cell.solver, cell.relation, cell.epsilon) not in have]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run_cell, cell, protocol) for cell in wanted]):
            known.append(future.result())
            done(known[-1])
    return known
