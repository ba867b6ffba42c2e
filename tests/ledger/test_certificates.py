"""A ledger knows the certificate that it charged for: whatever is changed on it afterwards is found."""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from discreet import (
    Certificate,
    DPLogisticRegression,
    DPRandomizedSearch,
    Ledger,
    TableModel,
    private_score,
)
from discreet.accounting.certificate import ESTIMATED, LATER
from discreet.accounting.plan import Charge
from discreet.datasets import hospital
from discreet.errors import AccountingError, LedgerError
from discreet.models.fit import solver_names
from discreet.schema.schema import Schema
from tests.covering import covering

RELEASED_LATER = ("trace", "created")
"""What may be changed on a certificate without the ledger's notice; the reference to the ledger may not."""

TABLE = hospital(400)


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger(":memory:")
    made.grant("stays", 50.0, 1e-5)
    made.grant("pure", 50.0)
    return made


def fitted(ledger: Any, **changes: Any) -> DPLogisticRegression:
    settings = {"epsilon": 0.5, "delta": 1e-7, "bounds": TABLE.bounds, "ledger": ledger, "dataset": "stays"}
    return DPLogisticRegression(**{**settings, **changes}).fit(TABLE.X, TABLE.y)


def edited(value: Any) -> Iterator[Any]:
    """Other values of the same kind, one for each place in it."""
    if isinstance(value, dict):
        for name in value:
            yield from ({**value, name: other} for other in edited(value[name]))
            yield {key: one for key, one in value.items() if key != name}
        yield {**value, "more": 1}
    elif isinstance(value, list):
        for number in range(len(value)):
            yield from ([*value[:number], other, *value[number + 1 :]] for other in edited(value[number]))
        yield value[:-1] if value else ["more"]
    elif isinstance(value, bool) or value is None:
        yield "more" if value is None else not value
    elif isinstance(value, (int, float)):
        yield from (value + 1, value * 1.25 + 0.125)
    else:
        choices = {"record": "person", "replace_one": "add_remove", "exact lattice": "idealized"}
        yield choices.get(value, f"{value}x")


def edits(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """The certificate as JSON with one thing changed, and which field that was: fields to come are among them."""
    stored = json.loads(certificate.to_json())
    for name in stored:
        for other in edited(deepcopy(stored[name])):
            yield name, json.dumps({**stored, name: other})


def accepted(ledger: Ledger, certificate: Certificate) -> set[str]:
    """The fields of which a change goes unnoticed."""
    found, asked = set(), set()
    for name, text in edits(certificate):
        asked.add(name)
        try:
            ledger.verify(Certificate.from_json(text))
        except (AccountingError, LedgerError):
            continue
        found.add(name)
    assert asked == {item.name for item in fields(Certificate)} | {"format", "stamp"}
    return found


def test_every_field_of_a_fits_certificate_is_compared(ledger: Ledger) -> None:
    certificate = fitted(ledger).certificate_
    assert ledger.verify(certificate, prices=True).whole is True
    assert accepted(ledger, certificate) <= set(RELEASED_LATER)


def test_what_is_released_later_is_listed_and_short() -> None:
    assert set(LATER) == {*RELEASED_LATER, "ledger"}
    certificate = Certificate(epsilon=1.0, delta=1e-6, neighbors="replace_one", events=())
    later = {"created": "2030-01-01", "trace": (Charge("q", 0.1, 1),), "ledger": None}
    assert replace(certificate, **later).public_digest() == certificate.public_digest()
    estimated = [{"estimated_ranges": {"a": ends}} for ends in ([0, 1], [2, 3])]
    one, other = (replace(certificate, assumed_public=facts).public_digest() for facts in estimated)
    assert one == other != certificate.public_digest()


SMOOTH = {"output": 0.1, "objective": 0.1}


@pytest.mark.few(6)
@covering(("pure", [False, True]), ("solver", [name for name in solver_names() if name != "exponential"]))
def test_what_a_fit_promises_is_what_its_certificate_says(ledger: Ledger, solver: str, pure: bool) -> None:
    changes = {"delta": 0.0, "dataset": "pure"} if pure else {}
    try:
        model = fitted(ledger, solver=solver, alpha=SMOOTH.get(solver, 1e-3), epsilon=2.0, **changes)
    except ValueError:  # there is no such fit
        pytest.skip("this solver has no such budget")
    assert ledger.verify(model.certificate_, prices=True).whole is True


def test_a_score_is_compared_as_a_whole(ledger: Ledger) -> None:
    model = fitted(False, dataset=None)
    for metric in ("accuracy", "auc"):
        found = private_score(
            model, TABLE.X, TABLE.y, metric=metric, epsilon=1.0, delta=1e-7, ledger=ledger, dataset="stays"
        ).certificate
        assert ledger.verify(found, prices=True).whole is True
    assert accepted(ledger, found) <= set(RELEASED_LATER)


def test_a_selection_is_compared_as_a_whole_whichever_candidate_won(ledger: Ledger) -> None:
    candidates = {"alpha": [1e-4, 1e-2], "solver": ["gd", "recipe"]}
    base = DPLogisticRegression(bounds=TABLE.bounds)
    chosen = set()
    for mean in (1.5, 3.0, 3.0):
        selection = DPRandomizedSearch(
            base, candidates, epsilon=1.0, delta=1e-7, mean_runs=mean, ledger=ledger, dataset="stays"
        ).fit(TABLE.X, TABLE.y)
        assert ledger.verify(selection.certificate_, prices=True).whole is True
        chosen.add(str(selection.best_params_))
    assert accepted(ledger, selection.certificate_) <= set(RELEASED_LATER)


SCHEMA = """
[target]
column = "ill"
classes = ["no", "yes"]

[columns.age]
range = [0, 100]

[columns.cost]
range = "private"
within = [0, 1000]
"""


def test_estimates_can_neither_be_added_nor_taken_away(ledger: Ledger) -> None:
    """Which columns something was estimated of is known before records are read."""
    plain = fitted(ledger).certificate_
    forged = {**plain.assumed_public, "noisy_checks": {"columns": {}, "noise": 0.1, "null_records": 0}}
    with pytest.raises(LedgerError):
        ledger.verify(replace(plain, assumed_public=forged))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": np.arange(500.0) % 100, "cost": 300.0, "ill": ["yes", "no"] * 250})
    estimator = DPLogisticRegression(2.0, 1e-7, ledger=ledger, dataset="stays")
    certificate = TableModel(Schema.from_toml(SCHEMA), estimator).fit(frame).certificate_
    for name in ESTIMATED:
        without = {key: fact for key, fact in certificate.assumed_public.items() if key != name}
        with pytest.raises(LedgerError):
            ledger.verify(replace(certificate, assumed_public=without))


# --- requests ---------------------------------------------------------------------------------------


def test_an_answered_request_is_the_same_whatever_version_asks(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    model = DPLogisticRegression(0.5, 1e-7, bounds=TABLE.bounds, ledger=ledger, dataset="stays")
    first = model.fit(TABLE.X, TABLE.y, charge_id="weekly").certificate_
    monkeypatch.setattr("discreet.accounting.certificate.__version__", "99")
    assert model.fit(TABLE.X, TABLE.y, charge_id="weekly").certificate_ == first
    assert ledger.verify(first).whole is True


def test_an_unanswered_request_is_not_answered_with_a_certificate_that_was_not_charged(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = DPLogisticRegression(0.5, 1e-7, bounds=TABLE.bounds, ledger=ledger, dataset="stays")
    with monkeypatch.context() as patch:
        patch.setattr("discreet.curator.curator.Curator.issued", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(TABLE.X, TABLE.y, charge_id="weekly")
    with monkeypatch.context() as patch:
        patch.setattr("discreet.accounting.certificate.__version__", "99")
        with pytest.raises(LedgerError, match="another version"):
            model.fit(TABLE.X, TABLE.y, charge_id="weekly")
    certificate = model.fit(TABLE.X, TABLE.y, charge_id="weekly").certificate_
    assert ledger.verify(certificate).whole is True
    assert ledger.spent("stays").fits == 1


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt
