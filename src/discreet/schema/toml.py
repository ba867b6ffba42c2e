"""Schemas as TOML for people: a skeleton that explains what to fill in, and a schema written back."""

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.schema.schema import Schema

_COLUMN = """\
# range = [0, 120]              # numbers: the least and the largest that anybody could have
# categories = ["a", "b"]       # names; any other becomes a cell of its own
# levels = ["low", "high"]      # names in their order
# boolean = true                # yes and no, true and false, 1 and 0
"""


def skeleton(names: Sequence[str], target: str | None = None) -> str:
    """A schema to fill in, from the names of columns alone, and that of the column to predict where it is known."""
    aside = "; its block below may stay as it is" if target is None else ""
    column = '# column = "outcome"' if target is None else f"column = {quoted(target)}"
    blocks = [f"\n[columns.{quoted(name)}]\n{_COLUMN}" for name in dict.fromkeys(names) if name != target]
    whole = files("discreet.schema").joinpath("skeleton.toml").read_text(encoding="utf-8")
    return whole.format(aside=aside, column=column, columns="".join(blocks))


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
