"""No file and no function of the source is too long to be read at once, kernels included."""

import ast
from pathlib import Path

import pytest

import discreet

SRC = Path(discreet.__file__).parent
MODULES = sorted([*SRC.rglob("*.py"), *SRC.rglob("*.pyi")])
FILE = 600
"""A file is one subject: this is for what has become two."""
FUNCTION = 60
"""Lines from ``def`` to the last statement, without the docstring: a public one lists parameters and examples."""


def long_functions(text):
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            said = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            lines = node.end_lineno - node.lineno + 1 - (said.end_lineno - said.lineno + 1 if said else 0)
            found += [f"{node.name}: {lines} lines"] if lines > FUNCTION else []
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_files_and_functions_are_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= FILE
    assert long_functions(text) == []


def test_a_long_function_is_found():
    body = "    a = 1\n" * (FUNCTION - 1)
    described = '    """Do.\n\n    More.\n    """\n'
    assert long_functions(f"def short():\n{described}{body}") == []
    found = long_functions(f"class A:\n    x = 1\n\n\nasync def long():\n{described}    b = 2\n{body}")
    assert found == [f"long: {FUNCTION + 1} lines"]
