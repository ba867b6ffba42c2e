"""``python -m tests.compile`` compiles what most tests run, once, before several workers would each do it.

Two processes fit small models, no kernel in both; the results are in numba's cache beside the sources, where every
worker, every process that a test starts and every later run finds them. With a full cache this takes seconds.
"""

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from discreet import (
    DPHuberRegressor,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    Schema,
    TableModel,
)
from discreet.schema import Category, Number, Target

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 3))
SIGNS, LABELS, NUMBERS = RNG.integers(0, 2, 60), RNG.integers(0, 3, 60), RNG.uniform(-1, 1, 60)
SPARSE = csr_array(np.where(np.abs(X) > 0.5, X, 0.0))


def classify(solver, table=X, y=SIGNS, *, model=DPLogisticRegression, delta=1e-6):
    model(5.0, delta, bounds=1.0, classes=(0, 1) if y is SIGNS else (0, 1, 2), solver=solver).fit(table, y)


def regress(solver, table=X, *, model=DPRidge):
    counts = model is DPPoissonRegressor
    y = np.abs(np.rint(5 * NUMBERS)) if counts else NUMBERS
    model(5.0, 1e-6, bounds=1.0, target=(0.0, 5.0) if counts else (-1.0, 1.0), solver=solver).fit(table, y)


def read_table():
    """A file of texts, and its reading."""
    schema = Schema({"a": Number((-1, 1)), "b": Category(("x",))}, Target("y", classes=(0, 1)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.csv"
        file.write_text("a,b,y\n" + "".join(f"{x:.3f},x,{y}\n" for x, y in zip(X[:, 0], SIGNS, strict=True)))
        TableModel(schema, DPLogisticRegression(5.0, 1e-6, solver="gd")).fit(file)


def first():
    """One output, two classes."""
    for solver in ("gd", "sgd", "recipe", "agd", "svrg", "cd", "gcd", "output"):
        classify(solver)
    classify("gd", delta=0.0)
    classify("gd", model=DPLinearSVC)


def second():
    """Numbers, several classes, compressed rows."""
    for solver in ("gd", "recipe", "cd"):
        regress(solver)
    for model in (DPHuberRegressor, DPPoissonRegressor):
        regress("gd", model=model)
    for solver in ("gd", "sgd"):
        classify(solver, y=LABELS)
        classify(solver, SPARSE)
    regress("cd", SPARSE)
    read_table()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        warnings.simplefilter("ignore")
        {"first": first, "second": second}[sys.argv[1]]()
    else:
        running = [subprocess.Popen([sys.executable, "-m", "tests.compile", half]) for half in ("first", "second")]
        sys.exit(max(process.wait() for process in running))
