"""What the cells of a whole column mean: ``schema/cell_meaning.py`` for each cell, at the speed of columns.

How a column is stored is a fact of its container and may be refused; no value raises or warns.

What a cell holds is what was declared, nothing, or something else: its *state*, each cell for itself.

Texts become numbers in one compiled pass over a column's bytes. ``schema/cell_meaning.py`` says what a text means:
blanks around it are cut off, and what is left is a number where it reads
``[+-]?(digits[.digits] | .digits)([eE][+-]?digits)?`` in ASCII, else nothing. A byte outside ASCII is in no number,
whichever way the text is decoded.

*Rounding.* A text is w 10^e with whole w and e. Where 0 <= w <= 2^53 and |e| <= 22, both w and 10^|e| are doubles
without error, and their product or quotient is rounded once, to the nearest double: so the result is the double that is
nearest to the text, as for ``float`` (Clinger 1990). Every other number is left to the caller, as are those that may be
codes for nothing.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from discreet.errors import Unsupported
from discreet.schema.cell_meaning import (
    MISSING,
    UNKNOWN,
    Label,
    are_numbers,
    codes_of,
    decoded,
    is_name,
    is_nothing,
    is_number_text,
    number_of,
    plain_number,
    position_of,
    text_of,
)
from discreet.typing import Booleans, Floats, Integers

States: TypeAlias = NDArray[np.int8]

FINE, ABSENT, STRANGE = 0, 1, 2
NOT_ASKED: States = np.empty(0, dtype=np.int8)
"""Where nobody asks what the cells hold."""


def states_of_numbers(values: Floats, low: float, high: float) -> States:
    """Return ABSENT where there is no finite number, STRANGE where it lies outside the range."""
    outside = (values < low) | (values > high)
    return np.where(np.isfinite(values), outside * np.int8(STRANGE), np.int8(ABSENT)).astype(np.int8)


def states_of_labels(positions: Integers, count: int) -> States:
    """Return ABSENT where a cell is empty, STRANGE where it is none of ``count`` labels."""
    return np.where(positions == MISSING, ABSENT, np.where(positions == count, STRANGE, FINE)).astype(np.int8)


_PLACES = 22
_POWERS = np.array([float(10**k) for k in range(_PLACES + 1)])
_MOST = 1 << 53
_LARGE = 10**17  # one digit more is still below 2^63
_FAR = 10**6


def read_numbers(offsets: Integers, data: NDArray[np.uint8], codes: Floats) -> tuple[Floats, Booleans]:
    """Return the numbers between offsets (one more than texts), NaN for none; and where the caller has to look.

    ``codes`` are numbers that may be codes for nothing, depending on how they are written.
    """
    values = np.empty(len(offsets) - 1)
    unsure = np.zeros(len(values), dtype=np.bool_)
    _read(offsets, data, codes, _POWERS, values, unsure)
    return values, unsure


@njit(cache=True, nogil=True)
def _read(offsets, data, codes, powers, out, unsure):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        at, end = _trimmed(data, offsets[i], offsets[i + 1])
        negative = at < end and data[at] == 45
        if at < end and (data[at] == 43 or data[at] == 45):
            at += 1
        whole, places, at = _mantissa(data, at, end)
        exponent, at = _exponent(data, at, end)
        if places < 0 or at != end:
            out[i] = np.nan
            continue
        value, power = float(whole), exponent - places
        if whole > _MOST or (whole > 0 and (abs(power) > _PLACES or abs(exponent) == _FAR)):
            unsure[i] = True
        elif whole > 0:
            value = value * powers[power] if power >= 0 else value / powers[-power]
        out[i] = -value if negative else value
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


_WHOLE = re.compile(r"^([+-]?[0-9]+)\.0*$")

Column: TypeAlias = Any
"""A column as it is stored: a pyarrow array, or a numpy array of cells of any kind."""


def numbers(column: Column, missing: frozenset[str]) -> Floats:
    """``number_of`` for every cell of a column: NaN for what is not finite, whatever stands next to it."""
    values = raw_numbers(column, missing)
    return np.where(np.isfinite(values), values, math.nan)


def raw_numbers(column: Column, missing: frozenset[str]) -> Floats:
    """Like ``numbers``, except that a cell without a number may be infinite as well as NaN: without a copy if possible.

    The result may be memory of the column's own: it is for reading.
    """
    if isinstance(column, np.ndarray):
        return np.array([number_of(cell, missing) for cell in column], dtype=np.float64)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _numbers_by(column, lambda values: raw_numbers(values, missing))
    if _holds_text(kind):
        return _parsed(column, missing)
    if pa.types.is_null(kind):
        return np.full(len(column), math.nan)
    if pa.types.is_decimal(kind):  # a cast would round twice
        return _one_by_one(column, missing)
    return _without(_as_floats(column), codes_of(missing))


def positions(column: Column, labels: Sequence[Label], missing: frozenset[str]) -> Integers:
    """``position_of`` for every cell of a column."""
    if isinstance(column, np.ndarray):
        return _looked_up(column.tolist(), labels, missing)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _positions_by(column, lambda values: positions(values, labels, missing))
    if pa.types.is_null(kind):
        return np.full(len(column), MISSING, dtype=np.int64)
    if not pa.types.is_floating(kind):
        return _positions_by(_distinct(column), lambda values: _looked_up(values.to_pylist(), labels, missing))
    return _among(numbers(column, missing), labels)


def coded(column: Column) -> Column:
    """The column as codes of its distinct texts, for several looks at it; anything else as it is."""
    is_text = not isinstance(column, np.ndarray) and _holds_text(column.type)
    return _distinct(column) if is_text else column


def lowered(column: Column) -> Column:
    """The column with its texts in small letters; anything else as it is."""
    if isinstance(column, np.ndarray):
        return _cells([decoded(cell).lower() if isinstance(cell, (str, bytes)) else cell for cell in column])
    if pa.types.is_dictionary(column.type) and _holds_text(column.type.value_type):
        return pa.DictionaryArray.from_arrays(column.indices, lowered(column.dictionary))
    if not _holds_text(column.type):
        return column
    distinct = _distinct(column)
    texts = [None if cell is None else decoded(cell).lower().encode() for cell in distinct.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(distinct.indices, pa.array(texts, pa.large_binary()))


def names(column: Column, missing: frozenset[str]) -> list[str | None]:
    """Whom each cell names, by its text: 7 and "7" are one; None for nobody."""
    texts, codes = coded_names(column, missing)
    return [texts[code] for code in codes.tolist()]


def coded_names(column: Column, missing: frozenset[str]) -> tuple[list[str | None], Integers]:
    """Names, and for each cell the place of its own among them; a name may be there more than once."""
    if isinstance(column, np.ndarray):
        return [_name(cell, missing) for cell in column], np.arange(len(column))
    if pa.types.is_null(column.type):
        return [None], np.zeros(len(column), dtype=np.int64)
    if pa.types.is_dictionary(column.type):
        return [*names(column.dictionary, missing), None], _codes(column)
    distinct = _distinct(column)
    return [*(_name(cell, missing) for cell in distinct.dictionary.to_pylist()), None], _codes(distinct)


def texts(column: Column) -> list[str | None]:
    """Every cell as the text that stands there, None where nothing does."""
    cells = column if isinstance(column, np.ndarray) else _decodable(column).to_pylist()
    return [None if is_nothing(cell) else decoded(cell) if isinstance(cell, bytes) else str(cell) for cell in cells]


def _decodable(column: pa.Array) -> pa.Array:
    """Texts as bytes, since they need not be valid."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type) and column.type.bit_width < 128:  # which pyarrow cannot encode
        column = column.cast(pa.decimal128(38, column.type.scale))
    return _as_bytes(column) if _holds_text(column.type) else column


def _name(cell: object, missing: frozenset[str]) -> str | None:
    """A text; objects of other classes than Python's, numpy's and pandas' name nobody."""
    text = text_of(cell, missing)
    if text is None or text != UNKNOWN or isinstance(cell, (str, bytes)):
        return text if text is None else _WHOLE.sub(r"\1", text)  # 7.0 is 7: two names for one would split a person
    if not is_name(cell):  # writing it would run code of its own
        return None
    try:
        return f"{type(cell).__name__} {cell}"
    except Exception:  # whatever a cell's conversion raises, it must not be seen
        return None


def _looked_up(cells: list[Any], labels: Sequence[Label], missing: frozenset[str]) -> Integers:
    """``position_of`` one by one; by a dictionary where labels are texts, which may be many."""
    if are_numbers(labels):
        return np.array([position_of(cell, labels, missing) for cell in cells], dtype=np.int64)
    places: dict[str | None, int] = {str(label): i for i, label in reversed(list(enumerate(labels)))}
    places[None] = MISSING
    return np.array([places.get(text_of(cell, missing), len(labels)) for cell in cells], dtype=np.int64)


def _among(cells: Floats, labels: Sequence[Label]) -> Integers:
    """Numbers among labels; a label that is a text stands for the number that is written so."""
    if are_numbers(labels):
        position_of = {float(label): i for i, label in reversed(list(enumerate(labels)))}
    else:
        position_of = {
            v: i for i, v in enumerate(map(number_of, labels)) if not math.isnan(v) and plain_number(v) == labels[i]
        }
    out = np.full(len(cells), len(labels), dtype=np.int64)
    if position_of:
        values = np.array(sorted(position_of))
        at = np.minimum(np.searchsorted(values, cells), len(values) - 1)
        places = np.array([position_of[value] for value in values.tolist()], dtype=np.int64)
        out = np.where(values[at] == cells, places[at], out)
    out[~np.isfinite(cells)] = MISSING
    return out


def _parsed(column: pa.Array, missing: frozenset[str]) -> Floats:
    """Texts as numbers, by a compiled pass where rounding is plain, the few others by Arrow's own parser."""
    plain = _as_bytes(column)
    codes = np.array([float(text) for text in missing if is_number_text(text)])
    values, unsure = read_numbers(*_bytes(plain), codes)
    if plain.null_count:
        values[plain.is_null().to_numpy(zero_copy_only=False)] = math.nan
    if (at := np.flatnonzero(unsure)).size:
        values[at] = _with_care(plain.take(pa.array(at)), missing)
    return values


def _as_bytes(column: pa.Array) -> pa.Array:
    """Texts as long bytes; those that are need no cast, which would copy them."""
    return column if pa.types.is_large_binary(column.type) else column.cast(pa.large_binary())


def _bytes(column: pa.Array) -> tuple[Integers, NDArray[np.uint8]]:
    """The offsets of long texts, and the bytes that these point into."""
    _, offsets, data = column.buffers()
    if offsets is None or data is None:
        return np.zeros(len(column) + 1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    first = np.frombuffer(offsets, dtype=np.int64, count=len(column) + 1, offset=8 * column.offset)
    return first, np.frombuffer(data, dtype=np.uint8)


def _with_care(column: pa.Array, missing: frozenset[str]) -> Floats:
    """Texts as numbers: all at once where every one is as Arrow writes numbers, else distinct one by one."""
    absent = pc.is_in(column, pa.array([text.encode() for text in sorted(missing)], pa.large_binary()))
    try:
        plain = pc.if_else(absent, pa.scalar(None, pa.large_binary()), column)
        return _without(_as_floats(plain), codes_of(missing))
    except pa.ArrowInvalid:
        return _one_by_one(column, missing)


def _one_by_one(column: pa.Array, missing: frozenset[str]) -> Floats:
    return _numbers_by(_distinct(column), lambda values: numbers(_cells(values.to_pylist()), missing))


def _as_floats(column: pa.Array) -> Floats:
    """Without a copy where they are doubles and none is missing."""
    doubles = column if pa.types.is_float64(column.type) else column.cast(pa.float64(), safe=False)
    return np.asarray(doubles.to_numpy(zero_copy_only=False), dtype=np.float64)


def _distinct(column: pa.Array) -> pa.DictionaryArray:
    """The column as codes of its distinct cells; texts as bytes, since they need not be valid."""
    return _decodable(column).dictionary_encode()


def _numbers_by(column: pa.Array, meaning: Callable[[pa.Array], Floats]) -> Floats:
    """What each distinct value means, spread over the rows."""
    return np.append(meaning(column.dictionary), math.nan)[_codes(column)]


def _positions_by(column: pa.Array, meaning: Callable[[pa.Array], Integers]) -> Integers:
    return np.append(meaning(column.dictionary), np.int64(MISSING))[_codes(column)]


def _codes(column: pa.Array) -> Integers:
    """Each row's place in the dictionary; behind its end for a missing cell."""
    codes = column.indices.cast(pa.int64()).fill_null(len(column.dictionary))
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)


def _cells(values: list[Any]) -> NDArray[np.object_]:
    return np.fromiter(values, dtype=object, count=len(values))


def _holds_text(kind: pa.DataType) -> bool:
    names = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return any(test(kind) for name in names if (test := getattr(pa.types, f"is_{name}", None)) is not None)


def check_stored(name: str, kind: pa.DataType) -> None:
    """Refuse a column that is stored as something else than numbers, texts or truth: a fact of the container."""
    if pa.types.is_dictionary(kind):
        return check_stored(name, kind.value_type)
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    if not (_holds_text(kind) or any(test(kind) for test in tests)):
        raise Unsupported(f"column {name!r} is stored as {_shown(kind)}: write it as a number or a text, or ignore it")
    return None


def _shown(kind: pa.DataType) -> str:
    return re.split(r"[\[(<]", str(kind))[0]


def _without(values: Floats, codes: list[float]) -> Floats:
    """Numbers with NaN for those that are codes for nothing."""
    return np.where(np.isin(values, codes), math.nan, values) if codes else values
