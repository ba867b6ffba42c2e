"""Files of Parquet and CSV as sources: one, several, or a folder of them."""

import csv
import io
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from discreet.errors import Unsupported
from discreet.tabular.cells import decoded
from discreet.tabular.sources import BATCH_ROWS, Batch, Source

_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".tsv", ".txt")
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_SEPARATORS = ",;\t|"
_BLOCK = 1 << 23
_HEADER = 1 << 20
_BUFFER = 1 << 16


def open_table(paths: Any, separator: str | None = None) -> Source:
    """The table in a file, in several files, or in a folder; one row after the other in the order of the names."""
    given = [Path(path) for path in (paths if isinstance(paths, (list, tuple)) else [paths])]
    files = [file for path in given for file in _files(path)]
    if not files:
        raise Unsupported("no file of CSV or Parquet is given")
    kinds = {_kind(file) for file in files}
    if kinds == {"parquet"}:
        return ParquetSource(files)
    if kinds == {"csv"}:
        return CsvSource(files, separator)
    raise Unsupported("a table's files are all CSV or all Parquet (.csv, .tsv, .txt, also .gz, .bz2, .xz; .parquet)")


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if _kind(file) and not file.name.startswith((".", "_")))
    if not path.exists():
        raise Unsupported(f"{path}: there is no such file")
    return [path]


def _kind(path: Path) -> str:
    """By the name's end, as people name files."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    return "parquet" if last in _PARQUET else "csv" if last in _CSV else ""


class ParquetSource(Source):
    """Parquet files with the same columns."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = list(files)
        with _unquoted(self._files[0]):
            self._schema = pyarrow.parquet.read_schema(self._files[0])
            self._rows = 0
            for file in self._files:
                with pyarrow.parquet.ParquetFile(file) as opened:
                    self._rows += opened.metadata.num_rows
                    other = opened.schema_arrow
                _check_same(self._schema.names, other.names)
        self.names = list(self._schema.names)

    def count(self) -> int:
        """The number of rows, from the files' footers."""
        return self._rows

    def stored(self, column: str) -> pa.DataType | None:
        """How a column is stored in the first file."""
        return self._schema.field(self.names.index(column)).type

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """All rows of these columns, file after file; texts as codes of their distinct values."""
        for file in self._files:
            with _unquoted(file), pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER) as opened:
                for batch in opened.iter_batches(batch_size=rows, columns=list(columns)):
                    yield Batch({name: batch.column(name) for name in columns}, batch.num_rows)


class CsvSource(Source):
    """CSV files with the same columns, every cell a text. A line with too many or too few cells is a row of nothing."""

    def __init__(self, files: Sequence[Path], separator: str | None = None) -> None:
        self._headers = {file: _Header(file, separator) for file in files}
        self.names = next(iter(self._headers.values())).names
        for header in self._headers.values():
            _check_same(self.names, header.names)
        self._rows: int | None = None

    def count(self) -> int:
        """The number of rows: lines are counted, cells are not looked at."""
        if self._rows is None:
            first = self.names[:1]
            self._rows = sum(batch.rows for batch in self.batches(first))
        return self._rows

    def stored(self, column: str) -> pa.DataType | None:
        """Text."""
        return pa.large_binary()

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """All rows of these columns, file after file."""
        for file, header in self._headers.items():
            yield from _read_csv(file, header, list(columns), rows)


class _Header:
    """A CSV file's first line: names, separator, and how many lines it takes. What follows it does not matter."""

    def __init__(self, file: Path, separator: str | None) -> None:
        with _unquoted(file), _opened(file) as stream:
            start = stream.read(_HEADER)
        start = start.removeprefix(b"\xef\xbb\xbf")
        first = start.lstrip(b"\r\n").split(b"\n", 1)[0]
        if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in first:
            raise Unsupported(f"{file}: this is not a text in UTF-8: convert it, for instance with iconv")
        if not first.strip():
            raise Unsupported(f"{file}: there is no header line that names the columns")
        text = start.decode("latin-1")  # byte by byte
        self.separator = separator or max(_SEPARATORS, key=first.decode("latin-1").count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self.separator)
        names: list[str] = []
        while not names:
            names = next(reader)
        self.names = [decoded(name.encode("latin-1")) for name in names]
        self.lines = reader.line_num


def _read_csv(file: Path, header: _Header, columns: list[str], rows: int) -> Iterator[Batch]:
    """One file in batches. The reader's own types would be guessed from cells: every cell is read as bytes."""
    keys = [f"{j}" for j in range(len(header.names))]
    wanted = [keys[header.names.index(name)] for name in columns]
    bad = _Skipped()
    with _unquoted(file), _opened(file) as stream:
        try:
            reader = pyarrow.csv.open_csv(
                stream,
                read_options=pyarrow.csv.ReadOptions(
                    column_names=keys, skip_rows=header.lines, block_size=_BLOCK, use_threads=True
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=header.separator,
                    invalid_row_handler=bad,
                    ignore_empty_lines=len(keys) > 1,
                    newlines_in_values=True,
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(keys, pa.large_binary()),
                    include_columns=wanted,
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        except pa.ArrowInvalid:  # nothing after the header
            reader = None
        for batch in reader or ():
            for first in range(0, batch.num_rows, rows):
                part = batch.slice(first, rows)
                yield Batch(dict(zip(columns, part.columns, strict=True)), part.num_rows)
    for first in range(0, bad.count, rows):
        count = min(rows, bad.count - first)
        yield Batch({name: pa.nulls(count) for name in columns}, count)


class _Skipped:
    """Counts lines that are no rows, and says nothing of them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, row: Any) -> str:
        self.count += 1
        return "skip"


class _unquoted:  # reads like a statement
    """Errors of the readers without their words, which quote cells."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        readers = (pa.ArrowException, lzma.LZMAError, EOFError, UnicodeDecodeError, csv.Error)
        if isinstance(error, readers) or (isinstance(error, OSError) and error.filename is None):
            raise Unsupported(
                f"{self._file}: it cannot be read to its end: is it damaged, or of another kind?"
            ) from None


def _opened(file: Path) -> Any:
    if file.suffix.lower() == ".xz":
        return lzma.open(file, "rb")
    return pa.input_stream(str(file), compression="detect")


def _check_same(names: Sequence[str], others: Sequence[str]) -> None:
    if sorted(names) != sorted(others):
        raise Unsupported("the table's files have different columns: read them one by one, or give them the same")
