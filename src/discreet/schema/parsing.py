"""Columns and targets from the tables of a schema file, and back."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from discreet.schema.columns import Boolean, Category, ColumnKind, Number, Ordinal, Target
from discreet.schema.limits import SchemaError, some

_MARKS: dict[str, type[ColumnKind]] = {
    "range": Number,
    "categories": Category,
    "levels": Ordinal,
    "boolean": Boolean,
}


def target_of(stored: Any) -> tuple[Target | None, str | None]:
    """Return what is declared of the target; or its name alone, where no more is."""
    if stored is None or stored == {}:
        return None, None
    if not isinstance(stored, Mapping):
        raise SchemaError('the target is a table of its own: write [target] and below it column = "income"')
    name = stored.get("column")
    if len(stored) == 1 and isinstance(name, str) and name:
        return None, name
    return _made(Target, stored, "target"), None


def texts(values: Any) -> list[str]:
    """Return the texts in a list that is not checked yet."""
    return [value for value in values if isinstance(value, str)] if isinstance(values, (list, tuple)) else []


def column_of(name: str, table: Mapping[str, Any]) -> ColumnKind:
    """Return the kind of column that a table of the file declares."""
    marks = [mark for mark in _MARKS if mark in table]
    if len(marks) != 1:
        raise SchemaError(f"column {name!r}: declare one of {', '.join(_MARKS)}")
    given = dict(table)
    if marks == ["boolean"] and given.pop("boolean") is not True:
        raise SchemaError(f"column {name!r}: write boolean = true, or declare something else")
    return _made(_MARKS[marks[0]], given, f"column {name!r}")  # type: ignore[no-any-return]


def _made(cls: type[Any], given: Mapping[str, Any], what: str) -> Any:
    known = [item.name for item in fields(cls)]
    strange = [name for name in given if name not in known]
    if strange:
        raise SchemaError(f"{what}: {some(strange)} is not among {', '.join(known)}")
    try:
        return cls(**given)
    except SchemaError as error:
        raise SchemaError(f"{what}: {error}") from None
    except TypeError:
        raise SchemaError(f"{what}: something is left out") from None


def table_of(kind: ColumnKind) -> dict[str, Any]:
    """Return a column as a table of the file."""
    if isinstance(kind, Boolean):
        return {"boolean": True, **given(kind)}
    return given(kind)


def given(item: Any) -> dict[str, Any]:
    """Return the fields that differ from their defaults, as plain values."""
    found = {entry.name: (getattr(item, entry.name), entry.default) for entry in fields(item)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, (value, default) in found.items()
        if value is not None and value != default
    }
