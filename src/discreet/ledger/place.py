"""Where a ledger file lives: the one directory entry through which everybody must reach it.

SQLite keeps recent charges in a write-ahead log, and names the log after the path: ``budget.db-wal`` in the folder of
``budget.db``. A file that is reached by two path names, a hard link or a mount of the single file, would have two logs,
and each would forget what the other one granted. So a ledger file records in its own tables which directory entry it
lives at: the inode number of the file, the inode number of its folder, and its name there.

*Claim.* Two processes that are admitted to the same file use the same log.

*Proof.* Let F be the file, on the file system S. Symbolic links are resolved first, by SQLite as well. A process is
admitted by the path d/m if (1) the file and the folder d are in the same mount, and (2) the inode number of d and the
name m are those that F records. By (1), d is a folder of S and (d, m) is a directory entry of S, not the root of a
mount. Inode numbers are unique on S, so that (2) holds for one entry only. Both processes come through this entry, and
SQLite opens the log (d, m-wal) for both. QED

Folders may therefore be mounted anywhere, in any number of containers. Devices are compared with each other now, never
with a recorded one: their numbers change between containers and at a reboot.

A ledger records its entry when it is made; a file that records none is admitted nowhere. A file with another inode
number than it records is a copy: it may be read, and is charged only after its owner has said that it takes the
original's place (``discreet budget move``). A snapshot of a whole disk or subvolume keeps all numbers and is not
recognized as a copy.

There is no ``flock`` on the file, for a reason: a process that closes any handle of a file drops all of its POSIX locks
on it, also those that SQLite holds in another thread. ``O_PATH`` handles drop none.
"""

import os
from dataclasses import astuple, dataclass
from pathlib import Path

from discreet.errors import LedgerUnavailable
from discreet.ledger.store import Connection

_TABLE = (
    "CREATE TABLE binding (id INTEGER PRIMARY KEY CHECK (id = 1), "
    "inode TEXT NOT NULL, folder TEXT NOT NULL, name TEXT NOT NULL, seal TEXT NOT NULL) STRICT"
)

_MOUNTED = (
    "the ledger's file is mounted by itself, and its recent charges are kept next to it: mount the folder that it lies "
    "in. Nothing was granted"
)
_LINKED = "the ledger's file has several names (hard links): remove all but one. Nothing was granted"
_ELSEWHERE = (
    "this ledger file belongs to another place: it was moved, copied or restored, or this is a second name of it. Use "
    "it where it belongs; or, once no other copy is in use, let its owner run `discreet budget move`. Nothing was "
    "granted"
)


@dataclass(frozen=True)
class Place:
    """A directory entry, as numbers that do not change while the file stays where it is."""

    inode: str
    folder: str
    name: str

    @classmethod
    def of(cls, path: Path) -> "Place":
        """The entry behind a resolved path; refused where the file is a mount of its own."""
        if _mount(path) != _mount(path.parent):
            raise LedgerUnavailable(_MOUNTED)
        return cls(str(path.stat().st_ino), str(path.parent.stat().st_ino), path.name)


def _mount(path: Path) -> tuple[str, int]:
    """What tells mounts apart: the mount's number on Linux, else the device."""
    if hasattr(os, "O_PATH"):
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            lines = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii").splitlines()
            return next(("mount", int(line.split()[1])) for line in lines if line.startswith("mnt_id:"))
        except (OSError, StopIteration):  # no /proc here
            pass
        finally:
            os.close(handle)
    return "device", path.stat().st_dev


def bind(at: Connection, path: Path) -> None:
    """Record where the file is now."""
    here = Place.of(path)
    if path.stat().st_nlink > 1:
        raise LedgerUnavailable(_LINKED)
    at.run("UPDATE binding SET inode = ?, folder = ?, name = ?", *astuple(here))


def record(at: Connection, here: Place, seal: str) -> None:
    """Write the place of a new ledger, and what tells its key from others, into its own tables."""
    at.run(_TABLE)
    at.run("INSERT INTO binding (id, inode, folder, name, seal) VALUES (1, ?, ?, ?, ?)", *astuple(here), seal)


def admit(at: Connection, path: Path, *, writing: bool) -> None:
    """Refuse those who do not come through the entry that the ledger is bound to."""
    here, bound = Place.of(path), Place(*at.rows("SELECT inode, folder, name FROM binding")[0])
    if here != bound and (writing or here.inode == bound.inode):
        raise LedgerUnavailable(_ELSEWHERE)


def seal(at: Connection) -> str:
    """Return what the ledger records of its key."""
    return str(at.rows("SELECT seal FROM binding")[0][0])
