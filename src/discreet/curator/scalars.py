"""What one cell is, by its type alone: no code of a cell's own is run, since such code may warn, and a warning is seen.

Silencing warnings around a conversion would not do: their filters are shared by all threads. So only numbers and texts
of Python's or of numpy's are converted, by their own type's conversion and not by one that a subclass brings. An array,
a sparse matrix or a data frame in a cell is no number.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

_CONVERSIONS: tuple[tuple[Any, Callable[[Any], float]], ...] = (
    (float, float.__float__),
    (int, int.__float__),
    (str, lambda text: float(str.__str__(text))),
    (bytes, lambda text: float(bytes(text))),
    ((np.integer, np.floating, np.bool_), float),
    (Decimal, Decimal.__float__),
    (Fraction, Fraction.__float__),
)
PLAIN = (str, bytes, bool, int, float, complex, Decimal, Fraction)
"""Types of Python's own whose cells can be compared and hashed without running other code."""
_COMPARED = (float, complex, Decimal, np.generic)
_ABSENT = ("NAType", "NaTType")


def real_number(cell: Any) -> float:
    """Return a cell as a float, NaN where it is neither a real number nor the text of one."""
    if type(cell) is float:
        return cell
    for kind, convert in _CONVERSIONS:
        if isinstance(cell, kind):
            try:
                return convert(cell)
            except Exception:  # an integer beyond doubles, a signaling NaN, a text that is no number
                return math.nan
    return math.nan


def is_nothing(cell: Any) -> bool:
    """Return whether a cell is None, NaN, or what pandas means by a missing value."""
    if cell is None or type(cell).__name__ in _ABSENT:
        return True
    try:
        return isinstance(cell, _COMPARED) and not bool(cell == cell)
    except Exception:  # a signaling NaN
        return True


def holds_several(cell: Any) -> bool:
    """Return whether a cell is an array, a matrix or a table: comparing one runs its library's code, which may warn."""
    return not isinstance(cell, np.generic) and any(hasattr(type(cell), name) for name in ("__array__", "tocsr"))
