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
