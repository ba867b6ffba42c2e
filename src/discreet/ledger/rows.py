"""The tables as objects: entries and accounts, read and written inside one transaction.

**Names.** Names of data sets and of charges: what looks the same is the same, in one place.

A name is an account, and a second account for the same people is a second budget. So names are brought into Unicode's
composed form (NFC), and what cannot be distinguished by eye is refused:

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
from collections.abc import Iterable
from typing import Any

from discreet.budget import Neighbors
from discreet.errors import Unsupported
from discreet.ledger.account import AMOUNT_NAMES, Account, Amounts
from discreet.ledger.chain import GENESIS, Entry
from discreet.ledger.store import Connection

_ENTRY = f"seq, kind, dataset, charge_id, {', '.join(AMOUNT_NAMES)}, body, prev, hash"
_ACCOUNT = (
    "name, parent, neighbors, unit, epsilon, delta, low_order, high_order, "
    f"{', '.join(f'{c}_cap' for c in AMOUNT_NAMES)}, {', '.join(f'{c}_spent' for c in AMOUNT_NAMES)}, charges, adds"
)


def _marks(columns: str) -> str:
    return ", ".join("?" for _ in columns.split(","))


def _entry(row: tuple[Any, ...]) -> Entry:
    seq, kind, dataset, charge_id = row[:4]
    return Entry(seq, kind, dataset, charge_id, Amounts(*row[4:9]), *row[9:12])


def _account(row: tuple[Any, ...]) -> Account:
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
            f"UPDATE account SET epsilon = ?, {columns} WHERE name = ?",
            *(account.epsilon, *account.caps, account.name),
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
