"""What the build of the documentation adds to Markdown: formulas as MathML, and the commands from their own help.

Both need no network and no script in the reader's browser.
"""

import html
import re
from typing import Any

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
    return re.sub(r"\A# .*\n", "", text)
