"""A ledger in one file (SQLite), and one in memory for trying things out.

Every operation opens its own connection, and no fork happens while one is open: nothing is shared between threads or
inherited by a child, and an exception at any point leaves no transaction behind. A commit is in the write-ahead log on
disk (``synchronous=FULL``) before it returns.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

from discreet.durable import beside, sync
from discreet.errors import LedgerError
from discreet.ledger.rules import create
from discreet.ledger.store import OVER_CAP, Connection, OverCap

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
    while any(one.is_open_elsewhere for one in list(_begun)) and time.monotonic() < end:
        time.sleep(1e-3)


os.register_at_fork(before=_before_fork, after_in_parent=_gate.release, after_in_child=_gate.release)


class _Open:
    """A SQLite connection as the ledger wants it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: Any) -> Sequence[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(statement, values).fetchall()
        return found

    def run(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values)


class _Transaction:
    """A transaction on a connection of its own (or on one that is kept, behind a lock), which ends with the block.

    A class, not a generator: an interrupt on the way in is caught here too. One on the way out, before ``__exit__``
    has begun, leaves it to ``__del__``.
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], begin: str, *, lock: "threading.RLock | None" = None
    ) -> None:
        self._connect, self._begin, self._lock = connect, begin, lock
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
            return _Open(self._connection)
        except BaseException as error:
            self._end()
            raise _translated(error) from None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
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
    if isinstance(error, sqlite3.Error):
        return LedgerError(
            f"the ledger cannot be used ({type(error).__name__}): is its disk full, read-only or busy? "
            "Nothing was granted"
        )
    return error


class SQLiteStore:
    """A ledger file; its key lies beside it, both readable by their owner only."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).expanduser().absolute()

    @property
    def address(self) -> str:
        """The path."""
        return str(self._path)

    @property
    def _key_path(self) -> Path:
        return self._path.with_name(self._path.name + ".key")

    def create(self, name: str, key: bytes) -> None:
        """Make the file, whole or not at all, and its key beside it. Nothing is overwritten."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # that of a ledger whose making was interrupted
                _appear(self._key_path, lambda beside: beside.write_bytes(key))
            _appear(self._path, lambda beside: _make(beside, name))
        except FileExistsError:
            raise LedgerError("there is a ledger of this name already: use it, or choose another name") from None
        except OSError:
            raise LedgerError("the ledger cannot be created here: choose a directory that can be written") from None

    def key(self) -> bytes:
        """The key, from its file."""
        self._exists()
        try:
            key = self._key_path.read_bytes()
        except OSError:
            key = b""
        if len(key) != KEY_BYTES:
            raise LedgerError(
                "the ledger's key is missing or cannot be read: restore the .key file that belongs to it"
            ) from None
        return key

    def writing(self) -> _Transaction:
        """``BEGIN IMMEDIATE``: one writer at a time, from the first statement on."""
        return _Transaction(self._connected, "BEGIN IMMEDIATE")

    def reading(self) -> _Transaction:
        """A snapshot."""
        return _Transaction(self._connected, "BEGIN")

    def _connected(self) -> sqlite3.Connection:
        self._exists()
        return _ledger_at(self._path)

    def _exists(self) -> None:
        if not self._path.is_file():
            raise LedgerError("there is no ledger here: create it with `discreet budget init`, or correct its name")


def _ledger_at(path: Path) -> sqlite3.Connection:
    """A connection to a ledger; what is none is left as it is."""
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('ledger', 'entry', 'account')")
        if found.fetchone()[0] != 3:
            raise sqlite3.DatabaseError
    except sqlite3.OperationalError:  # busy, or gone: not for us to judge
        connection.close()
        raise
    except sqlite3.DatabaseError:
        connection.close()
        raise LedgerError("this file is not a ledger: correct its name") from None
    connection.execute("PRAGMA journal_mode=WAL")  # a copy may have lost it
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA recursive_triggers=ON")  # so that REPLACE fires what guards against DELETE
    return connection


def _make(path: Path, name: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        with _Transaction(lambda: connection, "BEGIN IMMEDIATE") as at:
            create(at, name)


def _appear(path: Path, write: Callable[[Path], Any]) -> None:
    """Let a file of the owner's alone appear in its place, whole and on disk; FileExistsError where there is one."""
    made = beside(path)
    try:
        os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        write(made)
        for kept in (made, path.parent):
            sync(kept)
        os.link(made, path)
        sync(path.parent)
    finally:
        for end in ("", "-wal", "-shm"):
            made.with_name(made.name + end).unlink(missing_ok=True)


class MemoryStore:
    """A ledger that lives as long as its process: for tests and first steps."""

    address = ":memory:"

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
            create(at, name)

    def key(self) -> bytes:
        """The key."""
        return self._key

    def writing(self) -> _Transaction:
        """One at a time."""
        return _Transaction(self._own, "BEGIN IMMEDIATE", lock=self._lock)

    reading = writing

    def _own(self) -> sqlite3.Connection:
        if os.getpid() != self._process:
            raise LedgerError("a ledger in memory ends with its process: give forked workers a ledger file")
        return self._connection
