"""How much memory and disk a fit of a table will take, from public facts.

Files are read in blocks, and their encoded rows are kept in memory as long as it holds them, else in scratch files.
Measured on Parquet files of 5 10^5 to 4 10^6 rows with 5 and 40 features: a process takes about 350 MB before it has a
row. The rest is counted in ``records/storage.py``.

*Privacy.* The estimate is a function of declared facts, of the number of features, and of the number of rows only where
neighbors agree on it: it is not made where persons have several rows, nor under ``add_remove`` unless ``rows`` is
declared.
"""

from dataclasses import dataclass
from pathlib import Path

from discreet.budget import Neighbors
from discreet.curator.records.admission import scaling_for
from discreet.curator.records.machine import available_memory, free_disk
from discreet.curator.records.storage import (
    ON_DISK,
    bytes_in_memory,
    bytes_of_rows,
    bytes_on_disk,
    current_limits,
    storage_for,
)
from discreet.curator.tables.layout import Layout
from discreet.curator.tables.sources import Source
from discreet.schema.schema import Schema

BASE = 350 << 20


@dataclass(frozen=True)
class Needs:
    """What a fit will take at most, and what this machine has left, in bytes.

    ``memory`` and ``disk`` are None where the number of rows is private.
    """

    memory: int | None
    disk: int | None
    available: int | None
    free: int | None
    folder: Path

    @property
    def fits(self) -> bool:
        """Whether there is room, as far as anything is known."""
        enough = [(self.memory, self.available)] if not self.disk else [(self.disk, self.free)]
        return all(needed is None or left is None or needed <= left for needed, left in enough)


def needs_of(schema: Schema, source: Source, neighbors: Neighbors) -> Needs:
    """Return about what a fit will take at most."""
    folder = current_limits().folder
    left = available_memory(), free_disk(folder)
    rows = source.count() if neighbors.n_is_public else schema.rows
    if rows is None or schema.person is not None:
        return Needs(None, None, *left, folder)
    layout = Layout(schema)
    grid = scaling_for(layout.bounds, len(layout.features), None, True).grid
    room = rows, len(layout.features) + 1, grid
    kept = storage_for(*room)
    if kept.on_disk:
        return Needs(BASE + ON_DISK, bytes_on_disk(*room), *left, folder)
    rows = bytes_in_memory(*room) if kept.holds_copies else bytes_of_rows(*room)
    return Needs(BASE + rows, 0, *left, folder)
