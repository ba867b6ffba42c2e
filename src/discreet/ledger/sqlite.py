"""A ledger in one file (SQLite), and one in memory for trying things out.

Every operation opens its own connection, and no fork happens while one is open: nothing is shared between threads or
inherited by a child, and an exception at any point leaves no transaction behind. A commit is in the write-ahead log on
disk (``synchronous=FULL``) before it returns. All who use a file come through one directory entry, so that there is
one log.

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

import hashlib
import hmac
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from weakref import WeakSet

from discreet.atomic_files import beside, sync
from discreet.errors import LedgerDamaged, LedgerError, LedgerUnavailable, PrivacyWarning, Unsupported
from discreet.ledger.store import (
    FROZEN,
    NAMED,
    OVER_CAP,
    Connection,
    OverCap,
    Row,
    charge_accounts,
    falls,
    is_charge,
    tables,
)

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


def record_place(at: Connection, here: Place, seal: str) -> None:
    """Write the place of a new ledger, and what tells its key from others, into its own tables."""
    at.run(_TABLE)
    at.run("INSERT INTO binding (id, inode, folder, name, seal) VALUES (1, ?, ?, ?, ?)", *astuple(here), seal)


def admit(at: Connection, path: Path, *, writing: bool) -> None:
    """Refuse those who do not come through the entry that the ledger is bound to."""
    here, bound = Place.of(path), Place(*at.rows("SELECT inode, folder, name FROM binding")[0])
    if here != bound and (writing or here.inode == bound.inode):
        raise LedgerUnavailable(_ELSEWHERE)


def recorded_seal(at: Connection) -> str:
    """Return what the ledger records of its key."""
    return str(at.rows("SELECT seal FROM binding")[0][0])


PATIENCE, FORK_PATIENCE = 60.0, 10.0
"""Seconds to wait for another writer; for other threads before a fork."""
KEY_BYTES = 32


# A child that is forked while another thread has a connection open would inherit SQLite's idea of who holds which lock
# without the locks, and could lose what it writes. So a fork waits until the other threads' transactions are over.
_begun: "WeakSet[_Transaction]" = WeakSet()
_gate = threading.RLock()


def _before_fork() -> None:
    _gate.acquire()
    end = time.monotonic() + FORK_PATIENCE
    while any(transaction.is_open_elsewhere for transaction in list(_begun)) and time.monotonic() < end:
        time.sleep(1e-3)


os.register_at_fork(before=_before_fork, after_in_parent=_gate.release, after_in_child=_gate.release)


class _Open:
    """A SQLite connection as the ledger wants it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: object) -> Sequence[Row]:
        result: list[Row] = self._connection.execute(statement, values).fetchall()
        return result

    def run(self, statement: str, *values: object) -> None:
        self._connection.execute(statement, values)


class _Transaction:
    """A transaction on a connection of its own (or on one that is kept, behind a lock), which ends with the block.

    A class, not a generator: an interrupt on the way in is caught here too. One on the way out, before ``__exit__``
    has begun, leaves it to ``__del__``.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        begin: str,
        *,
        lock: "threading.RLock | None" = None,
        admit: Callable[[Connection], None] = lambda at: None,
    ) -> None:
        self._connect, self._begin, self._lock, self._admit = connect, begin, lock, admit
        self._connection: sqlite3.Connection | None = None
        self._thread, self._is_open = threading.get_ident(), False

    @property
    def is_open_elsewhere(self) -> bool:
        """Whether another thread is inside."""
        return self._is_open and self._thread != threading.get_ident()

    def __enter__(self) -> Connection:
        try:
            with _gate if self._lock is None else self._lock:
                self._is_open = True
                if self._lock is None:
                    _begun.add(self)
                else:
                    self._lock.acquire()
            self._connection = self._connect()
            if self._connection.in_transaction:  # an earlier one was interrupted before its own rollback
                self._connection.execute("ROLLBACK")
            self._connection.execute(self._begin)
            self._admit(_Open(self._connection))
            return _Open(self._connection)
        except BaseException as error:
            self._end()
            raise _translated(error) from None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None and self._connection is not None:
                self._connection.execute("COMMIT")
        except sqlite3.Error as failed:
            error = failed
        finally:
            self._end()
        if isinstance(error, sqlite3.Error):
            raise _translated(error) from None

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        if not self._is_open:
            return
        with suppress(sqlite3.Error):
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        if self._lock is None and self._connection is not None:
            self._connection.close()
        if self._lock is not None:
            with suppress(RuntimeError):  # where it was interrupted before it had the lock
                self._lock.release()
        self._is_open = False


def _translated(error: BaseException) -> BaseException:
    """A database's error in the ledger's words; any other as it is."""
    if isinstance(error, sqlite3.IntegrityError):
        if OVER_CAP in str(error):
            return OverCap()
        return LedgerError("the ledger's database refused an entry: run `discreet budget verify`")
    if isinstance(error, sqlite3.DatabaseError) and _code(error) == sqlite3.SQLITE_CORRUPT:
        return LedgerDamaged(_DAMAGED)
    if isinstance(error, (sqlite3.Error, OSError)):
        return LedgerUnavailable(
            f"the ledger cannot be used ({type(error).__name__}): is its disk full, read-only or busy, and may you use "
            "it? Nothing was granted"
        )
    return error


_DAMAGED = (
    "this ledger is damaged: restore its newest copy, with its key, and charge again what was released since. Nothing "
    "was granted"
)


def _code(error: BaseException) -> int:
    """SQLite's primary code; 0 where the error is not SQLite's own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


class SQLiteStore:
    """A ledger file; its key lies next to it, both readable by their owner only."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).expanduser().absolute()

    @property
    def address(self) -> str:
        """The path."""
        return str(self._path)

    @property
    def open_address(self) -> str:
        """The path."""
        return self.address

    @property
    def _real(self) -> Path:
        """The file behind symbolic links: its log and its key lie next to it."""
        return Path(os.path.realpath(self._path))

    @property
    def _key_path(self) -> Path:
        real = self._real
        return real.with_name(real.name + ".key")

    def create(self, name: str, key: bytes) -> None:
        """Make the file, whole or not at all, and its key next to it. Nothing is overwritten."""
        path = self._real
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # that of a ledger whose making was interrupted
                _appear(self._key_path, lambda beside: beside.write_bytes(key))
            stored_key = self._key_path.read_bytes()
            _appear(path, lambda beside: _make(beside, name, path.name, stored_key))
        except FileExistsError:
            raise LedgerError("there is a ledger of this name already: use it, or choose another name") from None
        except OSError:
            raise LedgerError("the ledger cannot be created here: choose a directory that can be written") from None

    def key(self) -> bytes:
        """Return the key, from its file. The ledger knows its own by a keyed hash."""
        self._exists()
        try:
            key = self._key_path.read_bytes()
        except OSError:
            key = b""
        if len(key) != KEY_BYTES:
            raise LedgerError(
                "the ledger's key is missing or cannot be read: restore the .key file that belongs to it"
            ) from None
        with self.reading() as at:
            is_own = recorded_seal(at) == _sealed(at, key)
        if not is_own:
            raise LedgerError("this is the key of another ledger: restore the .key file that belongs to this one")
        _warn_of_others(self._key_path)
        return key

    def bind(self) -> None:
        """Take the directory entry where the file is now for its own, while nobody uses the file by any name."""
        with _Transaction(self._alone, "BEGIN IMMEDIATE") as at:
            bind(at, self._real)

    def _alone(self) -> sqlite3.Connection:
        """A connection that nobody else had next to it: to leave the log, SQLite locks the file itself, by its inode.

        The next connection goes back to a log.
        """
        connection = self._connected()
        connection.execute("PRAGMA busy_timeout=1000")
        with suppress(sqlite3.OperationalError):
            if connection.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",):
                return connection
        connection.close()
        raise LedgerUnavailable("the ledger is in use: stop all fits first, then try again")

    def writing(self) -> _Transaction:
        """``BEGIN IMMEDIATE``: one writer at a time, from the first statement on."""
        return _Transaction(self._connected, "BEGIN IMMEDIATE", admit=partial(self._admit, writing=True))

    def reading(self) -> _Transaction:
        """A snapshot."""
        return _Transaction(self._connected, "BEGIN", admit=partial(self._admit, writing=False))

    def _connected(self) -> sqlite3.Connection:
        self._exists()
        Place.of(self._real)  # a file that is mounted by itself is not even opened: that would make a log
        return _ledger_at(self._real)

    def _admit(self, at: Connection, *, writing: bool) -> None:
        admit(at, self._real, writing=writing)
        _warn_of_others(self._real)

    def _exists(self) -> None:
        if not self._real.is_file():
            raise LedgerUnavailable(
                "there is no ledger here: create it with `discreet budget init`, or correct its name"
            )


def _sealed(at: Connection, key: bytes) -> str:
    """What a key makes of the ledger's name. It tells keys apart, and nothing of them: a key is 256 random bits."""
    ((name,),) = at.rows("SELECT name FROM ledger")
    return hmac.new(key, f"discreet ledger {name}".encode(), hashlib.sha256).hexdigest()


def _warn_of_others(path: Path) -> None:
    """For the owner: others may read or change the file."""
    mode = path.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        warnings.warn(
            f"{path.name} has the rights {mode:04o}, so that others can reach it: run `chmod 600 {path.name}`, and let "
            "fits run under its owner's account, or use a ledger in PostgreSQL",
            PrivacyWarning,
            stacklevel=2,
        )


def _ledger_at(path: Path) -> sqlite3.Connection:
    """A connection to a ledger; what is none is left as it is."""
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('ledger', 'entry', 'account')")
        if tables.fetchone()[0] != 3:
            raise LedgerUnavailable(_NO_LEDGER)
    except (sqlite3.Error, LedgerError) as error:  # busy, gone or damaged: not for us to judge
        connection.close()
        raise LedgerUnavailable(_NO_LEDGER) if _code(error) == sqlite3.SQLITE_NOTADB else error from None
    connection.execute("PRAGMA journal_mode=WAL")  # a copy may have lost it
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA recursive_triggers=ON")  # so that REPLACE fires what guards against DELETE
    return connection


_NO_LEDGER = "this file is not a ledger: correct its name; if it was one, restore its newest copy, with its key"


def _make(path: Path, name: str, file_name: str, key: bytes) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        with _Transaction(lambda: connection, "BEGIN IMMEDIATE") as at:
            _create_tables(at, name)
            here = replace(Place.of(path), name=file_name)  # that it is about to get
            record_place(at, here, _sealed(at, key))


def _appear(path: Path, write: Callable[[Path], object]) -> None:
    """Let a file of the owner's alone appear in its place, whole and on disk; FileExistsError where there is one."""
    draft = beside(path)
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        write(draft)
        for synced in (draft, path.parent):
            sync(synced)
        os.link(draft, path)
        sync(path.parent)
    finally:
        for end in ("", "-wal", "-shm"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)


class MemoryStore:
    """A ledger that lives as long as its process: for tests and first steps."""

    address = ":memory:"
    open_address = None

    def __init__(self) -> None:
        self._key = b""
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA foreign_keys=ON")

    def create(self, name: str, key: bytes) -> None:
        """Make the tables."""
        self._key = key
        with self.writing() as at:
            _create_tables(at, name)

    def key(self) -> bytes:
        """The key."""
        return self._key

    def bind(self) -> None:
        """It has no place."""
        raise Unsupported("a ledger in memory has no place of its own")

    def writing(self) -> _Transaction:
        """One at a time."""
        return _Transaction(self._own, "BEGIN IMMEDIATE", lock=self._lock)

    reading = writing

    def _own(self) -> sqlite3.Connection:
        if os.getpid() != self._process:
            raise LedgerError("a ledger in memory ends with its process: give forked workers a ledger file")
        return self._connection


REPLACED = {
    "account": "name = NEW.name",
    "entry": "seq = NEW.seq OR charge_id = NEW.charge_id OR prev = NEW.prev OR hash = NEW.hash",
    "known": "dataset = NEW.dataset",
    "ledger": "id = NEW.id",
    "release": "charge_id = NEW.charge_id",
}
"""What REPLACE would remove without a word where a shell leaves ``recursive_triggers`` off."""


def _create_tables(at: Connection, name: str) -> None:
    """Make everything, inside one transaction."""
    for statement in tables():
        at.run(_strict(statement))
    at.run(NAMED, name)
    for table in FROZEN:
        for change in ("UPDATE", "DELETE"):
            _rule(at, f"{table}_keeps_from_{change}", f"BEFORE {change} ON {table}", "append-only")
    for table, same in REPLACED.items():
        again = f"BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})"
        _rule(at, f"{table}_is_not_replaced", again, "append-only")
    _rule(at, "account_is_kept", "BEFORE DELETE ON account", "append-only")
    _rule(at, "account_never_falls", f"BEFORE UPDATE ON account WHEN {falls()}", "no refunds")
    moves = f"AFTER INSERT ON entry WHEN {is_charge()}"
    at.run(f"CREATE TRIGGER entry_moves_account {moves} BEGIN {charge_accounts('min')} END")


def _rule(at: Connection, name: str, when: str, said: str) -> None:
    at.run(f"CREATE TRIGGER {name} {when} BEGIN SELECT RAISE(ABORT, '{said}'); END")


def _strict(statement: str) -> str:
    """With types that are enforced."""
    if not statement.startswith("CREATE TABLE"):
        return statement
    return statement.replace("BIGINT", "INTEGER").replace("DOUBLE PRECISION", "REAL") + " STRICT"
