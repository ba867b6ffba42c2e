"""Import contracts: the package keeps them, and a planted import of the curator's inside breaks them."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACT = "Others import discreet.curator, nothing inside it"

PLANTED = {
    "models": "from discreet.curator.kernels.gradients import gradient_over_tiles\n",
    "solvers": "from discreet.curator import session\n",
    "cli": "def late():\n    from discreet.curator.records import admission\n\n    return admission\n",
    "report": "import discreet.curator.noise\n",
    "audit": "from discreet.curator.noise import use_entropy\n",
    "testing": "from discreet.curator.session import observe\n",
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


def test_an_import_of_the_inside_is_refused(tmp_path):
    code, text = linted(tmp_path, PLANTED)
    assert code == 1
    assert f"{CONTRACT} BROKEN" in text
    assert all(f"discreet.{package}.planted -> discreet.curator." in text for package in PLANTED)


# --- imports for type checkers --------------------------------------------------------------------------

UPWARD = {
    ("inference/intervals.py", "discreet.models.base"): "the type of the model whose intervals they are",
    ("inference/summary.py", "discreet.models.base"): "the type of the model whose effects they are",
    ("models/table_model.py", "discreet.report.model_report"): "the type of the report that it makes when asked",
}


def layers():
    """Return the position of every package and top module, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {name.strip(): at for at, row in enumerate(rows) for name in re.split(r"[|:]", row)}


def imports_for_type_checkers(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            inside = [part for part in ast.walk(node) if isinstance(part, ast.ImportFrom)]
            yield from (part.module for part in inside if part.module and part.module.startswith("discreet."))


def test_imports_for_type_checkers_point_down_too():
    """The contracts do not see them: one that points up would hide a cycle of packages."""
    source, rank = ROOT / "src" / "discreet", layers()
    upward = {
        (path.relative_to(source).as_posix(), module)
        for path in sorted(source.rglob("*.py"))
        if path.name != "__init__.py"  # lists of public names, which a package may offer from above it
        for module in imports_for_type_checkers(path)
        if rank[module.split(".")[1]] < rank.get(path.relative_to(source).parts[0].removesuffix(".py"), -1)
    }
    assert upward <= set(UPWARD)
