"""Imports for type checkers, which the import contracts of ``make lint`` do not see."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

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
