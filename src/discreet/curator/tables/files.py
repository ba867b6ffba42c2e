"""The one entrance of every table, and files of Parquet and CSV: one, several, a folder, or those of a pattern.

The next batches of a file are read while the last one is being used.

Bytes of CSV: the reader takes UTF-8 only. It decodes lines that are no rows, and fails on what is not UTF-8, so that
one cell would end the reading of a table. It is given the bytes as if they were Latin-1, where every byte is a
character, in UTF-8; its cells are turned back into the bytes that were there.

What a cluster needs is imported where a table is on one.
"""

import csv
import glob
import lzma
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numba import njit

from discreet.curator.records import admission
from discreet.curator.tables.frames import BATCH_ROWS, Batch, Source, table_in_memory
from discreet.errors import Unsupported, unquoted
from discreet.schema.cell_meaning import MAX_COLUMNS, decoded

Item = TypeVar("Item")

AHEAD = 2
"""Batches that wait to be used, at most: memory stays bounded, and a reader that is a little late is waited for."""
_END: Any = object()


def read_ahead(items: Generator[Item, None, None], depth: int = AHEAD) -> Iterator[Item]:
    """Yield the items, each made by another thread while those before it are being used; at most ``depth`` wait.

    They come one by one and in their order, so that nothing but time changes. What making one raises is raised here, in
    its place. When this iterator is closed, so are the items, after the one that is being made.
    """
    reader = ThreadPoolExecutor(1, thread_name_prefix="discreet-reader")
    try:
        waiting = deque(reader.submit(next, items, _END) for _ in range(depth))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(reader.submit(next, items, _END))
            yield item
            del item  # or it would be kept until the next one is there
    finally:
        reader.shutdown(cancel_futures=True)
        items.close()


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
    narrow, ends = np.empty_like(wide), np.empty_like(places)
    size = _narrow(wide, places, narrow, ends)
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(narrow[:size])]
    return pa.Array.from_buffers(column.type, len(column), buffers)


@njit(cache=True, nogil=True)
def _narrow(wide, places, narrow, ends):  # type: ignore[no-untyped-def]
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
            narrow[size] = byte
            size += 1
            at += 1
        ends[i + 1] = size
    return size


_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".tsv", ".txt")
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz"}
_SEPARATORS = ",;\t|"
"""Those that a header may tell by itself."""
_BLOCKS = (1 << 26, 1 << 29, (1 << 31) - 1)
"""Bytes that are read at a time where a single row is longer than a usual block."""
_CELL_BYTES = 1 << 17
"""Of a usual block, for each column: several blocks wait at a time, and each takes some microseconds per column."""
_HEADER = 1 << 20
_LINE_END = re.compile(rb"\r\n|\r|\n")
_FIRST_LINE = re.compile(rb"([\r\n]*)([^\r\n]*)")
_BUFFER = 1 << 16


def open_table(paths: Any, separator: str | None = None) -> Source:
    """The table in a file, in several files, in a folder, or in all that a pattern such as ``table/*.parquet`` names.

    One row after the other, in the order of the names; what begins with a dot is not meant by a pattern.
    """
    given = [Path(path) for path in (paths if isinstance(paths, (list, tuple)) else [paths])]
    files = [file for path in given for file in _files(path)]
    if not files:
        raise Unsupported("no file of CSV or Parquet is given")
    kinds = {_kind(file) for file in files}
    if kinds == {"parquet"}:
        return ParquetSource(files)
    if kinds == {"csv"}:
        return CsvSource(files, separator)
    raise Unsupported(
        "a table's files are all CSV or all Parquet (.csv, .tsv, .txt, also .gz, .bz2, .xz, .zst; .parquet)"
    )


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file() and _kind(file) and _is_meant(file, path))
    if path.exists():
        return [path]
    if not any(sign in str(path) for sign in "*?["):
        raise Unsupported(f"{path}: there is no such file")
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    files = dict.fromkeys(file for match in matches if match.is_dir() or _kind(match) for file in _files(match))
    if not files:
        raise Unsupported(f"{path}: no file of CSV or Parquet has such a name")
    return list(files)


def _is_meant(file: Path, folder: Path) -> bool:
    """Hidden files and folders, and those that begin with _, are other programs' own."""
    return not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _kind(path: Path) -> str:
    """By the name's end, as people name files."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    return "parquet" if last in _PARQUET else "csv" if last in _CSV else ""


class FileSource(Source):
    """Files: the next batches are read while the last one is being encoded."""

    @abstractmethod
    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Generator[Batch, None, None]:
        """All rows of these columns, file after file."""

    def read_ahead(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        return read_ahead(self.batches(columns, rows))


class ParquetSource(FileSource):
    """Parquet files with the same columns."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files, self._rows = list(files), 0
        self._types: list[dict[str, pa.DataType]] = []
        for file in self._files:
            with _unquoted(file), pyarrow.parquet.ParquetFile(file) as opened:
                self._rows += opened.metadata.num_rows
                names, types = list(opened.schema_arrow.names), list(opened.schema_arrow.types)
            _check_width(file, len(names))
            if not self._types:
                self.names = names
            _check_same(self.names, names)
            self._types.append(dict(zip(reversed(names), reversed(types), strict=True)))

    def count(self) -> int:
        """The number of rows, from the files' footers."""
        return self._rows

    def stored(self, column: str) -> list[pa.DataType]:
        return [types[column] for types in self._types]

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Generator[Batch, None, None]:
        """All rows of these columns, file after file; texts as codes of their distinct values."""
        for file in self._files:
            yield from self._read(file, columns, rows)

    def _read(self, file: Path, columns: Sequence[str], rows: int, **which: object) -> Iterator[Batch]:
        with _unquoted(file), pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER) as opened:
            for batch in opened.iter_batches(batch_size=rows, columns=list(columns), **which):
                yield Batch({name: batch.column(name) for name in columns}, batch.num_rows)

    @property
    def files(self) -> list[Path]:
        """The files, in the order of their rows."""
        return list(self._files)

    @property
    def types(self) -> list[dict[str, pa.DataType]]:
        """How each file stores each column."""
        return list(self._types)


def read_row_groups(file: Path) -> list[int]:
    """The number of rows in each group of rows of a Parquet file, from its footer."""
    with _unquoted(file), pyarrow.parquet.ParquetFile(file) as opened:
        footer = opened.metadata
        return [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]


class CsvSource(FileSource):
    """CSV files with the same columns, every cell a text. A line with too many or too few cells is a row of nothing."""

    def __init__(self, files: Sequence[Path], separator: str | None = None) -> None:
        self._files = [(file, _Header(file, separator)) for file in files]
        self.names = self._files[0][1].names
        for _, header in self._files:
            _check_same(self.names, header.names)
        self._rows: int | None = None

    @property
    def files(self) -> list[Path]:
        """The files, in the order of their rows."""
        return [file for file, _ in self._files]

    def count(self) -> int:
        """The number of rows: lines are counted, cells are not looked at."""
        if self._rows is None:
            first = self.names[:1]
            self._rows = sum(batch.rows for batch in self.batches(first))
        return self._rows

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Generator[Batch, None, None]:
        for file, header in self._files:
            with _unquoted(file):
                yield from _read_csv(file, header, list(columns), rows)


class _Header:
    """A CSV file's first line: names, separator, and how many lines it takes. What follows it does not matter."""

    def __init__(self, file: Path, separator: str | None) -> None:
        with _unquoted(file), _opened(file) as stream:
            start = stream.read(_HEADER)
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise Unsupported(f"{file}: this is not a text in UTF-8: convert it, for instance with iconv")
        blank, line = _FIRST_LINE.match(start.removeprefix(b"\xef\xbb\xbf")).groups()  # type: ignore[union-attr]
        if not line.strip():
            raise Unsupported(f"{file}: there is no header line that names the columns")
        if b"\0" in line or len(line) > _HEADER // 2:
            if b"\0" not in line:
                _check_width(file, max(line.count(sign.encode()) for sign in (separator or _SEPARATORS)))
            raise Unsupported(
                f"{file}: this is not a text in UTF-8 with a line of column names: convert it (iconv), or add one"
            )
        headers = {sign: names for sign in (separator or _SEPARATORS) if (names := _split(line, sign))}
        if not headers:
            raise Unsupported(f"{file}: the quotes in the header line do not match")
        self.separator, self.names = max(headers.items(), key=lambda item: len(item[1]))
        _check_width(file, len(self.names))
        self.lines = len(_LINE_END.findall(blank)) + 1


def _split(line: bytes, separator: str) -> list[str]:
    """The names in a header line, none where it is quoted otherwise; byte by byte, as each has its own encoding."""
    try:
        (cells,) = csv.reader([line.decode("latin-1")], delimiter=separator, strict=True)
    except csv.Error:
        return []
    return [decoded(cell.encode("latin-1")) for cell in cells]


def _read_csv(file: Path, header: _Header, columns: list[str], rows: int) -> Iterator[Batch]:
    """One file in batches; where a row does not fit into a block, again with larger ones from where it was."""
    places = {name: j for j, name in reversed(list(enumerate(header.names)))}
    wanted = [places[name] for name in columns]
    done, bad = 0, _Skipped()
    for block in (min(1 << 23, max(1 << 20, _CELL_BYTES * len(header.names))), *_BLOCKS):
        bad, seen = _Skipped(), 0
        try:
            for batch in _csv_batches(file, header, wanted, block, bad):
                fresh = batch.slice(max(0, done - seen))  # from where an earlier try ended
                seen += batch.num_rows
                for first in range(0, fresh.num_rows, rows):
                    part = fresh.slice(first, rows)
                    done += part.num_rows
                    yield Batch(dict(zip(columns, part.columns, strict=True)), part.num_rows)
            break
        except pa.ArrowInvalid:
            if block == _BLOCKS[-1]:
                raise
    for first in range(0, bad.count, rows):
        count = min(rows, bad.count - first)
        yield Batch({name: pa.nulls(count) for name in columns}, count)


def _csv_batches(file: Path, header: _Header, wanted: list[int], block: int, bad: "_Skipped") -> Iterator[Any]:
    """The reader's own types would be guessed from cells: every cell is read as bytes."""
    keys = [f"{j}" for j in range(len(header.names))]
    read = pyarrow.csv.ReadOptions(column_names=keys, skip_rows=header.lines, block_size=block)
    parse = pyarrow.csv.ParseOptions(
        delimiter=header.separator, invalid_row_handler=bad, ignore_empty_lines=len(keys) > 1, newlines_in_values=True
    )
    convert = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(keys, pa.large_binary()),
        include_columns=[keys[j] for j in wanted],
        strings_can_be_null=False,
        check_utf8=False,
    )
    with _opened(file) as stream:
        try:
            reader = pyarrow.csv.open_csv(pa.TransformInputStream(stream, widened), read, parse, convert)
        except pa.ArrowInvalid as error:
            if any(words in str(error).lower() for words in ("empty csv", "could not skip")):  # a header and no more
                return
            raise
        yield from map(narrowed, reader)


class _Skipped:
    """Counts lines that are no rows, and says nothing of them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, row: object) -> str:
        self.count += 1
        return "skip"


def _unquoted(file: Path) -> unquoted:
    """Replace what readers raise."""
    words = f"{file}: it cannot be read to its end: is it damaged, or of another kind?"
    readers = (pa.ArrowException, lzma.LZMAError, EOFError, UnicodeDecodeError, csv.Error)
    return unquoted(words, *readers, when=lambda error: isinstance(error, OSError) and error.filename is None)


def _opened(file: Path) -> Any:
    suffix = file.suffix.lower()
    if suffix == ".xz":
        return pa.PythonFile(lzma.open(file, "rb"), mode="r")
    return pa.input_stream(str(file), compression=_PACKED.get(suffix))


def _check_width(file: Path, columns: int) -> None:
    if columns > MAX_COLUMNS:
        raise Unsupported(f"{file}: too many columns: a table may have {MAX_COLUMNS:,} at most")


def _check_same(names: Sequence[str], others: Sequence[str]) -> None:
    if sorted(names) != sorted(others):
        raise Unsupported("the table's files have different columns: read them one by one, or give them the same")


current_client: ContextVar[Any] = ContextVar("discreet_cluster", default=None)
"""The client of the cluster whose workers open files, inside a ``discreet.scale.cluster`` block."""


def source_of(data: object, separator: str | None, rows: int | None = None) -> Source:
    """Return a table as a source: a frame, a stream, files, or a frame or files on a cluster.

    ``rows`` are declared of one that does not know its own.
    """
    if isinstance(data, Source):
        return data
    if _is_spark(data):
        from discreet.curator.clusters.spark import SparkSource

        return SparkSource(data)
    if admission.is_dask(data):
        if not hasattr(data, "columns"):
            raise Unsupported("a table has named columns: pass a dask.dataframe")
        from discreet.curator.clusters.dask import DaskSource

        return DaskSource(data)
    if isinstance(data, (str, Path)) or (isinstance(data, (list, tuple)) and data):
        if isinstance(data, (list, tuple)) and not all(isinstance(part, (str, Path)) for part in data):
            raise Unsupported("a list names the files of one table: pass their paths, or a data frame")
        client = current_client.get()
        if client is None:
            return open_table(data, separator)
        from discreet.curator.clusters.dask import WorkersFiles

        return WorkersFiles(client, data, separator)
    return table_in_memory(data, rows)


def _is_spark(table: object) -> bool:
    """Return whether a table is a data frame of Spark, without an import of it."""
    kind = type(table)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
