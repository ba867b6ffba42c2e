"""The one entrance of every table: a frame, a stream of batches, files, or any of them on a cluster.

What a cluster needs is imported where a table is on one.
"""

from contextvars import ContextVar
from pathlib import Path
from typing import Any

from discreet.curator.records import containers
from discreet.curator.tables.files import open_table
from discreet.curator.tables.frames import Source, table_in_memory
from discreet.errors import Unsupported

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
    if containers.is_dask(data):
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
