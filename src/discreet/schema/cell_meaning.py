"""What one cell of a table means: a number, or one of some declared labels, or nothing.

A cell's meaning depends on that cell and on what was declared, never on its neighbors: a type that was guessed from a
whole column would let one record change how all others are read. So 7, 7.0 and "7" are one number, a text that is no
number is missing where a number is declared, and a cell that is none of the labels is *other*. Nothing here raises or
warns on a value.
"""

import math
import re
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from discreet.scalars import is_nothing, real_number

Label = str | int | float | bool

MISSING, UNKNOWN = -1, "\0"
"""The position of a missing cell; a text that no label can be."""

MISSING_TEXTS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Texts that mean nothing is there, where a schema does not list its own."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_REAL = (bool, int, float, Decimal, np.bool_, np.integer, np.floating)
BLANKS = " \t\r\n\v\f"
"""What is cut off around a text."""


def number_of(cell: object, missing: frozenset[str] = frozenset(MISSING_TEXTS)) -> float:
    """A cell as a finite number, NaN where it is none."""
    if isinstance(cell, (str, bytes)):
        text = decoded(cell)
        return _meant(_finite(text), missing) if text not in missing and _NUMBER.fullmatch(text) else math.nan
    return _meant(_finite(cell), missing) if _is_real(cell) else math.nan


def text_of(cell: object, missing: frozenset[str] = frozenset(MISSING_TEXTS)) -> str | None:
    """A cell as text, None where it is missing: whole numbers without a point, truth as true and false."""
    if isinstance(cell, (str, bytes)):
        text = decoded(cell)
        return None if text in missing else text
    if isinstance(cell, (bool, np.bool_)):
        return "true" if cell else "false"
    if _is_real(cell):
        digits = _digits(cell)
        return None if digits in missing else digits
    return None if is_nothing(cell) else UNKNOWN


def position_of(cell: object, labels: Sequence[Label], missing: frozenset[str] = frozenset(MISSING_TEXTS)) -> int:
    """A cell's place among the labels; their number for any other cell, -1 where nothing is there."""
    text = text_of(cell, missing)
    if text is None:
        return MISSING
    if are_numbers(labels):
        found = number_of(cell, missing)
        return next((i for i, label in enumerate(labels) if float(label) == found), len(labels))
    return labels.index(text) if text in labels else len(labels)


def are_numbers(labels: Sequence[Label]) -> bool:
    """Whether labels are compared as numbers; else as texts."""
    return all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in labels)


def is_number_text(text: str) -> bool:
    """Return whether a text is a number as tables write them."""
    return _NUMBER.fullmatch(text) is not None


def codes_of(missing: frozenset[str]) -> list[float]:
    """The numbers among the texts that mean nothing."""
    return [float(text) for text in missing if _NUMBER.fullmatch(text) and plain_number(float(text)) == text]


def decoded(cell: str | bytes) -> str:
    """A cell's text without blanks around it; bytes that are not UTF-8 are read as Latin-1, each cell for itself."""
    if isinstance(cell, str):
        return cell.strip(BLANKS)
    try:
        return cell.decode().strip(BLANKS)
    except UnicodeDecodeError:
        return cell.decode("latin-1").strip(BLANKS)


def _finite(value: object) -> float:
    number = real_number(value)
    return number if math.isfinite(number) else math.nan


def _meant(number: float, missing: frozenset[str]) -> float:
    """A number, unless its text means that nothing is there: a code such as -9."""
    return math.nan if not math.isnan(number) and plain_number(number) in missing else number


def _digits(cell: object) -> str | None:
    """A number as text, whole ones to the last digit; None where it is not finite."""
    if isinstance(cell, (int, np.integer)):
        try:
            return str(int(cell))
        except ValueError:  # thousands of digits
            return UNKNOWN
    number = _finite(cell)
    return None if math.isnan(number) else plain_number(number)


def _is_real(cell: object) -> bool:
    return isinstance(cell, _REAL) and not isinstance(cell, np.timedelta64)


def plain_number(number: float) -> str:
    """Return a number as text, whole ones without a point."""
    return str(int(number)) if number.is_integer() else repr(number)
