"""Numbers that a compiled pass reads are those of the definition to the last bit, or are left to be looked at."""

import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.curator.tables import cells
from discreet.curator.tables.cells import numbers, read_numbers
from discreet.schema.cell_meaning import number_of

NONE = np.empty(0)


def read(texts, codes=NONE):
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    return read_numbers(offsets, np.frombuffer(b"".join(texts), dtype=np.uint8), codes)


def bits(value):
    return None if math.isnan(value) else struct.pack("<d", value)


def agrees(texts):
    found, unsure = read(texts)
    for text, value, is_unsure in zip(texts, found.tolist(), unsure.tolist(), strict=True):
        if not is_unsure:
            assert bits(value) == bits(number_of(text, frozenset())), text
    return unsure


def written(digits, places, exponent):
    """A decimal in one of the ways to write it."""
    text = f"{digits:0{places + 1}d}"
    text = f"{text[:-places]}.{text[-places:]}" if places else text
    return text if exponent is None else f"{text}e{exponent}"


@settings(max_examples=300)
@given(
    st.lists(
        st.builds(
            lambda sign, number, blank: f"{blank}{sign}{number}{blank}".encode(),
            st.sampled_from(["", "-", "+"]),
            st.builds(
                written,
                st.integers(0, 10**20) | st.integers(2**53 - 3, 2**53 + 3),
                st.integers(0, 25),
                st.none() | st.integers(-330, 330),
            ),
            st.sampled_from(["", " ", "\t"]),
        ),
        max_size=20,
    )
)
def test_decimals_are_rounded_as_python_rounds_them(texts):
    agrees(texts)


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=8) | st.text("0123456789+-.eE \t_x", max_size=12).map(str.encode), max_size=20))
def test_what_is_no_number_is_none(texts):
    agrees(texts)


def test_many_plain_decimals():
    """Which are all read at once: nothing is left to a slower way."""
    rng = np.random.default_rng(0)
    whole, places = rng.integers(-(10**15), 10**15, 20_000).tolist(), rng.integers(0, 16, 20_000).tolist()
    texts = [f"{'-' if w < 0 else ''}{written(abs(w), k, None)}".encode() for w, k in zip(whole, places, strict=True)]
    assert not agrees(texts).any()


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        *((b"9007199254740992", True), (b"9007199254740993", False), (b"9007199254740992e22", True)),
        *((b"1e23", False), (b"1e-22", True), (b"1e-23", False), (b"0e999", True), (b"-0.0", True)),
        *((b"0.30000000000000004", False), (b"000000000000000000000001", True), (b"1" * 400, False)),
    ],
)  # fmt: skip
def test_where_rounding_is_plain(text, sure):
    assert agrees([text]).tolist() == [not sure]


def test_codes_are_looked_at():
    _, unsure = read([b"-9", b"9", b"-9.0", b"-90", b"8"], np.array([-9.0]))
    assert unsure.tolist() == [True, True, True, False, False]
    column = pa.array([b"-9", b" -9 ", b"-9.0", b"-09", b"-90"], pa.binary())
    for missing in (frozenset({"-9"}), frozenset({"-9.0"}), frozenset({"-09"}), frozenset()):
        expected = [number_of(cell, missing) for cell in column.to_pylist()]
        np.testing.assert_array_equal(numbers(column, missing), expected)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.string_view()], ids=str)
def test_parts_of_a_column(kind):
    """Offsets of a slice, cells without a value, and columns without a byte."""
    texts = ["1.5", None, "x", "0.1234567890123456789", "", "-7"] * 3
    column = pa.array(texts, pa.string()).cast(kind)
    for first, count in ((0, 18), (1, 5), (4, 1), (5, 13), (18, 0)):
        expected = [number_of(text, frozenset()) for text in texts[first : first + count]]
        np.testing.assert_array_equal(numbers(column.slice(first, count), frozenset()), expected)
    np.testing.assert_array_equal(numbers(pa.array([None, ""], pa.string()).cast(kind), frozenset()), [math.nan] * 2)


def test_a_wrong_rounding_would_be_noticed():
    """Twice the places that are exact: some results differ in their last bit."""
    rng = np.random.default_rng(0)
    texts = [
        f"{w}e-{k}".encode() for w, k in zip(rng.integers(1, 2**53, 2000), rng.integers(23, 40, 2000), strict=True)
    ]
    powers = np.array([float(10**k) for k in range(45)])
    found = np.array([float(text.split(b"e")[0]) / powers[int(text.split(b"-")[1])] for text in texts])
    assert any(bits(a) != bits(float(text)) for a, text in zip(found.tolist(), texts, strict=True))
    assert agrees(texts).all()
    assert len(cells._POWERS) == 23


@pytest.mark.parametrize("sign", [b"", b"-"])
def test_an_exponent_beyond_what_is_counted_is_looked_at(sign):
    """Many places behind the point must not make up for what was cut off an exponent."""
    places = b"." + b"0" * (cells._FAR + 4) + b"1e"
    for text in (sign + places + b"2000000", sign + places + b"%d" % (cells._FAR + 10)):
        agrees([text])
        assert bits(float(numbers(pa.array([text]), frozenset())[0])) == bits(number_of(text, frozenset()))
