"""A fit is charged before it reads a record, and one that is refused reads none, whatever the records."""

import ctypes
import faulthandler
import mmap
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import (
    BudgetExceeded,
    DPRandomizedSearch,
    Ledger,
)
from discreet.curator.noise import SystemEntropy, use_entropy
from tests.promises.crash.children import forked
from tests.promises.crash.fits import (
    CAP_DELTA,
    CAP_EPSILON,
    DATASET,
    DELTA,
    N,
    Watched,
    affordable,
    compressed,
    exhaust,
    frame,
    model,
)
from tests.promises.crash.observing import snapshot


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "budget.db"
    Ledger.create(where).grant(DATASET, CAP_EPSILON, CAP_DELTA)
    return where


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (N, 2))


@pytest.fixture(scope="module")
def y(X: np.ndarray) -> np.ndarray:
    return (X[:, 0] > 0).astype(int)


def test_the_charge_is_on_disk_before_the_first_record_is_read(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    seen: list[int] = []
    watched = X.view(Watched)
    watched.when_read = lambda: seen.append(len(snapshot(path).charges))
    model(path).fit(watched, y)
    assert seen
    assert set(seen) == {1}
    model(path).fit(watched, y, charge_id="once")
    assert set(seen) == {1, 2}
    count = len(seen)
    model(path).fit(watched, y, charge_id="once")
    assert len(seen) == count


def forbidden(array: np.ndarray) -> np.ndarray:
    """A copy in memory that kills whoever reads it."""
    memory = mmap.mmap(-1, array.nbytes)
    copied = np.frombuffer(memory, dtype=array.dtype).reshape(array.shape)
    copied[...] = array
    address = copied.ctypes.data
    if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(len(memory)), 0):
        pytest.skip("memory cannot be protected here")
    faulthandler.disable()  # in the child that is about to die of it
    return copied


class Deaf(SystemEntropy):
    """Gives nothing: whoever draws from it fails."""

    def words(self, count: int) -> Any:
        raise AssertionError("entropy was drawn")


@pytest.mark.few(1)
@pytest.mark.parametrize("container", [np.asarray, frame, compressed])
def test_no_container_is_read_by_a_refused_fit_and_every_one_after_its_charge(
    path: Path, X: np.ndarray, y: np.ndarray, container: Callable[[np.ndarray], Any]
) -> None:
    """Whoever reads these records dies: a fit that is paid for does, with its charge on disk."""

    def fit() -> str:
        try:
            model(path, 0.9).fit(container(forbidden(X)), y)
        except BudgetExceeded as error:
            return str(error)
        return "fitted"

    charged = 0
    while (outcome := forked(fit)).signal == signal.SIGSEGV:
        charged += 1
        assert len(snapshot(path).charges) == charged
    assert outcome.signal == 0
    assert "no record was read" in outcome.value
    assert charged == affordable(0.9)
    Ledger(path).verify(prices=True)


def test_a_refused_selection_reads_no_record(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    exhaust(Ledger(path), X, y)
    candidates = [{"alpha": 0.1}, {"alpha": 0.01}]
    selection = DPRandomizedSearch(
        model(False), candidates, epsilon=1.5, delta=DELTA, ledger=str(path), dataset=DATASET
    )

    def refused() -> str:
        with use_entropy(Deaf()), pytest.raises(BudgetExceeded) as error:
            selection.fit(forbidden(X), forbidden(y))
        return str(error.value)

    outcome = forked(refused)
    assert (outcome.signal, str(outcome.value)[-18:]) == (0, "no record was read")
