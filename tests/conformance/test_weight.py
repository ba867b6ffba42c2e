"""What importing costs, and that a second process compiles nothing."""

import os
import subprocess
import sys
from pathlib import Path

import discreet

SRC = str(Path(discreet.__file__).parents[1])


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SRC, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


STAGES = """
import sys

def heavy(*names):
    print([name for name in names if name in sys.modules])

import discreet
heavy("numpy", "scipy", "sklearn", "numba", "llvmlite", "dp_accounting", "pandas", "matplotlib", "rich", "typer")

from discreet import Bounds, Budget, Neighbors
from discreet.accounting import Plan, Release
Budget(1.0, 1e-6); Bounds(1.0); Plan([Release("noisy_gradient", 3)])
heavy("sklearn", "numba", "dp_accounting", "pandas")

from discreet import DPLogisticRegression, DPRidge
repr(DPLogisticRegression(1.0, bounds=1.0, classes=(0, 1)).set_params(penalty="l1")); DPRidge(1.0)
heavy("numba", "llvmlite", "dp_accounting", "discreet.curator.private_data")

from discreet.losses import Logistic
from discreet.losses.base import derivative
heavy("numba")
from discreet.curator.kernels.kernel import kernel
from numba import njit
slope = njit(lambda loss, margin, target: derivative(loss, margin, target))
print(slope(Logistic(), 0.5, 1.0) == derivative(Logistic(), 0.5, 1.0))
"""


def test_nothing_heavy_is_imported_before_it_is_needed():
    """By the package, by declared facts and by estimators; and the compiler learns losses that came before it."""
    assert run(STAGES).splitlines() == ["[]"] * 4 + ["True"]


_FIT = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from discreet import DPLogisticRegression
from discreet.solvers import GradientDescent, StochasticGradientDescent
X = np.linspace(-1, 1, 40).reshape(20, 2)
y = np.arange(20) % 2
for solver in (GradientDescent(n_steps=2), StochasticGradientDescent(n_steps=2, batch_size=5)):
    DPLogisticRegression(5.0, bounds=1.0, classes=(0, 1), solver=solver).fit(X, y)
compiled, cached = [], 0
for name, module in list(sys.modules.items()):
    if name.startswith("discreet"):
        for item in [getattr(item, "compiled", item) for item in vars(module).values()]:
            if isinstance(item, Dispatcher):
                cached += sum(item.stats.cache_hits.values())
                compiled += [item.__name__] * sum(item.stats.cache_misses.values())
                # compiled without asking a cache: no cache=True
                compiled += [item.__name__] * (len(item.signatures) and not item.stats.cache_path)
print(sorted(set(compiled)), cached)
"""


def test_a_process_that_finds_all_compiled_compiles_nothing():
    """From the cache that all tests share: the first process fills it where it is not full yet."""
    compiled, _, hits = run(_FIT).strip().rpartition(" ")
    if compiled != "[]":
        compiled, _, hits = run(_FIT).strip().rpartition(" ")
    assert compiled == "[]"
    assert int(hits) > 0
