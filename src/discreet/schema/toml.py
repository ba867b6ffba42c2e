"""Schemas as TOML for people: a skeleton that explains what to fill in, and a schema written back."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.schema.codebooks.codebook import Codebook, Entry
    from discreet.schema.guesses import Guess
    from discreet.schema.schema import Schema

_LINES = {
    "range": "# range = [0, 120]              # numbers: the least and the largest that anybody could have",
    "categories": '# categories = ["a", "b"]       # category names; all other values share one category "(other)"',
    "levels": '# levels = ["low", "high"]      # names in their order',
    "boolean": "# boolean = true                # yes and no, true and false, 1 and 0",
}
_COMMENT = 160
"""The most characters of a codebook's note that are written behind a column."""


def skeleton(
    names: Sequence[str],
    target: str | None = None,
    *,
    codebook: "Codebook | None" = None,
    guesses: "Mapping[str, Guess] | None" = None,
) -> str:
    """Return a schema to fill in, from the names of columns; a codebook fills in what it says, guesses are comments."""
    entries = {} if codebook is None else codebook.entries
    aside = "; its block below may stay as it is" if target is None else ""
    column = '# column = "outcome"' if target is None else f"column = {quoted(target)}"
    if target is not None and target in entries:
        column += _target_lines(entries[target])
    missing = None if codebook is None else codebook.missing_texts
    top = "" if missing is None else f"missing_texts = {value_text(missing)}\n"
    blocks = [
        _block(name, entries.get(name), (guesses or {}).get(name)) for name in dict.fromkeys(names) if name != target
    ]
    whole = files("discreet.schema").joinpath("skeleton.toml").read_text(encoding="utf-8")
    return whole.format(aside=aside, column=column, columns="".join(blocks), top=top)


def _block(name: str, entry: "Entry | None", guess: "Guess | None") -> str:
    """Return the block of a column: what the codebook declares, or lines to choose from, the likeliest first."""
    lines = ["", f"[columns.{quoted(name)}]"]
    if entry is not None and entry.note:
        lines.append(f"# {comment(entry.note)}")
    if entry is not None and entry.declared:
        return "\n".join([*lines, *(f"{key} = {value_text(value)}" for key, value in entry.declared.items())]) + "\n"
    if guess is not None and guess.note:
        lines.append(f"# {guess.note}")
    if guess is not None and guess.certain:
        return "\n".join([*lines, *(f"{kind} = true" for kind in guess.kinds)]) + "\n"
    return "\n".join([*lines, *(_LINES[kind] for kind in (_LINES if guess is None else guess.kinds))]) + "\n"


def _target_lines(entry: "Entry") -> str:
    """Return the target's classes or range, where the codebook declares them."""
    for key, word in (("categories", "classes"), ("levels", "classes"), ("range", "range")):
        if key in entry.declared and (key == "range" or len(entry.declared[key]) > 1):
            return f"\n{word} = {value_text(entry.declared[key])}"
    if entry.declared.get("boolean") and {"true", "false"} <= set(entry.declared):
        words = [entry.declared["false"][0], entry.declared["true"][0]]
        return f"\nclasses = {value_text(words)}"
    return ""


def comment(text: str) -> str:
    """Return a text for a comment: one line of visible signs, cut where it is long."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= _COMMENT else f"{line[:_COMMENT]}..."


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
