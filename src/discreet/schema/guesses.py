"""What kind of column this may be, guessed from its name and its storage type: both are public, no value is read.

A guess is a comment in a draft, and never declares anything, except that a column stored as truth holds truth.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("range", "categories", "levels", "boolean")

_NAMES = {
    "boolean": r"is|has|had|was|flag|indicator|smoker|yes|consent|active|married|deceased|died",
    "levels": r"level|grade|stage|severity|rank|education|degree|rating|class|tier|order|likert|agree",
    "range": r"age|year|years|count|num|number|total|sum|pct|percent|rate|ratio|score|amount|price|cost|income"
    r"|salary|wage|height|weight|bmi|length|width|size|distance|duration|days|hours|minutes|months|dose|temp|temperature|pressure"
    r"|glucose|cholesterol|hr|bp|lat|lon|balance|debt|visits|n",
    "categories": r"sex|gender|type|category|region|state|country|city|ward|department|status|code|race|ethnicity|group"
    r"|kind|brand|color|language|religion|occupation|job|diagnosis|drug|reason|mode|channel|zip|icd",
}
_IDENTIFIER = (
    r"id|ids|uid|uuid|guid|key|name|surname|firstname|lastname|email|mail|phone|ssn|mrn|address|url|row|rownum"
)
_MOMENT = r"date|datetime|time|timestamp|day|month|dob|birthdate|created|updated"


@dataclass(frozen=True)
class Guess:
    """Kinds that a column may be of, likeliest first, why, and whether its storage type alone decides."""

    kinds: tuple[str, ...] = KINDS
    note: str = ""
    certain: bool = False


def guess(name: str, stored: "Sequence[pa.DataType]" = ()) -> Guess:
    """Return what a column may be, from its name and from how it is stored."""
    import pyarrow as pa

    if stored and all(pa.types.is_boolean(kind) for kind in stored):
        return Guess(("boolean",), "stored as true and false", certain=True)
    words = re.findall(r"[a-z]+", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower())
    if _matches(_IDENTIFIER, words):
        return Guess(note="its name looks like an identifier: list it in ignore, or as person")
    if _matches(_MOMENT, words):
        return Guess(note="its name looks like a date: list it in ignore, or store it as a number")
    named = next((kind for kind, pattern in _NAMES.items() if _matches(pattern, words)), None)
    numeric = bool(stored) and all(map(_is_numeric, stored))
    if numeric and named in (None, "range"):
        return Guess(("range", "categories"), "stored as numbers")
    if named is None:
        return Guess()
    rest = tuple(kind for kind in KINDS if kind != named)
    return Guess((named, *rest), f"its name suggests {_SAID[named]}")


_SAID = {"range": "a number", "categories": "categories", "levels": "levels", "boolean": "yes and no"}


def _matches(pattern: str, words: list[str]) -> bool:
    return any(re.fullmatch(pattern, word) for word in words)


def _is_numeric(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
