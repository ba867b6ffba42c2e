"""SIGKILL at random moments: six workers on one ledger, and workers in the middle of a fit."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from discreet import BudgetExceeded, DPLogisticRegression, Ledger
from discreet.curator.curator import Curator
from discreet.errors import LedgerError
from discreet.solvers import GradientDescent
from tests.promises.crash.charges import DATASET, MULTIPLIERS, multiplier_of
from tests.promises.crash.children import forked
from tests.promises.crash.killing import Crowd, Folder, Log
from tests.promises.crash.observing import UNIT, delta_of, faults, integrity, snapshot

WORKERS, KILLS = 6, 360


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "logs").mkdir()
    return Folder(tmp_path / "logs")


@pytest.fixture
def low(tmp_path: Path) -> Path:
    """A ledger file whose cap a few charges reach."""
    where = tmp_path / "low.db"
    Ledger.create(where).grant(DATASET, epsilon=0.8, delta=1e-6)
    return where


@pytest.mark.thorough
def test_six_workers_and_many_kills(low: Path, folder: Folder) -> None:
    """In a process of their own that is light enough to be forked hundreds of times."""
    places = os.pathsep.join(place or os.getcwd() for place in sys.path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.promises.crash.killing", str(low), str(folder.path), str(WORKERS), str(KILLS)],
        env={**os.environ, "PYTHONPATH": places},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=240,
    )
    found = json.loads(done.stdout)
    assert found["errors"] == []
    assert found["kills"] == KILLS
    assert found["exhausted"]
    assert found["faults"] == []
    assert found["snapshots"] > 20

    end = snapshot(low)
    assert faults(end) == []
    assert integrity(low) == "ok"
    ledger = Ledger(low)
    assert ledger.verify(prices=True).entries == len(end.entries)
    shown = folder.released()
    assert len(shown) > 50
    assert folder.count("refused") > 20
    assert {charge_id for charge_id, texts in shown.items() if len(texts) > 1} == set()
    assert {charge_id: [end.releases.get(charge_id)] for charge_id in shown} == {r: list(t) for r, t in shown.items()}

    # what was spent, from the noise alone
    spent = sum(multiplier_of(charge_id) ** -2 for charge_id in end.requests)
    assert end.accounts[DATASET]["gaussian_spent"] / UNIT == pytest.approx(spent, rel=1e-9)
    assert delta_of(spent, end.accounts[DATASET]["epsilon"]) <= 1e-6 / 2
    assert delta_of(spent + min(MULTIPLIERS) ** -2, end.accounts[DATASET]["epsilon"]) > 1e-6 / 2


# --- fits -------------------------------------------------------------------------------------------


def model(address: Path, epsilon: float = 0.2) -> DPLogisticRegression:
    return DPLogisticRegression(
        epsilon, 1e-7, bounds=1.0, classes=(0, 1), solver=GradientDescent(n_steps=3), ledger=address, dataset=DATASET
    )


def records(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (X[:, 0] > 0).astype(int)


def fits(address: Path, folder: Folder, slot: int, seed: float) -> None:
    """Fit after fit, each under a request; a successor repeats what its predecessor may not have finished."""
    log, estimator, (X, y) = Log(folder.log(slot)), model(address), records()
    done = len({line[1] for line in folder.lines(slot)})
    while not folder.stop.exists():
        charge_id = f"fit-{slot}-{done}"
        try:
            estimator.fit(X, y, charge_id=charge_id)
        except BudgetExceeded:
            return
        certificate = json.dumps(estimator.certificate_.ledger, separators=(",", ":"))
        log("released", charge_id, f"{estimator.coef_.tobytes().hex()}|{certificate}")
        done += 1


@pytest.mark.thorough
def test_kills_in_the_middle_of_fits(path: Path, folder: Folder) -> None:
    model(path).set_params(ledger=False, dataset=None).fit(*records())  # kernels are compiled before the forks
    crowd = Crowd(path, folder, fits, 3, random.Random(11))
    crowd.kill(40, longest=0.06)
    crowd.wait_until(lambda: folder.count("released") >= 10)
    crowd.finish()
    end, ledger = snapshot(path), Ledger(path)
    assert crowd.errors == []
    assert crowd.kills == 40
    assert faults(end) == []
    ledger.verify(prices=True)
    heads = {entry[3]: entry[-1] for entry in end.charges}
    for charge_id, texts in folder.released().items():
        assert len(texts) == 1
        assert json.loads(texts.pop().split("|")[1])["head"] == heads[charge_id]
    assert set(folder.released()) <= set(end.releases)


def after_the_first_answer(then: Callable[[], None]) -> AbstractContextManager[Any]:
    """Records were read, noise was drawn; and nobody looks on, so that the certificate is the one that was promised."""
    answer = Curator.noisy_gradient

    def answered(*asked: Any, **more: Any) -> None:
        answer(*asked, **more)
        then()

    return patch.object(Curator, "noisy_gradient", answered)


def fit_that_dies(address: Path, charge_id: str | None) -> None:
    with after_the_first_answer(lambda: os.kill(os.getpid(), signal.SIGKILL)):
        model(address).fit(*records(), charge_id=charge_id)


def test_a_fit_that_is_killed_stays_charged(path: Path) -> None:
    assert forked(lambda: fit_that_dies(path, None)).signal == signal.SIGKILL
    assert len(snapshot(path).charges) == 1
    assert forked(lambda: fit_that_dies(path, None)).signal == signal.SIGKILL
    assert len(snapshot(path).charges) == 2
    assert Ledger(path).verify().entries == 3


def test_a_request_that_was_killed_is_repeated_under_its_one_charge(path: Path) -> None:
    for _ in range(3):
        assert forked(lambda: fit_that_dies(path, "monthly")).signal == signal.SIGKILL
    X, y = records()
    first = model(path).fit(X, y, charge_id="monthly")
    again = model(path).fit(X, y, charge_id="monthly")
    assert snapshot(path).requests == ["monthly"]
    assert np.array_equal(first.coef_, again.coef_)
    assert first.certificate_ == again.certificate_
    Ledger(path).verify(first.certificate_, prices=True)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_fit_that_is_stopped_from_outside_stays_charged_and_may_be_asked_for_again(
    path: Path, stop: type[BaseException]
) -> None:
    def stopped() -> None:
        raise stop

    ledger = Ledger(path)
    with pytest.raises(stop), after_the_first_answer(stopped):
        model(ledger).fit(*records(), charge_id="monthly")
    assert ledger.spent(DATASET).fits == 1
    first, again = (model(ledger).fit(*records(), charge_id="monthly") for _ in range(2))
    assert np.array_equal(first.coef_, again.coef_)
    assert ledger.spent(DATASET).fits == 1
    ledger.verify(prices=True)


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
@pytest.mark.parametrize("address", ["file", ":memory:"])
def test_a_fit_that_fails_stays_charged_and_its_request_is_refused_for_good(
    path: Path, address: str, error: type[BaseException]
) -> None:
    ledger = Ledger(path) if address == "file" else Ledger(address)
    ledger.grant(DATASET, 5.0, 1e-6)

    def fail() -> None:
        raise error

    with pytest.raises(error), after_the_first_answer(fail):
        model(ledger).fit(*records(), charge_id="monthly")
    assert ledger.spent(DATASET).fits == 1
    for _ in range(2):
        with pytest.raises(LedgerError, match="failed after it was charged"):
            model(ledger).fit(*records(), charge_id="monthly")
    assert ledger.spent(DATASET).fits == 1
    model(ledger).fit(*records(), charge_id="monthly, once more")
    assert ledger.spent(DATASET).fits == 2
    ledger.verify(prices=True)
