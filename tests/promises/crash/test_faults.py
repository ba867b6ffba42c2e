"""A full disk, forks at the worst moment, a clock that jumps, files that are missing or half made."""

import errno
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import discreet.ledger.ledger as ledger_module
import discreet.ledger.sqlite as sqlite_module
from discreet import Ledger
from discreet.errors import LedgerError
from tests.promises.crash.charges import DATASET, charge
from tests.promises.crash.children import Child, forked
from tests.promises.crash.observing import faults, integrity, raw, snapshot

# --- a full disk ------------------------------------------------------------------------------------


def charged_until_refused(path: Path, limit: int) -> tuple[list[str], str]:
    """Under a limit on the size of files: the requests that were granted, and the error that ended it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    ledger, granted = Ledger(path), []
    try:
        for number in range(10_000):
            charge(ledger, f"r{number}").settle("x" * 500)
            granted.append(f"r{number}")
    except LedgerError as error:
        return granted, str(error)
    return granted, "never refused"


@pytest.mark.few(1)
@pytest.mark.parametrize("limit", [150_000, 160_001, 200_000])
def test_a_full_disk(path: Path, limit: int) -> None:
    Ledger(path).grant(DATASET, 100.0)
    granted, error = forked(lambda: charged_until_refused(path, limit)).value
    assert "is its disk full" in error
    assert "Nothing was granted" in error
    end = snapshot(path)
    assert granted
    assert set(granted) <= set(end.releases)
    assert len(end.requests) - len(granted) in (0, 1)  # one may be charged for and not settled
    assert faults(end) == []
    assert integrity(path) == "ok"
    ledger = Ledger(path)
    assert ledger.verify(prices=True).entries == len(end.entries)
    charge(ledger, "there is room again")
    assert faults(snapshot(path), end) == []


@pytest.mark.parametrize("limit", [0, 100, 5_000, 40_000, 70_000])
def test_a_full_disk_while_a_ledger_is_made(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "new.db"

    def create() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            Ledger.create(path)
        except LedgerError as error:
            return str(error)
        return "made"

    assert forked(create).value != "made"
    assert not path.exists()
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".key"] == []
    ledger = Ledger.create(path)
    assert len(ledger.key()) == 32
    assert (path.stat().st_mode & 0o777, path.with_name("new.db.key").stat().st_mode & 0o777) == (0o600, 0o600)


# --- forks ------------------------------------------------------------------------------------------


def test_parent_and_child_go_on_with_one_ledger(path: Path) -> None:
    ledger = Ledger(path)
    charge(ledger, "before")

    def go_on() -> int:
        return sum(charge(ledger, f"child {number}").entry > 0 for number in range(10))

    children = [Child(go_on) for _ in range(2)]
    for number in range(10):
        charge(ledger, f"parent {number}")
    assert [child.join().value for child in children] == [10, 10]
    assert sorted(snapshot(path).requests) == sorted(
        ["before", *(f"{who} {number}" for who in ("child", "parent") for number in range(10))]
    )
    ledger.verify(prices=True)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_module, "PATIENCE", 2.0)


def elsewhere(inside: Callable[[], Any]) -> Iterator[None]:
    """Another thread is inside a transaction for half a second, or as long as the caller's first step takes."""
    entered = threading.Event()

    def stay() -> None:
        with inside() as at:
            at.rows("SELECT * FROM account")
            entered.set()
            time.sleep(0.5)

    thread = threading.Thread(target=stay)
    thread.start()
    entered.wait()
    yield
    thread.join()


@pytest.mark.usefixtures("impatient")
def test_a_fork_while_another_thread_writes(path: Path) -> None:
    """The thread does not exist in the child, but its connection does: nobody would ever leave that transaction."""
    ledger = Ledger(path)
    for _ in elsewhere(ledger._store.writing):
        child = Child(lambda: charge(ledger, "child").entry)
    charge(ledger, "parent")
    outcome = child.join()
    assert outcome.value in (2, 3), outcome
    assert sorted(snapshot(path).requests) == ["child", "parent"]
    ledger.verify()


@pytest.mark.usefixtures("impatient")
def test_a_fork_while_another_thread_reads_loses_no_charge(path: Path) -> None:
    """SQLite counts locks by process. The child must not rely on one that only its parent has."""
    ledger = Ledger(path)
    ready, go = os.pipe(), os.pipe()

    def slow() -> int:
        inner = ledger._append

        def append(*arguments: Any, **more: Any) -> Any:
            os.write(ready[1], b".")  # inside its transaction
            os.read(go[0], 1)
            return inner(*arguments, **more)

        ledger._append = append
        return charge(ledger, "child").entry

    for _ in elsewhere(ledger._store.reading):
        child = Child(slow)
    os.read(ready[0], 1)
    for _ in range(3):
        ledger.spent(DATASET)  # the last one who leaves tidies up
    os.write(go[1], b".")
    granted = child.join().value
    assert [entry[3] for entry in snapshot(path).entries if entry[0] == granted] == ["child"]


def test_a_ledger_in_memory_refuses_to_be_forked() -> None:
    ledger = Ledger(":memory:")
    ledger.grant(DATASET, 5.0, 1e-6)
    for inside in (False, True):
        held = ledger._store._lock if inside else threading.Lock()
        with held:
            outcome = forked(lambda: charge(ledger))
        assert isinstance(outcome.value, LedgerError)
        assert "give forked workers a ledger file" in str(outcome.value)
    charge(ledger)
    assert ledger.spent(DATASET).fits == 1


# --- the clock --------------------------------------------------------------------------------------


def test_a_clock_that_jumps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    years = iter([2031, 1971, 2500, 1999, 2000] * 8)

    def now(zone: Any = None) -> datetime:
        return datetime(next(years), 1, 1, tzinfo=UTC)

    monkeypatch.setattr(ledger_module, "datetime", SimpleNamespace(now=now))
    monkeypatch.setattr(time, "time", lambda: 10.0 * next(years) % 7)
    ledger = Ledger(path)
    for number in range(10):
        charge(ledger, f"r{number}")
        ledger.grant(DATASET, 6.0 + number)
        charge(ledger, f"r{number}")  # the same request at another time
    end = snapshot(path)
    assert end.requests == [f"r{number}" for number in range(10)]
    assert faults(end) == []
    times = [entry.contents["time"] for entry in ledger.entries()]
    assert times != sorted(times)
    ledger.verify(prices=True)


# --- files that are not as they should be -----------------------------------------------------------


@pytest.mark.parametrize("left", [b"", b"half of a key"])
def test_a_key_that_was_not_written_to_its_end_is_no_key(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "new.db.key").write_bytes(left)
    try:
        key = Ledger.create(tmp_path / "new.db").key()
    except LedgerError:
        return
    assert len(key) == 32


def test_a_disk_that_fills_up_with_the_key_leaves_nothing_that_looks_like_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LedgerError, match="cannot be created"):
            Ledger.create(tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
    assert len(Ledger.create(tmp_path / "new.db").key()) == 32


def test_a_missing_key_is_missed_before_anything_is_charged(path: Path) -> None:
    from tests.promises.crash.test_kills import model, records

    path.with_name("budget.db.key").unlink()
    with pytest.raises(LedgerError, match="key is missing"):
        model(path).fit(*records())
    assert snapshot(path).charges == []


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\0" * 4096, b"no database at all" * 1000])
def test_what_is_no_ledger_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "budget.db"
    path.write_bytes(content)
    ledger = Ledger(path)
    for use in (lambda: ledger.spent(DATASET), lambda: charge(ledger), lambda: ledger.grant(DATASET, 1.0)):
        with pytest.raises(LedgerError):
            use()
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(path)


@pytest.mark.parametrize("kind", ["an empty file", "another program's database"])
def test_what_is_no_ledger_is_left_as_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "precious.db"
    path.touch()
    if kind == "another program's database":
        with closing(raw(path)) as connection:
            connection.execute("CREATE TABLE mine (text TEXT)")
    before = path.read_bytes()
    for use in (lambda: Ledger(path).spent(DATASET), lambda: charge(Ledger(path))):
        with pytest.raises(LedgerError):
            use()
    assert path.read_bytes() == before


def test_a_busy_ledger_is_an_error_in_the_end_and_nothing_is_granted(path: Path, impatient: None) -> None:
    with closing(raw(path)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="busy"):
            charge(Ledger(path))
        assert Ledger(path).spent(DATASET).fits == 0  # readers are not held up
    charge(Ledger(path))
    assert len(snapshot(path).charges) == 1
