"""A ledger file is used at one place: second names, moved files and copies are refused with the remedy."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from discreet import Budget, DPLogisticRegression, Ledger
from discreet.accounting.events import Gaussian
from discreet.accounting.pricing import price_plan
from discreet.errors import LedgerDamaged, LedgerError, LedgerUnavailable, PrivacyWarning
from tests.covering import covering
from tests.promises.crash.names import HOW, SHARED, second_name


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "home" / "budget.db"
    Ledger.create(where).grant("census", 3.0, 1e-6)
    return where


def charge(path: Path) -> None:
    Ledger(path).reserve("census", price_plan([Gaussian(20.0)], Budget(0.4, 1e-7)))


def fits(path: Path) -> int:
    return Ledger(path).spent("census").fits


def key_of(path: Path) -> Path:
    return path.with_name(path.name + ".key")


def copied(path: Path, to: Path) -> Path:
    for old, new in ((path, to), (key_of(path), key_of(to))):
        shutil.copy(old, new)
    return to


REMEDY = {
    "hard link": "belongs to another place",
    "hard link elsewhere": "belongs to another place",
    "mounted file": "mount the folder",
}


@pytest.mark.parametrize("how", HOW)
def test_a_second_name_is_the_same_account_or_none(path: Path, how: str) -> None:
    with second_name(path, how) as other:
        if how in SHARED:
            charge(other)
            assert Ledger(other).key() == Ledger(path).key()
        else:
            for use in (charge, fits, lambda one: Ledger(one).verify(), lambda one: Ledger(one).grant("more", 1.0)):
                with pytest.raises(LedgerUnavailable, match=REMEDY[how]):
                    use(other)
        charge(path)
        assert fits(path) == 1 + (how in SHARED)
        assert fits(path) == (fits(other) if how in SHARED else 1)


@pytest.mark.parametrize("where", ["home/other.db", "away/budget.db"])
def test_a_moved_ledger_asks_for_its_owners_word(path: Path, tmp_path: Path, where: str) -> None:
    charge(path)
    to = tmp_path / where
    to.parent.mkdir(exist_ok=True)
    key_of(path).rename(key_of(to))
    path.rename(to)
    for use in (charge, fits):
        with pytest.raises(LedgerUnavailable, match="discreet budget move"):
            use(to)
    Ledger(to).bind()
    charge(to)
    assert fits(to) == 2
    assert len(Ledger(to).key()) == 32
    Ledger(to).verify(prices=True)


def test_a_copy_can_be_read_and_is_charged_only_after_its_owners_word(path: Path, tmp_path: Path) -> None:
    charge(path)
    copy = copied(path, tmp_path / "copy.db")
    assert fits(copy) == 1
    assert Ledger(copy).verify(prices=True).entries == 2
    for use in (charge, lambda one: Ledger(one).grant("census", 4.0), lambda one: Ledger(one).settle("r", "x")):
        with pytest.raises(LedgerUnavailable, match="discreet budget move"):
            use(copy)
    Ledger(copy).bind()
    charge(copy)
    charge(path)
    heads = [Ledger(one).verify().head for one in (path, copy)]
    assert heads[0] != heads[1]  # the same charge in the same second


def test_no_ledger_is_bound_while_somebody_uses_it_by_its_old_name(path: Path) -> None:
    with Ledger(path)._store.writing() as at:
        at.run("INSERT INTO seen (dataset, times) VALUES ('census', 1)")  # in a log that would stay behind
        moved = path.rename(path.with_name("moved.db"))
        with pytest.raises(LedgerUnavailable, match="stop all fits"):
            Ledger(moved).bind()
        moved.rename(path)
    charge(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT times FROM seen").fetchall() == [(1,)]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_certificate_of_one_copy_is_in_no_other(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same fit, in the same second, as the same entry of two copies: the hashes differ."""
    monkeypatch.setattr("discreet.ledger.ledger._now", lambda: "2030-01-01T00:00:00+00:00")
    copy = copied(path, tmp_path / "copy.db")
    Ledger(copy).bind()
    X = np.array([[0.0], [1.0], [0.5], [0.2]])
    model = DPLogisticRegression(1.0, 1e-7, bounds=1.0, classes=(0, 1), dataset="census")
    here, there = (model.set_params(ledger=one).fit(X, [0, 1, 1, 0]).certificate_ for one in (path, copy))
    assert here.ledger is not None
    assert there.ledger is not None
    assert {name: value for name, value in here.ledger.items() if name != "head"} == {
        name: value for name, value in there.ledger.items() if name != "head"
    }
    Ledger(path).verify(here, prices=True)
    Ledger(copy).verify(there, prices=True)
    for ledger, certificate in ((path, there), (copy, here)):
        with pytest.raises(LedgerError, match="not in this ledger"):
            Ledger(ledger).verify(certificate, prices=True)


def test_a_folder_that_was_renamed_is_the_same_place(path: Path) -> None:
    """The entry is the same, and its log came along."""
    charge(path)
    away = path.parent.rename(path.parent.with_name("renamed"))
    charge(away / path.name)
    assert fits(away / path.name) == 2


# --- keys -------------------------------------------------------------------------------------------


def test_another_ledgers_key_is_refused(path: Path, tmp_path: Path) -> None:
    Ledger.create(tmp_path / "other.db")
    own = Ledger(path).key()
    shutil.copy(tmp_path / "other.db.key", key_of(path))
    with pytest.raises(LedgerError, match="key of another ledger"):
        Ledger(path).key()
    key_of(path).write_bytes(own)
    assert Ledger(path).key() == own


def test_nothing_of_the_key_is_in_the_ledger(path: Path) -> None:
    key = Ledger(path).key()
    assert key not in path.read_bytes()
    assert key.hex().encode() not in path.read_bytes()


# --- rights -----------------------------------------------------------------------------------------


@covering(("which", ["ledger", "key"]), ("mode", [0o640, 0o604, 0o620, 0o666]))
def test_rights_of_others_are_warned_of(path: Path, which: str, mode: int) -> None:
    ledger, file = Ledger(path), path if which == "ledger" else key_of(path)
    file.chmod(mode)
    with pytest.warns(PrivacyWarning, match=f"{file.name} has the rights 0{mode:o}.*chmod 600 {file.name}"):
        ledger.spent("census") if which == "ledger" else ledger.key()
    file.chmod(0o600)
    assert (ledger.spent("census").fits, len(ledger.key())) == (0, 32)  # a warning would be an error here


# --- damage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.005, 0.1, 0.5, 0.95])
def test_a_ledger_that_was_cut_short_says_so(path: Path, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    for use in (charge, fits, lambda one: Ledger(one).verify()):
        with pytest.raises(LedgerDamaged, match="damaged: restore"):
            use(path)
    path.write_bytes(whole)
    charge(path)
