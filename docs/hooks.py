"""What the build of the documentation adds to Markdown: formulas as MathML; commands, parameters, rules of the program.

Nothing here needs a network, or a script in the reader's browser.
"""

import ast
import html
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
COMMANDS, FORMS, SETTINGS = "<!-- commands -->", "<!-- forms -->", "<!-- settings -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the reference of all commands, and the rules of the default, where the page asks for them."""
    for mark, written in ((COMMANDS, commands), (FORMS, forms), (SETTINGS, settings)):
        markdown = markdown.replace(mark, written()) if mark in markdown else markdown
    return markdown


def on_page_content(content: str, **_: Any) -> str:
    """Turn the TeX of a page into MathML, which browsers show by themselves."""
    return FORMULA.sub(lambda m: convert(html.unescape(m[3]), display="block" if m[2] == "[" else "inline"), content)


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
    facts = next(node for node in _rules() if isinstance(node, ast.ClassDef) and node.name == "Facts")
    words = [node for node in facts.body if isinstance(node, ast.FunctionDef)]
    lines = (f"| {_rule(holds)} | `{_text(name)}` | {_text(reason)} |" for name, holds, reason, *_ in _lines("FORMS"))
    return "\n".join(
        [
            "| the first that holds | is run | reason |\n|---|---|---|",
            *lines,
            "\n| word | means |\n|---|---|",
            *(f"| `{word.name}` | {ast.get_docstring(word)} |" for word in words),
            *_numbers(),
        ]
    )


def settings() -> str:
    """Return every setting of a recipe with its rules and its reason, as Markdown."""
    head = "| | for classes | for numbers | reason |\n|---|---|---|---|"
    rows = [
        f"| {kind} `{_text(name)}` | {_rule(classes)} | {_rule(numbers)} | {_text(reason)} |"
        for kind, table in (("field", "SETTINGS"), ("share", "SHARES"))
        for name, classes, numbers, reason in _lines(table)
    ]
    functions = [node for node in _rules() if isinstance(node, ast.FunctionDef) and f"`{node.name}(" in "".join(rows)]
    told = [f"| `{ast.unparse(one).splitlines()[0][4:-1]}` | {ast.get_docstring(one)} |" for one in functions]
    return "\n".join([head, *rows, "\n| function | |\n|---|---|", *told])


def _rules() -> list[ast.stmt]:
    """Return the source of the table, as a tree."""
    return ast.parse(Path(import_module("discreet.default.table").__file__ or "").read_text(encoding="utf-8")).body


def _lines(name: str) -> Iterator[list[ast.expr]]:
    """Return what is given to each line of a table."""
    for node in _rules():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name and isinstance(node.value, ast.Tuple):
            yield from (line.args for line in node.value.elts if isinstance(line, ast.Call))


def _text(node: ast.expr) -> str:
    return str(ast.literal_eval(node))


def _rule(node: ast.expr) -> str:
    """Return a rule as it is written, without the name of what it is a function of."""
    if not isinstance(node, ast.Lambda):
        return f"`{ast.unparse(node)}`"
    fact, body = node.args.args[0].arg, ast.unparse(node.body)
    plain = re.sub(rf"\b{fact}\.|\({fact}\)|(?<=\(){fact}, ", "", body)
    return "otherwise" if body == "True" else f"`{plain}`"


def _numbers() -> Iterator[str]:
    """Return the table's own numbers, each with the text below it, as lines of Markdown."""
    nodes, found = _rules(), []
    for node in nodes:
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call):
            found.append(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and found:
            kept = [one for one in found if "Setting(" not in ast.unparse(one)]
            yield f"| {', '.join(f'`{ast.unparse(one)}`' for one in kept)} | {_text(node.value)} |"
            found = []
        else:
            found = []


class EstimatorDocstrings(griffe.Extension):
    """Docstrings of estimators as they are when imported: the parameters that all of them share are filled in then."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstring that is in the source."""
        if cls.docstring is not None and re.match(r"discreet\.models\.\w+\.DP", cls.path):
            module, name = cls.path.rsplit(".", 1)
            cls.docstring.value = inspect.getdoc(getattr(import_module(module), name)) or cls.docstring.value
