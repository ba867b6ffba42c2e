"""What the ledger needs of a database: one exclusive, durable transaction at a time. The tables, and their rows.

The rules are in the database too: entries are never changed or removed, charges move the accounts by a trigger, what
was spent never falls, and no account leaves its cap. A slip in the Python above cannot overspend.

**Names** of data sets and of charges: what looks the same is the same. A name is an account, and a second account for
the same people is a second budget. So names are brought into Unicode's composed form (NFC), and what cannot be
distinguished by eye is refused:

- blanks at an end, two blanks in a row, and blanks other than the ordinary one;
- control and format characters (tabs, zero-width spaces, marks of writing direction), private and unassigned ones;
- letters and marks that are not drawn: fillers, joiners, variation selectors;
- compatibility forms of other characters, such as full-width letters and ligatures (what NFKC changes);
- a Cyrillic or Greek letter that looks like a Latin one, in a name that has Latin letters.

Everything else is allowed: letters and digits of all scripts, punctuation, symbols, single blanks between them, at most
200 characters. Capital and small letters are different, and so are a Latin and a Cyrillic word that look alike.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from discreet.budget import Neighbors
from discreet.errors import LedgerError, Unsupported
from discreet.ledger.account import AMOUNT_NAMES, NEVER, Account, Amounts
from discreet.ledger.chain import GENESIS, Entry

Row = tuple[Any, ...]
"""Cells as a database gives them."""

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

    def rows(self, statement: str, *values: object) -> Sequence[Row]:
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


_ENTRY = f"seq, kind, dataset, charge_id, {', '.join(AMOUNT_NAMES)}, body, prev, hash"
_ACCOUNT = (
    "name, parent, neighbors, unit, epsilon, delta, low_order, high_order, "
    f"{', '.join(f'{c}_cap' for c in AMOUNT_NAMES)}, {', '.join(f'{c}_spent' for c in AMOUNT_NAMES)}, charges, adds"
)


def _marks(columns: str) -> str:
    return ", ".join("?" for _ in columns.split(","))


def _entry(row: Row) -> Entry:
    seq, kind, dataset, charge_id = row[:4]
    return Entry(seq, kind, dataset, charge_id, Amounts(*row[4:9]), *row[9:12])


def _account(row: Row) -> Account:
    name, parent, neighbors, unit, epsilon, delta, low, high = row[:8]
    return Account(
        name=name,
        epsilon=epsilon,
        delta=delta,
        neighbors=Neighbors(neighbors),
        unit=unit,
        orders=(low, high),
        caps=Amounts(*row[8:13]),
        parent=parent,
        spent=Amounts(*row[13:18]),
        charges=row[18],
        adds=bool(row[19]),
    )


def last(at: Connection) -> tuple[int, str]:
    """The number and the hash of the last entry."""
    entries = at.rows("SELECT seq, hash FROM entry ORDER BY seq DESC LIMIT 1")
    return entries[0] if entries else (0, GENESIS)


def append(at: Connection, entry: Entry) -> None:
    """Write an entry down; a charge moves its accounts by the database's own rule."""
    values = (entry.seq, entry.kind, entry.dataset, entry.charge_id, *entry.charge)
    at.run(f"INSERT INTO entry ({_ENTRY}) VALUES ({_marks(_ENTRY)})", *values, entry.body, entry.prev, entry.hash)


def entry_of_charge(at: Connection, charge_id: str) -> Entry | None:
    """Return the entry of a charge id, if there is one."""
    rows = at.rows(f"SELECT {_ENTRY} FROM entry WHERE charge_id = ?", charge_id)
    return _entry(rows[0]) if rows else None


def entries(at: Connection, dataset: str | None = None, limit: int | None = None) -> list[Entry]:
    """The entries in order, of one data set where one is named; the last ``limit``."""
    where, values = ("WHERE dataset = ?", (dataset,)) if dataset is not None else ("", ())
    cut = f"LIMIT {int(limit)}" if limit is not None else ""
    rows = at.rows(f"SELECT {_ENTRY} FROM entry {where} ORDER BY seq DESC {cut}", *values)
    return [_entry(row) for row in reversed(rows)]


def accounts(at: Connection) -> list[Account]:
    """All accounts by name."""
    return [_account(row) for row in at.rows(f"SELECT {_ACCOUNT} FROM account ORDER BY name")]


def account(at: Connection, name: str) -> Account | None:
    """One account."""
    rows = at.rows(f"SELECT {_ACCOUNT} FROM account WHERE name = ?", name)
    return _account(rows[0]) if rows else None


def family(at: Connection, name: str) -> list[Account]:
    """The accounts that a charge to this one moves: itself, and its parts."""
    rows = at.rows(f"SELECT {_ACCOUNT} FROM account WHERE name = ? OR parent = ?", name, name)
    return [_account(row) for row in rows]


def add(at: Connection, new: Account) -> None:
    """A new account."""
    values = (
        new.name,
        new.parent,
        str(new.neighbors),
        new.unit,
        new.epsilon,
        new.delta,
        *new.orders,
        *new.caps,
        *new.spent,
    )
    at.run(f"INSERT INTO account ({_ACCOUNT}) VALUES ({_marks(_ACCOUNT)})", *values, new.charges, int(new.adds))


def set_caps(at: Connection, changed: Iterable[Account]) -> None:
    """Other caps for accounts that exist."""
    columns = ", ".join(f"{c}_cap = ?" for c in AMOUNT_NAMES)
    for account in changed:
        at.run(
            f"UPDATE account SET epsilon = ?, {columns} WHERE name = ?", *(account.epsilon, *account.caps, account.name)
        )


LONGEST = 200
# Of the characters that Unicode does not draw ("default ignorable"), those that Python calls printable; and the blank
# of Braille.
_UNDRAWN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0100-\U000e01ef]"
)
_TWINS = frozenset("АВЕЅІЈКМНОРСТУХаеорсухѕіјһԁԛԝ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονυϲϳ")
"""Cyrillic and Greek letters that look like Latin ones."""

_WHAT = "the name of a data set or of a charge is a short, printable text"


def name_of(given: object) -> str:
    """The name that is meant, in its one form; Unsupported where it could be taken for another one."""
    if not isinstance(given, str) or not given.strip() or not given.isprintable() or len(given) > LONGEST:
        raise Unsupported(f"{_WHAT} of at most {LONGEST} characters")
    name = unicodedata.normalize("NFC", given)
    if name != name.strip() or "  " in name:
        raise Unsupported(f"{_WHAT}: leave out blanks at its ends, and double ones")
    if _UNDRAWN.search(name):
        raise Unsupported(f"{_WHAT}: leave out characters that are not drawn")
    if unicodedata.normalize("NFKC", name) != name:
        raise Unsupported(f"{_WHAT}: write plain characters for full-width ones, ligatures and the like")
    if _TWINS & set(name) and any(unicodedata.name(letter, "").startswith("LATIN ") for letter in name):
        raise Unsupported(f"{_WHAT}: leave out Cyrillic and Greek letters that look like Latin ones")
    return name
