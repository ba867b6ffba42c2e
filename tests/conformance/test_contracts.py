"""Import contracts: the package keeps them, and a planted import of the curator's inside breaks them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACT = "Others import discreet.curator, nothing inside it"

PLANTED = {
    "models": "from discreet.curator.kernels.gradients import gradient_over_tiles\n",
    "solvers": "from discreet.curator import session\n",
    "cli": "def late():\n    from discreet.curator.records import admission\n\n    return admission\n",
    "report": "import discreet.curator.lattice.noise\n",
    "audit": "from discreet.curator.lattice.entropy import use_entropy\n",
    "testing": "from discreet.curator.observer import observe\n",
}
"""Ways to import the inside, each in a package that may not."""


def linted(folder, planted=()):
    """Run the contracts on a copy of the package with modules planted; return the exit code and what was printed."""
    shutil.copytree(ROOT / "src" / "discreet", folder / "discreet", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in planted:
        (folder / "discreet" / package / "planted.py").write_text(PLANTED[package], encoding="utf-8")
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    return linted(tmp_path_factory.mktemp("planted"), PLANTED)


def test_the_package_keeps_its_contracts(tmp_path):
    code, text = linted(tmp_path)
    assert code == 0, text
    assert f"{CONTRACT} KEPT" in text


@pytest.mark.parametrize("package", PLANTED)
def test_an_import_of_the_inside_is_refused(broken, package):
    code, text = broken
    assert code == 1
    assert f"{CONTRACT} BROKEN" in text
    assert f"discreet.{package}.planted -> discreet.curator." in text
