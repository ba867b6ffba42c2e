"""Fresh processes: what an import costs (CPU time), and a first fit (wall time), its kernels cached or not."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.measures.timing_rows import Row, at_most
from benchmarks.sizes import size

_IMPORT = "import time; start = time.process_time(); {statement}; print(time.process_time() - start)"

_FIRST_FIT = """
import time; start = time.perf_counter()
import json
import numpy as np
from discreet import DPLogisticRegression
imported = time.perf_counter() - start
from numba.core import event
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
rng = np.random.default_rng(0)
X, y = rng.uniform(-1, 1, (1000, 10)), rng.integers(0, 2, 1000)
DPLogisticRegression(bounds=1.0, classes=(0, 1)).fit(X, y)
names = sorted(record.data["dispatcher"].__name__ for _, record in compiled.buffer if record.is_start)
seconds, cpu = time.perf_counter() - start, time.process_time()
print(json.dumps({"seconds": seconds, "cpu": cpu, "imported": imported, "compiled": names}))
"""


def run(rounds: int) -> Iterator[Row]:
    yield from imports(max(size(3, 1), rounds // 2))
    yield from commands(max(size(3, 1), rounds // 3))
    yield from first_fits(max(size(3, 1), rounds // 3))


def _fresh(code: str, **environment: str) -> str:
    """Python's own bytecode is kept on disk, as an installation keeps it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **environment}, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def imports(rounds: int) -> Iterator[Row]:
    statements = {
        "package": "import discreet",
        "estimator": "from discreet import DPLogisticRegression",
        "peer": "import sklearn.linear_model",
    }
    taken: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(rounds):
        for name, statement in statements.items():
            taken[name].append(float(_fresh(_IMPORT.format(statement=statement))))
    peer = min(taken["peer"])
    for name, goal in (("package", at_most(0.3)), ("estimator", at_most(1.15))):
        spread = max(statistics.median(taken[which]) / min(taken[which]) for which in (name, "peer"))
        title = f"{statements[name]}, against {statements['peer']}"
        yield Row(title, "ms", 1e3 * min(taken[name]), 1e3 * peer, min(taken[name]) / peer, goal, spread)


def commands(rounds: int) -> Iterator[Row]:
    """What the command line takes, its whole process, against one that imports scikit-learn's linear models."""
    statement = "import sys; from discreet.cli import main; sys.argv = ['discreet', {word!r}]; main()"
    codes = {"discreet --help": statement.format(word="--help"), "discreet version": statement.format(word="version")}
    peer = "import sklearn.linear_model"
    taken: dict[str, list[float]] = {name: [] for name in (*codes, peer)}
    for _ in range(rounds):
        for name, code in {**codes, peer: peer}.items():
            taken[name].append(_cpu_of(code))
    for name in codes:
        spread = max(statistics.median(taken[which]) / min(taken[which]) for which in (name, peer))
        figures = 1e3 * min(taken[name]), 1e3 * min(taken[peer])
        yield Row(f"{name}, against {peer}", "ms", *figures, figures[0] / figures[1], at_most(0.5), spread)


def _cpu_of(code: str) -> float:
    """CPU time of a whole process."""
    before = os.times()
    _fresh(code)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def first_fits(rounds: int) -> Iterator[Row]:
    """Both from the same new cache: the first process fills it, the others must find everything there."""
    _fresh("from discreet import DPLogisticRegression")  # writes bytecode
    with tempfile.TemporaryDirectory() as folder:
        cache = {"NUMBA_CACHE_DIR": folder} if size(1, 0) else {}
        cold: dict[str, Any] = json.loads(_fresh(_FIRST_FIT, **cache))
        warm = [json.loads(_fresh(_FIRST_FIT, **cache)) for _ in range(rounds)]
    best = min(warm, key=lambda one: float(one["seconds"]))
    spread = statistics.median(one["seconds"] for one in warm) / best["seconds"]
    note = f"of which imports {best['imported']:.2f} s; CPU time {min(one['cpu'] for one in warm):.2f} s"
    yield Row(
        "first fit, n=1000, p=10, full cache",
        "s",
        best["seconds"],
        goal=at_most(1.5, absolute=True),
        spread=spread,
        note=note,
    )
    again = max((one["compiled"] for one in warm), key=len)
    yield Row("functions compiled, full cache", "", len(again), goal=at_most(0, absolute=True), note=", ".join(again))
    goal, note = at_most(5.0, absolute=True), f"{cold['seconds']:.2f} s by the clock; one process"
    yield Row("first fit, n=1000, p=10, empty cache, CPU time", "s", cold["cpu"], goal=goal, note=note)
    goal = at_most(30, absolute=True)
    yield Row("functions compiled, empty cache", "", len(cold["compiled"]), goal=goal)
