"""One clipped logistic gradient, in exact integers, against two gemv of numpy, which neither clip nor know a loss.

The first comparison is of CPU time (one thread each), the second of wall time on an idle machine.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.measures.timing import IdleMachine, interleaved
from benchmarks.measures.timing_rows import Row, at_least, at_most
from benchmarks.problems.logistic import clip_for, features_and_targets, query, records
from benchmarks.sizes import size
from discreet.curator import SystemEntropy
from discreet.curator.engines import DenseEngine
from discreet.curator.noise import rounded_gaussian

P = 100
PATIENCE = size(60, 0)
"""Seconds to wait for two idle cores."""


def run(rounds: int) -> Iterator[Row]:
    yield against_gemv(size(100_000, 1000), rounds)
    yield two_threads(size(1_000_000, 1000), rounds)
    yield noise_of_one_gradient(rounds)


def _weights() -> NDArray[np.float64]:
    return np.random.default_rng(1).normal(size=P) / np.sqrt(P)


def against_gemv(n: int, rounds: int) -> Row:
    X, w = features_and_targets(n, P)[0], _weights()
    coefficients = np.random.default_rng(2).normal(size=n)
    engine, asked = DenseEngine(records(n, P), threads=1), query(w, n, clip_for(P))
    with threadpool_limits(1):
        taken = interleaved(
            {"ours": lambda: asked.over(engine), "peer": lambda: (X @ w, X.T @ coefficients)}, rounds=rounds
        )
    title = f"gradient, n={n:.0e}, p={P}, 1 thread, against two gemv"
    return Row.faster(title, taken["ours"], taken["peer"], at_most(0.75), clock="cpu")


def two_threads(n: int, rounds: int) -> Row:
    """One engine for both, so that both read the same pages."""
    engine, asked, idle = (
        DenseEngine(records(n, P), threads=2),
        query(_weights(), n, clip_for(P)),
        IdleMachine(PATIENCE),
    )

    def with_threads(count: int) -> None:
        engine.workers.threads = count
        asked.over(engine)

    candidates = {"two": lambda: with_threads(2), "one": lambda: with_threads(1)}
    taken = interleaved(candidates, rounds=rounds, before_round=idle)
    title = f"gradient, n={n:.0e}, p={P}, speed-up of 2 threads over 1"
    if idle.found < rounds / 2:
        work = taken["two"].cpu / taken["one"].cpu
        note = f"not judged: two idle cores were not found; 2 threads take {work:.2f} of the CPU time of 1"
        return Row.speed_up(title, taken["two"], taken["one"], None, note=note)
    return Row.speed_up(title, taken["two"], taken["one"], at_least(1.8))


def noise_of_one_gradient(rounds: int) -> Row:
    entropy = SystemEntropy()
    taken = interleaved({"ours": lambda: rounded_gaussian(P, 40, entropy)}, rounds=rounds)["ours"]
    return Row(f"noise of one gradient, p={P}", "us", 1e6 * taken.cpu, spread=taken.spread)
