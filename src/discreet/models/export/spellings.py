"""How the cells of a column of labels may be written, as texts: for tools that compare texts."""

import math
from collections.abc import Iterable
from typing import Any

from discreet.schema.cell_meaning import Label, is_number_text, number_of, plain_number
from discreet.schema.columns import Boolean, Category, ColumnKind, Ordinal

OTHER_TEXT = "\0other"
"""A text that is no label."""


def spellings(kind: ColumnKind, missing: Iterable[str]) -> dict[str, Any]:
    """Return text -> cell for labels and for nothing, as ``str`` writes cells; the empty text is nothing."""
    found: dict[str, Any] = {"": None}
    for text in missing:
        found |= _written(text, any_case=False)
    for label in _labels(kind):
        for text, cell in _written(label, isinstance(kind, Boolean)).items():
            found.setdefault(text, cell)
    return {**{str(cell): cell for cell in (math.inf, -math.inf)}, **found}


def _labels(kind: ColumnKind) -> tuple[Label, ...]:
    if isinstance(kind, Category):
        return kind.categories
    if isinstance(kind, Ordinal):
        return kind.levels
    assert isinstance(kind, Boolean)
    return (*kind.true, *kind.false)


def _written(label: Label, any_case: bool) -> dict[str, Any]:
    """Return a label as it is, as a decimal number, as Python writes truth, and with capitals where they are equal."""
    text = label if isinstance(label, str) else plain_number(float(label))
    found: dict[str, Any] = {text: text}
    if any_case:
        found |= {text.capitalize(): text, text.upper(): text}
    if is_number_text(text) and plain_number(number_of(text)) == text:
        found.setdefault(repr(number_of(text)), number_of(text))
    if text in ("true", "false"):
        found.setdefault(text.capitalize(), text == "true")
    return found
