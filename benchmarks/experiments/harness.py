"""Experiments: what is run, what its figure claims, and a test of each claim. Figures are made from files of results.

An experiment is a list of points, a run of one point at one seed, claims, and a figure. Every run is one line of
``NAME.jsonl``, with a digest of the code that made it: a run that is there already is not run again, so that an
experiment that was stopped goes on, and one of other code is. ``check`` runs the same points on seeds that nobody has
looked at, and holds the claims against them.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scipy.special import stdtrit

import discreet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = (
    "lecture_bound",
    "sgd_lower_bound",
    "output_or_objective",
    "two_record_median",
    "choice_of_classifiers",
    "clips_of_coordinates",
    "passes_of_coordinates",
    "greedy_coordinates",
    "greedy_passes",
    "adaptive_descent",
    "adaptive_steps",
    "adaptive_defects",
)
FRESH = 1_000_000
"""Where the seeds of a check begin."""
QUICK_SEEDS = 2
LEAST_SEEDS = 3
"""Seeds from which on a standard error says anything."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """What a figure shows, in words, and the statistic of its rows that has to lie within limits for it."""

    text: str
    statistic: Callable[[Sequence[Row]], float]
    low: float = -math.inf
    high: float = math.inf

    def value(self, rows: Sequence[Row]) -> float:
        """Return the statistic."""
        return float(self.statistic(rows))

    def error(self, rows: Sequence[Row]) -> float:
        """Return the statistic's standard error over seeds, by the jackknife: a seed's rows are left out together."""
        seeds = sorted({row["seed"] for row in rows})
        if len(seeds) < 2:
            return math.nan
        left = [self.value([row for row in rows if row["seed"] != seed]) for seed in seeds]
        center = sum(left) / len(left)
        return math.sqrt((len(left) - 1) / len(left) * sum((value - center) ** 2 for value in left))

    def holds(self, rows: Sequence[Row]) -> bool:
        """Say whether it is within its limits; a statistic without rows (NaN) is in none."""
        return self.low <= self.value(rows) <= self.high

    def verdict(self, rows: Sequence[Row]) -> str:
        """Say it in words: not where a limit is within a 95 % interval of Student's t; a quick run has not all rows."""
        value, n_seeds = self.value(rows), len({row["seed"] for row in rows})
        if math.isnan(value):
            return "not run"
        reach = stdtrit(n_seeds - 1, 0.975) * self.error(rows) if n_seeds >= LEAST_SEEDS else math.inf
        if any(abs(value - limit) < reach for limit in (self.low, self.high)):
            return "too few seeds to tell"
        return "yes" if self.holds(rows) else "**no**"

    @property
    def limits(self) -> str:
        """The limits, in words."""
        if math.isinf(self.low):
            return f"at most {self.high:g}"
        return f"at least {self.low:g}" if math.isinf(self.high) else f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Experiment:
    """A question, the points at which it is asked, one run of a point, the claims, and the figure of the rows."""

    name: str
    title: str
    question: str
    points: Callable[[bool], list[Row]]
    run: Callable[..., Row]
    claims: tuple[Claim, ...]
    figure: Callable[[Sequence[Row]], "Figure"]
    seeds: int = 10


def experiment(name: str) -> Experiment:
    """Return the experiment of this name."""
    found: Experiment = import_module(f"benchmarks.experiments.{name}").EXPERIMENT
    return found


def stored(path: Path) -> list[Row]:
    """Return the rows of a file; a line that a stopped run left half-written does not count."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def _key(point: Row, seed: int, code: str) -> str:
    return json.dumps({**point, "seed": seed, "code": code}, sort_keys=True)


@cache
def code_digest() -> str:
    """Return a digest of the library and of the benchmarks: results of other code are not theirs."""
    digest = hashlib.sha256()
    for package in (Path(discreet.__file__).parent, Path(__file__).parents[1]):
        for path in sorted(package.rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def run_point(name: str, point: Row, seed: int) -> Row:
    """Run one point of an experiment at one seed."""
    return {"point": point, "seed": seed, "code": code_digest(), **experiment(name).run(**point, seed=seed)}


def tasks(made: Experiment, *, quick: bool, seeds: int | None, first: int) -> Iterator[tuple[Row, int]]:
    """Yield what an experiment runs."""
    count = QUICK_SEEDS if quick else seeds or made.seeds
    for point in made.points(quick):
        for seed in range(first, first + count):
            yield point, seed


def run(
    name: str,
    out: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    first: int = 0,
    jobs: int = 1,
    done: Callable[[], None] = lambda: None,
) -> list[Row]:
    """Run what a file does not have yet; return all of its rows that belong to the experiment as it is now."""
    made, path = experiment(name), out / f"{name}.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    code = code_digest()
    known = {_key(row["point"], row["seed"], row.get("code", "")): row for row in stored(path)}
    wanted = list(tasks(made, quick=quick, seeds=seeds, first=first))
    missing = [(point, seed) for point, seed in wanted if _key(point, seed, code) not in known]
    with path.open("a", encoding="utf-8") as file:
        for row in _rows(name, missing, jobs):
            known[_key(row["point"], row["seed"], code)] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
            done()
    return [known[_key(point, seed, code)] for point, seed in wanted]


def _rows(name: str, missing: list[tuple[Row, int]], jobs: int) -> Iterator[Row]:
    if jobs == 1 or len(missing) < 2:
        yield from (run_point(name, point, seed) for point, seed in missing)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from (made.result() for made in as_completed([pool.submit(run_point, name, *task) for task in missing]))


def mean(rows: Sequence[Row], value: str, **where: Any) -> float:
    """Return the mean of a value over the rows whose point has these settings."""
    found = [row[value] for row in rows if all(row["point"].get(name) == at for name, at in where.items())]
    return sum(found) / len(found) if found else math.nan


def largest_share(rows: Sequence[Row], value: str, of: str) -> float:
    """Return the largest over runs of one value over another."""
    return max(float(row[value] / row[of]) for row in rows)


def slope(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the slope of log y over log x, by least squares."""
    xs, ys = zip(*((math.log(x), math.log(max(y, 1e-300))) for x, y in pairs), strict=True)
    center, middle = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - center) * (y - middle) for x, y in zip(xs, ys, strict=True)) / sum((x - center) ** 2 for x in xs)
