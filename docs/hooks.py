"""What the build of the documentation adds to Markdown: formulas as MathML, commands and parameters from the program.

Nothing here needs a network, or a script in the reader's browser.
"""

import html
import inspect
import re
from importlib import import_module
from typing import Any

import griffe
from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
COMMANDS = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the reference of all commands where the page asks for it."""
    return markdown.replace(COMMANDS, commands()) if COMMANDS in markdown else markdown


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


class EstimatorDocstrings(griffe.Extension):
    """Docstrings of estimators as they are when imported: the parameters that all of them share are filled in then."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstring that is in the source."""
        if cls.docstring is not None and re.match(r"discreet\.models\.\w+\.DP", cls.path):
            module, name = cls.path.rsplit(".", 1)
            cls.docstring.value = inspect.getdoc(getattr(import_module(module), name)) or cls.docstring.value
