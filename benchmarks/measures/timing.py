"""Interleaved timing: all candidates in turn, round after round, and of each the best round."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

WARM_UP_CALLS = 2


@dataclass(frozen=True)
class Timing:
    """Seconds a call in the best round, by the wall clock and of CPU time (of all threads); and the median round."""

    wall: float
    cpu: float
    median_wall: float

    @property
    def spread(self) -> float:
        """Median over best: 1 on an idle machine, more on a busy one."""
        return self.median_wall / self.wall


def interleaved(
    candidates: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    least_seconds: float = 0.002,
    before_round: Callable[[], object] = lambda: None,
) -> dict[str, Timing]:
    """Time each candidate once a round, each sample of about ``least_seconds`` or one call, after a warm-up."""
    calls = {name: _calls_for(run, least_seconds) for name, run in candidates.items()}
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for _ in range(rounds):
        before_round()
        for name, run in candidates.items():
            if calls[name] > 1:  # a short call must not pay for what the others left in the caches
                _repeat(run, calls[name])
            wall, cpu = time.perf_counter(), time.process_time()
            _repeat(run, calls[name])
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            samples[name].append((wall / calls[name], cpu / calls[name]))
    return {name: _timing(taken) for name, taken in samples.items()}


def _repeat(run: Callable[[], object], times: int) -> None:
    for _ in range(times):
        run()


def _timing(taken: list[tuple[float, float]]) -> Timing:
    walls, cpus = zip(*taken, strict=True)
    return Timing(min(walls), min(cpus), statistics.median(walls))


def _calls_for(run: Callable[[], object], least_seconds: float) -> int:
    _repeat(run, WARM_UP_CALLS)
    start = time.perf_counter()
    run()
    return max(1, round(least_seconds / max(time.perf_counter() - start, 1e-9)))


class IdleMachine:
    """Waits before a round until the machine is idle, as comparisons of threads need; ``found`` counts successes."""

    def __init__(self, patience: float) -> None:
        self._until = time.monotonic() + patience
        self.found = 0

    def __call__(self) -> None:
        while True:
            if _idle_share(0.1) > 0.94:
                self.found += 1
                return
            if time.monotonic() > self._until:
                return


def _idle_share(seconds: float) -> float:
    before = _ticks()
    time.sleep(seconds)
    idle, total = (after - now for after, now in zip(_ticks(), before, strict=True))
    return idle / total if total else 1.0


def _ticks() -> tuple[int, int]:
    """Idle and all clock ticks of all cores so far; (0, 0) where the system does not say."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return 0, 0
    return ticks[3] + ticks[4], sum(ticks)
