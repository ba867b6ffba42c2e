"""The same cluster, the same rows: a private fit against ``dask-ml``'s logistic regression without privacy.

At equal passes both take so many gradient steps. At equal held-out loss the peer runs its own choice (``lbfgs``) with
as many iterations as it needs to predict held-out rows as well as the private default does at epsilon 1.
"""

import time
import warnings
from typing import Any

import dask.array as da
import numpy as np

from benchmarks.scale.dask import Figure
from discreet import DPLogisticRegression
from discreet.scale import local_cluster
from discreet.solvers import GradientDescent

ROWS, COLUMNS, PART, PASSES = 4_000_000, 20, 250_000, 10
QUICK = (40_000, 3, 10_000, 3)


def _rows(n: int, columns: int, size: int, seed: int) -> tuple[Any, Any]:
    random = da.random.default_rng(seed)
    X = random.normal(0.0, 1.0, size=(n, columns), chunks=(size, columns)).clip(-4.0, 4.0)
    w = np.random.default_rng(7).normal(size=columns) / np.sqrt(columns) * 1.7
    chance = 1.0 / (1.0 + da.exp(-(X @ w)))
    return X, (random.uniform(size=n, chunks=size) < chance).astype(np.int64)


def _timed(call: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def _loss(margins: Any, y: Any) -> float:
    return float(np.mean(np.logaddexp(0.0, np.where(y > 0, -margins, margins))))


def _peer(X: Any, y: Any, solver: str, iterations: int) -> Any:
    from dask_ml.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegression(solver=solver, max_iter=iterations, tol=0.0).fit(X, y)


def figures(rows: int, columns: int, part: int, passes: int) -> list[Figure]:
    """Measure both on two workers of this machine, one after the other, rows in the workers' memory."""
    common: dict[str, Any] = {"bounds": 4.0, "classes": (0, 1), "ledger": False}
    with local_cluster(n_workers=2):
        X, y = (one.persist() for one in _rows(rows, columns, part, 1))
        X_out, y_out = (np.asarray(one.compute()) for one in _rows(50_000, columns, 50_000, 2))
        steps = DPLogisticRegression(1.0, 1e-9, solver=GradientDescent(n_steps=passes), **common)
        default = DPLogisticRegression(1.0, 1e-9, **common)
        for model in (steps, default):
            model.fit(X[:part], y[:part])  # compiles
        ours, _ = _timed(lambda: steps.fit(X, y))
        theirs, _ = _timed(lambda: _peer(X, y, "gradient_descent", passes))
        seconds, fitted = _timed(lambda: default.fit(X, y))
        goal = _loss(fitted.decision_function(X_out), y_out)
        for iterations in (1, 2, 4, 8, 16, 32):
            taken, peer = _timed(lambda iterations=iterations: _peer(X, y, "lbfgs", iterations))  # type: ignore[misc]
            if _loss(X_out @ np.ravel(peer.coef_) + float(np.ravel(peer.intercept_)[0]), y_out) <= goal:
                break
    return [
        Figure(f"dask-ml over discreet, {passes} gradient steps", theirs / ours, "x"),
        Figure(f"dask-ml over discreet, held-out loss {goal:.4f} ({iterations} iterations)", taken / seconds, "x"),
        Figure("discreet, the default", seconds, "s"),
    ]
