"""Schemas as TOML for people: a skeleton that explains what to fill in, and a schema written back."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.schema.schema import Schema

_HEAD = """\
# What is publicly known of the columns of this table.
#
# Fill in what you know from a codebook, from physics, from law or policy: never by looking at the data, since what is
# written here is not protected. A range that is too wide costs accuracy, one that is too narrow clips values; neither
# costs privacy. To fill in, delete the "# " before a line and change what stands there. Then:
#   discreet schema check SCHEMA TABLE

# Columns that are not used, such as names and row numbers. Their blocks below may stay as they are.
ignore = []

# The column that names the person behind a row. Give it if a person may have several rows: then persons are
# protected, not rows.
# person = "patient"

# The column to predict{aside}. Give one of the two: classes, which are all labels in order (the last of
# two is the one that coefficients speak of), or range, the least and the largest number there can be.
[target]
{column}
# classes = ["no", "yes"]
# range = [0, 100]

# What to predict from: one of the four lines for each column.
"""
_COLUMN = """\
# range = [0, 120]              # numbers: the least and the largest that anybody could have
# categories = ["a", "b"]       # names; any other becomes a cell of its own
# levels = ["low", "high"]      # names in their order
# boolean = true                # yes and no, true and false, 1 and 0
"""
_MORE = """
# More that a column may say:
#   range = "private"           buy the range from the budget, as private quantiles,
#   within = [0, 1e7]           within limits that are wide and certain
#   missing = "flag"            for missing values: "middle" (of the range), "flag" (a feature of its own), "other" (for
#                               categories), "record" (leave the record out), or a value
#   knots = [25, 40, 60]        numbers: public places where the effect may bend
#   base = "a"                  categories: the one that the others are compared with
# and at the top: interactions = [["age", "sex"]], missing_texts = ["", "?"], rows = 1000, separator = ";"
"""


def skeleton(names: Sequence[str], target: str | None = None) -> str:
    """A schema to fill in, from the names of columns alone, and that of the column to predict where it is known."""
    aside = "; its block below may stay as it is" if target is None else ""
    column = '# column = "outcome"' if target is None else f"column = {quoted(target)}"
    blocks = [f"\n[columns.{quoted(name)}]\n{_COLUMN}" for name in dict.fromkeys(names) if name != target]
    return "".join([_HEAD.format(aside=aside, column=column), *blocks]) + _MORE


def to_toml(schema: "Schema") -> str:
    """A schema as TOML."""
    stored = schema.to_dict()
    tables = {"target": stored.pop("target", None)}
    columns = stored.pop("columns", {})
    lines = [f"{name} = {value_text(value)}" for name, value in stored.items()]
    for name, table in {**tables, **{f"columns.{quoted(name)}": table for name, table in columns.items()}}.items():
        if table is not None:
            lines += ["", f"[{name}]", *(f"{key} = {value_text(value)}" for key, value in table.items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are among TOML's. Signs that are not seen, or command a terminal, are written
    out, so that the file can be read by eye."""
    return "".join(sign if sign.isprintable() else _written(ord(sign)) for sign in json.dumps(text, ensure_ascii=False))


def _written(sign: int) -> str:
    return f"\\u{sign:04x}" if sign < 0x10000 else f"\\U{sign:08x}"


def value_text(value: Any) -> str:
    """A plain value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    return repr(value)
