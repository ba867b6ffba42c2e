"""Where the private copy of the records is kept, and what this machine has left for it: memory, or scratch files.

A scratch file is opened for its owner alone (mode 0600) and its name is removed before a byte is written, so that no
other process can open it and nothing is left of it when the process ends, however it ends. What is written there are
encoded rows in the clear: the folder belongs on a disk that may hold the table itself.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from discreet.curator.lattice import Grid
from discreet.errors import Unsupported, unquoted
from discreet.typing import Array

Value = TypeVar("Value")


def available_memory() -> int | None:
    """Return how many bytes this process may still take, None where the system does not say."""
    left = [_left_to_container()]
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        if limit != resource.RLIM_INFINITY:
            left.append(max(0, limit - pages * os.sysconf("SC_PAGE_SIZE")))
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        left.append(int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) << 10)
    return min((some for some in left if some is not None), default=None)


_GROUPS = Path("/sys/fs/cgroup")
_LIMITS = (
    ("memory.max", "memory.current", "inactive_file "),  # version 2 of Linux' control groups
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "),  # version 1
)


def _left_to_container() -> int | None:
    """Return what the limit of a container leaves; files that it has read are given up on demand."""
    folders, left = [_GROUPS, _GROUPS / "memory"], list[int]()
    with suppress(OSError, ValueError):  # control groups that may limit this process: its own, and those above
        for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds in ("", "memory"):
                folder = _GROUPS / kinds / path.lstrip("/")
                folders += [folder, *folder.parents[: len(folder.relative_to(_GROUPS).parts)]]
    for group in dict.fromkeys(folders):
        for limit, used, cached in _LIMITS:
            with suppress(OSError, ValueError, StopIteration):
                most, taken = (int((group / name).read_text()) for name in (limit, used))
                stat = (group / "memory.stat").read_text().splitlines()
                given_up = int(next(line for line in stat if line.startswith(cached)).split()[1])
                left.append(max(0, most - taken + given_up))
    return min(left, default=None)


def free_disk(folder: Path) -> int | None:
    """Return how many bytes fit into a folder, None where the system does not say."""
    with suppress(OSError):
        return shutil.disk_usage(folder).free
    return None


def within_memory(call: Callable[[], Value]) -> Value:
    """Return what a call returns; that memory ran out is reported without the size of what was asked for.

    numpy's own words name the shape of an array, and so the number of rows, which may be private. They are not even
    attached to the error.
    """
    with suppress(MemoryError):
        return call()
    raise MemoryError("this machine has not enough memory for the records; what was charged stays charged")


_NO_ROOM = "the folder for scratch files cannot hold the encoded rows: set DISCREET_SCRATCH to one with room"


class Storage(Protocol):
    """Gives out arrays that are not filled yet."""

    @property
    def on_disk(self) -> bool:
        """Whether arrays are in scratch files."""
        ...

    @property
    def holds_copies(self) -> bool:
        """Whether there is room for recoded copies: without it, rows are recoded in every pass."""
        ...

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array of zeros: an entry that nothing writes holds nothing that was in memory before."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Arrays of this process."""

    holds_copies: bool = True
    on_disk = False

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array in memory."""
        return np.zeros(shape, dtype=dtype)


@dataclass(frozen=True)
class OnDisk:
    """Arrays that are mapped from nameless scratch files in ``folder``; each goes with its last reference."""

    folder: Path
    on_disk = holds_copies = True

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array in a scratch file; the system keeps in memory what there is room for."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size == 0:
            return np.zeros(shape, dtype=dtype)
        with unquoted(_NO_ROOM, OSError), tempfile.TemporaryFile(dir=self.folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk is met here, not while a page is written
            return np.asarray(np.memmap(file, dtype=dtype, mode="r+", shape=shape))


MEMORY, TIGHT_MEMORY = InMemory(), InMemory(holds_copies=False)


@dataclass(frozen=True)
class Limits:
    """How much memory the encoded rows of a fit may take, and where they are kept beyond that.

    ``memory`` is None where this machine decides.
    """

    memory: int | None
    folder: Path


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_PER_ROW, _COPIES = 120, 3
"""In memory, a row takes so many bytes for its target and norms, and its features several times what they take on the
lattice, since solvers work on recoded copies: measured on tables of 5 10^5 to 4 10^6 rows with 5 and 40 features."""

ONE_PASS = 64 << 20
"""What a pass that goes part by part takes of memory, whatever the number of rows."""
ON_DISK = 200 << 20
"""What passes over scratch files take of memory, whatever their size: blocks as they are read, and parts."""

_limits: ContextVar[tuple[int | None, Path | None]] = ContextVar("discreet_limits")


def bytes_in_memory(n: int, width: int, grid: Grid) -> int:
    """Return how much memory the encoded rows of a fit take, with what solvers make of them."""
    return n * (_PER_ROW + _COPIES * width * np.dtype(grid.dtype).itemsize)


def bytes_of_rows(n: int, width: int, grid: Grid) -> int:
    """Return how much memory encoded rows take without a copy: their entries, targets and norms, and one pass."""
    return n * (width * np.dtype(grid.dtype).itemsize + 5 * 8) + ONE_PASS


def bytes_on_disk(n: int, width: int, grid: Grid) -> int:
    """Return how much room scratch files take: the rows, a recoded copy, and its tiles; targets, norms and factors."""
    return n * (3 * width * np.dtype(grid.dtype).itemsize + 7 * 8)


def size_of(text: str) -> int:
    """Return the bytes that a size such as ``"4GB"`` or ``"500 MB"`` means."""
    number = text.strip().upper().rstrip("KMGTB ")
    unit = text.strip().upper()[len(number) :].strip()
    with unquoted("a size is a number with a unit, such as 500MB or 4GB", KeyError, ValueError):
        size = float(number) * _UNITS[unit]
    if not 0 <= size < 2**62:
        raise Unsupported("a size is a number with a unit, such as 500MB or 4GB")
    return int(size)


def current_limits() -> Limits:
    """Return the limits in force: those of ``limited``, else of DISCREET_MEMORY and DISCREET_SCRATCH."""
    memory, folder = _limits.get((None, None))
    said, place = os.environ.get("DISCREET_MEMORY", ""), os.environ.get("DISCREET_SCRATCH", "")
    with suppress(FileNotFoundError):  # without any, the working folder: it is refused when it is needed
        place = place or tempfile.gettempdir()
    return Limits(size_of(said) if memory is None and said else memory, folder or Path(place))


def check_scratch(folder: Path, size: int = 0) -> None:
    """Refuse a folder that takes no files, or has less room than ``size`` bytes: before anything is charged.

    Where the number of rows is private, this is asked whatever it is: an error only for tables that memory does not
    hold would tell that number.
    """
    free = free_disk(folder)
    if free is not None and free < size:
        raise Unsupported(_NO_ROOM)
    with unquoted(_NO_ROOM, OSError):
        tempfile.TemporaryFile(dir=folder).close()


@contextmanager
def limited(memory: int | str | None = None, folder: str | Path | None = None) -> Iterator[None]:
    """Keep encoded rows within ``memory`` inside the block, and in scratch files in ``folder`` beyond it.

    Parameters
    ----------
    memory : int, str or None, default=None
        Bytes, or a size such as ``"4GB"``. None: what this machine has left.
    folder : str, path or None, default=None
        Where scratch files are made. None: the system's folder for temporary files.

    Raises
    ------
    Unsupported
        If ``memory`` is no size.

    Examples
    --------
    >>> from discreet.scale import limited
    >>> with limited(memory="500MB"):
    ...     pass  # model.fit(...): larger tables are kept on disk
    """
    given = size_of(memory) if isinstance(memory, str) else memory
    if given is not None and not given >= 0:
        raise Unsupported("memory is a number of bytes, at least 0, or a size such as 4GB")
    before = _limits.get((None, None))
    wanted = before[0] if given is None else given, before[1] if folder is None else Path(folder)
    token = _limits.set(wanted)
    try:
        yield
    finally:
        _limits.reset(token)


def storage_for(n: int, width: int, grid: Grid) -> Storage:
    """Return where ``n`` encoded rows are kept.

    In memory with what solvers make of them as long as it holds both, then without recoded copies, then on disk.
    """
    limits = current_limits()
    allowed = available_memory() if limits.memory is None else limits.memory
    if allowed is None or bytes_in_memory(n, width, grid) <= allowed:
        return MEMORY
    return TIGHT_MEMORY if bytes_of_rows(n, width, grid) <= allowed else OnDisk(limits.folder)


_PART_VALUES = 1 << 21
_MOST_ROWS = 1 << 17


def rows_per_part(n_columns: int) -> int:
    """Return how many rows are asked at once: so few that what a pass makes of them stays near the processor."""
    return max(1 << 10, min(_MOST_ROWS, _PART_VALUES // max(1, n_columns)))
