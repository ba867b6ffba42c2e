"""Whoever has the file can change it, but not without a trace."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from discreet import Ledger
from discreet.accounting.certificate import Certificate
from discreet.errors import LedgerError
from discreet.ledger.account import Amounts
from discreet.ledger.chain import Entry
from tests.promises.crash.charges import DATASET, charge
from tests.promises.crash.observing import AMOUNT_NAMES, raw, snapshot
from tests.promises.crash.test_kills import model, records

COLUMNS = ("seq", "kind", "dataset", "charge_id", *AMOUNT_NAMES, "body", "prev", "hash")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Certificate]:
    """A ledger of six charges, one of them released, another data set, and a fit with its certificate."""
    path = tmp_path_factory.mktemp("whole") / "budget.db"
    ledger = Ledger.create(path)
    ledger.grant(DATASET, 5.0, 1e-6)
    for number in range(6):
        charge(ledger, f"r{number}")
    ledger.settle("r1", "what was released")
    ledger.grant("other", 2.0, 1e-6)
    return path, model(path).fit(*records()).certificate_


@pytest.fixture
def filled(whole: tuple[Path, Certificate], tmp_path: Path) -> Path:
    """A copy of it, with its key."""
    for end in ("", ".key"):
        shutil.copy(f"{whole[0]}{end}", tmp_path / f"budget.db{end}")
    Ledger(tmp_path / "budget.db").bind()
    return tmp_path / "budget.db"


@pytest.fixture
def certificate(whole: tuple[Path, Certificate]) -> Certificate:
    return whole[1]


@pytest.fixture
def attacker(filled: Path) -> Iterator[sqlite3.Connection]:
    with closing(raw(filled)) as connection:
        yield connection


def without_triggers(connection: sqlite3.Connection) -> None:
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")


# --- what the database refuses by itself ------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        *("UPDATE entry SET gaussian = 0 WHERE seq = 3", "UPDATE OR REPLACE entry SET seq = 4 WHERE seq = 3"),
        *("UPDATE OR IGNORE entry SET body = '{}'", "DELETE FROM entry WHERE seq = 3", "DELETE FROM entry"),
        *("DELETE FROM account", "DELETE FROM release"),
        *("UPDATE release SET body = 'another' WHERE charge_id = 'r1'", "UPDATE release SET body = NULL"),
        *("DELETE FROM ledger", "UPDATE ledger SET name = 'another'", "UPDATE account SET gaussian_spent = 0"),
        "UPDATE account SET epsilon_spent = epsilon_spent - 1 WHERE name = 'ds'",
        "UPDATE account SET charges = charges - 1 WHERE name = 'ds'",
        "UPDATE account SET charges = 0 WHERE name = 'ds'",
        "UPDATE account SET gaussian_cap = 1, low_cap = 1, high_cap = 1 WHERE name = 'ds'",
        "UPDATE account SET gaussian_spent = 1 << 59, low_spent = 1 << 59, high_spent = 1 << 59 WHERE name = 'ds'",
        "INSERT INTO entry SELECT seq + 100, kind, dataset, NULL, -1, 0, 0, 0, 0, body, 'p', 'h' FROM entry LIMIT 1",
        "INSERT INTO entry VALUES (99, 'charge', 'ds', NULL, 1 << 60, 1 << 60, 1 << 60, 1 << 60, 0, '{}', 'p', 'h')",
        "INSERT INTO entry SELECT seq, kind, dataset, NULL, 0, 0, 0, 0, 0, body, 'p', 'h' FROM entry WHERE seq = 2",
        "INSERT INTO entry SELECT 99, kind, dataset, charge_id, 0, 0, 0, 0, 0, body, 'p', 'h' FROM entry WHERE seq = 2",
        "INSERT INTO entry SELECT 99, kind, dataset, NULL, 0, 0, 0, 0, 0, body, prev, 'h' FROM entry WHERE seq = 2",
        "INSERT INTO entry VALUES (99, 'charge', 'ds', NULL, 'free', 0, 0, 0, 0, '{}', 'p', 'h')",
        "INSERT INTO release SELECT charge_id, 'another' FROM release WHERE charge_id = 'r1'",
        "INSERT OR REPLACE INTO entry SELECT seq, kind, dataset, charge_id, 0, 0, 0, 0, 0, body, prev, hash "
        "FROM entry WHERE seq = 3",
        "REPLACE INTO entry SELECT seq, kind, dataset, NULL, 0, 0, 0, 0, 0, body, 'p', 'h' FROM entry WHERE seq = 3",
        "REPLACE INTO entry SELECT 99, kind, dataset, NULL, 0, 0, 0, 0, 0, body, prev, 'h' FROM entry WHERE seq = 3",
        "REPLACE INTO account SELECT name, parent, neighbors, unit, epsilon, delta, low_order, high_order, "
        "gaussian_cap, low_cap, high_cap, epsilon_cap, delta_cap, 0, 0, 0, 0, 0, 0, 0 FROM account WHERE name = 'ds'",
    ],
)
def test_the_database_refuses(filled: Path, attacker: sqlite3.Connection, statement: str) -> None:
    before = snapshot(filled)
    with pytest.raises(sqlite3.IntegrityError):
        attacker.execute(statement)
    assert snapshot(filled) == before
    Ledger(filled).verify(prices=True)


@pytest.mark.parametrize(
    "statement",
    [
        "REPLACE INTO release VALUES ('r1', 'another')",
        "REPLACE INTO ledger VALUES (1, 1, 'another')",
        "REPLACE INTO known VALUES ('ds', 'another', '[]')",
        "UPDATE OR REPLACE account SET name = 'ds' WHERE name = 'other'",
    ],
)
def test_the_database_refuses_a_replacement(attacker: sqlite3.Connection, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        attacker.execute(statement)


def test_a_replacement_is_refused_to_the_ledgers_own_connections(filled: Path) -> None:
    with pytest.raises(LedgerError), Ledger(filled)._store.writing() as at:
        at.run("REPLACE INTO entry SELECT seq, kind, dataset, NULL, 0, 0, 0, 0, 0, body, 'p', 'h' FROM entry")


def test_a_charge_by_hand_moves_the_account_and_breaks_the_chain(filled: Path, attacker: sqlite3.Connection) -> None:
    before = snapshot(filled).accounts[DATASET]["gaussian_spent"]
    attacker.execute("INSERT INTO entry VALUES (99, 'charge', 'ds', NULL, 5, 0, 0, 0, 0, '{}', 'p', 'h')")
    assert snapshot(filled).accounts[DATASET]["gaussian_spent"] == before + 5
    with pytest.raises(LedgerError, match="chain is broken"):
        Ledger(filled).verify()


# --- what verification finds where the triggers are gone --------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET gaussian = gaussian - 1 WHERE seq = 3",
        *("UPDATE entry SET delta = delta + 1 WHERE seq = 3", "UPDATE entry SET kind = 'grant' WHERE seq = 3"),
        *("UPDATE entry SET dataset = 'other' WHERE seq = 3", "UPDATE entry SET charge_id = NULL WHERE seq = 3"),
        "UPDATE entry SET charge_id = 'another' WHERE seq = 3",
        "UPDATE entry SET body = replace(body, '20', '21') WHERE seq = 1",
        *("UPDATE entry SET body = body || ' ' WHERE seq = 3", "UPDATE entry SET hash = upper(hash) WHERE seq = 3"),
        *("DELETE FROM entry WHERE seq = 3", "DELETE FROM entry WHERE seq = 1", "DELETE FROM entry WHERE seq = 7"),
        "DELETE FROM entry WHERE kind = 'charge' AND seq > 4",
        "INSERT INTO entry SELECT 10, kind, dataset, NULL, 0, 0, 0, 0, 0, body, hash, 'h' FROM entry WHERE seq = 9",
        "UPDATE account SET gaussian_spent = gaussian_spent - 1 WHERE name = 'ds'",
        "UPDATE account SET charges = charges - 1 WHERE name = 'ds'",
        "UPDATE account SET gaussian_cap = gaussian_cap + 1 WHERE name = 'ds'",
        "UPDATE account SET epsilon = 6 WHERE name = 'ds'",
        "UPDATE account SET delta = 2e-6 WHERE name = 'other'",
        "UPDATE account SET low_order = low_order + 1 WHERE name = 'ds'",
        "UPDATE account SET neighbors = 'add_remove' WHERE name = 'ds'",
        "UPDATE account SET unit = 'person' WHERE name = 'ds'",
        "UPDATE account SET adds = 1, epsilon_cap = 1 << 59, delta_cap = 1 << 59 WHERE name = 'ds'",
        "UPDATE account SET parent = 'other' WHERE name = 'ds'",
        *("UPDATE account SET name = 'another' WHERE name = 'other'", "DELETE FROM account WHERE name = 'other'"),
        "INSERT INTO account SELECT 'new', parent, neighbors, unit, epsilon, delta, low_order, high_order, "
        "gaussian_cap, low_cap, high_cap, epsilon_cap, delta_cap, 0, 0, 0, 0, 0, 0, 0 FROM account WHERE name = 'ds'",
    ],
)
def test_verification_finds(filled: Path, attacker: sqlite3.Connection, statement: str) -> None:
    Ledger(filled).verify(prices=True)
    without_triggers(attacker)
    assert attacker.execute(statement).rowcount > 0
    with pytest.raises(LedgerError):
        Ledger(filled).verify()


def test_verification_finds_entries_that_changed_places(filled: Path, attacker: sqlite3.Connection) -> None:
    without_triggers(attacker)
    for old, new in ((3, 1000), (4, 3), (1000, 4)):
        attacker.execute("UPDATE entry SET seq = ? WHERE seq = ?", (new, old))
    with pytest.raises(LedgerError, match="broken at entry 3"):
        Ledger(filled).verify()


# --- a forger who rebuilds everything ---------------------------------------------------------------


def rewritten(connection: sqlite3.Connection, change: Callable[[list[Entry]], list[Entry]]) -> None:
    """Change the list of entries at will, seal it anew, and make the accounts what it comes to."""
    without_triggers(connection)
    listed = [
        Entry(*row[:4], Amounts(*row[4:9]), *row[9:])
        for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM entry ORDER BY seq").fetchall()
    ]
    connection.execute("DELETE FROM entry")
    previous = "0" * 64
    spent, charges = Amounts(), 0
    for number, entry in enumerate(change(listed), start=1):
        sealed = replace(entry, seq=number, prev=previous).sealed()
        previous = sealed.hash
        values = (*astuple(sealed)[:4], *astuple(sealed.charge), sealed.body, sealed.prev, sealed.hash)
        connection.execute(f"INSERT INTO entry VALUES ({', '.join('?' * 12)})", values)
        if sealed.kind == "charge" and sealed.dataset == DATASET:
            spent, charges = spent + sealed.charge, charges + 1
    settings = ", ".join(f"{name}_spent = {getattr(spent, name)}" for name in AMOUNT_NAMES)
    connection.execute(f"UPDATE account SET {settings}, charges = {charges} WHERE name = '{DATASET}'")


def cheaper(listed: list[Entry]) -> list[Entry]:
    return [replace(e, charge=Amounts(*(v // 2 for v in astuple(e.charge)))) if e.seq == 3 else e for e in listed]


def cheaper_in_one_filter(listed: list[Entry]) -> list[Entry]:
    return [
        replace(e, charge=replace(e.charge, gaussian=e.charge.gaussian - 10**4)) if e.seq == 3 else e for e in listed
    ]


def free(listed: list[Entry]) -> list[Entry]:
    def without_events(entry: Entry) -> Entry:
        body = json.dumps({**entry.contents, "events": []}, sort_keys=True, separators=(",", ":"))
        return replace(entry, charge=Amounts(0, 0, 0, 1, 0), body=body)

    return [without_events(entry) if entry.seq == 3 else entry for entry in listed]


@pytest.mark.parametrize("change", [cheaper, cheaper_in_one_filter])
def test_a_chain_rebuilt_with_smaller_charges_is_found_by_pricing(
    filled: Path, attacker: sqlite3.Connection, change: Callable[[list[Entry]], list[Entry]]
) -> None:
    rewritten(attacker, change)
    Ledger(filled).verify()
    with pytest.raises(LedgerError, match="entry 3"):
        Ledger(filled).verify(prices=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda listed: [entry for entry in listed if entry.seq != 4],
        lambda listed: listed[:-1],
        lambda listed: [entry for entry in listed if not 3 < entry.seq < 7],
        lambda listed: [listed[0], listed[2], listed[1], *listed[3:]],
        free,
        cheaper,
    ],
    ids=["one removed", "the last removed", "many removed", "two exchanged", "other events", "a smaller charge"],
)
def test_a_certificate_tells_of_a_chain_that_was_rebuilt(
    filled: Path, certificate: Certificate, attacker: sqlite3.Connection, change: Callable[[list[Entry]], list[Entry]]
) -> None:
    Ledger(filled).verify(certificate, prices=True)
    rewritten(attacker, change)
    Ledger(filled).verify()  # whole in itself
    with pytest.raises(LedgerError, match="not in this ledger"):
        Ledger(filled).verify(certificate)


def test_an_older_copy_is_told_by_the_certificates_since(filled: Path, tmp_path: Path) -> None:
    old = model(filled).fit(*records()).certificate_
    copy = filled.read_bytes()
    recent = model(filled).fit(*records()).certificate_
    filled.write_bytes(copy)
    Ledger(filled).verify(old)
    with pytest.raises(LedgerError, match="rolled back"):
        Ledger(filled).verify(recent)


def test_a_certificate_that_was_changed_is_told(filled: Path, certificate: Certificate, tmp_path: Path) -> None:
    ledger = Ledger(filled)
    text = json.loads(certificate.to_json())
    assert certificate.ledger is not None
    for name, value in (("entry", 2), ("entry", 10**6), ("entry", 0), ("entry", -1), ("head", "0" * 64)):
        with pytest.raises(LedgerError):
            ledger.verify(replace(certificate, ledger={**certificate.ledger, name: value}))
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.verify(replace(certificate, ledger={**certificate.ledger, "ledger": "x"}))
    with pytest.raises(LedgerError, match="no ledger"):
        ledger.verify(replace(certificate, ledger=None))
    text["events"][0]["noise_multiplier"] *= 2
    with pytest.raises(LedgerError, match="other releases"):
        ledger.verify(Certificate.from_json(json.dumps(text)))
