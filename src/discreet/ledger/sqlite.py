"""A ledger in one file (SQLite), and one in memory for trying things out.

Every operation opens its own connection: nothing is shared between threads or inherited by a fork, and an exception at
any point leaves no transaction behind. A commit is in the write-ahead log on disk (``synchronous=FULL``) before it
returns.
"""

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import LedgerError
from discreet.ledger.store import (
    FROZEN,
    NAMED,
    OVER_CAP,
    Connection,
    OverCap,
    charge_accounts,
    falls,
    is_charge,
    tables,
)

REPLACED = {
    "account": "name = NEW.name",
    "entry": "seq = NEW.seq OR request = NEW.request OR prev = NEW.prev OR hash = NEW.hash",
}
"""What REPLACE would remove without a word where a shell leaves ``recursive_triggers`` off."""
PATIENCE = 60.0
"""Seconds to wait for another writer."""


class _Open:
    """A SQLite connection as the ledger wants it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: Any) -> Sequence[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(statement, values).fetchall()
        return found

    def run(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[Connection]:
    try:
        if connection.in_transaction:  # an earlier one was interrupted before its own rollback
            connection.execute("ROLLBACK")
        connection.execute(begin)
        yield _Open(connection)
        connection.execute("COMMIT")
    except sqlite3.IntegrityError as error:
        if OVER_CAP in str(error):
            raise OverCap from None
        raise LedgerError("the ledger's database refused an entry: run `discreet budget verify`") from None
    except sqlite3.Error as error:
        raise LedgerError(
            f"the ledger cannot be used ({type(error).__name__}): is its disk full, read-only or busy? "
            "Nothing was granted"
        ) from None
    finally:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _create(connection: sqlite3.Connection, name: str) -> None:
    def trigger(when: str, body: str) -> str:
        return f"CREATE TRIGGER rule_{when.replace(' ', '_').lower()} {when} {body}; END"

    connection.execute("PRAGMA journal_mode=WAL")
    with _transaction(connection, "BEGIN IMMEDIATE") as at:
        for statement in tables():
            at.run(_strict(statement))
        at.run(NAMED, name)
        for table in FROZEN:
            for change in ("UPDATE", "DELETE"):
                at.run(trigger(f"BEFORE {change} ON {table}", "BEGIN SELECT RAISE(ABORT, 'append-only')"))
        for table, same in REPLACED.items():
            at.run(
                f"CREATE TRIGGER no_{table}_is_replaced BEFORE INSERT ON {table} WHEN EXISTS "
                f"(SELECT 1 FROM {table} WHERE {same}) BEGIN SELECT RAISE(ABORT, 'append-only'); END"
            )
        at.run(trigger("BEFORE DELETE ON account", "BEGIN SELECT RAISE(ABORT, 'append-only')"))
        at.run(trigger("BEFORE UPDATE ON account", f"WHEN {falls()} BEGIN SELECT RAISE(ABORT, 'no refunds')"))
        at.run(trigger("AFTER INSERT ON entry", f"WHEN {is_charge()} BEGIN {charge_accounts('min')[:-1]}"))


def _strict(statement: str) -> str:
    """With types that are enforced, in SQLite's own words."""
    if not statement.startswith("CREATE TABLE"):
        return statement
    return statement.replace("BIGINT", "INTEGER").replace("DOUBLE PRECISION", "REAL") + " STRICT"


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
        beside = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with closing(_connected(beside)) as connection:
                _create(connection, name)
            with suppress(FileExistsError):  # that of a ledger whose making was interrupted
                _write_key(self._key_path, key)
            os.link(beside, self._path)
            _sync_folder(self._path.parent)
        except FileExistsError:
            raise LedgerError("there is a ledger of this name already: use it, or choose another name") from None
        except OSError:
            raise LedgerError("the ledger cannot be created here: choose a directory that can be written") from None
        finally:
            for end in ("", "-wal", "-shm"):
                beside.with_name(beside.name + end).unlink(missing_ok=True)

    def key(self) -> bytes:
        """The key, from its file."""
        self._exists()
        try:
            return self._key_path.read_bytes()
        except OSError:
            raise LedgerError(
                "the ledger's key is missing or cannot be read: restore the .key file that belongs to it"
            ) from None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """``BEGIN IMMEDIATE``: one writer at a time, from the first statement on."""
        with closing(self._connected()) as connection, _transaction(connection, "BEGIN IMMEDIATE") as at:
            yield at

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A snapshot."""
        with closing(self._connected()) as connection, _transaction(connection, "BEGIN") as at:
            yield at

    def _connected(self) -> sqlite3.Connection:
        self._exists()
        return _connected(self._path)

    def _exists(self) -> None:
        if not self._path.is_file():
            raise LedgerError("there is no ledger here: create it with `discreet budget init`, or correct its name")


def _connected(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")  # a copy may have lost it
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA recursive_triggers=ON")  # so that REPLACE fires what guards against DELETE
    except sqlite3.Error:
        raise LedgerError("the ledger cannot be opened: this is not a ledger, or it cannot be read") from None
    return connection


def _write_key(path: Path, key: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class MemoryStore:
    """A ledger that lives as long as its process: for tests and first steps."""

    address = ":memory:"

    def __init__(self) -> None:
        self._key = b""
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA foreign_keys=ON")

    def create(self, name: str, key: bytes) -> None:
        """Make the tables."""
        self._key = key
        _create(self._connection, name)

    def key(self) -> bytes:
        """The key."""
        return self._key

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One at a time."""
        if os.getpid() != self._process:
            raise LedgerError("a ledger in memory ends with its process: give forked workers a ledger file")
        with self._lock, _transaction(self._connection, "BEGIN IMMEDIATE") as at:
            yield at

    reading = writing
