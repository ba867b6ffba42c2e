"""Texts as numbers, in one compiled pass over a column's bytes.

``schema/cell_meaning.py`` says what a text means: blanks around it are cut off, and what is left is a number where it
reads ``[+-]?(digits[.digits] | .digits)([eE][+-]?digits)?`` in ASCII, else nothing. A byte outside ASCII is in no
number, whichever way the text is decoded.

*Rounding.* A text is w 10^e with whole w and e. Where 0 <= w <= 2^53 and |e| <= 22, both w and 10^|e| are doubles
without error, and their product or quotient is rounded once, to the nearest double: so the result is the double that is
nearest to the text, as for ``float`` (Clinger 1990). Every other number is left to the caller, as are those that may be
codes for nothing.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.typing import Booleans, Floats, Integers

_PLACES = 22
_POWERS = np.array([float(10**k) for k in range(_PLACES + 1)])
_MOST = 1 << 53
_LARGE = 10**17  # one digit more is still below 2^63
_FAR = 10**6


def read_numbers(offsets: Integers, data: NDArray[np.uint8], codes: Floats) -> tuple[Floats, Booleans]:
    """Return the numbers between offsets (one more than texts), NaN for none; and where the caller has to look.

    ``codes`` are numbers that may be codes for nothing, depending on how they are written.
    """
    found = np.empty(len(offsets) - 1)
    unsure = np.zeros(len(found), dtype=np.bool_)
    _read(offsets, data, codes, _POWERS, found, unsure)
    return found, unsure


@njit(cache=True, nogil=True)
def _read(offsets, data, codes, powers, found, unsure):  # type: ignore[no-untyped-def]
    for i in range(found.size):
        at, end = _trimmed(data, offsets[i], offsets[i + 1])
        negative = at < end and data[at] == 45
        if at < end and (data[at] == 43 or data[at] == 45):
            at += 1
        whole, places, at = _mantissa(data, at, end)
        exponent, at = _exponent(data, at, end)
        if places < 0 or at != end:
            found[i] = np.nan
            continue
        value, power = float(whole), exponent - places
        if whole > _MOST or (whole > 0 and (abs(power) > _PLACES or abs(exponent) == _FAR)):
            unsure[i] = True
        elif whole > 0:
            value = value * powers[power] if power >= 0 else value / powers[-power]
        found[i] = -value if negative else value
        for code in codes:
            unsure[i] |= code == value or code == -value


@njit(inline="always")
def _trimmed(data, at, end):  # type: ignore[no-untyped-def]
    """Return the ends of a text without the blanks around it."""
    while at < end and (data[at] == 32 or 9 <= data[at] <= 13):
        at += 1
    while at < end and (data[end - 1] == 32 or 9 <= data[end - 1] <= 13):
        end -= 1
    return at, end


@njit(inline="always")
def _mantissa(data, at, end):  # type: ignore[no-untyped-def]
    """Return digits as a whole number (above 2^53 where they are too many), the places behind the point, and the end.

    Places are -1 where there is no digit.
    """
    whole, first, point = np.int64(0), at, np.int64(-1)
    while at < end:
        digit = np.int64(data[at]) - 48
        if 0 <= digit <= 9:
            whole = whole * 10 + digit if whole < _LARGE else whole
        elif digit == -2 and point < 0:
            point = at
        else:
            break
        at += 1
    if at - first - (point >= 0) == 0:
        return whole, np.int64(-1), at
    return whole, (at - point - 1 if point >= 0 else np.int64(0)), at


@njit(inline="always")
def _exponent(data, at, end):  # type: ignore[no-untyped-def]
    """Return the exponent, 0 where there is none, and its end, which is before ``at`` where it has no digit.

    One of ``_FAR`` stands for all beyond it, too.
    """
    if at >= end or (data[at] != 101 and data[at] != 69):
        return np.int64(0), at
    at += 1
    negative = at < end and data[at] == 45
    if at < end and (data[at] == 43 or data[at] == 45):
        at += 1
    first, exponent = at, np.int64(0)
    while at < end and 48 <= data[at] <= 57:
        exponent = min(exponent * 10 + np.int64(data[at]) - 48, np.int64(_FAR))
        at += 1
    return -exponent if negative else exponent, (at if at > first else np.int64(-1))
