"""Tables that are made while they are read: record batches that pass by once, and lazy frames, which are run again.

Neither is gathered: batches are encoded one by one. What makes them may quote cells in errors, which are replaced.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from discreet.curator.tables.sources import BATCH_ROWS, Batch, FrameSource, Source, whole
from discreet.curator.unquoted import unquoted
from discreet.errors import Unsupported

TWICE = (
    "this stream of record batches can be read once, and a private range or a person column takes two passes: write it "
    "to a Parquet file, or pass it as a table (read_all())"
)
_NO_ROWS = (
    "a stream of record batches does not say how many rows it has before they are read: declare rows in the schema "
    "where you fit, or pass it as a table (read_all())"
)
_OTHER_ROWS = "the stream does not have as many rows as the schema declares: correct rows, and make the stream again"
_ENDED = "this stream of record batches was read before: make it again"
_BROKEN = "the table cannot be read to its end: does its query or its reader fail on a value, or has it changed?"


def is_batch_stream(table: Any) -> bool:
    """Return whether a table is handed over batch by batch: a reader, or another library's stream without a length."""
    if isinstance(table, pa.RecordBatchReader):
        return True
    held = hasattr(table, "iloc") or hasattr(table, "__len__") or hasattr(table, "__arrow_c_array__")
    return not held and hasattr(table, "__arrow_c_stream__")


def is_lazy_frame(table: Any) -> bool:
    """Return whether a table is a lazy frame of polars."""
    return type(table).__name__ == "LazyFrame" and hasattr(table, "collect_schema")


def table_in_memory(table: Any, rows: int | None = None) -> Source:
    """Return a table that is no file; ``rows`` are declared of one that does not know its own."""
    if is_lazy_frame(table):
        return LazySource(table)
    return StreamSource(table, rows) if is_batch_stream(table) else FrameSource(table)


class StreamSource(Source):
    """Record batches that pass by once: ``rows`` of them in all, as declared, where that has to be known before."""

    once = True

    def __init__(self, stream: Any, rows: int | None = None) -> None:
        with _unquoted():
            self._reader = pa.RecordBatchReader.from_stream(stream)
            self._types = list(self._reader.schema.types)
            self.names = list(self._reader.schema.names)
        self._rows, self._begun = rows, False

    def count(self) -> int:
        """The number of rows that is declared."""
        if self._rows is None:
            raise Unsupported(_NO_ROWS)
        return self._rows

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored."""
        return [self._types[self.names.index(column)]]

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """All rows of these columns, once; another number of rows than declared is refused."""
        if self._begun:
            raise Unsupported(_ENDED)
        self._begun = True
        places, done = [self.names.index(name) for name in columns], 0
        for batch in _quietly(self._reader):
            done += batch.num_rows
            if self._rows is not None and done > self._rows:
                raise Unsupported(_OTHER_ROWS)
            yield from _cut(columns, [batch.column(place) for place in places], batch.num_rows, rows)
        if self._rows is not None and done != self._rows:
            raise Unsupported(_OTHER_ROWS)


class LazySource(Source):
    """A lazy frame of polars: every pass runs its query, which gives the rows in blocks."""

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "collect_batches"):
            raise Unsupported("lazy frames are read by polars 1.34 and newer: pass X.collect()")
        self._frame, self._rows = frame, -1
        with _unquoted():
            empty = frame.collect_schema().to_frame().to_arrow()
        self.names, self._types = list(empty.schema.names), list(empty.schema.types)

    def count(self) -> int:
        """The number of rows: the query is run, and no cell is looked at."""
        if self._rows < 0:
            from polars import len as length

            with _unquoted():
                self._rows = int(self._frame.select(length()).collect(engine="streaming").item())
        return self._rows

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored."""
        return [self._types[self.names.index(column)]]

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """All rows of these columns, in the query's order."""
        with _unquoted():
            frames = iter(self._frame.select(list(columns)).collect_batches(chunk_size=rows, maintain_order=True))
        for frame in _quietly(frames):
            with _unquoted():
                table = pa.table(frame)
                parts = [whole(table.column(place)) for place in range(len(columns))]
            yield from _cut(columns, parts, table.num_rows, rows)


def _cut(columns: Sequence[str], parts: list[pa.Array], count: int, rows: int) -> Iterator[Batch]:
    for first in range(0, count, rows):
        cells = [part.slice(first, rows) for part in parts]
        yield Batch(dict(zip(columns, cells, strict=True)), min(rows, count - first))


def _quietly(items: Any) -> Iterator[Any]:
    """Yield the items; what making one raises is replaced."""
    while True:
        with _unquoted():
            item = next(items, None)
        if item is None:
            return
        yield item


def _unquoted() -> unquoted:
    """Replace whatever another library raises."""
    return unquoted(_BROKEN, when=_is_panic)


def _is_panic(error: BaseException) -> bool:
    """Whether Rust code of polars gave up, which is no Exception."""
    return type(error).__module__.startswith(("pyo3", "polars"))
