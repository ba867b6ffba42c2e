"""Parts of a table in files that workers of a cluster read: groups of rows of Parquet, whole files of CSV."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.curator.engines.part_tasks import guarded
from discreet.curator.tables.sources import BATCH_ROWS, Batch, Source
from discreet.curator.tables.table_files import CsvSource, ParquetSource, open_table, read_row_groups

_PART_ROWS = 1 << 18
"""Groups of rows of one file are put together up to this many."""


@dataclass(frozen=True)
class FilePart:
    """A file, or some groups of rows of one."""

    path: str
    separator: str | None = None
    groups: tuple[int, ...] | None = None

    def source(self) -> Source:
        """Return the rows as a source."""
        if self.groups is None:
            return CsvSource([Path(self.path)], self.separator)
        return _RowGroups(Path(self.path), self.groups)


@dataclass(frozen=True, repr=False)
class FileTable:
    """What the files say of a table: its columns, how they are stored, and its parts with their rows where known."""

    names: list[str]
    stored: list[dict[str, pa.DataType]]
    parts: list[FilePart]
    rows: list[int] | None


class _RowGroups(ParquetSource):
    """Some groups of rows of one Parquet file."""

    def __init__(self, file: Path, groups: Sequence[int]) -> None:
        super().__init__([file])
        self._groups = list(groups)
        self._rows = sum(rows for group, rows in enumerate(read_row_groups(file)) if group in set(groups))

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Generator[Batch, None, None]:
        """All rows of these columns, group after group."""
        yield from self._read(self._files[0], columns, rows, row_groups=self._groups)


@guarded
def describe(paths: Any, separator: str | None) -> FileTable:
    """Look at a table's files, as a worker sees them: headers and footers, no rows."""
    source = open_table(paths, separator)
    names = source.names
    if isinstance(source, CsvSource):
        return FileTable(names, [], [FilePart(str(file), separator) for file in source.files], None)
    assert isinstance(source, ParquetSource)
    parts, rows = [], []
    for file in source.files:
        for groups, count in _grouped(read_row_groups(file)):
            parts.append(FilePart(str(file), groups=groups))
            rows.append(count)
    return FileTable(names, source.types, parts, rows)


def _grouped(sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield runs of groups of rows, each with its number of rows; a file without any is one empty run."""
    run: list[int] = []
    count = 0
    for group, size in enumerate(sizes):
        if run and count + size > _PART_ROWS:
            yield tuple(run), count
            run, count = [], 0
        run.append(group)
        count += size
    yield tuple(run), count
