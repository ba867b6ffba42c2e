"""A password in a ledger's URL is shown nowhere: no text, no pickle, no report, no log."""

import copy
import logging
import pickle
import pprint
import traceback
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from discreet import DPLogisticRegression, DPRandomizedSearch, DPRidge, Ledger
from discreet.curator import PrivateData
from discreet.datasets import hospital
from discreet.errors import LedgerError

PASSWORD = "hunter2"
URLS = {
    f"postgresql://ann:{PASSWORD}@127.0.0.1:1/books": "postgresql://ann@127.0.0.1:1/books",
    f"postgresql://ann:{PASSWORD}@127.0.0.1:1/books?sslmode=disable": "postgresql://ann@127.0.0.1:1/books?sslmode=disable",
    f"postgresql://127.0.0.1:1/books?user=ann&password={PASSWORD}": "postgresql://127.0.0.1:1/books?user=ann",
    f"postgresql://127.0.0.1:1/books?ssl%70assword={PASSWORD}&user=ann": "postgresql://127.0.0.1:1/books?user=ann",
}
MALFORMED = [
    f"postgresql:/ann:{PASSWORD}@host/books",
    f"postgresql:ann:{PASSWORD}@host/books",
    f"postgres:{PASSWORD}",
    f"PostgreSQL://ann:{PASSWORD}@host/books",
    f" postgresql://ann:{PASSWORD}@host/books",
    f"mysql:/ann:{PASSWORD}@host/books",
    f"mysql://ann:{PASSWORD}@host/books",
    f"ann:{PASSWORD}@host/books",
    f"host=db password={PASSWORD} dbname=books",
    Path(f"postgresql://ann:{PASSWORD}@host/books"),
]
TABLE = hospital(200)


def shown(thing: Any) -> str:
    """All that printing, pickling and reports tell of it."""
    texts = [repr(thing), str(thing), pprint.pformat(thing), f"{thing!r:.9999}", pickle.dumps(thing).decode("latin-1")]
    if hasattr(thing, "get_params"):
        texts += [str(thing.get_params()), pprint.pformat(thing.get_params()), repr(vars(thing))]
        texts.append(thing._repr_html_() if hasattr(thing, "_repr_html_") else "")
    return "\n".join(texts)


def estimators(url: str) -> list[Any]:
    settings = {"bounds": TABLE.bounds, "ledger": url, "dataset": "stays"}
    model = DPLogisticRegression(**settings)
    later = DPLogisticRegression(bounds=TABLE.bounds).set_params(ledger=url, dataset="stays")
    assigned = DPRidge(bounds=TABLE.bounds)
    assigned.ledger = url
    selection = DPRandomizedSearch(
        DPLogisticRegression(bounds=TABLE.bounds), {"alpha": [0.1]}, ledger=url, dataset="stays"
    )
    search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=KFold(2))
    return [model, later, assigned, selection, make_pipeline(model), search, clone(model), copy.deepcopy(selection)]


@pytest.mark.parametrize("url", URLS)
def test_no_estimator_shows_the_password(url: str) -> None:
    for number, one in enumerate(estimators(url)):
        assert PASSWORD not in shown(one), number
        assert "127.0.0.1" in repr(one)  # where the ledger is may be seen
    assert PASSWORD in str(vars(Ledger(url)))  # it is there to be found


@pytest.mark.parametrize("url", URLS)
def test_a_pickled_ledger_keeps_its_address_without_the_password(url: str) -> None:
    ledger = Ledger(url)
    assert PASSWORD not in shown(ledger)
    again = pickle.loads(pickle.dumps(ledger))
    assert again._address == URLS[url]
    assert again.address == ledger.address
    assert pickle.loads(pickle.dumps(again))._address == URLS[url]
    assert copy.copy(ledger) is ledger


@pytest.mark.parametrize("url", URLS)
def test_clones_and_copies_go_on_with_the_password(url: str) -> None:
    model = DPLogisticRegression(bounds=TABLE.bounds, ledger=url, dataset="stays")
    for one in (model, clone(model), copy.copy(model), copy.deepcopy(model), clone(clone(model))):
        assert one.ledger is model.ledger
        assert one.ledger._address == url


def test_a_url_that_cannot_be_read_is_not_pickled() -> None:
    url = f"postgresql://ann:x@{PASSWORD}@db/books"
    assert PASSWORD not in repr(DPLogisticRegression(ledger=url))
    with pytest.raises(TypeError, match="password"):
        pickle.dumps(Ledger(url))


@pytest.mark.parametrize("address", MALFORMED)
def test_what_is_neither_a_url_nor_a_path_is_refused_unseen(
    address: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    uses = [
        lambda: Ledger(address),
        lambda: Ledger.create(address),
        lambda: DPLogisticRegression(ledger=address),
        lambda: DPRandomizedSearch().set_params(ledger=address),
        lambda: PrivateData(TABLE.X, TABLE.y, TABLE.bounds, ledger=address, dataset="stays"),
    ]
    for use in uses:
        with pytest.raises(LedgerError, match="a ledger is a path") as error:
            use()
        assert PASSWORD not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_errors_and_logs_show_nothing(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("psycopg", exc_type=ImportError)
    with caplog.at_level(logging.DEBUG):
        for url in URLS:
            model = DPLogisticRegression(bounds=TABLE.bounds, ledger=url, dataset="stays")
            with pytest.raises(LedgerError, match="pgpass") as error:
                model.fit(TABLE.X, TABLE.y)
            assert PASSWORD not in "".join(traceback.format_exception(error.value))
    assert PASSWORD not in caplog.text
