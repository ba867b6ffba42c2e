"""Ledgers that are built wrongly, from the same parts: these tests would not notice a fault that these do not show."""

import os
import random
import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace

import pytest
from sklearn.base import BaseEstimator, clone

from discreet import Budget, BudgetExceeded, Ledger
from discreet.accounting.events import Gaussian
from discreet.accounting.pricing import price_plan
from discreet.errors import LedgerError
from discreet.ledger import store as rows
from discreet.ledger.store import OVER_CAP, OverCap
from tests.promises.crash.charges import DATASET, charge
from tests.promises.crash.children import Child
from tests.promises.crash.killing import Crowd, Folder, Log
from tests.promises.crash.observing import AMOUNT_NAMES, faults, raw, snapshot

# --- release, then debit ----------------------------------------------------------------------------


def release_first(address: Path, folder: Folder, slot: int, seed: float) -> None:
    """The order of things that loses debits."""
    ledger, log = Ledger(address), Log(folder.log(slot))
    while not folder.stop.exists():
        charge_id = f"own-{secrets.token_hex(6)}"
        log("released", charge_id, secrets.token_hex(8))
        try:
            charge(ledger, charge_id)
        except BudgetExceeded:
            return


@pytest.mark.thorough
def test_release_then_debit_loses_debits(path: Path, tmp_path: Path) -> None:
    Ledger(path).grant(DATASET, 50.0)
    folder = Folder(tmp_path / "logs")
    folder.path.mkdir()
    crowd = Crowd(path, folder, release_first, 6, random.Random(1))
    crowd.kill(40, longest=0.03)
    crowd.finish()
    end = snapshot(path)
    assert crowd.errors == []
    assert faults(end) == []  # the ledger itself is whole: it was asked too late
    assert len(set(folder.released()) - set(end.requests)) > 5


# --- a check outside of the lock --------------------------------------------------------------------


def without_rules(path: Path, *, moves: bool = False) -> None:
    """Take what guards the cap out of the database: all triggers (but that which moves accounts), the constraint."""
    with closing(raw(path)) as connection:
        for name, text in connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall():
            if not (moves and "AFTER INSERT ON entry" in text):
                connection.execute(f"DROP TRIGGER {name}")
        (text,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'account'").fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        unchecked = text[: text.index(f", CONSTRAINT {OVER_CAP}")] + ") STRICT"
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'account'", (unchecked,))


ENOUGH = Budget(1.1, 1e-7)  # for one answer with noise of 5


def check_then_charge(ledger: Ledger, meet: Callable[[], None], *, moves: bool) -> bool:
    """Read the account, decide, and only then take the lock to write."""
    events = (Gaussian(5.0),)
    cost = ledger.account(DATASET).charge(price_plan(events, ENOUGH))
    with ledger._store.reading() as at:
        account = rows.account(at, DATASET)
        assert account is not None
        allowed = account.charged(cost).is_within
    meet()
    if not allowed:
        return False
    body = {"budget": {"epsilon": ENOUGH.epsilon, "delta": ENOUGH.delta}, "events": [e.to_dict() for e in events]}
    try:
        with ledger._store.writing() as at:
            ledger._append(at, "charge", DATASET, body, charge=cost)
            if moves:
                moved = ", ".join(f"{name}_spent = {name}_spent + ?" for name in AMOUNT_NAMES)
                at.run(f"UPDATE account SET charges = charges + 1, {moved}", *astuple(cost))
    except OverCap:
        return False
    return True


def all_at_once(path: Path, count: int, *, moves: bool) -> list[bool]:
    """Several processes decide before any of them writes."""
    arrived, leave = os.pipe(), os.pipe()

    def meet() -> None:
        os.write(arrived[1], b".")
        os.read(leave[0], 1)

    children = [Child(lambda: check_then_charge(Ledger(path), meet, moves=moves)) for _ in range(count)]
    os.close(arrived[1])  # so that children who end before they arrive are not waited for
    for _ in children:
        assert os.read(arrived[0], 1)
    os.write(leave[1], b"." * count)
    return [child.join().value for child in children]


@pytest.fixture
def narrow(tmp_path: Path) -> Path:
    """A cap with room for one charge, not for two."""
    where = tmp_path / "narrow.db"
    Ledger.create(where).grant(DATASET, 1.2, 1e-6)
    return where


def test_a_check_outside_of_the_lock_overspends_where_the_database_has_no_rules(narrow: Path) -> None:
    without_rules(narrow)
    assert all_at_once(narrow, 5, moves=True) == [True] * 5
    assert "more was spent than the cap" in faults(snapshot(narrow))
    with pytest.raises(LedgerError):
        Ledger(narrow).verify()


def test_the_databases_own_rules_catch_what_python_lets_slip(narrow: Path) -> None:
    assert sorted(all_at_once(narrow, 5, moves=False)) == [False, False, False, False, True]
    assert faults(snapshot(narrow)) == []
    Ledger(narrow).verify()


@pytest.mark.parametrize("ruled", [True, False])
def test_a_check_inside_of_the_lock_does_not_overspend(narrow: Path, ruled: bool) -> None:
    """Neither guard is for show: here the lock is alone, where the database has no rules."""
    if not ruled:
        without_rules(narrow, moves=True)
    children = [Child(lambda: is_granted(Ledger(narrow))) for _ in range(5)]
    assert sorted(child.join().value for child in children) == [False, False, False, False, True]
    assert faults(snapshot(narrow)) == []


def is_granted(ledger: Ledger) -> bool:
    try:
        ledger.reserve(DATASET, price_plan((Gaussian(5.0),), ENOUGH))
    except BudgetExceeded:
        return False
    return True


# --- a budget that can be copied --------------------------------------------------------------------


class Spender(BaseEstimator):
    """An estimator that is handed an account."""

    def __init__(self, ledger: object = None) -> None:
        self.ledger = ledger

    def fit(self) -> None:
        self.ledger.reserve()


def test_a_copied_account_is_a_second_budget() -> None:
    class Copied(SimpleNamespace):
        def reserve(self) -> None:
            self.spent += 1

    account = Copied(spent=0)
    for _ in range(3):
        clone(Spender(account)).fit()
    assert account.spent == 0  # three fits, and the owner sees none

    ledger = Ledger(":memory:")
    ledger.grant(DATASET, 5.0, 1e-6)
    for _ in range(3):
        copied = clone(Spender(ledger))
        assert copied.ledger is ledger
        charge(copied.ledger)
    assert ledger.spent(DATASET).fits == 3
