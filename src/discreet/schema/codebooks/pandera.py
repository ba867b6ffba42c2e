"""Schemas of pandera, as ``to_yaml`` or ``to_json`` write them: columns with a dtype and checks."""

from collections.abc import Mapping
from typing import Any

from discreet.schema.codebooks.codebook import Codebook, Entry
from discreet.schema.codebooks.constraints import declared_by, first_line

_LOW = ("greater_than_or_equal_to", "greater_than", "ge", "gt")
_HIGH = ("less_than_or_equal_to", "less_than", "le", "lt")


def from_pandera(stored: Mapping[str, Any]) -> Codebook:
    """Return what the columns say."""
    entries = {
        name: Entry(_declared(one), first_line(one.get("title"), one.get("description")))
        for name, one in stored["columns"].items()
    }
    return Codebook(entries)


def _declared(one: Mapping[str, Any]) -> dict[str, Any]:
    named, checks = str(one.get("dtype") or "").lower(), _checks(one.get("checks"))
    kind = (
        "boolean" if "bool" in named else "number" if named.startswith(("int", "uint", "float", "decimal")) else "text"
    )
    between = checks.get("in_range", {})
    low = between.get("min_value") if isinstance(between, Mapping) else None
    high = between.get("max_value") if isinstance(between, Mapping) else None
    return declared_by(
        kind,
        low=next((_plain(checks[name]) for name in _LOW if name in checks), low),
        high=next((_plain(checks[name]) for name in _HIGH if name in checks), high),
        labels=_plain(checks.get("isin")),
    )


def _checks(stored: Any) -> dict[str, Any]:
    """Return checks by name: a mapping in older files, a list with options in newer ones."""
    if isinstance(stored, Mapping):
        return dict(stored)
    return {one["options"]["check_name"]: one for one in stored or () if isinstance(one, Mapping) and "options" in one}


def _plain(value: Any) -> Any:
    """Return the argument of a check with one argument."""
    if isinstance(value, Mapping):
        rest = [item for key, item in value.items() if key != "options"]
        return rest[0] if len(rest) == 1 else None
    return value
