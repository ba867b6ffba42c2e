"""An exception at any moment, as Ctrl-C raises it: more than a thousand random ones, for a file and for memory."""

import contextlib
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import BudgetExceeded, DPLogisticRegression, Ledger
from discreet.errors import LedgerError
from discreet.solvers import GradientDescent
from tests.covering import covering
from tests.promises.crash.charges import DATASET, charge
from tests.promises.crash.observing import faults, raw, snapshot

POINTS = 1000

# where Python cannot raise it, in a finalizer, it says so: that is no fault of the ledger's
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Interrupt(BaseException):
    """As KeyboardInterrupt: nothing that catches Exception stops it."""


def _raise(*_: Any) -> None:
    raise Interrupt


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are handled by the main thread only")
    before = signal.signal(signal.SIGALRM, _raise)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class Interrupted:
    """Calls something and interrupts it after a random part of the time that such calls took so far."""

    def __init__(self, seed: int) -> None:
        self.hits = 0
        self._chance = random.Random(seed)
        self._times: dict[str, float] = {}

    def __call__(self, kind: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        delay = self._chance.random() * 1.2 * self._times[kind] + 1e-6 if kind in self._times else 30.0
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            try:
                result = call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupt:
            self.hits += 1
            self._times[kind] *= 1.01
            return None
        taken = time.perf_counter() - start
        self._times[kind] = 0.8 * self._times.get(kind, taken) + 0.2 * taken
        return result


def others_can_write(ledger: Ledger, path: Path | None) -> bool:
    """Whether no transaction is left open: a stranger gets the lock at once, another thread gets in."""
    if path is not None:
        with contextlib.closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")
            stranger.execute("ROLLBACK")
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(ledger.account(DATASET)), daemon=True)
    thread.start()
    thread.join(5)
    return bool(found)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_thousand_interrupts(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "budget.db" if kind == "file" else None
    ledger = Ledger.create(path or ":memory:")
    ledger.grant(DATASET, 1.5, 1e-6)
    interrupted, chance = Interrupted(3), random.Random(5)
    shown: dict[str, str] = {}
    failed: dict[str, str] = {}
    before, refused, number = None, 0, 0
    end = time.monotonic() + 60
    while interrupted.hits < POINTS and time.monotonic() < end:
        number += 1
        charge_id = f"r{number - chance.choice((0, 0, 1, 7))}"
        try:
            reservation = interrupted("reserve", partial(charge, ledger, charge_id))
            if reservation is not None:
                text = reservation.release or interrupted("settle", partial(reservation.settle, f"release {number}"))
                if text is not None:
                    assert shown.setdefault(charge_id, text) == text
                elif chance.random() < 0.2:
                    interrupted("abandon", reservation.abandon)
        except BudgetExceeded:
            refused += 1
            cap = ledger.account(DATASET).epsilon
            interrupted("grant", partial(ledger.grant, DATASET, cap + 0.1))
        except LedgerError as error:
            failed[charge_id] = str(error)
        if number % 10 == 0:
            assert others_can_write(ledger, path)
        if number % 50 == 0 and path is not None:
            now = snapshot(path)
            assert faults(now, before) == []
            before = now
    assert interrupted.hits >= POINTS
    assert all("failed after it was charged" in text for text in failed.values())
    assert set(failed).isdisjoint(shown)
    assert refused > 5
    assert ledger.verify(prices=True).entries == len(ledger.entries())
    entries = {entry.charge_id for entry in ledger.entries() if entry.kind == "charge"}
    assert len(entries) == ledger.spent(DATASET).fits
    assert set(shown) <= entries
    for charge_id, text in shown.items():
        assert charge(ledger, charge_id).release == text


@pytest.mark.thorough
@pytest.mark.parametrize("address", ["file", ":memory:"])
def test_interrupts_in_the_middle_of_fits(path: Path, address: str) -> None:
    ledger = Ledger(path) if address == "file" else Ledger(address)
    ledger.grant(DATASET, 5.0, 1e-6)
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    model = DPLogisticRegression(0.1, 1e-7, bounds=1.0, classes=(0, 1), solver=GradientDescent(n_steps=3))
    y = (X[:, 0] > 0).astype(int)
    model.fit(X, y)
    model.set_params(ledger=ledger, dataset=DATASET)
    interrupted, shown, failed = Interrupted(19), {}, {}
    for number in range(150):
        charge_id = f"r{number // 3}"
        try:
            fitted = interrupted(
                "fit", lambda charge_id=charge_id: model.fit(X, y, charge_id=charge_id).coef_.tobytes()
            )
        except LedgerError as error:
            failed[charge_id] = str(error)
            continue
        if fitted is not None:
            assert shown.setdefault(charge_id, fitted) == fitted
    assert interrupted.hits > 30
    assert shown
    assert all("failed after it was charged" in text for text in failed.values())
    assert set(failed).isdisjoint(shown)
    assert others_can_write(ledger, path if address == "file" else None)
    ledger.verify(prices=True)
    entries = [entry.charge_id for entry in ledger.entries() if entry.kind == "charge"]
    assert len(set(entries)) == len(entries)
    assert set(shown) <= set(entries)


def interrupted_at_the_door(call: Callable[[], object], door: int) -> BaseException:
    """Interrupt when a transaction has begun and the block that it is for has not: the inner or the outer one."""
    passed = 0

    def profile(frame: Any, event: str, argument: object) -> None:
        nonlocal passed
        if event == "c_return" and argument is next and frame.f_code.co_filename == contextlib.__file__:
            passed += 1
            if passed == door:
                sys.setprofile(None)
                raise Interrupt

    sys.setprofile(profile)
    try:
        call()
    except Interrupt as error:
        return error
    finally:
        sys.setprofile(None)
    raise AssertionError("there was no such moment")


@covering(("kind", ["file", "memory"]), ("kept", [False, True]))
def test_an_interrupt_at_the_door_leaves_nothing_behind(tmp_path: Path, kind: str, kept: bool) -> None:
    """Also where the exception is kept, as interactive shells keep the last one until the next."""
    path = tmp_path / "budget.db" if kind == "file" else None
    ledger = Ledger.create(path or ":memory:")
    ledger.grant(DATASET, 5.0, 1e-6)
    charge(ledger)
    errors = []
    for door in (1, 2):
        with contextlib.suppress(AssertionError):  # one that is begun in another way has no such door
            errors.append(interrupted_at_the_door(partial(charge, ledger), door))
            if not kept:
                errors.clear()
        assert others_can_write(ledger, path)
    ledger.verify()


def test_a_handler_that_uses_the_ledger_it_interrupted() -> None:
    """In memory there is one connection: what the handler does must not leave half a charge of the other."""
    ledger, chance = Ledger(":memory:"), random.Random(23)
    ledger.grant(DATASET, 5.0, 1e-6)
    signal.signal(signal.SIGALRM, lambda *_: charge(ledger))
    granted = 0
    for _ in range(200):
        signal.setitimer(signal.ITIMER_REAL, chance.random() * 2e-3 + 1e-6)
        try:
            charge(ledger)
            granted += 1
        except LedgerError:
            pass  # refused, and charged at most once
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    assert ledger.spent(DATASET).fits >= granted
    ledger.verify(prices=True)


def test_interrupts_while_a_ledger_is_made(tmp_path: Path) -> None:
    """It is there whole, or not at all; nothing but its key may be left of an attempt."""
    interrupted = Interrupted(29)
    for number in range(30):
        path = tmp_path / f"{number}.db"
        interrupted("create", lambda path=path: Ledger.create(path))
        if path.exists():
            Ledger(path).grant(DATASET, 1.0, 1e-6)
        else:
            Ledger.create(path)
        assert len(Ledger(path).key()) == 32
        assert Ledger(path).verify().entries == (1 if snapshot(path).entries else 0)
        with contextlib.closing(raw(path)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert interrupted.hits > 5
