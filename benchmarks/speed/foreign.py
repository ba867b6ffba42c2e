"""Another library under audit: known defects of diffprivlib's models, refuted from outside by ``audit.model``.

``ours`` is the epsilon that the runs prove, ``peer`` the one that the model claims. Needs diffprivlib, put in by hand
and beside an older scikit-learn: give it an environment of its own (README.md).
"""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measures.timing_rows import Row, at_least
from discreet import audit

CLAIMED, CONFIDENCE = 1.0, 0.999
NORM = 100.0
INSTALL = "pip install diffprivlib 'scikit-learn<1.7'"

Table = tuple[Any, Any]


def run(rounds: int) -> Iterator[Row]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from diffprivlib import models
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "diffprivlib"
        yield Row(
            "models of diffprivlib",
            "epsilon",
            None,
            note=f"not installed: {INSTALL}" if missing else f"does not run beside these versions: {INSTALL}",
        )
        return
    warnings.simplefilter("ignore")  # what it says of versions, iterations and unused parameters
    for what, fit, data, neighbor, runs in _subjects(models):
        yield _audited(what, fit, data, neighbor, max(100, round(runs * rounds / 15)))


def _audited(what: str, fit: Callable[..., Any], data: Table, neighbor: Table, runs: int) -> Row:
    before = time.perf_counter()
    found = audit.model(fit, data, neighbor, epsilon=CLAIMED, runs=runs, confidence=CONFIDENCE)
    taken = time.perf_counter() - before
    note = f"{found.verdict}: {found.runs} runs a side, confidence {CONFIDENCE:g}, {taken:.0f} s"
    goal = None if what.startswith("control") else at_least(1.0)
    return Row(what, "epsilon", found.bound, CLAIMED, (found.bound or 0.0) / CLAIMED, goal=goal, note=note)


def _subjects(models: Any) -> Iterator[tuple[str, Callable[..., Any], Table, Table, int]]:
    """A defect, a fit that shows it, two neighbors, and the runs that it takes."""
    labels = np.array([1, 0])
    alone, blank = np.array([[NORM], [0.0]]), np.zeros((2, 1))

    def near_zero(X: Any, y: Any, norm: float = NORM) -> Any:
        model = models.LogisticRegression(epsilon=CLAIMED, data_norm=norm, fit_intercept=False, tol=1e-9, max_iter=1000)
        return -np.abs(model.fit(X, y).coef_)

    yield (
        f"LogisticRegression, data_norm={NORM:g}: the curvature of a loss is norm^2 / 4, not norm / 4",
        near_zero,
        (blank, labels),
        (alone, labels),
        6_000,
    )
    yield (
        "control: the same, data_norm=1, where both agree",
        lambda X, y: near_zero(X, y, 1.0),
        (blank, labels),
        (alone / NORM, labels),
        2_000,
    )

    def linear(X: Any, y: Any, fit_intercept: bool = False) -> Any:
        limits = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}
        return models.LinearRegression(epsilon=CLAIMED, fit_intercept=fit_intercept, **limits).fit(X, y)

    X, y = np.full((5, 1), 0.5), np.full(5, 0.5)
    outside = X.copy()
    outside[0] = 1e3
    title = "LinearRegression(fit_intercept={}): a row outside bounds_X"
    yield f"{title.format(False)} is not clipped", linear, (X, y), (outside, y), 1_000
    yield (
        f"control: {title.format(True)}",
        lambda X, y: linear(X, y, fit_intercept=True),
        (X, y),
        (outside, y),
        1_000,
    )

    def logistic(X: Any, y: Any, n_jobs: int | None = None) -> Any:
        settings = {"epsilon": CLAIMED, "data_norm": 1.0, "fit_intercept": False, "n_jobs": n_jobs}
        return models.LogisticRegression(**settings).fit(X, y)

    three = np.tile([0, 1, 2], 4)
    other = three.copy()
    other[0] = 1
    table = np.full((12, 1), 0.5)
    yield (
        "LogisticRegression(n_jobs=2): every class and every fit gets the same noise",
        lambda X, y: logistic(X, y, n_jobs=2),
        (table, three),
        (table, other),
        150,
    )
    yield "control: the same, n_jobs=None", logistic, (table, three), (table, other), 300
    rare = np.append(np.tile([0, 1], 5), [0, 2])
    common = np.append(np.tile([0, 1], 5), [0, 1])
    yield (
        "LogisticRegression: the classes, and the shape of coef_, are those of the labels",
        lambda X, y: float(logistic(X, y).coef_.size),
        (table, common),
        (table, rare),
        200,
    )
