"""The commands, put together. Nothing heavy is imported until a command runs."""

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

import typer

from discreet.cli.audit import audit
from discreet.cli.budget import budget
from discreet.cli.certificate import certificate
from discreet.cli.demo import demo
from discreet.cli.effects import effects
from discreet.cli.errors import OneLineErrors
from discreet.cli.export import export
from discreet.cli.fit import fit
from discreet.cli.forecast import forecast
from discreet.cli.inspect import inspect
from discreet.cli.predict import predict
from discreet.cli.price import price
from discreet.cli.report import report
from discreet.cli.schema import schema
from discreet.cli.score import score
from discreet.cli.selftest import selftest
from discreet.cli.tune import tune
from discreet.cli.verify import verify
from discreet.cli.version import version

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
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version, and exit.")
    ] = False,
) -> None:
    """Private linear models, and what they give away.

    From a table to a private model:

    - `discreet schema new table.csv`, then fill in what is publicly known, and `discreet schema check schema.toml`

    - `discreet fit table.csv --schema schema.toml --epsilon 1 --out model`, then look at model/report.html

    - `discreet predict model new.csv`

    `discreet demo` shows it on synthetic data.

    Exit codes:

    - 0: done

    - 1: the answer is no (a certificate does not hold, a self-test fails, a claim is refuted)

    - 2: the request cannot be served (options, files)

    - 3: an error of discreet's own

    - 130: interrupted; 143: asked to end
    """


app.command()(demo)
app.add_typer(schema, name="schema")
app.command()(fit)
app.command()(predict)
app.command()(score)
app.command()(report)
app.command()(inspect)
app.command()(effects)
app.command()(verify)
app.command()(export)
app.add_typer(certificate, name="certificate")
app.command()(price)
app.command()(forecast)
app.command()(tune)
app.command()(selftest)
app.command()(version)
app.add_typer(audit, name="audit")
app.add_typer(budget, name="budget")
if all(map(find_spec, ("starlette", "uvicorn", "jinja2"))):  # the extra discreet[serve]
    app.add_typer(import_module("discreet.serve.commands").serve, name="serve")
