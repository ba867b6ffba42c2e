"""Models with default settings, on tables with declared ranges: how much of what could be learned is learned.

Every fit is that of an estimator with nothing set but epsilon, the bounds, the solver's name and the relation (delta
is the default, 1/n^2). Four fifths of a table are for training. Seeds are of the noise; a table with fewer than 10,000
rows is also split afresh for each, since the luck of one split would be worth more than what is measured. It has more
seeds, too: a fit takes milliseconds there, and splits differ more than noise does on large tables. What is measured on
the test part becomes a *gap*: 0 is the same kind of model without privacy, 1 the trivial predictor.

Scores on test rows are exact, which on people's data would be a release of its own.
"""

import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measures.gap import references, scores, table_facts
from benchmarks.problems import declared_tables as declared
from benchmarks.problems.declared_tables import DeclaredTable
from benchmarks.seeded import SeededWords
from discreet.curator import use_entropy
from discreet.datasets import hospital
from discreet.errors import DiscreetError, Unsupported
from discreet.models import DPLinearRegression, DPLogisticRegression, DPRidge, TableModel
from discreet.models.fit import solver_names
from discreet.schema import Number

TERMS = {"lines": "linear", "curves": "auto"}
"""Table models, by what they are called here: their terms."""
AS_DECLARED, DEFAULT = "declared", "auto"
SYNTHETIC = ("synthetic", "synthetic_number")
SYNTHETIC_ROWS = 1500
EXPONENTIAL_COLUMNS = 20  # its sampler takes minutes a fit beyond
WIDENED_EPSILON = 1.0
THREADS = ("DISCREET_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
Key = tuple[str, str, float, str, str, int, int]


@dataclass(frozen=True)
class Protocol:
    """What is compared.

    ``seeds`` are those of tables with fewer than 10,000 rows, ``large_seeds`` those of the others, ``solver_seeds`` the
    most that solvers other than the default are given. ``widen`` is a factor by which ranges are declared too wide, for
    the default solver only.
    """

    sets: tuple[str, ...] = field(default_factory=lambda: tuple(declared.names()))
    solvers: tuple[str, ...] = solver_names()
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 4.0)
    relations: tuple[str, ...] = ("zero_out", "replace_one")
    seeds: int = 40
    large_seeds: int = 3
    solver_seeds: int | None = None
    widen: float | None = None

    def __post_init__(self) -> None:
        for given, known, what in (
            (self.sets, (*declared.names(), *SYNTHETIC), "table"),
            (self.solvers, (*solver_names(), *TERMS), "solver"),
            (self.relations, ("zero_out", "replace_one"), "relation of this comparison"),
        ):
            unknown = [name for name in given if name not in known]
            if unknown:
                raise Unsupported(f"there is no {what} called {', '.join(unknown)}: choose among {', '.join(known)}")
        if not all(0 < epsilon < np.inf for epsilon in self.epsilons):
            raise Unsupported("every epsilon must be a positive number")
        if self.widen is not None and not self.widen >= 1:
            raise Unsupported("ranges can be declared too wide by a factor of one or more, such as --widen 3")

    def runs(self, name: str, solver: str = DEFAULT) -> range:
        """The seeds of a solver on a table."""
        most = self.seeds if is_small(name) else self.large_seeds
        if solver != DEFAULT and self.solver_seeds is not None:
            most = min(most, self.solver_seeds)
        return range(1, most + 1)

    def points(self) -> Iterator["Point"]:
        """All that is to be run, table by table."""
        for name in self.sets:
            for solver in self.solvers:
                for relation in self.relations:
                    for epsilon in self.epsilons:
                        yield Point(name, solver, epsilon, relation)
            if self.widen is not None:
                for ranges in (f"{self.widen:g}x", f"{self.widen:g}x, target too"):
                    for relation in self.relations:
                        yield Point(name, DEFAULT, WIDENED_EPSILON, relation, ranges)


@dataclass(frozen=True)
class Point:
    """One solver on one table at one budget; fits differ by their noise, on small tables also by their split."""

    set: str
    method: str
    epsilon: float
    relation: str
    ranges: str = AS_DECLARED

    @classmethod
    def stored(cls, facts: Mapping[str, Any]) -> "Point":
        """The point that a stored record is of."""
        return cls(**{made.name: facts[made.name] for made in fields(cls) if made.name in facts})

    def key(self, seed: int) -> Key:
        """What makes a fit."""
        return self.set, self.method, self.epsilon, self.relation, self.ranges, seed, split_seed(self.set, seed)

    def noise(self, seed: int) -> int:
        """The noise's own seed: the same for all solvers, so that two names for one solver agree to the bit."""
        text = f"{self.set} {self.epsilon:g} {self.relation} {seed}"
        return zlib.crc32(text.encode())

    def table(self, given: DeclaredTable) -> DeclaredTable:
        """The table under this point's ranges."""
        if self.ranges == AS_DECLARED:
            return given
        factor, target = self.ranges.partition("x")[::2]
        return given.widened(float(factor), target=bool(target))


def run_key(run: Mapping[str, Any]) -> Key:
    """What makes a stored fit; where it does not say its split, that was the one that all share."""
    where = str(run["set"]), str(run["method"]), float(run["epsilon"]), str(run["relation"])
    return *where, str(run.get("ranges", AS_DECLARED)), int(run["seed"]), int(run.get("split", 0))


def is_small(name: str) -> bool:
    """Whether a table has fewer than 10,000 rows."""
    return name in SYNTHETIC or declared.is_small(name)


def split_seed(name: str, seed: int) -> int:
    """The split of a run: its own where a table is small, else the one that all share."""
    return seed if is_small(name) else 0


# A process goes through the tables one after the other: it keeps the last.
@lru_cache(maxsize=1)
def _whole(name: str, folder: Path) -> DeclaredTable:
    return synthetic(name) if name in SYNTHETIC else declared.load(name, folder)


def parts(name: str, folder: Path, seed: int) -> tuple[DeclaredTable, DeclaredTable]:
    """The training and the test part of a table for a run of this seed."""
    return _divided(name, folder, split_seed(name, seed))


@lru_cache(maxsize=1)
def _divided(name: str, folder: Path, split: int) -> tuple[DeclaredTable, DeclaredTable]:
    return declared.split(_whole(name, folder), split)


def synthetic(name: str) -> DeclaredTable:
    """Hospital stays: whether a patient comes back, or what the stay costs by a law with noise."""
    drawn = hospital(SYNTHETIC_ROWS)
    numeric = np.array([drawn.bounds.features[j] != (0.0, 1.0) for j in range(len(drawn.names))])  # type: ignore[index]
    if name == SYNTHETIC[0]:
        return DeclaredTable(name, name, drawn.X, drawn.y.astype(np.float64), drawn.names, drawn.bounds, numeric)
    column = dict(zip(drawn.names, drawn.X.T, strict=True))
    noise = np.random.default_rng(0).normal(size=SYNTHETIC_ROWS)
    cost = 1.0 + 0.8 * column["days_in_hospital"] + 0.1 * column["age"] + 0.3 * column["medications"] + 2 * noise
    bounds = drawn.bounds.with_facts(classes=None, target=(0.0, 50.0))
    return DeclaredTable(name, name, drawn.X, cost, drawn.names, bounds, numeric)


def table_run(point: Point, train: DeclaredTable, test: DeclaredTable, seed: int) -> dict[str, Any]:
    """One fit of a table model with nothing set but its terms, and what it scores."""
    table = point.table(train)
    kind: Any = DPLogisticRegression if table.is_classification else DPRidge
    estimator = kind(epsilon=point.epsilon, neighbors=point.relation, ledger=False)
    model = TableModel(table.schema, estimator, terms=TERMS[point.method], checks=False)
    rows, new = table.columns, test.columns
    start = time.perf_counter()
    with use_entropy(SeededWords(point.noise(seed))):
        model.fit(rows)
    seconds = time.perf_counter() - start
    margins = model.predict_proba(new)[:, 1] if table.is_classification else None
    chosen = {kind.knots for kind in model.schema_.columns.values() if isinstance(kind, Number)}
    return {
        **asdict(point),
        "seed": seed,
        "split": split_seed(point.set, seed),
        "metrics": scores(test, model.predict(new), margins),
        "seconds": round(seconds, 3),
        "chosen": max((knots for knots in chosen if isinstance(knots, int)), default=0),
    }


def private_run(point: Point, train: DeclaredTable, test: DeclaredTable, seed: int) -> dict[str, Any]:
    """One fit with nothing set, and what it scores; its noise is replayable."""
    if point.method in TERMS:
        return table_run(point, train, test, seed)
    table = point.table(train)
    kind: Any = DPLogisticRegression if table.is_classification else DPLinearRegression
    settings = {"solver": point.method, "neighbors": point.relation, "ledger": False}
    model = kind(epsilon=point.epsilon, bounds=table.bounds, **settings)
    start = time.perf_counter()
    with use_entropy(SeededWords(point.noise(seed))):
        model.fit(table.X, table.y)
    seconds = time.perf_counter() - start
    predicted = model.predict(test.X)
    metrics = scores(test, predicted, model.decision_function(test.X) if table.is_classification else None)
    chosen = model.certificate_.solver.get("name", point.method)
    facts = {**asdict(point), "seed": seed, "split": split_seed(point.set, seed)}
    return {**facts, "metrics": metrics, "seconds": round(seconds, 3), "chosen": chosen}


def why_left_out(point: Point, table: DeclaredTable) -> str | None:
    """Why a point is not run at all."""
    if point.method == "exponential" and table.X.shape[1] > EXPONENTIAL_COLUMNS:
        return f"left out: its sampler is too slow beyond {EXPONENTIAL_COLUMNS} columns"
    if point.ranges.endswith("target too") and table.is_classification:
        return "a label has no range"
    return None


def _on_point(point: Point, seeds: Sequence[int], folder: Path) -> dict[str, Any]:
    """Some fits of a point; where the library refuses one, the reason."""
    refusal, runs = why_left_out(point, _whole(point.set, folder)), []
    if refusal is None:
        try:
            runs = [private_run(point, *parts(point.set, folder, seed), seed) for seed in seeds]
        except DiscreetError as error:
            refusal = f"{type(error).__name__}: {error}"
    return {"runs": runs, "absent": [] if refusal is None else [{**asdict(point), "why": refusal}]}


def _on_references(name: str, splits: Sequence[int], folder: Path) -> dict[str, Any]:
    found = {str(split): references(*_divided(name, folder, split)) for split in splits}
    return {"references": {name: {**table_facts(_whole(name, folder)), "splits": found}}}


@contextmanager
def _one_thread_each(jobs: int) -> Iterator[None]:
    """Several processes share the cores: one thread each."""
    before = {name: os.environ.get(name) for name in THREADS}
    if jobs > 1:
        os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _finished(tasks: list[tuple[Any, ...]], jobs: int) -> Iterator[dict[str, Any]]:
    if jobs == 1:
        yield from (function(*arguments) for function, *arguments in tasks)
        return
    with _one_thread_each(jobs), ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from (done.result() for done in as_completed([pool.submit(*task) for task in tasks]))


def _is_current(run: Mapping[str, Any]) -> bool:
    """Whether a stored fit was of the split that its seed is given now."""
    return int(run.get("split", 0)) == split_seed(run["set"], run["seed"])


class Comparison:
    """The results so far, and what is still to be run: a run that was interrupted goes on where it stopped."""

    def __init__(self, protocol: Protocol, folder: Path, known: Mapping[str, Any] | None = None) -> None:
        known = known or {}
        self.results: dict[str, Any] = {
            "protocol": asdict(protocol),
            "references": {name: facts for name, facts in known.get("references", {}).items() if "splits" in facts},
            "runs": [run for run in known.get("runs", ()) if _is_current(run)],
            "absent": list(known.get("absent", ())),
        }
        done = {run_key(run) for run in self.results["runs"]}
        refused = {Point.stored(point) for point in self.results["absent"]}
        self._tasks: list[tuple[Any, ...]] = []
        for name in protocol.sets:
            splits = sorted({split_seed(name, seed) for seed in protocol.runs(name)})
            stored = self.results["references"].get(name, {"splits": {}})["splits"]
            if missing := [split for split in splits if str(split) not in stored]:
                self._tasks.append((_on_references, name, missing, folder))
            for point in (point for point in protocol.points() if point.set == name):
                seeds = [seed for seed in protocol.runs(name, point.method) if point.key(seed) not in done]
                if seeds and point not in refused:
                    self._tasks.append((_on_point, point, seeds, folder))

    @property
    def left(self) -> int:
        """How many pieces are still to be run."""
        return len(self._tasks)

    def run(self, *, jobs: int = 1, done: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Run what is left; ``done`` is called after each piece, when ``results`` has it."""
        for part in _finished(self._tasks, jobs):
            for name, facts in part.get("references", {}).items():
                before = self.results["references"].get(name, facts)
                self.results["references"][name] = {**facts, "splits": {**before["splits"], **facts["splits"]}}
            self.results["runs"] += part.get("runs", [])
            self.results["absent"] += part.get("absent", [])
            done()
        self._tasks = []
        return self.results


def write_tables(folder: Path, out: Path, chosen: Sequence[str] = (), *, seeds: int = 40) -> Iterator[str]:
    """Write the encoded tables as NAME.npz, for programs that know nothing of this package.

    ``splits`` are the seeds of the splits: those of all runs where a table is small, else 0 alone; ``held_out`` has a
    row for each, which marks the rows that are for testing.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in chosen or declared.names():
        table = _whole(name, folder)
        splits = sorted({split_seed(name, seed) for seed in range(1, seeds + 1)})
        low, high = table.bounds.ranges(len(table.names))
        target = table.bounds.target or (0.0, 1.0)
        np.savez_compressed(
            out / f"{name}.npz",
            X=table.X,
            y=table.y,
            splits=np.array(splits),
            held_out=np.array([declared.held_out(table, seed) for seed in splits]),
            low=low,
            high=high,
            target_low=target[0],
            target_high=target[1],
            numeric=table.numeric,
            classification=table.is_classification,
            names=np.array(table.names),
        )
        yield name
