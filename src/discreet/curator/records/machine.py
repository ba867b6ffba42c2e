"""What this machine has left: memory for this process, and room on a disk."""

import os
import shutil
from contextlib import suppress
from pathlib import Path


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


def free_disk(folder: Path) -> int | None:
    """Return how many bytes fit into a folder, None where the system does not say."""
    with suppress(OSError):
        return shutil.disk_usage(folder).free
    return None
