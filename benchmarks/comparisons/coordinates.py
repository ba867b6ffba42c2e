"""Private coordinate descent against gradient methods at equal epsilon, as in the papers.

For each method and number of passes, clip and step are chosen on tuning seeds; the choice is then run on fresh
seeds, and these are reported. Tuning and exact risks would cost budget on people's data; here they cost none,
because the data are synthetic. Seeds are of the noise and of the samples; a problem's data are the same for all.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.measures.excess_risk import EPSILON, excess_risk
from benchmarks.methods.setting import Setting
from benchmarks.methods.tuned import Method, methods_for
from benchmarks.problems.linear import NAMES, Problem, problem

TUNING_SEEDS = (900_001, 900_002, 900_003)


@dataclass(frozen=True)
class Size:
    """How much to run: the problems' sizes, how many points of each axis of a grid, how many seeds."""

    seeds: int = 20
    n: int = 1000
    wide: int = 1000
    axis: int | None = None
    tuning: tuple[int, ...] = TUNING_SEEDS

    def problem(self, name: str) -> Problem:
        """The problem of this name at this size."""
        return problem(name, n=self.n, p=self.wide if name == "sparse" else None)


QUICK = Size(seeds=2, n=200, wide=30, axis=1, tuning=TUNING_SEEDS[:1])


def compare(given: Problem, method: Method, size: Size) -> dict[str, Any]:
    """One method on one problem: for each number of passes the tuned setting and its excess risk on fresh seeds."""
    points = []
    for passes in method.passes[: size.axis]:
        tuned = {s: _mean(given, method, s, size.tuning) for s in _some(method.settings(passes), size)}
        chosen = min(tuned, key=tuned.__getitem__)
        risks = [excess_risk(given, method, chosen, seed) for seed in range(1, size.seeds + 1)]
        points.append({**asdict(chosen), "tuning": tuned[chosen], "risks": risks})
    best = min(range(len(points)), key=lambda i: float(points[i]["tuning"]))
    return {"method": method.name, "label": method.label, "best": best, "points": points}


def _mean(given: Problem, method: Method, setting: Setting, seeds: Sequence[int]) -> float:
    return float(np.mean([excess_risk(given, method, setting, seed) for seed in seeds]))


def _some(settings: list[Setting], size: Size) -> list[Setting]:
    return settings if size.axis is None else settings[:: max(1, len(settings) // size.axis)]


def _task(name: str, index: int, size: Size) -> tuple[str, int, dict[str, Any]]:
    return name, index, compare(size.problem(name), methods_for(name)[index], size)


def _finished(tasks: list[tuple[str, int]], size: Size, jobs: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    if jobs == 1:
        yield from (_task(name, index, size) for name, index in tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from (done.result() for done in as_completed([pool.submit(_task, *task, size) for task in tasks]))


def run(size: Size, *, jobs: int = 1, done: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """All methods on all problems, as plain numbers; ``done`` is called after each of ``task_count`` pieces."""
    found = {}
    for name, index, result in _finished(_tasks(), size, jobs):
        found[name, index] = result
        done()
    problems = []
    for name in NAMES:
        given = size.problem(name)
        methods = [found[name, index] for index in range(len(methods_for(name)))]
        n, p = given.X.shape
        start = given.excess(np.zeros(p))
        facts = {"name": name, "n": n, "p": p, "at_zero": start, "scales": given.scales[:10].tolist(), "l1": given.l1}
        problems.append({**facts, "methods": methods})
    return {"epsilon": EPSILON, "delta": "1/n^2", "neighbors": "replace_one", "seeds": size.seeds, "problems": problems}


def _tasks() -> list[tuple[str, int]]:
    """The slow ones, which come last in each problem's list, first."""
    return [(name, index) for name in NAMES for index in reversed(range(len(methods_for(name))))]


def task_count() -> int:
    """How many pieces a run has."""
    return len(_tasks())
