"""``discreet.curator`` offers what others need, and loads it when it is used."""

import ast
import subprocess
import sys
from pathlib import Path

from discreet import curator

FOR_SOLVERS = {
    *("Curator", "Problem", "Recoding", "Edges", "Magnitudes", "Shells", "ONE_ROW", "STEPS_NEED_N"),
    *("LEAST_ACCEPTANCE", "expected_acceptance"),
}


def test_solvers_take_noisy_answers_and_public_facts_only():
    """The facade also opens data and sets randomness, for models, audits and tests: not for solvers."""
    taken = set()
    for path in (Path(curator.__file__).parents[1] / "solvers").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "discreet.curator":
                taken |= {alias.name for alias in node.names}
    assert {"Curator", "Recoding"} <= taken <= FOR_SOLVERS


def test_the_facade_itself_loads_nothing():
    code = "import sys, discreet.curator; print([m for m in ('numpy', 'numba', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
