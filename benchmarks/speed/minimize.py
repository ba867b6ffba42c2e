"""The minimizer inside the wall, to a proven gradient norm, against scikit-learn's Newton-Cholesky.

CPU time, one thread each: both sides' threads would wait for each other on a busy machine.
"""

import math
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Row, at_most
from benchmarks.sizes import size
from discreet import DPLogisticRegression
from discreet.bounds import Bounds
from discreet.curator.certified.minimize import Objective, certified_gradient, minimize
from discreet.curator.engines import DenseEngine
from discreet.curator.records.admission import Records, admit, scaling_for
from discreet.losses import Logistic
from discreet.solvers import ObjectivePerturbation

N, P = size(100_000, 20_000), 100
TOLERANCE = 1e-12
"""Of the gradient's norm, over n times the bound on a record's gradient."""


def run(rounds: int) -> Iterator[Row]:
    with threadpool_limits(1):
        yield against_newton_cholesky("independent columns", np.ones(P), 1.0, rounds)
        yield against_newton_cholesky("columns of scale j^-1/2", np.arange(1, P + 1) ** -0.5, 1e-4 * N, rounds)
        yield whole_fit(rounds)
        yield one_gradient(rounds)


def problem(scales: NDArray[np.float64]) -> Records:
    """Features in [-1, 1] and an intercept."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, P)) * scales
    y = np.where(rng.uniform(size=N) < 1 / (1 + np.exp(-X @ rng.normal(size=P))), 1.0, -1.0)
    return admit(X, y, scaling_for(Bounds(features=1.0), P, None, intercept=True))


def against_newton_cholesky(name: str, scales: NDArray[np.float64], regularization: float, rounds: int) -> Row:
    records = problem(scales)
    assert records.rows is not None
    floats, targets = records.rows / records.grid.one, records.targets
    objective = Objective(Logistic(), regularization, np.zeros(P + 1))
    taken = interleaved(
        {
            "ours": lambda: minimize(DenseEngine(records, threads=1), objective, TOLERANCE * N * math.sqrt(P + 1)),
            "peer": peer(floats, targets, regularization),
        },
        rounds=max(3, rounds // 3),
    )
    title = f"minimizer, n={N:.0e}, p={P}, {name}, against newton-cholesky"
    return Row.faster(title, taken["ours"], taken["peer"], at_most(0.4), clock="cpu")


def peer(X: NDArray[np.float64], y: NDArray[np.float64], regularization: float) -> Callable[[], object]:
    model = LogisticRegression(C=1 / regularization, solver="newton-cholesky", tol=1e-10, fit_intercept=False)

    def fit() -> None:
        with warnings.catch_warnings():  # it says that its line search ends at rounding errors
            warnings.simplefilter("ignore")
            model.fit(X, y)

    return fit


def whole_fit(rounds: int) -> Row:
    """From floats to certificate: the door, the price, the random term, the minimizer, its proof, the second noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, P))
    y = np.where(rng.uniform(size=N) < 1 / (1 + np.exp(-X @ rng.normal(size=P))), 1.0, -1.0)
    strength = 1e-3
    solver = ObjectivePerturbation(regularization=strength, tolerance=TOLERANCE, row_norm=math.sqrt(P + 1))
    private = DPLogisticRegression(epsilon=1.0, bounds=1.0, classes=(-1.0, 1.0), penalty=None, solver=solver)
    taken = interleaved(
        {"ours": lambda: private.fit(X, y), "peer": peer(X, y, strength * N)}, rounds=max(3, rounds // 3)
    )
    title = f"objective perturbation, whole fit, n={N:.0e}, p={P}, against newton-cholesky"
    return Row.faster(title, taken["ours"], taken["peer"], at_most(0.7), clock="cpu")


def one_gradient(rounds: int) -> Row:
    records = problem(np.ones(P))
    assert records.rows is not None
    floats, rng = records.rows / records.grid.one, np.random.default_rng(1)
    w, coefficients = rng.normal(size=P + 1), rng.normal(size=N)
    engine, objective = DenseEngine(records, threads=1), Objective(Logistic(), 1.0, np.zeros(P + 1))
    taken = interleaved(
        {
            "ours": lambda: certified_gradient(engine, objective, w),
            "peer": lambda: (floats @ w, floats.T @ coefficients),
        },
        rounds=rounds,
    )
    title = f"a gradient and its error bound, n={N:.0e}, p={P}, against two gemv"
    return Row.faster(title, taken["ours"], taken["peer"], None, clock="cpu")
