"""``discreet audit surface``: does anything that can be observed from outside depend on one record?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.audit_options import AsJson, counted
from discreet.cli.errors import NO, Refused

if TYPE_CHECKING:
    from discreet.audit.surface import Surface


def surface(
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
    as_json: AsJson = False,
) -> None:
    """Compare everything observable between neighbors with hostile cells, at every entry, in every container.

    Two tables differ in one record, which holds NaN, a text of 140,000 characters, bytes that are no text, an object
    that raises or warns when it is asked, and so on. Every function and command that takes a table is run on both,
    with the mechanisms' answers frozen. Then texts, exit codes, warnings, errors, files, charges and their order must
    be the same, and no value of the record may appear in any of them.

    - `discreet audit surface --cases 2000`: a look, in a minute

    - `discreet audit surface`: everything, in some minutes

    - `discreet audit surface --entry tune --container CSV`

    It cannot see time and memory. Predictions and scores of rows that are declared public show them, and are left out.
    """
    entries, containers, values = _chosen(entry, container, value)
    from discreet.audit.surface import surface as audit_surface
    from discreet.audit.surface.harness import count

    total = count(entries, containers, values)
    if not total:
        raise Refused("no case is left: these values do not occur at these entries and in these containers")
    with counted("Comparing neighbors", cases or total) as done:
        found = audit_surface(entries, containers, values, n_cases=cases, seed=seed, progress=done)
    typer.echo(found.to_json()) if as_json else _print(found)
    if found.refuted:
        raise typer.Exit(NO)


def _chosen(entry: list[str] | None, container: list[str] | None, value: list[str] | None) -> tuple[Any, Any, Any]:
    try:
        from discreet.audit.surface.containers import every_container
        from discreet.audit.surface.entries import python_entries
        from discreet.audit.surface.values import VALUES
        from discreet.cli.surface_entries import command_entries

        tables = every_container()
    except ModuleNotFoundError as error:
        raise Refused(f"{error.name} is not installed: pip install 'discreet[tables]'") from None
    every = (*python_entries(), *command_entries())
    return _named("--entry", entry, every), _named("--container", container, tables), _named("--value", value, VALUES)


def _named(option: str, parts: list[str] | None, things: Sequence[Any]) -> list[Any]:
    """Those whose names contain one of these."""
    found = [one for one in things if not parts or any(part.lower() in one.name.lower() for part in parts)]
    if not found:
        raise Refused(f"{option} must be a part of one of: {', '.join(one.name for one in things)}")
    return found


def _print(found: "Surface") -> None:
    from rich.table import Table

    from discreet.cli.console import Console

    console = Console(markup=False, highlight=False)
    table = Table("entry", "cases", "served", "different", title_justify="left", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, *numbers in found.by_entry:
        table.add_row(name, *(f"{number:,}" for number in numbers))
    console.print(table)
    bad = sum(bool(outcome.differences) for outcome in found.outcomes)
    console.print(
        f"\n{found.verdict}: {len(found.outcomes):,} cases of {found.tried:,} combinations, {bad:,} with a difference, "
        f"in {found.seconds:.0f} s",
        soft_wrap=True,
    )
    for kind in found.kinds:
        console.print(f"\n{ascii(str(kind.smallest))[1:-1][:600]}", soft_wrap=True)
        console.print(
            f"  in {kind.count} case(s), {len(kind.containers)} container(s), {len(kind.values)} value(s)",
            soft_wrap=True,
        )
    if not found.refuted:
        console.print("Synthetic data, without statistics. This is no proof: an audit finds what it tries.")
