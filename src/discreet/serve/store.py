"""The service's own database (SQLite): accounts, jobs, and an audit log in which each line is bound to the one before.

A commit is on disk before it returns (``synchronous=FULL``). Every operation has a connection of its own, so that
threads share none. What was spent is not here: that is the ledger's.

A token is ``dsc_HANDLE_SECRET``. The secret is 32 random bytes, shown once; the database has a salted hash of it
(BLAKE2b, keyed with the salt). A secret of 256 random bits cannot be guessed from its hash, so no slow hash is needed.
A session of the browser is another such secret, which ends with its token.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from discreet.ledger.chain import GENESIS
from discreet.serve.settings import NAME, ServiceError

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
        """Return the last lines of the audit log, the newest first."""
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


ROLES = ("owner", "analyst", "auditor")
SESSION_SECONDS = 8 * 3600.0
_TOKEN = re.compile(r"dsc_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_DAY = 86400.0


@dataclass(frozen=True)
class Person:
    """Who is asking: a token's handle, the name that it was made for, and the role."""

    handle: str
    name: str
    role: str

    @property
    def is_owner(self) -> bool:
        """Whether all is theirs to see and decide."""
        return self.role == "owner"

    @property
    def reads_all(self) -> bool:
        """Whether they see everybody's entries."""
        return self.role in ("owner", "auditor")


@dataclass(frozen=True)
class TokenRow:
    """What the owner sees of a token."""

    handle: str
    name: str
    role: str
    made: float
    expires: float
    revoked: float | None

    @property
    def state(self) -> str:
        """In one word."""
        return "revoked" if self.revoked is not None else "expired" if self.expires <= time.time() else "valid"

    def to_dict(self) -> dict[str, str | None]:
        """Plain values, times as texts."""
        words: dict[str, str | None] = {name: getattr(self, name) for name in ("handle", "name", "role", "state")}
        times = {name: getattr(self, name) for name in ("made", "expires", "revoked")}
        return words | {name: None if at is None else shown_time(at) for name, at in times.items()}


class Accounts:
    """Tokens, sessions and allocations in the service's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def new(self, name: str, role: str, *, days: float = 90.0, actor: str = "command line") -> str:
        """Make a token and return it: nobody can read it again."""
        if not NAME.fullmatch(name):
            raise ServiceError("a name has at most 40 letters, digits, dots, dashes and underscores")
        if role not in ROLES:
            raise ServiceError(f"a role is one of {', '.join(ROLES)}")
        if not 0 < days <= 3660:
            raise ServiceError("a token is valid for some days, at most 3660")
        handle, secret, salt, now = secrets.token_hex(8), _secret(), secrets.token_bytes(16), time.time()
        with self._store.writing() as at:
            others = at.execute("SELECT 1 FROM token WHERE name = ? AND role != ? LIMIT 1", (name, role)).fetchone()
            if others:
                raise ServiceError("this name has a token of another role: one person, one role")
            row = (handle, name, role, salt, _digest(secret, salt), now, now + days * _DAY)
            at.execute("INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", row)
            note(at, actor, "token made", f"{handle} for {name}, {role}")
        return f"dsc_{handle}_{secret}"

    def revoke(self, handle: str, actor: str = "command line") -> None:
        """End a token, and its sessions, at once."""
        with self._store.writing() as at:
            statement = "UPDATE token SET revoked = ? WHERE handle = ? AND revoked IS NULL"
            if at.execute(statement, (time.time(), handle)).rowcount != 1:
                raise ServiceError("there is no such token, or it is revoked already")
            at.execute("DELETE FROM session WHERE handle = ?", (handle,))
            note(at, actor, "token revoked", handle)

    def tokens(self) -> list[TokenRow]:
        """Return all tokens, without secrets."""
        with self._store.reading() as at:
            rows = at.execute("SELECT handle, name, role, made, expires, revoked FROM token ORDER BY made").fetchall()
        return [TokenRow(*row) for row in rows]

    def by_token(self, token: str) -> Person | None:
        """Who this is; None for anything but a valid token."""
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            return None
        with self._store.reading() as at:
            row = at.execute("SELECT salt, digest FROM token WHERE handle = ?", (parts[1],)).fetchone()
            if row is None or not hmac.compare_digest(_digest(parts[2], row[0]), row[1]):
                return None
            return _valid(at, parts[1])

    def enter(self, person: Person) -> str:
        """Begin a session of the browser, and return its secret."""
        secret, now = _secret(), time.time()
        with self._store.writing() as at:
            at.execute("DELETE FROM session WHERE expires < ?", (now,))
            row = (_digest(secret, b""), person.handle, now + SESSION_SECONDS)
            at.execute("INSERT INTO session VALUES (?, ?, ?)", row)
            note(at, person.name, "logged in", person.handle)
        return secret

    def by_session(self, secret: str) -> Person | None:
        """Whose session this is; None where it has ended."""
        if not _SECRET.fullmatch(secret):
            return None
        with self._store.reading() as at:
            query = "SELECT handle FROM session WHERE digest = ? AND expires > ?"
            row = at.execute(query, (_digest(secret, b""), time.time())).fetchone()
            return None if row is None else _valid(at, row[0])

    def leave(self, secret: str) -> None:
        """End a session."""
        with self._store.writing() as at:
            at.execute("DELETE FROM session WHERE digest = ?", (_digest(secret, b""),))

    def allocate(self, name: str, dataset: str, epsilon: float, actor: str = "command line") -> None:
        """Let an analyst spend up to so much of a data set's cap; 0 ends it."""
        if not 0 <= epsilon <= 1000:
            raise ServiceError("an allocation is an epsilon from 0 to 1000")
        with self._store.writing() as at:
            if not at.execute("SELECT 1 FROM token WHERE name = ? AND role = 'analyst' LIMIT 1", (name,)).fetchone():
                raise ServiceError("there is no analyst of this name: make a token first")
            at.execute("INSERT OR REPLACE INTO allocation VALUES (?, ?, ?)", (name, dataset, float(epsilon)))
            note(at, actor, "allocated", f"epsilon {epsilon:g} of {dataset} to {name}")

    def allocations(self, name: str | None = None) -> dict[tuple[str, str], float]:
        """(name, data set) -> epsilon, of one analyst or of all."""
        with self._store.reading() as at:
            return allocations(at, name)


def allocations(at: sqlite3.Connection, name: str | None = None) -> dict[tuple[str, str], float]:
    """Return allocations inside a transaction."""
    rows = at.execute(
        "SELECT name, dataset, epsilon FROM allocation WHERE epsilon > 0 AND ? IN (name, '')", (name or "",)
    )
    return {(who, dataset): epsilon for who, dataset, epsilon in rows}


def shown_time(at: float) -> str:
    """Return a time for people and programs."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _valid(at: sqlite3.Connection, handle: str) -> Person | None:
    statement = "SELECT handle, name, role FROM token WHERE handle = ? AND revoked IS NULL AND expires > ?"
    row = at.execute(statement, (handle, time.time())).fetchone()
    return None if row is None else Person(*row)


def _secret() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()


def _digest(secret: str, salt: bytes) -> bytes:
    return hashlib.blake2b(secret.encode(), key=salt, digest_size=32).digest()
