"""Compile what fits run, into numba's cache, before the first fit: for images, and for tests.

Small fits of made-up records run the kernels that fits of the usual models run. Numba keeps what it compiled next to
the package where that is writable, else in the user's cache (``NUMBA_CACHE_DIR`` names another place). Nothing is
charged, and nobody's records are read.
"""

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numba.core import event
from scipy.sparse import csr_array

from discreet.default import Recipe
from discreet.models.classification import DPLinearSVC, DPLogisticRegression
from discreet.models.regression import DPHuberRegressor, DPPoissonRegressor, DPRidge
from discreet.models.table_model import TableModel
from discreet.schema import Category, Number, Schema, Target

_X = np.sin(np.arange(1.0, 181.0) ** 2).reshape(60, 3)
_SIGNS, _LABELS, _NUMBERS = (_X[:, 0] > 0).astype(np.int64), np.arange(60) % 3, _X[:, 1]
_SPARSE = csr_array(np.where(np.abs(_X) > 0.5, _X, 0.0))
_WHOLE = Recipe(n_steps=2, n_travel=1, n_newton=2)
"""Every phase of the default, whatever the signal."""


def _classify(
    solver: Any, X: Any = _X, y: Any = _SIGNS, *, delta: float = 1e-6, model: Any = DPLogisticRegression
) -> None:
    classes = (0, 1) if y is _SIGNS else (0, 1, 2)
    model(5.0, delta, bounds=1.0, classes=classes, solver=solver, ledger=False).fit(X, y)


def _regress(solver: Any, X: Any = _X, *, model: Any = DPRidge) -> None:
    counts = model is DPPoissonRegressor
    y, ends = (np.abs(np.rint(5 * _NUMBERS)), (0.0, 5.0)) if counts else (_NUMBERS, (-1.0, 1.0))
    model(5.0, 1e-6, bounds=1.0, target=ends, solver=solver, ledger=False).fit(X, y)


def _infer(model: Any, y: Any, **facts: Any) -> None:
    model(50.0, 1e-6, bounds=1.0, inference="sandwich", even_if_empty=True, ledger=False, **facts).fit(_X, y)


def _read_table() -> None:
    schema = Schema({"a": Number((-1, 1)), "b": Category(("x",))}, Target("y", classes=(0, 1)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.csv"
        file.write_text("a,b,y\n" + "".join(f"{x:.3f},x,{y}\n" for x, y in zip(_X[:, 0], _SIGNS, strict=True)))
        TableModel(schema, DPLogisticRegression(5.0, 1e-6, solver="gd", ledger=False)).fit(file)


Fits = Mapping[str, Callable[[], None]]

TWO_CLASSES: Fits = {
    "two classes": partial(_classify, "auto"),
    "two classes, every phase": partial(_classify, _WHOLE),
    "two classes, inference": partial(_infer, DPLogisticRegression, _SIGNS, classes=(0, 1)),
    **{
        f"two classes, {solver}": partial(_classify, solver)
        for solver in ("gd", "sgd", "agd", "svrg", "cd", "gcd", "output", "objective")
    },
    "two classes, pure budget": partial(_classify, "gd", delta=0.0),
    "support vectors": partial(_classify, "gd", model=DPLinearSVC),
}
OTHERS: Fits = {
    "numbers": partial(_regress, "auto"),
    "numbers, every phase": partial(_regress, _WHOLE),
    "numbers, inference": partial(_infer, DPRidge, _NUMBERS, target=(-1.0, 1.0)),
    **{f"numbers, {solver}": partial(_regress, solver) for solver in ("gd", "cd")},
    "numbers, Huber": partial(_regress, "gd", model=DPHuberRegressor),
    "counts": partial(_regress, "auto", model=DPPoissonRegressor),
    "counts, gd": partial(_regress, "gd", model=DPPoissonRegressor),
    "three classes": partial(_classify, "auto", y=_LABELS),
    "three classes, gd": partial(_classify, "gd", y=_LABELS),
    "three classes, sgd": partial(_classify, "sgd", y=_LABELS),
    "sparse records": partial(_classify, "auto", _SPARSE),
    "sparse records, gd": partial(_classify, "gd", _SPARSE),
    "sparse records, sgd": partial(_classify, "sgd", _SPARSE),
    "sparse records of numbers, cd": partial(_regress, "cd", _SPARSE),
    "a table file": _read_table,
}


ALL: Fits = MappingProxyType({**TWO_CLASSES, **OTHERS})


@dataclass(frozen=True)
class Compiled:
    """What a fit had to compile, and how long it took."""

    name: str
    functions: int
    seconds: float


def compile_kernels(fits: Fits = ALL) -> Iterator[Compiled]:
    """Run fits, and say after each what it had to compile: nothing, where the cache is full."""
    for name, fit in fits.items():
        start = time.perf_counter()
        with event.install_recorder("numba:compile") as compiled, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits whose models nobody keeps
            fit()
        yield Compiled(name, sum(record.is_start for _, record in compiled.buffer), time.perf_counter() - start)
