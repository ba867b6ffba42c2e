"""Codebooks in CSV: one line per column, with its least and largest number or its labels.

    column,kind,min,max,values,missing,note
    age,number,18,110,,,in years
    ward,category,,,north|south,,
    pain,levels,,,none|mild|severe,,

Headings may be of other common words (``name``, ``variable``, ``type``, ``low``, ``high``, ``codes``, ...).
"""

import csv
import io
import re
from typing import Any

from discreet.schema.cell_meaning import is_number_text
from discreet.schema.codebooks.codebook import Codebook, Entry
from discreet.schema.limits import MAX_COLUMNS, SchemaError

_HEADINGS = {
    "column": ("column", "name", "variable", "field", "feature", "column_name", "variable_name"),
    "kind": ("kind", "type", "dtype", "data_type", "format"),
    "low": ("min", "minimum", "low", "lower", "least", "from"),
    "high": ("max", "maximum", "high", "upper", "largest", "to"),
    "range": ("range",),
    "values": ("values", "categories", "levels", "labels", "codes", "enum", "allowed", "choices"),
    "missing": ("missing",),
    "note": ("note", "notes", "description", "label", "comment"),
}
_KINDS = {
    "range": ("number", "numeric", "integer", "int", "float", "double", "real", "decimal", "continuous", "count"),
    "categories": ("category", "categorical", "nominal", "text", "string", "str", "factor", "enum", "code"),
    "levels": ("levels", "level", "ordinal", "ordered"),
    "boolean": ("boolean", "bool", "logical", "truth", "binary"),
}
_RANGE = re.compile(r"[\[(]?\s*([+-]?[0-9.eE]+)\s*(?:-|–|to|\.\.|,|;)\s*([+-]?[0-9.eE]+)\s*[\])]?")


def from_csv(text: str) -> Codebook:
    """Return what a codebook in CSV says."""
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), _dialect(text)))
    except csv.Error:
        raise SchemaError("the codebook is not CSV that can be read") from None
    if len(lines) > MAX_COLUMNS + 1:
        raise SchemaError(f"too many columns in the codebook: {MAX_COLUMNS:,} is the most")
    places = _places(lines[0] if lines else [])
    entries: dict[str, Entry] = {}
    for line in lines[1:]:
        told = {key: line[at].strip() for key, at in places.items() if at < len(line)}
        name = told.get("column", "")
        if not name:
            continue
        if name in entries:
            raise SchemaError("the codebook names a column twice")
        entries[name] = Entry(_declared(told), told.get("note", ""))
    return Codebook(entries)


def _dialect(text: str) -> type[csv.Dialect]:
    first = text.split("\n", 1)[0]

    class Read(csv.excel):
        delimiter = max(",;\t", key=first.count)

    return Read


def _places(header: list[str]) -> dict[str, int]:
    words = [re.sub(r"[\s-]+", "_", heading.strip().lower()) for heading in header]
    found: dict[str, int] = {}
    for key, known in _HEADINGS.items():
        at = next((words.index(word) for word in known if word in words), None)
        if at is not None and at not in found.values():
            found[key] = at
    if "column" not in found:
        raise SchemaError("the codebook's first line names no column 'column': call it column, name or variable")
    return found


def _declared(told: dict[str, str]) -> dict[str, Any]:
    """Return the declaration that a line makes, empty where it does not suffice."""
    word = told.get("kind", "").lower()
    kind = next((key for key, words in _KINDS.items() if word in words), None)
    ends = [told.get("low", ""), told.get("high", "")]
    if not all(map(is_number_text, ends)) and (both := _RANGE.fullmatch(told.get("range", ""))):
        ends = [both[1], both[2]]
    labels = _labels(told.get("values", ""))
    found: dict[str, Any] = {}
    if kind == "boolean":
        found = {"boolean": True}
        if len(labels) == 2:
            found |= {"false": [str(labels[0])], "true": [str(labels[1])]}
    elif kind in ("categories", "levels") or (kind is None and labels):
        found = {kind or "categories": labels} if labels else {}
    elif all(map(is_number_text, ends)):
        found = {"range": [float(end) for end in ends]}
    missing = told.get("missing", "")
    return {**found, "missing": float(missing) if is_number_text(missing) else missing} if found and missing else found


def _labels(text: str) -> list[Any]:
    """Return labels between bars, semicolons or commas; of ``1 = yes`` the code, and codes as numbers if all are."""
    sign = next((sign for sign in "|;," if sign in text), "|")
    words = [part.split("=", 1)[0].strip() for part in text.split(sign)]
    words = list(dict.fromkeys(word for word in words if word))
    whole = all(re.fullmatch(r"[+-]?[0-9]{1,15}", word) for word in words)
    return [int(word) for word in words] if whole else list(words)
