"""``discreet schema``: write down what is publicly known of a table, question by question if wanted, and check it."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import AsJson, echo_json, write_new
from discreet.cli.terminal import NO, Refused, escaped, number_of, rich_console
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.schema.schema import Schema


schema = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

SHOWN = 200
"""Columns of a schema that are listed; a file of thousands would take its time."""


@schema.callback()
def about() -> None:
    """Say what is publicly known of a table: the range of each number, the names of each category, the target.

    A schema is a TOML file that you write once, from a codebook, from physics, from law or policy. A private model
    needs it, because a range or a list of names that is read off the data gives people away. `discreet schema new`
    writes the file to fill in from the names of the columns, `discreet schema edit` asks question by question, and
    `discreet schema check` tells what is left.
    """


@schema.command()
def new(
    table: Annotated[
        list[Path] | None, typer.Argument(help="The table: files, a folder or a 'pattern*' of CSV or Parquet.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write it; - prints it.")] = Path("schema.toml"),
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict, if you know it yet.")
    ] = None,
    codebook: Annotated[
        Path | None,
        typer.Option(
            "--codebook",
            "-c",
            help="Fill in what this says: CSV, Frictionless Table Schema, JSON Schema or pandera (JSON, YAML).",
        ),
    ] = None,
) -> None:
    """Write a schema to fill in, from the names of the columns and, where there is one, a codebook.

    Of the table only names and storage types are read: the first line of a CSV file, the footer of a Parquet file. Both
    are public. From them the kind of each column is guessed, in a comment. What a codebook says is filled in: check
    that it was written from knowledge, and not from the data.

    - `discreet schema new patients.csv --target returned`

    - `discreet schema new patients.csv --codebook codebook.csv`, with the headings column, kind, min, max, values

    - `discreet schema new --codebook datapackage.json`, before there is a table
    """
    from discreet.cli.options import table_of
    from discreet.schema.cell_meaning import some
    from discreet.schema.codebooks import guess, read_codebook
    from discreet.schema.schema import skeleton

    if not table and codebook is None:
        raise Refused("name a table, or a --codebook that lists its columns")
    described = None if codebook is None else read_codebook(codebook)
    entries = {} if described is None else described.entries
    source = table_of(table) if table else None
    names = list(entries) if source is None else list(dict.fromkeys(source.names))
    if target is not None and target not in names:
        where = "codebook" if source is None else "table"
        raise Refused(f"--target: the {where} has no column {target!r}; it has {some(names)}")
    once = [name for name in names if source is not None and source.names.count(name) == 1]
    guesses = {name: guess(name, source.stored(name) if source is not None and name in once else ()) for name in names}
    text = skeleton(names, target, codebook=described, guesses=guesses)
    if str(out) == "-":
        typer.echo(text, nl=False)
        return
    write_new(out, text)
    filled = [name for name in names if name != target and name in entries and entries[name].declared]
    _say_what_is_left(out, len(names) - (target is not None) - len(filled), len(filled), target)
    strange = [name for name in entries if name not in names]
    if strange:
        typer.echo(f"Only in the codebook, and left out: {some(strange)}")
    typer.echo(f"Then: discreet schema check {out}{f' {table[0]}' if table else ''}; or: discreet schema edit {out}")


def _say_what_is_left(out: Path, left: int, filled: int, target: str | None) -> None:
    columns = number_of(left, "column") if left else "the target"
    typer.echo(f"{out}: {columns} to fill in, from what is publicly known:")
    if filled:
        typer.echo(f"  ({number_of(filled, 'column was', 'columns were')} filled in from the codebook: check them)")
    what = "the column to predict, with" if target is None else f"for {target},"
    typer.echo(f"  1. below [target]: {what} its classes or its range")
    if left:
        typer.echo("  2. in ignore: columns that are not used, such as row numbers and names")
        typer.echo("  3. in the block of each other column: one of its lines")


@schema.command()
def check(
    file: Annotated[Path, typer.Argument(help="The schema (TOML).")],
    table: Annotated[
        list[Path] | None, typer.Argument(help="The table that it is for: its names are compared, its values not read.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what is missing in a schema, and what it makes of each column.

    Exit code 0: a fit can begin. Exit code 1: something is missing, or does not match the table's column names.

    Example: `discreet schema check schema.toml patients.csv`, and then `discreet fit patients.csv --schema schema.toml`
    """
    from discreet.cli.options import table_of
    from discreet.schema.schema import Schema, misfits

    declared = Schema.load(file)
    source = table_of(table, declared) if table else None
    problems = declared.problems(None if source is None else source.names)
    if source is not None:
        unique = [name for name in declared.needed if source.names.count(name) == 1]
        problems += misfits(declared, source.stored, unique)
    if as_json:
        echo_json({"ready": not problems, "problems": problems, **_made(declared)})
    elif problems:
        for problem in problems:
            typer.echo(f"- {problem}")
        typer.echo(f"{file}: {number_of(len(problems), 'problem remains', 'problems remain')}")
    else:
        _print(declared)
        named = shlex.join(map(str, table)) if table else "TABLE"
        typer.echo(f"\nNext: discreet fit {named} --schema {shlex.quote(str(file))} --epsilon 1 --dry-run")
    if problems:
        raise typer.Exit(NO)


def _made(schema: "Schema") -> Json:
    """Return what the schema makes of the columns: features and the bounds of a row."""
    from discreet.curator import Layout

    if not schema.columns:
        return {"features": [], "row_norm": None}
    layout = Layout(schema)
    features = [{"name": f.name, "column": f.column, "range": list(f.range)} for f in layout.features]
    return {"features": features, "row_norm": layout.bounds.row_norm, "estimated": list(schema.private_columns)}


def _print(schema: "Schema") -> None:
    from collections import Counter
    from itertools import islice

    from rich.table import Table as Grid

    from discreet.schema.cell_meaning import some
    from discreet.schema.schema import describe

    encoded = _made(schema)
    widths = Counter(feature["column"] for feature in encoded["features"])
    grid = Grid("column", "declared", "missing", "features", title="Ready", title_justify="left", box=None)
    for name, kind in islice(schema.columns.items(), SHOWN):
        said = describe(kind)
        grid.add_row(name, said.text, said.missing, str(widths[name]))
    for group in schema.interactions[:SHOWN]:
        grid.add_row(" x ".join(group), "product", "", str(widths[" x ".join(group)]))
    more = max(0, len(schema.columns) - SHOWN) + max(0, len(schema.interactions) - SHOWN)
    if more:
        grid.add_row("...", f"and {more:,} more: --json lists all", "", "")
    console = rich_console()
    console.print(grid)
    target = schema.target
    assert target is not None
    what = f"one of {some(target.classes, how=str)}" if target.classes else "{:g} to {:g}".format(*target.range)  # type: ignore[misc]
    console.print(f"\nto predict: {target.column}, {what}")
    for role, declared in (("weight", schema.weight), ("offset", schema.offset)):
        if declared is not None:
            console.print(f"{role}: {declared.column}, {declared.range[0]:g} to {declared.range[1]:g}")
    console.print(f"protected: {'each row' if schema.person is None else f'each person, by {schema.person}'}")
    console.print(
        f"{number_of(len(encoded['features']), 'feature')}; a row's norm is at most {encoded['row_norm']:.4g}"
    )
    if schema.private_columns:
        console.print(f"estimated from the budget of each fit: the range of {', '.join(schema.private_columns)}")


KINDS = {
    "n": "a number",
    "c": "categories",
    "l": "levels, in their order",
    "b": "yes and no",
    "i": "not used",
    "p": "names the person behind a row",
    "t": "the column to predict",
    "w": "the weight of a row",
    "o": "an offset of the linear predictor",
    "e": "an exposure, whose logarithm is the offset",
    "s": "skip for now",
}


def edit(
    file: Annotated[Path, typer.Argument(help="The schema (TOML), such as discreet schema new writes.")],
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", help="Ask about this column again; repeatable.")
    ] = None,
) -> None:
    """Fill in a schema question by question: what each open column is, and its range or its labels.

    Answer from a codebook, from physics, from law or policy, never by looking at the data. No table is read. An empty
    answer goes on to the next question. The file is written again after each answer, without its comments; Ctrl-C keeps
    what was answered.

    Example: `discreet schema edit schema.toml`, and then `discreet schema check schema.toml table.csv`
    """
    from discreet.schema.schema import Schema

    schema = Schema.load(file)
    names = (*schema.columns, *schema.undeclared, *schema.ignore)
    strange = [name for name in column or () if name not in (*names, *_roles(schema))]
    if strange:
        raise Refused(f"--column: the schema has no column {strange[0]!r}")
    stored = schema.to_dict()
    open_target = [schema.open_target] if schema.open_target and not column else []
    questions = list(column) if column else list(schema.undeclared)
    for count, name in enumerate([*open_target, *questions], start=1):
        typer.echo(f"\n{count} of {len(open_target) + len(questions)}: {escaped(name)}")
        changed = _target(stored, name) if name in open_target else _asked(stored, name)
        if changed is not None:
            stored = changed
            _write(file, Schema.from_dict(stored))
    problems = Schema.from_dict(stored).problems()
    typer.echo(
        f"\n{file}: {number_of(len(problems), 'problem remains', 'problems remain')}"
        if problems
        else f"\n{file}: complete"
    )
    for problem in problems[:20]:
        typer.echo(f"- {escaped(problem)}")


def _roles(schema: "Schema") -> list[str]:
    target = schema.open_target if schema.target is None else schema.target.column
    return [name for name in (schema.person, target, *schema.columns_beside) if name]


def _asked(stored: Json, name: str) -> Json | None:
    """Return the schema with what was answered of a column; None where nothing was."""
    typer.echo("  " + ", ".join(f"{key} = {words}" for key, words in KINDS.items()))
    while True:
        kind = typer.prompt("  What is it?", default="s", show_default=False).strip().lower()[:1]
        if kind in KINDS:
            break
        typer.echo(f"  Answer with one of {', '.join(KINDS)}")
    if kind == "s":
        return None
    without = _without(stored, name)
    if kind == "t":
        return _target(without, name)
    if kind == "i":
        return without | {"ignore": [*without.get("ignore", []), name]}
    if kind == "p":
        return without | {"person": name}
    if kind in ("w", "o", "e"):
        role, more = "weight" if kind == "w" else "offset", {"log": True} if kind == "e" else {}
        return _accepted(lambda table: without | {role: {"column": name, **table, **more}}, _ends)
    questions: dict[str, Callable[[], Json | None]] = {
        "n": _number,
        "c": lambda: _labels("categories", "  Its categories, separated by commas"),
        "l": lambda: _labels("levels", "  Its levels from the lowest to the highest, separated by commas"),
        "b": lambda: {"boolean": True},
    }
    return _accepted(lambda table: without | {"columns": {**without.get("columns", {}), name: table}}, questions[kind])


def _target(stored: Json, name: str) -> Json | None:
    """Return the schema with the classes or the range of the column to predict."""

    def question() -> Json | None:
        classes = _labels("classes", "  To predict. Its classes, separated by commas (leave empty for a number)")
        return classes if classes is not None else _number("  To predict. Its range")

    rest = _without(stored, name)
    return _accepted(lambda table: rest | {"target": {"column": name, **table}}, question)


def _accepted(completed: Callable[[Json], Json], question: Callable[[], Json | None]) -> Json | None:
    """Ask until the answer makes a schema that can be, or is empty."""
    from discreet.schema.cell_meaning import SchemaError
    from discreet.schema.schema import Schema

    while True:
        table = question()
        if table is None:
            return None
        try:
            Schema.from_dict(completed(table))
        except SchemaError as error:
            typer.echo(f"  {escaped(str(error))}")
            continue
        return completed(table)


def _ends() -> Json | None:
    answer = typer.prompt("  Its least and largest number, such as 1, 365", default="", show_default=False).strip()
    return {"range": _numbers(answer)} if answer else None


def _number(words: str = "  Its least and largest number, such as 0, 120; or: private") -> Json | None:
    answer = typer.prompt(words, default="", show_default=False).strip()
    if not answer:
        return None
    if answer.lower() == "private":
        within = typer.prompt(
            "  Within limits that are wide and certain, such as 0, 1e7", default="", show_default=False
        )
        return {"range": "private", "within": _numbers(within)}
    return {"range": _numbers(answer)}


def _numbers(answer: str) -> list[Any]:
    """Return numbers between commas; a text stays one, and the schema refuses it."""
    from discreet.schema.cell_meaning import is_number_text

    parts = [part.strip() for part in answer.split(",")]
    return [float(part) if is_number_text(part) else part for part in parts]


def _labels(key: str, words: str) -> Json | None:
    answer = typer.prompt(words, default="", show_default=False)
    labels = [label.strip() for label in answer.split(",") if label.strip()]
    whole = all(label.lstrip("+-").isdecimal() and label.isascii() and len(label) < 16 for label in labels)
    return {key: [int(label) for label in labels] if whole else labels} if labels else None


def _without(stored: Json, name: str) -> Json:
    """Return the schema without the role that a column has."""
    columns = {other: table for other, table in stored.get("columns", {}).items() if other != name}
    rest = stored | {"columns": columns, "ignore": [other for other in stored.get("ignore", []) if other != name]}
    if rest.get("person") == name:
        del rest["person"]
    for role in ("target", "weight", "offset"):
        if rest.get(role, {}).get("column") == name:
            del rest[role]
    return rest


def _write(file: Path, schema: "Schema") -> None:
    """Put the file in its place whole: who stops in the middle finds what was answered before."""
    import os

    from discreet.atomic_files import passing

    with passing(file) as scratch:
        scratch.write_text(schema.to_toml(), encoding="utf-8")
        os.replace(scratch, file)


schema.command()(edit)
