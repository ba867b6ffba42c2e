"""Dask frames, and files that a cluster's workers read, as sources of tables: public facts here, rows there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.curator.clusters import client_for_collections, named_client
from discreet.curator.records import containers
from discreet.curator.records.dask_rows import NO_PERSONS, empty_like
from discreet.curator.records.part_rows import TableRows
from discreet.curator.tables.arrow_streams import table_in_memory
from discreet.curator.tables.sources import BATCH_ROWS, Batch, FrameSource, Source
from discreet.curator.tables.spark_tables import SparkSource, is_spark
from discreet.curator.tables.table_files import open_table
from discreet.errors import ClusterFailed, Unsupported

if TYPE_CHECKING:
    from discreet.curator.engines.dask_parts import DaskParts
    from discreet.schema.schema import Schema


class RemoteSource(Source):
    """A table whose rows workers read: a Dask frame, or files."""

    def __init__(self, client: Any, pieces: Sequence[tuple[Any, ...]], sizes: Sequence[int] | None) -> None:
        self._client, self._pieces, self._sizes = client, list(pieces), sizes
        self._count: int | None = None

    def parts(self, schema: Schema, *, checks: bool) -> DaskParts:
        """Return the rows on the cluster, as this schema reads them."""
        from discreet.curator.engines.dask_parts import DaskParts

        if schema.person is not None:
            raise Unsupported(NO_PERSONS)
        return DaskParts(self._client, TableRows(schema, checks), self._pieces, self._sizes)

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """Refuse: rows do not come here."""
        raise Unsupported(containers.ELSEWHERE)


class DaskSource(RemoteSource):
    """A Dask frame."""

    def __init__(self, frame: Any) -> None:
        super().__init__(client_for_collections(), [(part,) for part in frame.to_delayed()], None)
        self._sample = FrameSource(empty_like(frame))
        self.names = self._sample.names

    def count(self) -> int:
        """Refuse: workers count (``RecordStream.elsewhere``)."""
        raise Unsupported(containers.ELSEWHERE)

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored."""
        return self._sample.stored(column)


class WorkersFiles(RemoteSource):
    """Files that workers open: this process need not see them."""

    def __init__(self, client: Any, paths: Any, separator: str | None) -> None:
        from discreet.curator.engines.dask_parts import outcome_of
        from discreet.curator.tables.file_parts import FileTable, describe

        given = [str(path) for path in (paths if isinstance(paths, (list, tuple)) else [paths])]
        found = outcome_of(client, describe, given, separator)
        if not isinstance(found, FileTable):
            raise ClusterFailed("a worker cannot look at the files: nothing was charged")
        super().__init__(client, [(part,) for part in found.parts], found.rows)
        self.names, self._stored = found.names, found.stored

    def count(self) -> int:
        """Refuse: workers count (``RecordStream.elsewhere``)."""
        raise Unsupported(containers.ELSEWHERE)

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored in each file."""
        return [types[column] for types in self._stored]


def source_of(data: Any, separator: str | None, rows: int | None = None) -> Source:
    """Return a table as a source: a frame, a stream, files, or a frame or files on a cluster.

    ``rows`` are declared of one that does not know its own.
    """
    if isinstance(data, Source):
        return data
    if is_spark(data):
        return SparkSource(data)
    if containers.is_dask(data):
        if not hasattr(data, "columns"):
            raise Unsupported("a table has named columns: pass a dask.dataframe")
        return DaskSource(data)
    if isinstance(data, (str, Path)) or (isinstance(data, (list, tuple)) and data):
        if isinstance(data, (list, tuple)) and not all(isinstance(part, (str, Path)) for part in data):
            raise Unsupported("a list names the files of one table: pass their paths, or a data frame")
        client = named_client()
        return open_table(data, separator) if client is None else WorkersFiles(client, data, separator)
    return table_in_memory(data, rows)
