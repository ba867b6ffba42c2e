"""Files that are there whole or not at all: written next to their place, flushed to the disk, then put there.

What a process that is killed leaves behind, the next one removes that writes to the same folder. It must never remove
what a living process is writing, nor anything that discreet did not make. So:

1. Its name says under which boot of which kernel it was made (``boot_id``), and it was made by ``passing`` alone.
2. Its maker holds a lock on it (``flock``) for as long as it is being written. The kernel gives a lock up when its
   holder ends, however it ends, so that no number of a process, which may be used again, has to be looked at.
3. Only under the same boot is a lock's absence a proof: other machines that share a drive need not see it. What they,
   or this machine before it was started again, left is not touched.
4. A folder with anything but plain files in it is not touched either.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import Unsupported

try:
    import fcntl
except ImportError:  # no locks here, so that nothing is removed
    fcntl = None  # type: ignore[assignment]

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def beside(path: Path) -> Path:
    """Return a hidden name in the same folder that nobody else uses."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of files, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def passing(place: Path, *, folder: bool = False) -> Iterator[Path]:
    """Make a hidden file or folder next to a place, to be written and moved there; it is gone when the block ends."""
    if not place.name:
        raise Unsupported("the path names no file: give one, such as model.discreet")
    sweep(place.parent)
    scratch, handle = _claimed(place, folder)
    try:
        yield scratch
    finally:
        _remove(scratch)
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove what killed processes left in a folder; what is not certain to be theirs stays."""
    boot = _boot()
    if fcntl is None or not boot:
        return
    ours = re.compile(rf"\..+\.{boot}-[0-9a-f]{{16}}\.tmp", re.DOTALL)
    with suppress(OSError), os.scandir(folder) as entries:
        leftovers = [Path(entry.path) for entry in entries if ours.fullmatch(entry.name) and not entry.is_symlink()]
        for path in leftovers:
            with suppress(OSError):
                _sweep_one(path)


def _sweep_one(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(handle).st_uid == os.getuid() and _is_locked_now(handle) and _is_there(path, handle):
            _remove(path)
    finally:
        os.close(handle)


def _claimed(place: Path, folder: bool) -> tuple[Path, int]:
    """Return a new file or folder that this process holds: one that a sweeper took before it was locked is given up."""
    while True:
        scratch = place.with_name(f".{place.name}.{_boot()}-{secrets.token_hex(8)}.tmp")
        if folder:
            scratch.mkdir()
        handle = os.open(scratch, os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            if fcntl is None or (_is_locked_now(handle, otherwise=True) and _is_there(scratch, handle)):
                return scratch, handle
        except BaseException:
            os.close(handle)
            _remove(scratch)
            raise
        os.close(handle)


def _is_locked_now(handle: int, *, otherwise: bool = False) -> bool:
    """Take the lock, unless somebody has it; ``otherwise`` where the drive knows none."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return otherwise
    return True


def _is_there(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    """Remove a file, or a folder of plain files, as far as it can be."""
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            return
        with os.scandir(path) as entries:
            listed = list(entries)
        if all(entry.is_file(follow_symlinks=False) for entry in listed):
            for entry in listed:
                os.unlink(entry.path)
            path.rmdir()


def _boot() -> str:
    """Return what tells this run of this kernel from all others; nothing where that is not known."""
    try:
        return _BOOT.read_text(encoding="ascii").strip().replace("-", "")[:16]
    except (OSError, ValueError):
        return ""
