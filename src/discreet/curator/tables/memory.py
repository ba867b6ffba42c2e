"""How much memory a fit of a table will take, from public facts, and how much this machine has left.

Files are read in blocks, but their encoded rows stay in memory. Measured on Parquet files of 5 10^5 to 4 10^6 rows
with 5 and 40 features: a process takes about 350 MB before it has a row; each row 120 bytes (its target, its norms, and
what is read ahead), and each of its features three times what the lattice stores (2 bytes, rarely 4), since solvers
work on a recoded copy.

*Privacy.* The estimate is a function of declared facts, of the number of features, and of the number of rows only where
neighbors agree on it: it is not made where persons have several rows, nor under ``add_remove`` unless ``rows`` is
declared.
"""

import os
from contextlib import suppress
from pathlib import Path

from discreet.budget import Neighbors
from discreet.curator.records.admission import scaling_for
from discreet.curator.tables.layout import Layout
from discreet.curator.tables.sources import Source
from discreet.schema.schema import Schema

BASE, PER_ROW, COPIES = 350 << 20, 120, 3


def needed_memory(schema: Schema, source: Source, neighbors: Neighbors) -> int | None:
    """Return about how many bytes a fit will take at most, None where the number of rows is private."""
    if schema.person is not None:
        return None
    rows = source.count() if neighbors.n_is_public else schema.rows
    if rows is None:
        return None
    layout = Layout(schema)
    values = len(layout.features) + 1
    grid = scaling_for(layout.bounds, len(layout.features), None, True).grid
    return BASE + rows * (PER_ROW + COPIES * values * int(grid.dtype().itemsize))


def available_memory() -> int | None:
    """Return how many bytes this process may still take, None where the system does not say."""
    found = [_free(), _left_to_container(), _left_to_process()]
    return min((left for left in found if left is not None), default=None)


def _free() -> int | None:
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) << 10
    return None


def _left_to_container() -> int | None:
    """What the limit of a container leaves; files that it has read are given up on demand."""
    with suppress(OSError, ValueError, StopIteration):
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = (group / "memory.stat").read_text().splitlines()
        cached = int(next(line for line in stat if line.startswith("inactive_file ")).split()[1])
        return max(0, limit - used + cached)
    return None


def _left_to_process() -> int | None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return None if limit == resource.RLIM_INFINITY else max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))
    return None
