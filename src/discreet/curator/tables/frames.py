"""Tables in memory and tables that are made while they are read: data frames, record batches, lazy frames.

What is asked of a source is its container: names, the number of rows, how columns are stored. Cells are only read by
``batches``. Batches that pass by once, and lazy frames, which are run again, are not gathered but encoded one by one.
Errors of readers, and of what makes batches, are not passed on: they quote cells.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.curator.records.admission import Table
from discreet.curator.tables.cells import Column, check_stored, texts
from discreet.errors import Unsupported, unquoted
from discreet.schema.cell_meaning import some

BATCH_ROWS = 1 << 15


@dataclass(frozen=True, repr=False)
class Batch:
    """Some rows of some columns."""

    columns: Mapping[str, Column]
    rows: int


class Source(ABC):
    """A table that can be read from the start as often as needed, unless it says that it can be read only ``once``."""

    names: list[str]
    once: bool = False
    """Whether it can be read only once."""

    @abstractmethod
    def count(self) -> int:
        """The number of rows."""

    @abstractmethod
    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """All rows of these columns, at most ``rows`` at a time."""

    def read_ahead(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """The same batches; sources that wait for a disk or a decoder read the next ones in another thread."""
        return self.batches(columns, rows)

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored, file by file; nothing where its cells may be of any kind."""
        return []

    def check(self, columns: Iterable[str]) -> None:
        """Refuse a table that lacks a column, has it twice, or stores it as something else than cells."""
        counts = Counter(self.names)
        wanted = list(columns)
        lacking = [name for name in wanted if name not in counts]
        if lacking:
            meant = {name.strip().casefold() for name in lacking}
            alike = [name for name in counts if str(name).strip().casefold() in meant]
            raise Unsupported(
                f"the table has no column {some(lacking)}, which the schema declares"
                + (f"; it has {some(alike)}: names must be equal to the letter" if alike else "")
            )
        twice = [name for name in wanted if counts[name] > 1]
        if twice:
            raise Unsupported(f"the table has {', '.join(map(repr, twice))} more than once: rename one")
        for name in wanted:
            for kind in self.stored(name):
                check_stored(name, kind)


class Keeping(Source):
    """A source that keeps some more columns of the batch that was read last, as texts."""

    def __init__(self, source: Source, keep: Sequence[str]) -> None:
        self._source, self._keep = source, list(keep)
        self.names, self.kept, self.once = source.names, dict[str, pa.Array](), source.once

    def count(self) -> int:
        return self._source.count()

    def stored(self, column: str) -> list[pa.DataType]:
        return self._source.stored(column)

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """All rows of these columns; ``kept`` belongs to the batch that was given last."""
        for batch in self._source.read_ahead(list(dict.fromkeys([*columns, *self._keep])), rows):
            self.kept = {name: pa.array(texts(batch.columns[name]), pa.large_string()) for name in self._keep}
            yield batch


class DeclaredSource(Source):
    """A table that is only planned: names and a number of rows, and nothing to read."""

    def __init__(self, names: Iterable[str], rows: int) -> None:
        self.names, self._rows = list(names), rows

    def count(self) -> int:
        """The number of rows that is planned."""
        return self._rows

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """Rows that name themselves as persons, and nothing else."""
        for first in range(0, self._rows, rows):
            count = min(rows, self._rows - first)
            yield Batch(dict.fromkeys(columns, pa.array(range(first, first + count))), count)


class FrameSource(Source):
    """A data frame of pandas or polars, a pyarrow table, or a dictionary of columns."""

    def __init__(self, table: Table) -> None:
        if isinstance(table, pa.RecordBatchReader):
            raise Unsupported("a reader of record batches can be read once: pass it as a table, reader.read_all()")
        if isinstance(table, pa.RecordBatch):
            table = pa.table(table)
        if isinstance(table, Mapping):
            table = _frame(table)
        if not isinstance(table, pa.Table) and not hasattr(table, "iloc") and hasattr(table, "__arrow_c_stream__"):
            table = _from_stream(table)
        if not (isinstance(table, pa.Table) or (hasattr(table, "iloc") and hasattr(table, "columns"))):
            raise Unsupported(
                "a table has named columns: pass a data frame of pandas or polars, a pyarrow table, or a file of CSV "
                "or Parquet"
            )
        self._table = table
        self._stored: dict[str, list[pa.DataType]] = {}
        self.names = [str(name) for name in (table.column_names if self._is_arrow else table.columns)]

    @property
    def _is_arrow(self) -> bool:
        return isinstance(self._table, pa.Table)

    def count(self) -> int:
        return int(self._table.num_rows if self._is_arrow else len(self._table))

    def stored(self, column: str) -> list[pa.DataType]:
        if column not in self._stored:
            self._stored[column] = self._looked_up(column)
        return self._stored[column]

    def _looked_up(self, column: str) -> list[pa.DataType]:
        if self._is_arrow:
            return [self._table.schema.field(self.names.index(column)).type]
        empty = self._table.iloc[:0, self.names.index(column)]
        if empty.dtype == object:
            return []
        if getattr(empty.dtype, "kind", "O") in "cmM":
            raise Unsupported(f"column {column!r} holds dates or complex numbers: write it as a number or a text")
        try:
            return [pa.array(empty, from_pandas=True).type]
        except (pa.ArrowException, TypeError, ValueError):  # what pyarrow does not know is read cell by cell
            return []

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        places = [self.names.index(name) for name in columns]
        chosen = [self._table.column(place) if self._is_arrow else self._table.iloc[:, place] for place in places]
        for first in range(0, self.count(), rows):
            last = min(self.count(), first + rows)
            if self._is_arrow:
                part = [whole(column.slice(first, last - first)) for column in chosen]
            else:
                part = [_series(column.iloc[first:last]) for column in chosen]
            yield Batch(dict(zip(columns, part, strict=True)), last - first)


def _from_stream(table: object) -> pa.Table:
    """Return another library's table, such as polars', on the same memory."""
    with unquoted("the Arrow table cannot be read to its end: pass a pyarrow.Table or a data frame"):
        return pa.table(table)  # a stream may read a file on the way


def whole(chunks: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Chunks in one piece."""
    if isinstance(chunks, pa.ChunkedArray):
        if pa.types.is_dictionary(chunks.type) and chunks.num_chunks > 1:  # codes of two may be too many for their type
            chunks = pa.chunked_array([chunk.dictionary_decode() for chunk in chunks.chunks])
        combined = chunks.combine_chunks()
        return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined
    return chunks


def _series(series: Table) -> Column:
    """A pandas column as it is stored; cells of any kind stay cells, and so does what pyarrow does not know."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf":
        return pa.array(series.to_numpy())
    try:
        if series.dtype != object:
            return whole(pa.array(series, from_pandas=True))
        if _are_texts(series.tolist()):
            return pa.array(series.to_numpy(), pa.large_string(), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    return np.fromiter(series, dtype=object, count=len(series))


def _are_texts(cells: list[object]) -> bool:
    """Whether every cell is a text or missing, so that all may be read as one type."""
    kinds = set(map(type, cells))
    return kinds <= {str, float, type(None)} and all(cell != cell for cell in cells if type(cell) is float)


def _untyped(values: object) -> Table:
    """A list, or an array without a type, as cells of any kind: a type for all of them would be guessed from each."""
    import pandas as pd

    if isinstance(values, np.ndarray) and values.dtype.kind in "OU":
        return pd.Series(values.astype(object), dtype=object)
    if not isinstance(values, (list, tuple)):
        return values
    return pd.Series(np.fromiter(values, dtype=object, count=len(values)), dtype=object)


def _frame(columns: Mapping[str, object]) -> Table:
    import pandas as pd

    try:
        cells = {name: _untyped(values) for name, values in columns.items()}
        if len({len(values) for values in cells.values()}) <= 1:
            return pd.DataFrame(cells)
    except (TypeError, ValueError):
        pass
    raise Unsupported("a dictionary of columns needs lists of the same length")


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


def is_batch_stream(table: object) -> bool:
    """Return whether a table is handed over batch by batch: a reader, or another library's stream without a length."""
    if isinstance(table, pa.RecordBatchReader):
        return True
    held = hasattr(table, "iloc") or hasattr(table, "__len__") or hasattr(table, "__arrow_c_array__")
    return not held and hasattr(table, "__arrow_c_stream__")


def is_lazy_frame(table: object) -> bool:
    """Return whether a table is a lazy frame of polars."""
    return type(table).__name__ == "LazyFrame" and hasattr(table, "collect_schema")


def table_in_memory(table: object, rows: int | None = None) -> Source:
    """Return a table that is no file; ``rows`` are declared of one that does not know its own."""
    if is_lazy_frame(table):
        return LazySource(table)
    return StreamSource(table, rows) if is_batch_stream(table) else FrameSource(table)


class StreamSource(Source):
    """Record batches that pass by once: ``rows`` of them in all, as declared, where that has to be known before."""

    once = True

    def __init__(self, stream: object, rows: int | None = None) -> None:
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

    def __init__(self, frame: Table) -> None:
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
