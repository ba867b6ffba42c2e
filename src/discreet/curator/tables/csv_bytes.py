"""Bytes of CSV files on their way through a reader that takes UTF-8 only.

The reader decodes lines that are no rows, and fails on what is not UTF-8, so that one cell would end the reading of a
table. It is given the bytes as if they were Latin-1, where every byte is a character, in UTF-8; its cells are turned
back into the bytes that were there.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit


def widened(chunk: Any) -> bytes:
    """Return bytes taken for Latin-1, in UTF-8: one or two bytes for each of them."""
    content = bytes(chunk)
    return content if content.isascii() else content.decode("latin-1").encode()


def narrowed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the cells of a batch of long texts as the bytes that were there."""
    return pa.RecordBatch.from_arrays([_narrowed(column) for column in batch.columns], schema=batch.schema)


def _narrowed(column: pa.Array) -> pa.Array:
    column = pa.concat_arrays([column]) if column.offset else column
    valid, offsets, data = column.buffers()
    if data is None:
        return column
    wide = np.frombuffer(data, dtype=np.uint8)
    if memoryview(data).tobytes().isascii():
        return column
    places = np.frombuffer(offsets, dtype=np.int64)[: len(column) + 1]
    found, ends = np.empty_like(wide), np.empty_like(places)
    size = _narrow(wide, places, found, ends)
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(found[:size])]
    return pa.Array.from_buffers(column.type, len(column), buffers)


@njit(cache=True, nogil=True)
def _narrow(wide, places, found, ends):  # type: ignore[no-untyped-def]
    """Undo ``widened`` cell by cell; return the number of bytes. A byte above 127 is the first of a character's two."""
    size = 0
    ends[0] = 0
    for i in range(places.size - 1):
        at = places[i]
        while at < places[i + 1]:
            byte = np.int64(wide[at])
            if byte >= 128:
                at += 1
                byte = ((byte & 3) << 6) | (np.int64(wide[at]) & 63)
            found[size] = byte
            size += 1
            at += 1
        ends[i + 1] = size
    return size
