"""What one cell of a table is, by its type alone, and means: a number, or one of some declared labels, or nothing.

A cell's meaning depends on that cell and on what was declared, never on its neighbors: a type that was guessed from a
whole column would let one record change how all others are read. So 7, 7.0 and "7" are one number, a text that is no
number is missing where a number is declared, and a cell that is none of the labels is *other*. Nothing here raises or
warns on a value, and no code of a cell's own is run: such code may warn, and a warning is seen. Silencing warnings
around a conversion would not do, as their filters are shared by all threads. So only numbers and texts of Python's or
of numpy's are converted, by their own type's conversion and not by one that a subclass brings. An array, a sparse
matrix or a data frame in a cell is no number.

**Limits** on how much a schema may say bound a file that somebody else may have written, so that reading it stays
quick. They are far above what a linear model can use, and are checked before anything is made of the file. TOML's own
parser takes a time and a memory that grow with the square of a dotted key's length, and fails on deep nesting.
"""

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import DiscreetError
from discreet.json_schemas import Json

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
    """Return a cell as a finite number, NaN where it is none."""
    if isinstance(cell, (str, bytes)):
        text = decoded(cell)
        return _meant(_finite(text), missing) if text not in missing and _NUMBER.fullmatch(text) else math.nan
    return _meant(_finite(cell), missing) if _is_real(cell) else math.nan


def text_of(cell: object, missing: frozenset[str] = frozenset(MISSING_TEXTS)) -> str | None:
    """Return a cell as text, None where it is missing: whole numbers without a point, truth as true and false."""
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
    """Return a cell's place among the labels; their number for any other cell, -1 where nothing is there."""
    text = text_of(cell, missing)
    if text is None:
        return MISSING
    if are_numbers(labels):
        value = number_of(cell, missing)
        return next((i for i, label in enumerate(labels) if float(label) == value), len(labels))
    return labels.index(text) if text in labels else len(labels)


def truth_labels(labels: Sequence[Label]) -> tuple[str, ...]:
    """Return labels that are true and false in small letters, as stored truth is read; () where they are others.

    A program that reads TRUE and FALSE from a file writes True and False, so their case tells nothing.
    """
    lowered = tuple(label.lower() for label in labels if isinstance(label, str))
    return lowered if len(labels) == 2 and set(lowered) == {"true", "false"} else ()


def are_numbers(labels: Sequence[Label]) -> bool:
    """Return whether labels are compared as numbers; else as texts."""
    return all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in labels)


def is_number_text(text: str) -> bool:
    """Return whether a text is a number as tables write them."""
    return _NUMBER.fullmatch(text) is not None


def codes_of(missing: frozenset[str]) -> list[float]:
    """Return the numbers among the texts that mean nothing."""
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
    """Return a number, unless its text means that nothing is there: a code such as -9."""
    return math.nan if not math.isnan(number) and plain_number(number) in missing else number


def _digits(cell: object) -> str | None:
    """Return a number as text, whole ones to the last digit; None where it is not finite."""
    if isinstance(cell, (int, np.integer)):
        try:
            return str(int(cell))
        except ValueError:  # thousands of digits
            return UNKNOWN
    if isinstance(cell, Decimal) and cell.is_finite() and cell.adjusted() < 80 and cell == cell.to_integral_value():
        return str(int(cell))
    number = _finite(cell)
    return None if math.isnan(number) else plain_number(number)


def _is_real(cell: object) -> bool:
    return isinstance(cell, _REAL) and not isinstance(cell, np.timedelta64)


def plain_number(number: float) -> str:
    """Return a number as text, whole ones without a point."""
    return str(int(number)) if number.is_integer() else repr(number)


SCHEMA_BYTES = 1 << 23
"""The largest schema file."""
MAX_COLUMNS = 10_000
"""The most columns that a table and its schema may have."""
MAX_LABELS = 100_000
"""The most categories, levels or classes of one column, and the most texts in any list."""
MAX_FEATURES = 100_000
"""The most features that the columns of a schema may become, products among them."""
NAME_LENGTH = 500
"""The longest name of a column or label, in characters."""
MAX_DEPTH = 8
"""The deepest nesting of lists and tables in a schema file, and the most parts of a dotted key."""
_MOST = {"=": 8 * MAX_COLUMNS, "[": 8 * MAX_COLUMNS, "{": 8 * MAX_COLUMNS, ",": 4 * MAX_LABELS}

_SIGNS = re.compile(
    r"""
    (?: [^"'\#\[\]{}=,.]++                                      # what does not matter here: words and blanks,
      | \#[^\n]*+                                               # comments,
      | \"\"\" (?:[^\\"]++ | \\. | "(?!""))*+ (?:\"{3,5}|\Z)     # and texts
      | ''' (?:[^']++ | '(?!''))*+ (?:\'{3,5}|\Z)
      | " (?:[^"\\\n]++ | \\.)*+ "?
      | ' [^'\n]*+ '?
    )*+
    ([\[\]{}=,.]|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)


class SchemaError(DiscreetError, ValueError):
    """A schema that says too little, or says what cannot be."""


def parsed(text: str) -> Json:
    """Return what a TOML text says, within these limits."""
    _check_size(text)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"the schema is not TOML: {error}") from None
    except ValueError:  # Python's own limit
        raise SchemaError("the schema is not TOML: a number in it has too many digits") from None
    except RecursionError:
        raise SchemaError("the schema is nested too deeply") from None


def _check_size(text: str) -> None:
    """Refuse a text that would keep a parser busy, by its signs alone."""
    depth = parts = 0
    left = dict(_MOST)
    for match in _SIGNS.finditer(text):
        sign = match[1]
        parts = parts + 1 if sign == "." else 0
        depth += (sign in ("[", "{")) - (sign in ("]", "}"))
        if depth > MAX_DEPTH or parts > MAX_DEPTH:
            raise SchemaError(
                f"the schema is nested too deeply: a column is [columns.name], {MAX_DEPTH} levels at most"
            )
        if sign in left:
            left[sign] -= 1
            if left[sign] < 0:
                raise SchemaError(f"the schema has more than {_MOST[sign]:,} entries: declare fewer columns or labels")


def check_count(count: int, most: int, what: str) -> None:
    """Refuse too many of something."""
    if count > most:
        raise SchemaError(f"too many {what}: {count:,}, where {most:,} is the most")


def check_length(name: object, what: str) -> None:
    """Refuse a name that is too long."""
    if isinstance(name, str) and len(name) > NAME_LENGTH:
        raise SchemaError(f"{what} has more than {NAME_LENGTH} characters: give it a shorter one")


def some(names: Iterable[object], *, most: int = 12, how: Callable[[object], str] = repr) -> str:
    """Return the first few names, each cut where it is long, and how many more there are."""
    listed = list(names)
    shown = [how(name if len(str(name)) <= 80 else f"{str(name)[:80]}...") for name in listed[:most]]
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(shown) + more


_SCALARS = frozenset(np.sctypeDict.values())
_NUMPY = frozenset(kind for kind in _SCALARS if issubclass(kind, (np.integer, np.floating, np.bool_)))
_CONVERSIONS: dict[type, Callable[[Any], float]] = {
    float: float.__float__,
    int: int.__float__,
    str: lambda text: float(str.__str__(text)),
    bytes: lambda text: float(bytes.decode(text, "latin-1")),
    Decimal: Decimal.__float__,
    Fraction: Fraction.__float__,
}
PLAIN = (str, bytes, bool, int, float, complex, Decimal, Fraction)
"""Types of Python's own whose cells can be compared and hashed without running other code."""
_ABSENT = ("NAType", "NaTType")


def is_plain(cell: object) -> bool:
    """Return whether a cell can be compared and hashed without running code of its own."""
    return type(cell) in PLAIN or type(cell) in _SCALARS


_TRUSTED = ("builtins", "datetime", "decimal", "fractions", "ipaddress", "numpy", "pandas", "uuid")
_NESTED = (tuple, frozenset)


def is_name(cell: Any) -> bool:
    """Return whether a cell can name a person: its type is Python's, numpy's or pandas' own, and so are its parts'.

    Telling others apart would run code of their own.
    """
    if type(cell) in _NESTED:
        return all(map(is_name, cell))
    is_trusted = type(cell).__module__.partition(".")[0] in _TRUSTED
    return is_trusted and not holds_several(cell) and type(cell).__hash__ is not None


def real_number(cell: Any) -> float:
    """Return a cell as a float, NaN where it is neither a real number nor the text of one."""
    if type(cell) is float:
        return cell
    convert = float if type(cell) in _NUMPY else next(filter(None, map(_CONVERSIONS.get, type(cell).__mro__)), None)
    if convert is None:
        return math.nan
    try:
        return convert(cell)
    except Exception:  # an integer beyond doubles, a signaling NaN, a text that is no number
        return math.nan


def is_nothing(cell: Any) -> bool:
    """Return whether a cell is None, NaN, or what numpy and pandas mean by a missing value."""
    kind = type(cell)
    if cell is None or kind.__name__ in _ABSENT:
        return True
    if float in kind.__mro__:
        return math.isnan(float.__float__(cell))
    if Decimal in kind.__mro__:
        return Decimal.is_nan(cell)
    return (kind in _SCALARS or kind is complex) and not bool(cell == cell)


def holds_several(cell: object) -> bool:
    """Return whether a cell is an array, a matrix or a table: comparing one runs its library's code, which may warn."""
    return type(cell) not in _SCALARS and any(hasattr(type(cell), name) for name in ("__array__", "tocsr"))
