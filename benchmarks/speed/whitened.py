"""The default fit, from floats to certificate, and its outer products in exact integers against numpy's in floats."""

from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Goal, Row, at_most
from benchmarks.problems.logistic import features_and_targets, records
from benchmarks.sizes import size
from discreet import DPLogisticRegression
from discreet.curator.engines.local import DenseEngine
from discreet.curator.queries.moments import MomentQuery

N, LARGE, P = size(100_000, 1000), size(1_000_000, 2000), 100


def run(rounds: int) -> Iterator[Row]:
    yield outer_products(rounds)
    yield default_fit(N, max(3, rounds // 3), at_most(1.0, absolute=True))
    yield default_fit(LARGE, 2, at_most(10.0, absolute=True))


def outer_products(rounds: int) -> Row:
    """One thread each: the exact sum of x x^T over 16-bit integers, and X.T @ X of the same numbers in float64."""
    private = records(N, P)
    assert private.rows is not None
    engine, X = DenseEngine(private, threads=1), private.rows.astype(np.float64)
    query = MomentQuery(bound=1 << 40, scale=16.0)
    with threadpool_limits(1):
        taken = interleaved({"ours": lambda: query.outer_over(engine), "peer": lambda: X.T @ X}, rounds=rounds)
    title = f"outer products, n={N:.0e}, p={P}, exact integers, against X.T @ X in float64"
    return Row.faster(title, taken["ours"], taken["peer"], at_most(2.0), clock="cpu")


def default_fit(n: int, rounds: int, goal: Goal) -> Row:
    X, y = features_and_targets(n, P)
    private = DPLogisticRegression(epsilon=1.0, bounds=1.0, classes=(-1.0, 1.0))
    taken = interleaved({"ours": lambda: private.fit(X, y)}, rounds=rounds)
    return Row(f"default fit, n={n:.0e}, p={P}", "s", taken["ours"].wall, goal=goal, spread=taken["ours"].spread)
