"""Which engine reads which records."""

from discreet.curator.engines.base import Engine
from discreet.curator.engines.dense import DenseEngine
from discreet.curator.engines.sparse import SparseEngine
from discreet.curator.records.admission import Records


def engine_for(records: Records, *, threads: int | None = None) -> Engine:
    """Tiles for dense records, compressed rows for sparse ones."""
    made: Engine = (
        DenseEngine(records, threads=threads) if records.sparse is None else SparseEngine(records, threads=threads)
    )
    return made
