"""``python -m tests.promises.surface``: does anything that can be observed from outside depend on one record?"""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from discreet.cli.audit import counted
from discreet.cli.terminal import NO, UNSERVED, rich_console
from tests.promises.surface.audit import Surface, surface
from tests.promises.surface.commands import command_entries
from tests.promises.surface.containers import every_container
from tests.promises.surface.entries import python_entries
from tests.promises.surface.harness import count
from tests.promises.surface.services import service_entries
from tests.promises.surface.values import VALUES

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="markdown")


@app.command()
def main(
    entry: Annotated[
        list[str] | None, typer.Option("--entry", help="A part of an entry's name, such as tune; repeatable.")
    ] = None,
    container: Annotated[
        list[str] | None, typer.Option("--container", help="A part of a container's name, such as CSV; repeatable.")
    ] = None,
    value: Annotated[
        list[str] | None, typer.Option("--value", help="A part of a value's name, such as NaN; repeatable.")
    ] = None,
    cases: Annotated[
        int | None, typer.Option("--cases", "-n", min=1, help="Combinations, drawn by lot. Default: all, once.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the lot, the places and the neighbors.")] = 0,
) -> None:
    """Compare everything observable between neighbors with hostile cells, at every entry, in every container.

    Two tables differ in one record, which holds NaN, a text of 140,000 characters, bytes that are no text, an object
    that raises or warns when it is asked, and so on. Every function and command that takes a table is run on both,
    with the mechanisms' answers frozen. Then texts, exit codes, warnings, errors, files, charges and their order must
    be the same, and no value of the record may appear in any of them.

    - `python -m tests.promises.surface --cases 2000`: a look, in a minute

    - `python -m tests.promises.surface`: everything, in some minutes

    - `python -m tests.promises.surface --entry tune --container CSV`

    It cannot see time and memory. Predictions and scores of rows that are declared public show them, and are left out.
    """
    entries = _named("--entry", entry, (*python_entries(), *command_entries(), *service_entries()))
    containers, values = _named("--container", container, every_container()), _named("--value", value, VALUES)
    total = count(entries, containers, values)
    if not total:
        raise _refused("no case is left: these values do not occur at these entries and in these containers")
    with counted("Comparing neighbors", cases or total) as done:
        found = surface(entries, containers, values, n_cases=cases, seed=seed, progress=done)
    _print(found)
    if found.refuted:
        raise typer.Exit(NO)


def _named(option: str, parts: list[str] | None, things: Sequence[Any]) -> list[Any]:
    """Those whose names contain one of these."""
    found = [one for one in things if not parts or any(part.lower() in one.name.lower() for part in parts)]
    if not found:
        raise _refused(f"{option} must be a part of one of: {', '.join(one.name for one in things)}")
    return found


def _refused(message: str) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(UNSERVED)


def _print(found: Surface) -> None:
    console = rich_console()
    table = Table("entry", "cases", "served", "different", title_justify="left", box=None)
    for name, *numbers in found.by_entry:
        table.add_row(name, *(f"{number:,}" for number in numbers))
    console.print(table)
    bad = sum(bool(outcome.differences) for outcome in found.outcomes)
    console.print(
        f"\n{'' if found.refuted else 'NOT '}REFUTED: {len(found.outcomes):,} cases of {found.tried:,} combinations, "
        f"{bad:,} with a difference, in {found.seconds:.0f} s",
        soft_wrap=True,
    )
    for difference, number in found.kinds:
        console.print(f"\n{ascii(str(difference))[1:-1][:600]}\n  {number} of this kind", soft_wrap=True)


if __name__ == "__main__":
    app(prog_name="python -m tests.promises.surface")
