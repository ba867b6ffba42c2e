"""Tables in files: CSV and Parquet, written byte by byte where other writers would refuse what a file may hold."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.promises.surface.containers import NotHeld, is_real, words, written
from tests.promises.surface.rows import Cells


@dataclass(frozen=True)
class CsvFile:
    """A file of CSV."""

    name: str
    suffix: str
    separator: bytes = b","
    packed: bool = False
    is_file: bool = True
    pattern: bool = False

    def table(self, cells: Cells, names: list[str], folder: Path) -> Path:
        """The columns in a file."""
        columns = [[self._quoted(written(cell)) for cell in cells.columns[name]] for name in names]
        lines = [self.separator.join(row) for row in zip(*columns, strict=True)]
        content = b"\n".join([self.separator.join(name.encode() for name in names), *lines]) + b"\n"
        path = folder / f"table{self.suffix}"
        path.write_bytes(gzip.compress(content, mtime=0) if self.packed else content)
        return folder / f"*{self.suffix}" if self.pattern else path

    def column(self, cells: Cells, name: str) -> Any:
        """A file is a whole table."""
        raise NotHeld

    def _quoted(self, cell: bytes) -> bytes:
        if any(sign in cell for sign in (self.separator, b'"', b"\n", b"\r")):
            return b'"' + cell.replace(b'"', b'""') + b'"'
        return cell

    def with_line(self, path: Path, row: int, line: str) -> None:
        """Put a line in place of a record's."""
        path = path.with_name(f"table{self.suffix}")
        content = path.read_bytes()
        lines = (gzip.decompress(content) if self.packed else content).split(b"\n")
        lines[row + 1] = line.encode()
        content = b"\n".join(lines)
        path.write_bytes(gzip.compress(content, mtime=0) if self.packed else content)


@dataclass(frozen=True)
class ParquetFile:
    """A file of Parquet, its columns of one type each."""

    name: str
    number: Callable[[list[Any]], Any]
    text: Callable[[list[Any]], Any]
    is_file: bool = True

    def table(self, cells: Cells, names: list[str], folder: Path) -> Path:
        """The columns in a file."""
        import pyarrow as pa
        import pyarrow.parquet

        columns = {name: (self.text if name in cells.texts else self.number)(cells.columns[name]) for name in names}
        path = folder / "table.parquet"
        pyarrow.parquet.write_table(pa.table(columns), path)
        return path

    def column(self, cells: Cells, name: str) -> Any:
        """A file is a whole table."""
        raise NotHeld

    def without_pages(self, path: Path) -> None:
        """Overwrite all cells; the footer stays."""
        content = bytearray(path.read_bytes())
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        content[4:footer] = b"\xaa" * (footer - 4)
        path.write_bytes(content)


def _numbers(cells: list[Any]) -> Any:
    import pyarrow as pa

    if not all(cell is None or is_real(cell) for cell in cells):
        raise NotHeld
    try:
        return pa.array([None if cell is None else float(cell) for cell in cells], type=pa.float64())
    except OverflowError:
        raise NotHeld from None


def _texts(cells: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array(words(cells), type=pa.string())


def _bytes(cells: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array([None if cell is None else written(cell) for cell in cells], type=pa.binary())


def _coded(cells: list[Any]) -> Any:
    return _texts(cells).dictionary_encode()


FILES = (
    CsvFile("CSV", ".csv"),
    CsvFile("CSV, packed", ".csv.gz", packed=True),
    CsvFile("TSV", ".tsv", separator=b"\t"),
    CsvFile("CSV, a pattern", ".csv", pattern=True),
    ParquetFile("Parquet", _numbers, _texts),
    ParquetFile("Parquet of texts", _texts, _texts),
    ParquetFile("Parquet of bytes", _bytes, _bytes),
    ParquetFile("Parquet, dictionaries", _coded, _coded),
)
