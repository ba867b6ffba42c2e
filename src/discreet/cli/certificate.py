"""``discreet certificate``: a certificate for others to read."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.errors import Refused
from discreet.cli.outputs import write_new

certificate = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


class Sector(StrEnum):
    """Sectors that the registry knows."""

    TECHNOLOGY = "Technology"
    HEALTHCARE = "Healthcare"
    EDUCATION = "Education"
    GOVERNMENT = "Government"
    ENERGY = "Energy"
    FINANCE = "Finance"


@certificate.callback()
def about() -> None:
    """Write what a certificate says in the form that others ask for. `discreet inspect` shows it."""


@certificate.command()
def registry(
    model: Annotated[Path, typer.Argument(help="A model's folder or file, its certificate (JSON) or report (HTML).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new file (YAML); - prints it.")] = Path("-"),
    name: Annotated[str | None, typer.Option(help="The name of the data product.")] = None,
    curator: Annotated[list[str] | None, typer.Option(help="Who publishes it; repeatable.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is.")] = None,
    intended_use: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    region: Annotated[str | None, typer.Option(help="Which region the data describe.")] = None,
    sector: Annotated[Sector | None, typer.Option(help="The domain.")] = None,
    published: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Default: when it was fitted.")] = None,
    author: Annotated[list[str] | None, typer.Option(help="Who wrote the entry; repeatable.")] = None,
) -> None:
    """Write an entry for OpenDP's registry of deployments of differential privacy, as a draft.

    What the certificate knows is filled in: epsilon, delta, what a neighbor is, which quantities are public, mechanisms
    and accounting. What it does not know, and you did not say, begins with TODO. Nothing is sent anywhere.

    Example: `discreet certificate registry model --name "Risk of return" --curator "City Hospital" --out entry.yaml`
    """
    from discreet.cli.inputs import read
    from discreet.report.registry_entry import OPEN, Product, registry_entry, to_yaml

    if published is not None and not _is_date(published):
        raise Refused("--published must be a date: YYYY-MM-DD")
    found = read(model).certificate
    if not found.is_private:
        raise Refused(f"there is no guarantee to register: {found.stamp}")
    product = Product(name, tuple(curator or ()), description, intended_use, region, sector and str(sector), published,
                      tuple(author or ()))  # fmt: skip
    try:
        text = to_yaml(registry_entry(found, product)) + "\n"
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError):  # a file that somebody made up
        raise Refused("the certificate cannot be read: a part of it has the wrong form") from None
    if str(out) == "-":
        typer.echo(text, nl=False)
        return
    write_new(out, text)
    typer.echo(f"{out}: written; {text.count(OPEN)} texts begin with TODO", err=True)


def _is_date(text: str) -> bool:
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
