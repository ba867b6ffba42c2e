"""Markdown extension: tables that are read from the program when a page is built.

``<!-- commands -->`` is the help of every command, ``<!-- forms -->`` and ``<!-- settings -->`` are the table of the
default with its reasons, ``<!-- names -->`` is that of solvers by name, and
``<!-- signal -->`` has the powers of the signal in both.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor


def commands() -> str:
    """Return the help of every command, as Markdown: a section per command."""
    import click
    import typer
    from typer.cli import get_docs_for_click

    from discreet.cli.app import app

    root = typer.main.get_command(app)
    text: str = get_docs_for_click(obj=root, ctx=click.Context(root, info_name="discreet"), name="discreet")
    return re.sub(r"^(#+) `(.*?)`", r"#\1 \2", re.sub(r"\A# .*?(?=^## )", "", text, flags=re.S | re.M), flags=re.M)


def forms() -> str:
    """Return what ``auto`` chooses and why, as Markdown: the lines of the table, and the words and numbers in them."""
    facts = [node for node in _source(SETTINGS) + _source(DEFAULT) if isinstance(node, ast.ClassDef)]
    words = {
        node.name: _line(node)
        for owner in facts
        if owner.name == "Facts"
        for node in owner.body
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    }
    lines = [_arguments(line, "name", "holds", "reason") for line in _lines(DEFAULT, "FORMS")]
    return "\n".join(
        [
            "| the first that holds | is run | reason |\n|---|---|---|",
            *(f"| {_rule(line['holds'])} | `{_text(line['name'])}` | {_text(line['reason'])} |" for line in lines),
            "\n| word | means |\n|---|---|",
            *(f"| `{word}` | {meaning} |" for word, meaning in words.items()),
            *_constants(),
        ]
    )


def settings() -> str:
    """Return every setting of a recipe with its rules and its reason, as Markdown."""
    return _settings(
        [("field", line) for line in _lines(DEFAULT, "SETTINGS")]
        + [("share", line) for line in _lines(DEFAULT, "SHARES")]
    )


def names() -> str:
    """Return the settings that a solver's name stands for, with rules and reasons, as Markdown."""
    return _settings([("", line) for line in _lines(SETTINGS, "SETTINGS")])


def signal() -> str:
    """Return the powers of the signal that rules are functions of, as Markdown."""
    powers = next(node for node in _source(SIGNAL) if isinstance(node, ast.ClassDef) and node.name == "Signal")
    words = [node for node in powers.body if isinstance(node, ast.FunctionDef) and "property" in ast.unparse(node)]
    return "\n".join(["| word | is |\n|---|---|", *(f"| `{word.name}` | {_line(word)} |" for word in words)])


def _settings(lines: list[tuple[str, ast.Call]]) -> str:
    rows, rules = [], ""
    for kind, line in lines:
        given = _arguments(line, "name", "rule", "numbers", "reason")
        classes, numbers = _rule(given["rule"]), _rule(given.get("numbers", given["rule"]))
        rows.append(f"| {kind} `{_text(given['name'])}` | {classes} | {numbers} | {_text(given['reason'])} |")
        rules += re.sub("that of `.*`", "", classes + numbers)
    sources = [node for node in _source(SETTINGS) + _source(DEFAULT) if isinstance(node, ast.FunctionDef)]
    used = {
        ast.unparse(node).splitlines()[0][4:-1]: _line(node)
        for node in sources
        if re.search(rf"\b{node.name}\b", rules)
    }
    head = "| | for classes | for numbers | reason |\n|---|---|---|---|"
    functions = [f"| `{function}` | {meaning} |" for function, meaning in used.items() if meaning]
    return "\n".join([head, *rows, "\n| function | |\n|---|---|", *functions])


TABLES: dict[str, Callable[[], str]] = {
    "<!-- commands -->": commands,
    "<!-- forms -->": forms,
    "<!-- settings -->": settings,
    "<!-- names -->": names,
    "<!-- signal -->": signal,
}


DEFAULT, SETTINGS, SIGNAL = "discreet.default.table", "discreet.solvers.settings", "discreet.solvers.signal"


@cache
def _source(module: str) -> list[ast.stmt]:
    """Return the source of a table, as a tree."""
    return ast.parse(Path(import_module(module).__file__ or "").read_text(encoding="utf-8")).body


def _lines(module: str, name: str) -> list[ast.Call]:
    """Return the lines of a table."""
    table = next(
        node.value for node in _source(module) if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )
    rows = table.generators[0].iter if isinstance(table, ast.DictComp) else table
    return [line for line in rows.elts if isinstance(line, ast.Call)] if isinstance(rows, ast.Tuple) else []


def _arguments(line: ast.Call, *names: str) -> dict[str, ast.expr]:
    """Return what is given to a line, by name."""
    given = dict(zip(names, line.args, strict=False))
    return given | {keyword.arg: keyword.value for keyword in line.keywords if keyword.arg is not None}


def _text(node: ast.expr) -> str:
    return " ".join(str(ast.literal_eval(node)).split())  # a cell is one line


def _line(node: ast.FunctionDef) -> str:
    """Return a docstring as one line, for a cell."""
    return " ".join((ast.get_docstring(node) or "").split())


def _rule(node: ast.expr) -> str:
    """Return a rule as it is written, with numbers for names of defaults, without what it is a function of."""
    if isinstance(node, ast.Lambda):
        fact, body = node.args.args[0].arg, ast.unparse(node.body)
        plain = re.sub(rf"\b{fact}\.|\({fact}\)|(?<=\(){fact}, |, {fact}(?=\))", "", body)
        plain = re.sub(r"\b(?:Recipe|Shares)\.\w+", lambda m: str(_value(m[0])), plain)
        return "otherwise" if body == "True" else f"`{plain}`"
    other = re.search(r"SETTINGS\['(.*?)'\]", ast.unparse(node))
    return f"that of `{other[1]}`" if other else f"`{_value(ast.unparse(node))}`"


def _value(expression: str) -> object:
    """Return a constant of the default's table, or of the settings of names."""
    return eval(expression, {**vars(import_module(SETTINGS)), **vars(import_module(DEFAULT))})


def _constants() -> Iterator[str]:
    """Return the table's named numbers, each with the text below it, as lines of Markdown."""
    assignments: list[ast.Assign] = []
    for node in _source(DEFAULT):
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call):
            assignments.append(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and assignments:
            numbers = [assigned for assigned in assignments if "Setting(" not in ast.unparse(assigned)]
            yield f"| {', '.join(f'`{ast.unparse(assigned)}`' for assigned in numbers)} | {_text(node.value)} |"
            assignments = []
        else:
            assignments = []


class Tables(Preprocessor):
    """Put a table where the page names it, on a line of its own."""

    def run(self, lines: list[str]) -> list[str]:
        """Return the lines of the page with the tables in place of their names."""
        return [row for line in lines for row in (TABLES[line]().splitlines() if line in TABLES else (line,))]


class ProgramExtension(Extension):
    """Register the tables before Markdown is parsed."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the preprocessor."""
        md.preprocessors.register(Tables(md), "program", 1000)


def makeExtension(**options: Any) -> ProgramExtension:
    """Return the extension: Python-Markdown looks for this name."""
    return ProgramExtension(**options)
