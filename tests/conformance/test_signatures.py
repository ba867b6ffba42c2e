"""Losses, penalties and solvers say what they take: no ``Any`` in a signature, no question about a class."""

import ast
from pathlib import Path

import discreet

SOURCE = Path(discreet.__file__).parent


def names_in(node: ast.AST | None) -> set[str]:
    return set() if node is None else {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def test_nobody_asks_which_loss_or_penalty_it_is():
    own = {"losses", "penalties"}
    classes = {
        node.name
        for folder in own
        for path in (SOURCE / folder).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    asked = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] in own:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked += [f"{path.name}:{node.lineno}"] if names_in(node.args[1]) & classes else []
    assert asked == []
