"""A full clipped gradient over compressed rows against scipy's two products; CPU time, one thread each."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Row, at_most
from benchmarks.problems.logistic import query
from benchmarks.sizes import size
from discreet.bounds import Bounds
from discreet.curator.engines import SparseEngine
from discreet.curator.records.admission import admit, scaling_for

N, P, STORED_A_ROW = size(100_000, 1000), size(10_000, 500), size(100, 20)


def matrix() -> csr_array:
    """1 % of the entries, at random columns, in order."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, P, (N, STORED_A_ROW), dtype=np.int32), axis=1).ravel()
    values = rng.uniform(-1, 1, columns.size)
    X = csr_array((values, columns, np.arange(N + 1) * STORED_A_ROW), shape=(N, P))
    X.sum_duplicates()
    return X


def run(rounds: int) -> Iterator[Row]:
    X = matrix()
    rng = np.random.default_rng(1)
    y, w, coefficients = rng.choice([-1.0, 1.0], N), rng.normal(size=P) / 10, rng.normal(size=N)
    transposed = X.T
    private = admit(X, y, scaling_for(Bounds(features=2.0), P, None, intercept=False))
    asked = query(w, N, clip=0.5)
    candidates = {"peer": lambda: (X @ w, transposed @ coefficients)}
    for threads in (1, 2):
        engine = SparseEngine(private, threads=threads)
        candidates[f"ours{threads}"] = lambda engine=engine: asked.over(engine)  # type: ignore[misc]
    taken = interleaved(candidates, rounds=rounds)
    title = f"sparse gradient, n={N:.0e}, p={P:.0e}, 1 %"
    yield Row.faster(f"{title}, 1 thread, against scipy", taken["ours1"], taken["peer"], at_most(1.1), clock="cpu")
    yield Row.faster(f"{title}, 2 threads, against scipy's 1, wall", taken["ours2"], taken["peer"], None)
