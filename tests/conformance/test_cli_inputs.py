"""Tables reach commands through one module, ``cli/options.py``, which opens containers and reads no row."""

import ast
from pathlib import Path

import discreet

CLI = Path(discreet.__file__).parent / "cli"
READERS = {
    "csv",
    "pandas",
    "polars",
    "pyarrow",
    *(
        f"discreet.curator.{name}"
        for name in ("open_table", "source_of", "FrameSource", "DeclaredSource", "Keeping", "Source")
    ),
}
CALLS = {"load", "loadtxt", "genfromtxt", "fromfile", "memmap", "read_csv", "read_parquet", "read_table", "open_csv"}
ALLOWED = {
    ("options.py", "discreet.curator.source_of"): "opens containers",
    ("fit.py", "discreet.curator.source_of"): "opens containers as options.py does, one hop fewer on a record's way",
    ("options.py", "discreet.curator.Source"): "the type of what it opens",
    ("fit.py", "discreet.curator.DeclaredSource"): "a table that is only planned",
    ("forecast.py", "discreet.curator.DeclaredSource"): "a table that is only planned",
    ("model.py", "discreet.curator.Keeping"): "keeps columns of what options.py opened",
    ("model.py", "pyarrow"): "writes predictions",
    ("model.py", "pyarrow.csv"): "writes predictions",
    ("model.py", "pyarrow.parquet"): "writes predictions",
}


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names if node.module == "discreet.curator")


def called(tree):
    """Calls of numpy's and other libraries' readers: ``np.load``, not ``Schema.load``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id in ("np", "numpy", "pd", "pa", "pq", "pl"):
                yield node.func.attr


def test_no_command_has_a_reader_of_its_own():
    for path in sorted(CLI.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        roots = {name for name in imported(tree) if name in READERS or name.split(".")[0] in READERS}
        assert not {name for name in roots if (path.name, name) not in ALLOWED}, path.name
        assert {name for file, name in ALLOWED if file == path.name} <= roots, "an exception that nobody needs any more"
        assert not CALLS & set(called(tree)), path.name


def test_the_rule_sees_a_reader():
    """The reader that ``tune`` once had."""
    tree = ast.parse("import csv\nimport numpy as np\ndef f(path):\n    return np.load(path)")
    assert "csv" in set(imported(tree))
    assert CALLS & set(called(tree))
