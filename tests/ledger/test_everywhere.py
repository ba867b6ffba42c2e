"""A fit is charged wherever it runs: clones, pipelines, searches, worker processes; and before it reads a record."""

import copy
import pickle
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet import BudgetExceeded, Ledger
from discreet.solvers import GradientDescent
from tests.promises.crash.fits import CAP_DELTA, CAP_EPSILON, DATASET, N, affordable, model
from tests.promises.crash.observing import faults, snapshot


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


# --- searches ---------------------------------------------------------------------------------------

GRID = {"alpha": [0.001, 0.01, 0.1], "penalty": ["l2", "none", "l1"]}


@pytest.mark.thorough
def test_a_search_in_several_processes_spends_no_more(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    search = GridSearchCV(model(Ledger(path)), GRID, cv=KFold(3), n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(BudgetExceeded):
            search.fit(X, y)
    assert len(snapshot(path).charges) == affordable()
    assert faults(snapshot(path)) == []
    Ledger(path).verify(prices=True)

    # and plain joblib, of which an error comes back as it is
    before = len(snapshot(path).charges)
    with pytest.raises(BudgetExceeded, match="no record was read"):
        Parallel(n_jobs=2)(delayed(model(path).fit)(X, y) for _ in range(4))
    assert len(snapshot(path).charges) == before
    Ledger(path).grant(DATASET, 4.0)
    fitted = Parallel(n_jobs=2)(delayed(model(Ledger(path)).fit)(X, y) for _ in range(4))
    assert len(snapshot(path).charges) == before + 4
    for one in fitted:
        Ledger(path).verify(one.certificate_)
    assert len({one.certificate_.ledger["head"] for one in fitted}) == 4
    get_reusable_executor().shutdown(wait=True)  # no worker outlives the test


@pytest.mark.parametrize("address", ["file", ":memory:"])
def test_pipelines_clones_and_copies_share_the_account(path: Path, address: str, X: np.ndarray, y: np.ndarray) -> None:
    ledger = Ledger(path) if address == "file" else Ledger(address)
    ledger.grant(DATASET, CAP_EPSILON, CAP_DELTA)
    first = model(ledger, 0.2)
    pipeline = make_pipeline(FunctionTransformer(), first)
    for number, one in enumerate(
        [first, clone(first), copy.copy(first), copy.deepcopy(first), clone(clone(pipeline)), copy.deepcopy(pipeline)],
        start=1,
    ):
        one.fit(X, y)
        assert ledger.spent(DATASET).fits == number
    assert clone(first).ledger is ledger
    assert copy.deepcopy({"a": [ledger]})["a"][0] is ledger
    assert clone(model(str(path))).ledger == str(path)
    ledger.verify(prices=True)


def test_a_ledger_file_is_pickled_by_its_name_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    text = pickle.dumps(Ledger("budget.db"))
    assert Ledger(path).key() not in text
    monkeypatch.chdir("/")
    assert pickle.loads(text).address == str(path)


# --- one durable transaction ------------------------------------------------------------------------


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many transactions wrote something and were committed since it was last asked, by SQLite's own trace."""
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **settings)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)

    def count() -> int:
        inside, wrote, found = False, False, 0
        for statement in statements:
            word = statement.split()[0].upper()
            if word == "BEGIN":
                inside, wrote = True, False
            elif word in ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE"):
                assert inside, statement
                wrote = True
            elif word == "COMMIT":
                found += wrote
                inside = False
        statements.clear()
        return found

    return count


@pytest.mark.parametrize("steps", [2, 40])
def test_a_fit_pays_for_itself_and_not_for_its_steps(
    path: Path, commits: Callable[[], int], X: np.ndarray, y: np.ndarray, steps: int
) -> None:
    """Its charge, and what the owner is told of its records; a request's release is one more, its answer none."""
    estimator = model(path, 0.2, solver=GradientDescent(n_steps=steps))
    commits()
    counted = []
    for charge_id in (None, None, None, "a", "a", "b"):
        estimator.fit(X, y, charge_id=charge_id)
        counted.append(commits())
    assert counted == [2, 2, 2, 3, 0, 3]


def test_the_number_of_transactions_does_not_tell_of_the_records(
    path: Path, commits: Callable[[], int], X: np.ndarray, y: np.ndarray
) -> None:
    Ledger(path).grant("other", CAP_EPSILON, CAP_DELTA)
    counted = set()
    for records in (X, X, X[::-1], -X, np.full_like(X, np.nan), np.zeros_like(X)):
        for dataset in (DATASET, "other"):  # known, the same under another name, and quite different ones
            commits()
            model(path, 0.2).set_params(dataset=dataset).fit(records, y)
            counted.add(commits())
    assert counted == {2}
