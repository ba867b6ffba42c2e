"""What a cell means, in every container: always what the definition says of that cell alone."""

import datetime
import math
import subprocess
import sys
import uuid
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.curator.tables import cells
from discreet.curator.tables.cells import numbers, positions
from discreet.curator.tables.frames import FrameSource, whole
from discreet.errors import Unsupported
from discreet.schema.cell_meaning import MISSING, MISSING_TEXTS, number_of, position_of

STANDARD = frozenset(MISSING_TEXTS)
LABELS = {
    "texts": ("a", "7", "true", "0.5", "1.0", "-3", "\u00e9", "nothing", "1e+16", "10000000000000000", "NaN", "x y"),
    "numbers": (7, -3, 0, 0.5, 1e300, 10**16),
}
MISSINGS = {"usual": STANDARD, "none": frozenset(), "codes": frozenset({"-9", "7", "a", ""})}


class Refuses:
    """A cell that raises, with its contents, whatever is done to it."""

    def __float__(self):
        raise RuntimeError("contents")

    def __eq__(self, other):
        raise RuntimeError("contents")

    def __hash__(self):
        raise RuntimeError("contents")


NASTY_TEXTS = [
    *("", " ", "7", " 7 ", "\t7\r\n", "+3", "-3", "-3.0", "3.", ".5", "-.5", ".", "+", "-", "e5", "1e5", "1E+5", "1e"),
    *("1e999", "-1e999", "1e-999", "inf", "-inf", "Infinity", "nan", "NaN", "-nan", "nan(3)", "1_000", "1,000", "0x10"),
    *("\uff11", "\u0661", "\u00bd", "1\u00a0", "\u00a01", "7\0", "\0", "1d5", "1f", "--1", "1 2", "$1", "1%", "00012"),
    *("9007199254740993", "0.1", "0.30000000000000004", "4.9e-324", "2.4e-324", "1.7976931348623159e308", "1" * 400),
    *("0." + "0" * 400 + "1", "true", "True", "TRUE", "\u00e9", "a", "A", "None", "null", "?", "-9", "-9.0", " -9 "),
    *("x y", "nothing", "1e+16", "10000000000000000", "NA", "n/a", "N/A"),
]
NASTY_BYTES = [b"", b"7", b" 7 ", b"\xff", b"7\xff", b"\xc3\xa9", b"\xe9", b"\xed\xa0\x80", b"\x007", b"inf", b"a"]
NASTY_OBJECTS = [
    *(None, pd.NA, pd.NaT, math.nan, math.inf, -math.inf, -0.0, 0, 7, True, False, 10**400, 2**53 + 1, 1e300),
    *(-(10**400), 2**64, -(2**63) - 1, np.int64(2**53 + 1)),
    *(Decimal("7"), Decimal("sNaN"), Decimal("NaN"), Decimal("Infinity"), Decimal("1e99999"), Decimal("0.5")),
    *(np.float16(0.5), np.float32(0.1), np.longdouble("1e4000"), np.int8(7), np.uint64(2**64 - 1), np.bool_(True)),
    *(1j, np.complex128(7), np.datetime64("NaT"), np.timedelta64(7, "s"), np.array(7.0), np.array([7.0])),
    *([], [7], [[7]], (), (7,), {}, {"a": 7}, {7}, object, len, datetime.date(2000, 1, 1), uuid.UUID(int=7)),
    *("\ud800", "7\udc80", b"7", np.str_("7"), np.bytes_(b"7"), range(7), np.array([1, 2])),
    slice(7),
]  # fmt: skip

text = st.one_of(
    st.sampled_from(NASTY_TEXTS),
    st.text(max_size=6),
    st.text("0123456789+-.eE _", max_size=12),
    st.floats().map(repr),
    st.integers().map(str),
)
valid_text = text.filter(lambda t: not any("\ud800" <= c <= "\udfff" for c in t))
raw = st.one_of(st.sampled_from(NASTY_BYTES), st.binary(max_size=6), valid_text.map(str.encode))
number = st.one_of(st.floats(), st.integers(-(2**63), 2**63 - 1), st.booleans(), st.decimals(), st.integers())
anything = st.one_of(text, raw, number, st.sampled_from(NASTY_OBJECTS), st.none())


def same(found, expected):
    """Equal as numbers; what is not finite is NaN, however it is written and whatever stands next to it."""
    np.testing.assert_array_equal(found, expected)
    assert not np.isinf(found).any()


def agree(column, listed, rows=None):
    """A column means, cell by cell, what the definition says."""
    for missing in MISSINGS.values():
        same(numbers(column, missing), [number_of(cell, missing) for cell in listed])
        for labels in LABELS.values():
            expected = [position_of(cell, labels, missing) for cell in listed]
            assert positions(column, labels, missing).tolist() == expected


def boxed(listed):
    column = np.empty(len(listed), dtype=object)
    for i, cell in enumerate(listed):
        column[i] = cell
    return column


def framed(listed):
    return FrameSource(pd.DataFrame({"c": pd.Series(boxed(listed), dtype=object)}))


def columns_of(source, rows):
    return [batch.columns["c"] for batch in source.batches(["c"], rows)]


# ---------------------------------------------------------------------------------------- the definition itself


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        *((7, 7.0), (7.0, 7.0), ("7", 7.0), (b" 7\r", 7.0), (True, 1.0), (Decimal("0.3"), 0.3), (np.float16(0.5), 0.5)),
        *(("+3", 3.0), ("3.", 3.0), (".5", 0.5), ("1e-999", 0.0), (np.uint64(2**64 - 1), float(2**64)), ("-0", 0.0)),
    ],
)
def test_numbers(cell, expected):
    assert number_of(cell) == expected


@pytest.mark.parametrize(
    "cell",
    [
        *("", "?", "1e999", "inf", "nan", "nan(3)", "\uff11", "1_000", "0x10", "1 2", "\ud800", b"\xff", None),
        *(pd.NA, pd.NaT, math.inf),
        *(10**400, Decimal("sNaN"), Decimal("1e99999"), 1j, np.complex128(7), [7], np.array(7.0), Refuses()),
    ],
)  # fmt: skip
def test_no_numbers(cell):
    assert math.isnan(number_of(cell))


def test_every_cell_has_a_place():
    for cell, labels in product([*NASTY_OBJECTS, *NASTY_TEXTS, *NASTY_BYTES, Refuses()], LABELS.values()):
        assert MISSING <= position_of(cell, labels) <= len(labels), type(cell)


def test_one_cell_cannot_stop_the_clock():
    """A text that is nearly a number is told to be none in time that grows with its length only."""
    code = "from discreet.schema.cell_meaning import number_of as f; f('1' * 60000 + 'x'); f('1' * 60000 + '.x')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=10)


# ---------------------------------------------------------------------------------------------------- containers


@settings(max_examples=40)
@given(st.lists(valid_text | st.none(), max_size=8))
@example(NASTY_TEXTS)
@example(["7", "inf", "nan", "NaN", "?", "-nan", "Infinity"])  # all of which Arrow's own parser takes
@example([" 7", "-9", "8"])
def test_texts(listed):
    texts = [cell for cell in listed if cell is None or not any("\ud800" <= c <= "\udfff" for c in cell)]
    plain = pa.array(texts, pa.string())
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.large_binary()):
        agree(plain.cast(kind), texts)
    agree(plain.dictionary_encode(), texts)
    agree(pa.chunked_array([plain, plain.dictionary_encode().cast(pa.string())]).combine_chunks(), texts * 2)


FAST = [
    *("inf", "Infinity", "-inf", "1e400", "nan", "NaN(12)", "0x1p3", "1_000", "\u0661\u0662", "-nan", "1e-400"),
    "+inf",
]


@settings(max_examples=150)
@given(
    st.sampled_from(FAST) | valid_text, st.lists(st.sampled_from([*FAST, "7", "-1.5", "x"]) | valid_text, max_size=6)
)
def test_a_cell_means_the_same_in_any_block(cell, others):
    """Alone, next to numbers only (parsed at once), and next to texts (parsed one by one)."""
    expected = number_of(cell, STANDARD)
    for block in ([cell], [cell, "7"], [cell, "x"], [cell, "inf"], [cell, *others]):
        for kind in (pa.string(), pa.large_binary()):
            same(numbers(pa.array(block, pa.string()).cast(kind), STANDARD)[:1], [expected])


@settings(max_examples=40)
@given(st.lists(raw | st.none(), max_size=8))
@example(NASTY_BYTES)
def test_bytes(listed):
    plain = pa.array(listed, pa.binary())
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        agree(plain.cast(kind), listed)
    agree(plain.dictionary_encode(), listed)
    agree(plain.view(pa.string()), listed)  # a file may call anything a string


@settings(max_examples=40)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, 7, -3, 10**16, 2**53 + 1]) | st.none()))
def test_integers(listed):
    agree(pa.array(listed, pa.int64()), listed)
    agree(pa.array(listed, pa.int64()).dictionary_encode(), listed)
    natural = [cell if cell is None else abs(cell) for cell in listed]
    agree(pa.array(natural, pa.uint64()), natural)
    small = [cell if cell is None else cell % 100 for cell in listed]
    for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32()):
        agree(pa.array(small, kind), small)


@settings(max_examples=40)
@given(st.lists(st.floats() | st.sampled_from([7.0, -3.0, 0.5, -0.0, 1e16]) | st.none()))
def test_floats(listed):
    agree(pa.array(listed, pa.float64()), listed)
    agree(pa.array(listed, pa.float64()).dictionary_encode(), listed)
    with np.errstate(all="ignore"):
        narrow = [cell if cell is None else np.float32(cell) for cell in listed]
        half = [cell if cell is None else np.float16(cell) for cell in listed]
    agree(pa.array(narrow, pa.float32()), narrow)
    agree(pa.array(half, pa.float16()), half)


@settings(max_examples=40)
@given(st.lists(st.decimals(-(10**9), 10**9, places=6) | st.none()))
@example([Decimal("0.300000"), Decimal("2.675000"), Decimal("1234567.123457"), Decimal("7"), Decimal("0.5")])
def test_decimals(listed):
    agree(pa.array(listed, pa.decimal128(38, 6)), listed)
    agree(pa.array(listed, pa.decimal256(50, 6)), listed)


@settings(max_examples=40)
@given(st.lists(anything, max_size=8), st.integers(1, 9))
@example(NASTY_OBJECTS, 100)
@example([[8], [9]], 1)
@example(NASTY_OBJECTS, 1)
@example(NASTY_TEXTS, 3)
def test_cells_of_any_kind_in_a_frame(listed, rows):
    parts = columns_of(framed(listed), rows)
    for at, part in zip(range(0, len(listed), rows), parts, strict=True):
        agree(part, listed[at : at + rows])


@pytest.mark.parametrize(
    "cell", [bytearray(b"7"), memoryview(b"7"), pa.scalar("7"), pa.scalar(7)], ids=lambda cell: type(cell).__name__
)
def test_cells_that_only_one_reader_knows(cell):
    """What Arrow takes for a text beside texts is one beside numbers too, or never."""
    for listed in ([cell], ["7", cell], [7, cell], [cell, None, b"a"]):
        (column,) = columns_of(framed(listed), 100)
        agree(column, listed)


def test_chunks_with_dictionaries_of_their_own():
    chunks = [pa.array(part).dictionary_encode() for part in (["a", "7"], ["7", None], ["x"])]
    source = FrameSource(pa.table({"c": pa.chunked_array(chunks)}))
    (column,) = columns_of(source, 100)
    agree(whole(column), ["a", "7", "7", None, "x"])


# -------------------------------------------------------------------------------------------------------- purity

CONTAINERS = {
    "cells": framed,
    "texts": lambda listed: FrameSource(pa.table({"c": pa.array([shown(c) for c in listed], pa.binary())})),
    "codes": lambda listed: FrameSource(
        pa.table({"c": pa.array([shown(c) for c in listed], pa.binary()).dictionary_encode()})
    ),
    "category": lambda listed: FrameSource(pd.DataFrame({"c": pd.Categorical([str(shown(c)) for c in listed])})),
}


def shown(cell):
    return cell if isinstance(cell, bytes) else str(cell).encode("utf-8", "replace")


@settings(max_examples=40)
@given(
    st.lists(valid_text, min_size=1, max_size=9),
    anything,
    st.integers(0, 8),
    st.integers(1, 10),
    st.sampled_from(sorted(CONTAINERS)),
)
@example(["7", "8", "9"], "x", 1, 3, "cells")
@example(["7", "8", "9"], b"\xff", 1, 3, "texts")
@example(["7", "8", "9"], [7], 1, 1, "cells")
def test_garbage_in_one_row_changes_no_other(listed, garbage, at, rows, container):
    """Whatever the container, the size of batches, and where in them the row stands."""
    at %= len(listed)
    changed = [garbage if i == at else cell for i, cell in enumerate(listed)]
    keep = [i for i in range(len(listed)) if i != at]
    for meaning in (
        lambda column: numbers(column, STANDARD),
        lambda column: positions(column, LABELS["texts"], STANDARD),
        lambda column: positions(cells.lowered(column), LABELS["texts"], STANDARD),
        lambda column: positions(column, LABELS["numbers"], STANDARD),
    ):
        before, after = (
            np.concatenate([meaning(column) for column in columns_of(CONTAINERS[container](table), size)])
            for table, size in ((listed, rows), (changed, len(listed)))
        )
        same(before[keep], after[keep])


# ------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.date32(), pa.timestamp("us"), pa.duration("s"), pa.time64("us"), pa.list_(pa.int64()), pa.binary(3)),
        *(pa.struct([("b", pa.int64())]), pa.map_(pa.string(), pa.int64()), pa.month_day_nano_interval()),
        *(pa.list_view(pa.int64()), pa.struct([("interview", pa.int64())]), pa.list_(pa.field("view", pa.int8()))),
    ],
    ids=str,
)
def test_how_a_column_is_stored_may_be_refused(kind):
    for stored in (kind, pa.dictionary(pa.int8(), kind)):
        with pytest.raises(Unsupported, match=r"'c' is stored as \w+"):
            cells.check_stored("c", stored)


# ------------------------------------------------------------------------------------------------------- persons


@settings(max_examples=40)
@given(st.lists(valid_text | st.none(), max_size=12), st.integers(1, 5))
def test_persons_are_numbered_in_the_order_of_rows(listed, rows):
    """However names are stored, and whatever else a dictionary holds: samples are drawn by these numbers."""
    from discreet.curator.tables.stream import TableStream
    from discreet.schema.columns import Number, Target
    from discreet.schema.schema import Schema

    schema = Schema({"a": Number((0, 1))}, Target("t", classes=(0, 1)), person="c")
    plain = pa.array(listed, pa.string())
    coded = pa.DictionaryArray.from_arrays(
        pa.array([None if cell is None else len(listed) - i for i, cell in enumerate(listed)], pa.int32()),
        pa.array(["nobody", *reversed(listed)], pa.string()),
    )
    seen = {}
    expected = [seen.setdefault(name, len(seen)) for name in cells.names(plain, STANDARD)]
    for column in (plain, coded, plain.dictionary_encode()):
        table = pa.table({"a": [0.0] * len(listed), "t": [0] * len(listed), "c": column})
        chunks = pa.concat_tables([table.slice(0, rows), table.slice(rows)])
        assert TableStream(FrameSource(chunks), schema).persons().tolist() == expected
