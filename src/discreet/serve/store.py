"""The service's own database (SQLite): accounts, jobs, and an audit log in which each line is bound to the one before.

A commit is on disk before it returns (``synchronous=FULL``). Every operation has a connection of its own, so that
threads share none. What was spent is not here: that is the ledger's.
"""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from discreet.ledger.chain import GENESIS
from discreet.serve.settings import ServiceError

PATIENCE = 30.0
_TABLES = """
CREATE TABLE IF NOT EXISTS token (
    handle TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL CHECK (role IN ('owner', 'analyst', 'auditor')),
    salt BLOB NOT NULL, digest BLOB NOT NULL, made REAL NOT NULL, expires REAL NOT NULL, revoked REAL
);
CREATE TABLE IF NOT EXISTS session (
    digest BLOB PRIMARY KEY, handle TEXT NOT NULL REFERENCES token (handle), expires REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS allocation (
    name TEXT NOT NULL, dataset TEXT NOT NULL, epsilon REAL NOT NULL, PRIMARY KEY (name, dataset)
);
CREATE TABLE IF NOT EXISTS job (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, dataset TEXT NOT NULL,
    charge_id TEXT NOT NULL, kind TEXT NOT NULL, settings TEXT NOT NULL, epsilon REAL NOT NULL, amounts TEXT NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', made REAL NOT NULL, tries INTEGER NOT NULL
    DEFAULT 0, approver TEXT, UNIQUE (name, charge_id)
);
CREATE INDEX IF NOT EXISTS job_state ON job (state, number);
CREATE TABLE IF NOT EXISTS audit (
    seq INTEGER PRIMARY KEY, time TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
    prev TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS audit_stays BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit lines stay'); END;
CREATE TRIGGER IF NOT EXISTS audit_remains BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit lines stay'); END;
"""


@dataclass(frozen=True)
class Line:
    """One line of the audit log: who did what to what. No value of a record, and no secret, is ever in one."""

    seq: int
    time: str
    actor: str
    action: str
    subject: str
    prev: str
    hash: str

    @property
    def digest(self) -> str:
        """The hash of everything else in it."""
        parts = [self.seq, self.time, self.actor, self.action, self.subject, self.prev]
        return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


class Store:
    """The database, made where it is missing, for its owner's eyes only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(self._connected()) as at:
            at.executescript(_TABLES)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer overlaps; durable when the block ends, undone where it fails."""
        with closing(self._connected()) as at:
            at.execute("BEGIN IMMEDIATE")
            yield at
            at.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A snapshot."""
        with closing(self._connected()) as at:
            at.execute("BEGIN")
            yield at

    def lines(self, limit: int = -1) -> list[Line]:
        """The last lines of the audit log, the newest first."""
        with self.reading() as at:
            return [Line(*row) for row in at.execute("SELECT * FROM audit ORDER BY seq DESC LIMIT ?", (limit,))]

    def verify(self) -> int:
        """Check the chain of the audit log, and return how many lines it has."""
        prev, lines = GENESIS, self.lines()[::-1]
        for seq, line in enumerate(lines, start=1):
            if line.seq != seq or line.prev != prev or line.digest != line.hash:
                raise ServiceError(f"the audit log does not hold together: line {seq} was changed, or one is missing")
            prev = line.hash
        return len(lines)

    def copy(self, place: Path) -> None:
        """Write a consistent copy while the service runs."""
        os.close(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(self._connected()) as at, closing(sqlite3.connect(place)) as copy:
            at.backup(copy)

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        return connection


def note(at: sqlite3.Connection, actor: str, action: str, subject: str = "") -> None:
    """Add a line to the audit log, in the transaction of what it is about."""
    last = at.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone() or (0, GENESIS)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = Line(last[0] + 1, now, actor, action, subject, last[1], "")
    at.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", (*_parts(line), line.digest))


def _parts(line: Line) -> tuple[object, ...]:
    return line.seq, line.time, line.actor, line.action, line.subject, line.prev
