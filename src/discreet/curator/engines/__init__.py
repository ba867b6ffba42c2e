"""Engines hold the private integer copy in the layout that kernels read. They add no noise; questions sum over them."""

from discreet.curator.engines.base import Engine, LocalEngine
from discreet.curator.engines.dense import DenseEngine
from discreet.curator.engines.sparse import SparseEngine
from discreet.curator.records.admission import Records


def engine_for(records: Records, *, threads: int | None = None) -> LocalEngine:
    """Return tiles for dense records, compressed rows for sparse ones."""
    if records.sparse is None:
        return DenseEngine(records, threads=threads)
    return SparseEngine(records, threads=threads)


def opened(records: Records) -> Engine:
    """Return what a curator asks of its records: one engine where memory holds copies of them, parts where not."""
    from discreet.curator.engines.parts import PartedEngine

    if records.storage.on_disk or not records.storage.holds_copies:
        return PartedEngine(records)
    return DenseEngine(records) if records.sparse is None else SparseEngine(records)
