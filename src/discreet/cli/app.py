"""The commands, put together. Nothing heavy is imported until a command runs."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

import typer

from discreet.cli.audit import audit
from discreet.cli.budget import budget
from discreet.cli.certificate import certificate, verify
from discreet.cli.fit import fit, tune
from discreet.cli.forecast import forecast, price
from discreet.cli.model import effects, export, inspect, predict, report, score
from discreet.cli.schema import schema
from discreet.cli.setup import demo, selftest, version
from discreet.cli.terminal import OneLineErrors

app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from discreet import __version__

        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def discreet(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train linear models with differential privacy, and state how much they can reveal.

    From a table to a private model:

    - `discreet schema new table.csv`, then fill in what is publicly known, and `discreet schema check schema.toml`

    - `discreet fit table.csv --schema schema.toml --epsilon 1 --out model`, then look at model/report.html

    - `discreet predict model new.csv`

    `discreet demo` runs all of it on synthetic data.

    Exit codes:

    - 0: done

    - 1: the answer is no (a certificate is not verified, a self-test fails, a claim is refuted)

    - 2: the command cannot be carried out (options, files)

    - 3: an internal error

    - 130: interrupted; 143: terminated
    """


PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Models": (demo, fit, predict, score, inspect, effects, report, export, tune),
    "Before a fit": (price, forecast),
    "Guarantees and budgets": (verify,),
    "Setup": (selftest, version),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(schema, name="schema", rich_help_panel="Models")
for group, name in ((certificate, "certificate"), (budget, "budget"), (audit, "audit")):
    app.add_typer(group, name=name, rich_help_panel="Guarantees and budgets")
if all(map(find_spec, ("starlette", "uvicorn", "jinja2"))):  # the extra discreet[serve]
    app.add_typer(import_module("discreet.serve.commands").serve, name="serve", rich_help_panel="Setup")
