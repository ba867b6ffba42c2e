"""JSON Schema of a row: an object whose properties are columns; or a list of such objects."""

from collections.abc import Mapping
from typing import Any

from discreet.schema.codebooks.codebook import Codebook, Entry
from discreet.schema.codebooks.constraints import declared_by, first_line

_TYPES = {"boolean": "boolean", "integer": "number", "number": "number", "string": "text"}


def from_json_schema(stored: Mapping[str, Any]) -> Codebook:
    """Return what the properties say; references and combinations (``$ref``, ``allOf``) are left open."""
    rows = stored if "properties" in stored else stored["items"]
    entries = {
        name: Entry(_declared(one), first_line(one.get("title"), one.get("description")))
        for name, one in rows["properties"].items()
    }
    return Codebook(entries)


def _declared(one: Mapping[str, Any]) -> dict[str, Any]:
    named = one.get("type")
    types = [named] if isinstance(named, str) else [word for word in named or () if word != "null"]
    return declared_by(
        _TYPES.get(types[0], "other") if len(types) == 1 else "other",
        low=one.get("minimum", one.get("exclusiveMinimum")),
        high=one.get("maximum", one.get("exclusiveMaximum")),
        labels=one.get("enum"),
    )
