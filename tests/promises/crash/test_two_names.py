"""One ledger file under two path names never grants more than its cap, whoever is killed when.

SQLite names its write-ahead log after the path: two names of one file may be two logs, each of which forgets what the
other one granted.
"""

import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet import BudgetExceeded, Ledger
from discreet.errors import LedgerError
from discreet.ledger import sqlite
from tests.promises.crash.charges import DATASET, charge
from tests.promises.crash.killing import Crowd, Folder, Log
from tests.promises.crash.names import HOW, SHARED, second_name
from tests.promises.crash.observing import faults, integrity, snapshot

WORKERS, KILLS = 6, 60


def asking(names: tuple[Path, Path]) -> Callable[[Path, Folder, int, float], None]:
    """Workers of which every other one uses the other name; each logs what it was granted."""

    def work(_: Path, folder: Folder, slot: int, seed: float) -> None:
        ledger, log, chance = Ledger(names[slot % 2]), Log(folder.log(slot)), random.Random(seed)
        while not folder.stop.exists():
            charge_id = f"{slot}-{chance.getrandbits(64)}"
            try:
                head = charge(ledger, charge_id).head
            except BudgetExceeded:
                log("refused", charge_id)
                time.sleep(0.01)  # the others want the processor
            except LedgerError:
                log("away", charge_id)
                time.sleep(0.01)
            else:
                log("granted", charge_id, head)

    return work


def crowd_of(names: tuple[Path, Path], folder: Folder) -> list[str]:
    """Kill workers at random moments, and let the rest reach the cap; return what went wrong in one."""
    crowd = Crowd(names[0], folder, asking(names), WORKERS, random.Random(3))
    crowd.kill(KILLS, longest=0.04)
    crowd.wait_until(lambda: folder.count("refused") > WORKERS)
    crowd.finish()
    assert crowd.kills == KILLS
    return crowd.errors


@pytest.fixture
def low(tmp_path: Path) -> Path:
    where = tmp_path / "low" / "budget.db"
    Ledger.create(where).grant(DATASET, epsilon=2.0, delta=1e-6)
    return where


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "logs").mkdir()
    return Folder(tmp_path / "logs")


def granted(folder: Folder, parity: int | None = None) -> dict[str, str]:
    """The heads of all charges that a worker was granted, by request; of one of the names."""
    found = {line[1]: line[2] for line in folder.lines() if line[0] == "granted"}
    return {charge_id: head for charge_id, head in found.items() if parity in (None, int(charge_id[0]) % 2)}


@pytest.mark.thorough
@pytest.mark.parametrize("how", HOW)
def test_two_names_and_many_kills(low: Path, folder: Folder, how: str) -> None:
    with second_name(low, how) as other:
        assert crowd_of((low, other), folder) == []
    end = snapshot(low)
    assert faults(end) == []
    assert integrity(low) == "ok"
    heads = {entry[3]: entry[-1] for entry in end.charges}
    assert {charge_id: heads.get(charge_id) for charge_id in granted(folder)} == granted(folder)
    assert len(granted(folder, 0)) > 5
    assert bool(granted(folder, 1)) == (how in SHARED)
    Ledger(low).verify(prices=True)


@pytest.mark.thorough
def test_two_names_that_nobody_checks_overspend(low: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without the check both names grant the cap, and one forgets the other or destroys the file."""
    monkeypatch.setattr(sqlite, "admit", lambda at, path, *, writing: None)
    with second_name(low, "hard link") as other:
        crowd_of((low, other), folder)
    try:
        kept = set(snapshot(low).requests)
    except sqlite3.DatabaseError:
        kept = set()
    assert len(granted(folder).keys() - kept) > 5
