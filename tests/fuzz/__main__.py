"""``python -m tests.fuzz``: do calls with hostile parameters end in a release, or in an error before the charge?"""

from typing import Annotated

import typer

from discreet.cli.audit import counted
from discreet.cli.terminal import NO
from tests.fuzz.calls import drawn, fuzz

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="markdown")


@app.command()
def main(
    count: Annotated[
        int | None, typer.Option("--calls", "-n", min=1, help="Calls, drawn by lot. Default: all, once.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the lot.")] = 0,
    pairs: Annotated[bool, typer.Option("--pairs", help="Also two hostile parameters at once.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="A part of a name, such as Bounds; repeatable.")] = None,
) -> None:
    """Call every public constructor, fit and function with wrong types and numbers in place of its parameters.

    Texts, lists, arrays, None, NaN, infinities, 10^400, truth values, dates and so on. Calls are made in other
    processes, which may crash, and are charged to a ledger. Failures are errors of other libraries, signals, calls that
    do not end, and charges without a release that the error does not report.

    - `python -m tests.fuzz --calls 2000`: a look, in a minute

    - `python -m tests.fuzz`: every parameter with every value

    - `python -m tests.fuzz --pairs --calls 50000 --seed 1`
    """
    chosen = drawn(count, seed, pairs=pairs, only=only or ())
    with counted("Calling", len(chosen)) as done:
        found = fuzz(chosen, progress=done)
    typer.echo(str(found))
    for outcome in found.failures:
        typer.echo(f"{outcome.kind}: {outcome.case}: {outcome.text}")
    if found.failures:
        raise typer.Exit(NO)


if __name__ == "__main__":
    app(prog_name="python -m tests.fuzz")
