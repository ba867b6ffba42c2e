"""What this machine has left: memory for this process, and room on a disk."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")


def available_memory() -> int | None:
    """Return how many bytes this process may still take, None where the system does not say."""
    found = [_free(), _left_to_container(), _left_to_process()]
    return min((left for left in found if left is not None), default=None)


def _free() -> int | None:
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) << 10
    return None


_GROUPS = Path("/sys/fs/cgroup")
_LIMITS = (
    ("memory.max", "memory.current", "inactive_file "),  # version 2 of Linux' control groups
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "),  # version 1
)


def _left_to_container() -> int | None:
    """Return what the limit of a container leaves; files that it has read are given up on demand."""
    left: list[int] = []
    for group in _groups():
        for limit, used, cached in _LIMITS:
            with suppress(OSError, ValueError, StopIteration):
                most, taken = (int((group / name).read_text()) for name in (limit, used))
                stat = (group / "memory.stat").read_text().splitlines()
                given_up = int(next(line for line in stat if line.startswith(cached)).split()[1])
                left.append(max(0, most - taken + given_up))
    return min(left, default=None)


def _groups() -> list[Path]:
    """Return the folders that may hold this process' limits: its own control group's, and those above."""
    found = [_GROUPS, _GROUPS / "memory"]
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds in ("", "memory"):
                own = _GROUPS / kinds / path.lstrip("/")
                found += [own, *own.parents[: len(own.relative_to(_GROUPS).parts)]]
    return list(dict.fromkeys(found))


def _left_to_process() -> int | None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return None if limit == resource.RLIM_INFINITY else max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))
    return None


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
