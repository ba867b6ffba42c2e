"""Processes in which mutants are tested: forked from one that has already imported what they all need.

``python -m tests.promises.mutants.workers`` reads one JSON line for each run (package, nodes, report, timeout) and
answers with a line, its exit code. Importing takes longer than most killers run, and nothing of discreet is among the
imports.
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.promises.mutants.mutant import ROOT

NEEDED = (
    *("hypothesis", "numba.extending", "numpy", "pytest", "scipy.sparse", "scipy.special", "scipy.stats"),
    *("sklearn.base", "sklearn.utils.metaestimators", "sklearn.utils.validation", "sqlite3"),
)
WRONG_PACKAGE = 97
"""The exit code of a run that imported another discreet than the one it was given."""


@dataclass(frozen=True)
class Failure:
    """A test that failed: its node's name, the first line of what it says, and all of it."""

    test: str
    message: str
    text: str


@dataclass(frozen=True)
class Run:
    """How a run of pytest ended."""

    code: int
    failures: tuple[Failure, ...]
    errors: tuple[Failure, ...]
    output: str


class Workers:
    """A process that forks."""

    def __init__(self) -> None:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_", "DISCREET"))
        }
        alone = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.promises.mutants.workers"],
            cwd=ROOT,
            env={**kept, **alone, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, package: Path, nodes: list[str], report: Path, *, timeout: float = 600.0) -> Run:
        """Run pytest on ``nodes`` in a process that imports discreet from ``package``; ``report`` is a directory."""
        asked = {"package": str(package), "nodes": nodes, "report": str(report), "timeout": timeout}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        code = int(self._process.stdout.readline())
        found = {kind: tuple(_read(report / "report.xml", kind)) for kind in ("failure", "error")}
        return Run(code, found["failure"], found["error"], (report / "output").read_text(errors="replace"))


def _read(path: Path, kind: str) -> list[Failure]:
    if not path.exists():
        return []
    cases = ElementTree.parse(path).iter("testcase")
    found = [(case, problem) for case in cases for problem in case.findall(kind)]
    return [Failure(case.get("name", ""), problem.get("message", ""), problem.text or "") for case, problem in found]


# --- inside -----------------------------------------------------------------------------------------


def _serve() -> None:
    for name in NEEDED:
        importlib.import_module(name)
    import numba
    from hypothesis import Phase, settings

    numba.njit(lambda x: x + 1.0)(1.0)  # the compiler wakes up once for all
    settings.register_profile("as found", phases=[Phase.explicit, Phase.generate])  # the first counterexample will do
    settings.load_profile("as found")
    gc.freeze()  # or each child would go through all that was imported, more than once
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_run(**asked))
        print(_waited(child, asked["timeout"]), flush=True)


def _waited(child: int, timeout: float) -> int:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(package: str, nodes: list[str], report: str, timeout: float) -> Any:
    os.setpgid(0, 0)
    with open(os.path.join(report, "output"), "wb") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ["PYTHONPATH"] = os.pathsep.join([package, str(ROOT)])  # for processes that tests start
    sys.path.insert(0, package)
    sys.dont_write_bytecode = True
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-o", "pythonpath="]
    temporary = [f"--basetemp={report}/tmp", f"--junitxml={report}/report.xml"]
    code = pytest.main([*options, *temporary, f"--rootdir={ROOT}", *nodes])
    sys.stdout.flush()
    imported = getattr(sys.modules.get("discreet"), "__file__", None) or ""
    return int(code) if imported.startswith(package + os.sep) else WRONG_PACKAGE


if __name__ == "__main__":
    _serve()
