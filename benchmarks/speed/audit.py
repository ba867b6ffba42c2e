"""Audits: the epsilon that each level proves of an honest release or fit, beside the claim, and the time it takes."""

import time
from collections.abc import Callable, Iterator

from benchmarks.measures.timing_rows import Goal, Row, at_least, at_most
from benchmarks.sizes import size
from discreet import audit
from discreet.audit import Audit
from discreet.audit.guessing import BOUNDS, audited, neighbors_of, solver_cases
from discreet.budget import Neighbors
from discreet.curator import session

RUNS, FITS, FEATURES = size(100_000, 200), size(200, 20), size(2000, 100)
RELATION = Neighbors.REPLACE_ONE


def run(rounds: int) -> Iterator[Row]:
    audit.gradient(runs=20)  # imports and kernels are another benchmark's
    yield from _timed(
        f"one noisy gradient at epsilon = 1, {RUNS} runs per side",
        lambda: audit.gradient(1.0, 1e-6, runs=RUNS),
        at_least(0.9, absolute=True),
        at_most(10.0, absolute=True),
    )
    for share, runs in ((0.9, RUNS), (0.5, size(3000, 200))):
        what = f"the same with {share:g} of the noise, {runs} runs"
        yield from _timed(what, lambda share=share, runs=runs: _broken(share, runs), at_least(1.0, absolute=True))
    yield from _timed("the same with Laplace noise", lambda: audit.gradient(1.0, mechanism="laplace", runs=RUNS))
    yield from _timed(
        "the same on a sample of a quarter", lambda: audit.gradient(1.0, 1e-6, mechanism="sampled", runs=RUNS)
    )
    yield from _timed(
        "one release of 2000 features at epsilon = 4", lambda: audit.one_run(4.0, 1e-6, canaries=size(2000, 100))
    )
    for subject in solver_cases()[: size(100, 2)]:
        yield from _timed(
            f"{subject.name} at epsilon = 2, {FITS} runs at most",
            lambda subject=subject: audited(subject, RELATION, epsilon=2.0, delta=1e-5, runs=FITS, confidence=0.99),
        )
    yield from _replayed()


def _broken(share: float, runs: int) -> Audit:
    """The lattice of a claim with too little noise."""
    honest = session.unit_for
    session.unit_for = lambda z, *more: honest(share * z, *more)
    try:
        return audit.gradient(1.0, 1e-6, runs=runs)
    finally:
        session.unit_for = honest


def _timed(
    what: str, run_audit: Callable[[], Audit], bound: Goal | None = None, seconds: Goal | None = None
) -> Iterator[Row]:
    before = time.perf_counter()
    found = run_audit()
    taken = time.perf_counter() - before
    effort = f"{found.level}, {found.runs} runs per side, confidence {found.confidence:g}"
    note = f"{found.verdict} ({effort}); {taken:.2g} s"
    proved = found.bound or 0.0
    yield Row(f"{what}: proved", "epsilon", proved, found.claimed, proved / found.claimed, goal=bound, note=note)
    if seconds is not None:
        yield Row(f"{what}: time", "s", taken, goal=seconds)


def _replayed() -> Iterator[Row]:
    """The deterministic level on the smallest fit."""
    gd = next(subject for subject in solver_cases() if subject.name == "gd")
    X, y = neighbors_of(RELATION)[0]
    before = time.perf_counter()
    found = audit.replay(gd.fit(2.0, 1e-5, RELATION), X, y.astype(float), bounds=BOUNDS)
    taken = time.perf_counter() - before
    note = f"{found.verdict}; {found.runs} pairs of neighbors"
    yield Row("gd replayed on every pair of neighbors, a pair", "ms", 1e3 * taken / found.runs, note=note)
