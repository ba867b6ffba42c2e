"""The default fit, from floats to certificate, against scikit-learn's and against the products that it is made of."""

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Row, at_most
from benchmarks.problems.logistic import features_and_targets, records
from benchmarks.sizes import size
from discreet import DPLogisticRegression
from discreet.curator.engines import DenseEngine
from discreet.curator.queries.moments import MomentQuery

N, LARGE, P = size(100_000, 1000), size(1_000_000, 2000), 100


def run(rounds: int) -> Iterator[Row]:
    yield outer_products(rounds)
    yield against_scikit_learn(max(3, rounds // 2))
    yield against_products(max(2, rounds // 5))
    yield small_fit(rounds)


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


def _default() -> DPLogisticRegression:
    return DPLogisticRegression(epsilon=1.0, bounds=1.0, classes=(-1.0, 1.0), ledger=False)


def against_scikit_learn(rounds: int) -> Row:
    X, y = features_and_targets(N, P)
    private, plain = _default(), LogisticRegression()
    candidates = {"ours": lambda: private.fit(X, y), "peer": lambda: plain.fit(X, y)}
    taken = interleaved(candidates, rounds=rounds)
    title = f"default fit, n={N:.0e}, p={P}, against LogisticRegression()"
    return Row.faster(title, taken["ours"], taken["peer"], at_most(2.0))


def against_products(rounds: int) -> Row:
    """The peer reads the table as often as twelve steps on exact gradients would, once for its second moment."""
    X, y = features_and_targets(LARGE, P)
    private, w = _default(), np.full(P, 0.1)

    def products() -> None:
        X.T @ X
        for _ in range(6):
            X.T @ (X @ w)

    taken = interleaved({"ours": lambda: private.fit(X, y), "peer": products}, rounds=rounds)
    title = f"default fit, n={LARGE:.0e}, p={P}, against X.T @ X and twelve gemv"
    return Row.faster(title, taken["ours"], taken["peer"], at_most(2.5))


def small_fit(rounds: int) -> Row:
    X, y = features_and_targets(1000, 10)
    private = _default()
    taken = interleaved({"ours": lambda: private.fit(X, y)}, rounds=rounds)["ours"]
    goal = at_most(15.0, absolute=True)
    return Row("default fit, n=1000, p=10", "ms", 1e3 * taken.wall, goal=goal, spread=taken.spread)
