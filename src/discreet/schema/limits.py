"""How much a schema may say: bounds on a file that somebody else may have written, so that reading it stays quick.

They are far above what a linear model can use, and they are checked before anything is made of the file. TOML's own
parser takes a time and a memory that grow with the square of a dotted key's length, and fails on deep nesting.
"""

import re
import tomllib
from typing import Any

from discreet.errors import DiscreetError
from discreet.json_schemas import Json

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
    for found in _SIGNS.finditer(text):
        sign = found[1]
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


def some(names: Any, *, most: int = 12, how: Any = repr) -> str:
    """Return the first few names, each cut where it is long, and how many more there are."""
    listed = list(names)
    shown = [how(name if len(str(name)) <= 80 else f"{str(name)[:80]}...") for name in listed[:most]]
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(shown) + more
