"""``python -m benchmarks audits``: what ``discreet audit table --json`` found, into the documentation."""

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.pages.audits import markdown
from benchmarks.pages.generated import rewrite


def audits(
    found: Annotated[Path, typer.Argument(help="What `discreet audit table --json` printed.")],
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose generated table is replaced.")] = None,
) -> None:
    """The audit table for the documentation, from a file that `discreet audit table --json` wrote."""
    text = markdown(json.loads(found.read_text(encoding="utf-8")))
    rewrite(page, text, "audits", shown=[])
    typer.echo(text)
