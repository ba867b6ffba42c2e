"""Data frames of Spark as sources of tables: names and types here, rows on the executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.curator.records.dask_rows import NO_PERSONS
from discreet.curator.records.part_rows import TableRows
from discreet.curator.tables.sources import BATCH_ROWS, Batch, Source
from discreet.errors import Unsupported

if TYPE_CHECKING:
    from discreet.curator.engines.spark_parts import SparkParts
    from discreet.schema.schema import Schema

_ELSEWHERE = (
    "these rows are in Spark, where only fit reaches them: predict inside of mapInPandas "
    "(docs/how-to/scale.md shows it), or load the part that you need (.toPandas())"
)
_CONNECT = "a frame of Spark Connect does not reach the parts of a table: fit in a classic session, on the driver"
_TYPES = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "void": pa.null(),
}


class SparkSource(Source):
    """A data frame of a classic Spark session."""

    def __init__(self, frame: Any) -> None:
        if ".connect." in type(frame).__module__:
            raise Unsupported(_CONNECT)
        fields = list(frame.schema.fields)
        self.names, self._types = [field.name for field in fields], [field.dataType for field in fields]
        self._frame = frame.toDF(*(f"c{place}" for place in range(len(fields))))  # names may hold dots and quotes

    def parts(self, schema: Schema, *, checks: bool) -> SparkParts:
        """Return the rows in Spark, as this schema reads them."""
        from discreet.curator.engines.spark_parts import SparkParts

        if schema.person is not None:
            raise Unsupported(NO_PERSONS)
        needed = list(schema.needed)
        places = [self.names.index(name) for name in needed]
        types = pa.schema([(name, self.stored(name)[0]) for name in needed])
        return SparkParts(self._frame.select(*(f"c{place}" for place in places)), TableRows(schema, checks), types)

    def count(self) -> int:
        """Refuse: Spark counts (``RecordStream.elsewhere``)."""
        raise Unsupported(_ELSEWHERE)

    def stored(self, column: str) -> list[pa.DataType]:
        """How a column is stored."""
        kind = self._types[self.names.index(column)]
        if kind.typeName() == "decimal":
            return [pa.decimal128(kind.precision, kind.scale)]
        if kind.typeName() not in _TYPES:
            raise Unsupported(f"column {column!r} is stored as {kind.typeName()}: write it as a number or a text")
        return [_TYPES[kind.typeName()]]

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """Refuse: rows do not come here."""
        raise Unsupported(_ELSEWHERE)


def is_spark(table: Any) -> bool:
    """Return whether a table is a data frame of Spark, without an import of it."""
    kind = type(table)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
