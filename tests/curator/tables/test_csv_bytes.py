"""Bytes go through the reader and come back as they were."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator.tables.files import narrowed, widened


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(0, 4))
def test_every_byte_comes_back(cells, first):
    column = pa.array([widened(cell) for cell in cells], pa.large_binary())
    batch = pa.RecordBatch.from_arrays([column, pa.nulls(len(cells), pa.large_binary())], ["0", "1"]).slice(first)
    found = narrowed(batch)
    assert found.column(0).to_pylist() == cells[first:]
    assert found.column(1).null_count == max(0, len(cells) - first)
    assert found.schema == batch.schema


def test_texts_in_ascii_are_not_copied():
    batch = pa.RecordBatch.from_arrays([pa.array([b"7", b"x"], pa.large_binary())], ["0"])
    assert narrowed(batch).column(0).buffers()[2].address == batch.column(0).buffers()[2].address
