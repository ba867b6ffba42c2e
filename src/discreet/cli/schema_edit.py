"""``discreet schema edit``: fill in a schema question by question. No table is read, so no value can be shown."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.errors import Refused
from discreet.cli.terminal_text import escaped, number_of

if TYPE_CHECKING:
    from discreet.schema.schema import Schema

KINDS = {
    "n": "a number",
    "c": "categories",
    "l": "levels, in their order",
    "b": "yes and no",
    "i": "not used",
    "p": "names the person behind a row",
    "t": "the column to predict",
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

    found = Schema.load(file)
    known = (*found.columns, *found.undeclared, *found.ignore)
    strange = [name for name in column or () if name not in (*known, *_roles(found))]
    if strange:
        raise Refused(f"--column: the schema has no column {strange[0]!r}")
    stored = found.to_dict()
    open_target = [found.open_target] if found.open_target and not column else []
    asked = list(column) if column else list(found.undeclared)
    for count, name in enumerate([*open_target, *asked], start=1):
        typer.echo(f"\n{count} of {len(open_target) + len(asked)}: {escaped(name)}")
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


def _roles(found: "Schema") -> list[str]:
    target = found.open_target if found.target is None else found.target.column
    return [name for name in (found.person, target) if name]


def _asked(stored: dict[str, Any], name: str) -> dict[str, Any] | None:
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
    questions: dict[str, Callable[[], dict[str, Any] | None]] = {
        "n": _number,
        "c": lambda: _labels("categories", "  Its categories, separated by commas"),
        "l": lambda: _labels("levels", "  Its levels from the lowest to the highest, separated by commas"),
        "b": lambda: {"boolean": True},
    }
    return _accepted(lambda table: without | {"columns": {**without.get("columns", {}), name: table}}, questions[kind])


def _target(stored: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the schema with the classes or the range of the column to predict."""

    def question() -> dict[str, Any] | None:
        classes = _labels("classes", "  To predict. Its classes, separated by commas (leave empty for a number)")
        return classes if classes is not None else _number("  To predict. Its range")

    made = _without(stored, name)
    return _accepted(lambda table: made | {"target": {"column": name, **table}}, question)


def _accepted(
    made: Callable[[dict[str, Any]], dict[str, Any]], question: Callable[[], dict[str, Any] | None]
) -> dict[str, Any] | None:
    """Ask until the answer makes a schema that can be, or is empty."""
    from discreet.schema.limits import SchemaError
    from discreet.schema.schema import Schema

    while True:
        table = question()
        if table is None:
            return None
        try:
            Schema.from_dict(made(table))
        except SchemaError as error:
            typer.echo(f"  {escaped(str(error))}")
            continue
        return made(table)


def _number(words: str = "  Its least and largest number, such as 0, 120; or: private") -> dict[str, Any] | None:
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


def _labels(key: str, words: str) -> dict[str, Any] | None:
    answer = typer.prompt(words, default="", show_default=False)
    labels = [label.strip() for label in answer.split(",") if label.strip()]
    whole = all(label.lstrip("+-").isdecimal() and label.isascii() and len(label) < 16 for label in labels)
    return {key: [int(label) for label in labels] if whole else labels} if labels else None


def _without(stored: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the schema without the role that a column has."""
    columns = {one: table for one, table in stored.get("columns", {}).items() if one != name}
    found = stored | {"columns": columns, "ignore": [one for one in stored.get("ignore", []) if one != name]}
    if found.get("person") == name:
        del found["person"]
    if found.get("target", {}).get("column") == name:
        del found["target"]
    return found


def _write(file: Path, schema: "Schema") -> None:
    """Put the file in its place whole: who stops in the middle finds what was answered before."""
    import os

    from discreet.atomic_files import passing

    with passing(file) as made:
        made.write_text(schema.to_toml(), encoding="utf-8")
        os.replace(made, file)
