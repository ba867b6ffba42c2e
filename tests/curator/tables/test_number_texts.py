"""Numbers that a compiled pass reads are those of the definition to the last bit, or are left to be looked at."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.curator.tables.cells import read_numbers
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


@settings(max_examples=100)
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
