"""What the ledger needs of a database: one exclusive, durable transaction at a time. And the tables, once.

The rules are in the database too: entries are never changed or removed, charges move the accounts by a trigger, what
was spent never falls, and no account leaves its cap. A slip in the Python above cannot overspend.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import LedgerError
from discreet.ledger.account import AMOUNT_NAMES, NEVER

MEMORY = ":memory:"
URL = ("postgresql://", "postgres://")

# What somebody wrote for a URL and what is none: it may hold a password, and must not become the name of a file.
_LIKE_A_URL = re.compile(
    r"\s*(?:[a-z][a-z0-9+.-]+:/|postgres(?:ql)?:|[^/\\]*:[^/\\]*@)|.*(?:://|password\s*=)", re.I | re.S
)

FORMAT = 1
OVER_CAP = "within_the_cap"
"""The name of the constraint that a charge over the cap violates."""


class OverCap(Exception):
    """The database refused a charge that would have crossed a cap."""


class Connection(Protocol):
    """An open transaction; statements have question marks for values."""

    def rows(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        """What a query finds."""
        ...

    def run(self, statement: str, *values: object) -> None:
        """Carry out a statement that answers nothing."""
        ...


class Store(Protocol):
    """Where a ledger lives. A new store is one file with these methods."""

    @property
    def address(self) -> str:
        """Where it is, without a password."""
        ...

    @property
    def open_address(self) -> str | None:
        """By which another process opens it, without a secret; None where there is no such address."""
        ...

    def create(self, name: str, key: bytes) -> None:
        """Make the tables of a ledger of this name and keep the key; LedgerError where there is one already."""
        ...

    def key(self) -> bytes:
        """The key of the fingerprints."""
        ...

    def bind(self) -> None:
        """Take the place where the ledger is now for its own; Unsupported where it has no place."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that no other writer overlaps; durable once it is left without an exception."""
        ...

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one moment of the ledger."""
        ...


def is_path(address: str | Path) -> bool:
    """Whether an address is a file's; LedgerError where it is nothing. No part of it is shown."""
    text = str(address)
    if text == MEMORY or (isinstance(address, str) and text.startswith(URL)):
        return False
    if _LIKE_A_URL.match(text):
        raise LedgerError(
            "a ledger is a path, a URL such as postgresql://user@host/database, or :memory:. This is neither: correct "
            "it, and keep the password in ~/.pgpass"
        )
    return True


def store_for(address: str | Path) -> Store:
    """The store behind an address: a path, a PostgreSQL URL, or ``:memory:``."""
    if is_path(address):
        from discreet.ledger.sqlite import SQLiteStore

        return SQLiteStore(address)
    if str(address) == MEMORY:
        from discreet.ledger.sqlite import MemoryStore

        return MemoryStore()
    from discreet.ledger.postgres import PostgresStore

    return PostgresStore(str(address))


def tables() -> list[str]:
    """The tables, in SQL that SQLite and PostgreSQL share."""
    each = "".join(f"{name} BIGINT NOT NULL CHECK ({name} >= 0), " for name in AMOUNT_NAMES)
    spent = "".join(f"{name}_spent BIGINT NOT NULL, " for name in AMOUNT_NAMES)
    caps = "".join(f"{name}_cap BIGINT NOT NULL, " for name in AMOUNT_NAMES)
    return [
        "CREATE TABLE ledger (id BIGINT PRIMARY KEY CHECK (id = 1), format BIGINT NOT NULL, name TEXT NOT NULL)",
        "CREATE TABLE entry (seq BIGINT PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, charge_id TEXT UNIQUE, "
        f"{each} body TEXT NOT NULL, prev TEXT NOT NULL UNIQUE, hash TEXT NOT NULL UNIQUE)",
        "CREATE TABLE account (name TEXT PRIMARY KEY, parent TEXT REFERENCES account (name), "
        "neighbors TEXT NOT NULL, unit TEXT NOT NULL, epsilon DOUBLE PRECISION NOT NULL, "
        "delta DOUBLE PRECISION NOT NULL, low_order BIGINT NOT NULL, high_order BIGINT NOT NULL, "
        f"{caps} {spent} charges BIGINT NOT NULL, adds BIGINT NOT NULL, CONSTRAINT {OVER_CAP} CHECK ("
        "charges = 0 OR (adds = 1 AND epsilon_spent <= epsilon_cap AND delta_spent <= delta_cap) OR (adds = 0 AND "
        "(gaussian_spent <= gaussian_cap OR low_spent <= low_cap OR high_spent <= high_cap OR "
        "(epsilon_spent <= epsilon_cap AND delta_spent = 0)))))",
        "CREATE INDEX entry_of ON entry (dataset, seq)",
        "CREATE INDEX part_of ON account (parent)",
        "CREATE TABLE release (charge_id TEXT PRIMARY KEY REFERENCES entry (charge_id), body TEXT)",
        "CREATE TABLE known (dataset TEXT PRIMARY KEY REFERENCES account (name), digest TEXT NOT NULL, "
        "sketch TEXT NOT NULL)",
        "CREATE TABLE seen (dataset TEXT PRIMARY KEY REFERENCES account (name), times BIGINT NOT NULL)",
        "CREATE TABLE notice (dataset TEXT NOT NULL REFERENCES account (name), other TEXT NOT NULL, "
        "share DOUBLE PRECISION NOT NULL, PRIMARY KEY (dataset, other))",
    ]


NAMED = f"INSERT INTO ledger (id, format, name) VALUES (1, {FORMAT}, ?)"

FROZEN = ("entry", "release", "known", "ledger")
"""Tables whose rows are never changed or removed."""


def charge_accounts(least: str) -> str:
    """The statement by which an entry moves its account, and its parts; ``least`` is the dialect's minimum."""
    moved = ", ".join(f"{c}_spent = {least}({c}_spent + NEW.{c}, {NEVER})" for c in AMOUNT_NAMES)
    expensive = " AND ".join(f"NEW.{c} > {c}_cap" for c in AMOUNT_NAMES[:3])
    expensive += " AND (NEW.epsilon > epsilon_cap OR NEW.delta > 0)"
    return (
        f"UPDATE account SET adds = CASE WHEN charges = 0 AND {expensive} THEN 1 ELSE adds END, "
        f"charges = charges + 1, {moved} WHERE name = NEW.dataset OR parent = NEW.dataset;"
    )


def is_charge() -> str:
    """The condition under which a new entry moves accounts: it costs something."""
    return " OR ".join(f"NEW.{c} > 0" for c in AMOUNT_NAMES)


def falls() -> str:
    """The condition under which an account's change would give something back, or its name away."""
    less = " OR ".join(f"NEW.{c}_spent < OLD.{c}_spent" for c in AMOUNT_NAMES)
    return f"{less} OR NEW.charges < OLD.charges OR NEW.name <> OLD.name"
