"""What looks the same is one account: names have one form, wherever they are given."""

from typing import Any

import pytest

from discreet import Budget, Ledger
from discreet.accounting.events import Gaussian
from discreet.accounting.pricing import price_plan
from discreet.errors import LedgerError, Unsupported
from discreet.ledger.ledger import Fingerprint
from discreet.ledger.store import name_of

COMPOSED, APART = "caf\u00e9", "cafe\u0301"
BUDGET, EVENTS = Budget(0.5, 1e-7), [Gaussian(20.0)]

ALIKE = {
    "a blank before": " d",
    "a blank behind": "d ",
    "two blanks": "a  b",
    "a blank of another width": "a\u2009b",
    "a blank that does not break": "a\u00a0b",
    "a zero-width blank": "d\u200b",
    "a zero-width joiner": "d\u200d",
    "a byte order mark": "\ufeffd",
    "a soft hyphen": "d\u00ad",
    "writing from right to left": "\u202ed",
    "a combining joiner": "d\u034f",
    "a variation selector": "d\ufe0f",
    "a rarer variation selector": "d\U000e0100",
    "a Hangul filler": "d\u3164",
    "a Braille blank": "d\u2800",
    "a tab": "a\tb",
    "a full-width letter": "\uff44",
    "a ligature": "\ufb01eld",
    "a mathematical letter": "\U0001d41d",
    "a Cyrillic a": "d\u0430ta",
    "a Greek o": "c\u03bfhort",
    "private use": "d\ue000",
    "half a character": "d\ud800",
    "nothing": "",
    "a blank alone": " ",
    "too long": "x" * 201,
    "no text": 7,
}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Any) -> Ledger:
    if request.param == "postgres":
        return Ledger.create(request.getfixturevalue("database"))
    return Ledger.create(":memory:" if request.param == "memory" else tmp_path / "budget.db")


@pytest.mark.parametrize("what", ALIKE)
def test_a_name_that_could_be_taken_for_another_is_refused_everywhere(what: str) -> None:
    ledger, name = Ledger(":memory:"), ALIKE[what]
    ledger.grant("data", 3.0, 1e-6)
    uses = [
        lambda: name_of(name),
        lambda: ledger.grant(name, 1.0),
        lambda: ledger.divide("data", [name]),
        lambda: ledger.divide(name, ["part"]),
        lambda: ledger.reserve(name, price_plan(EVENTS, BUDGET)),
        lambda: ledger.reserve("data", price_plan(EVENTS, BUDGET), name),
        lambda: ledger.account(name),
        lambda: ledger.spent(name),
        lambda: ledger.entries(name),
        lambda: ledger.settle(name, "x"),
        lambda: ledger.abandon(name),
    ]
    for use in uses:
        with pytest.raises(Unsupported, match="short, printable text"):
            use()
    assert len(ledger.entries()) == 1


@pytest.mark.few(1)
def test_two_spellings_are_one_account(ledger: Ledger) -> None:
    assert APART != COMPOSED
    assert ledger.grant(APART, 3.0, 1e-6).name == COMPOSED
    assert ledger.grant(COMPOSED, 4.0).epsilon == 4.0
    for name in (APART, COMPOSED):
        reservation = ledger.reserve(name, price_plan(EVENTS, BUDGET), f"weekly {APART}")
        assert reservation.reference["dataset"] == COMPOSED
        assert reservation.charge_id == f"weekly {COMPOSED}"
        assert ledger.account(name).name == COMPOSED
        assert ledger.spent(name).fits == 1
        assert len(ledger.entries(name)) == 3
        ledger.recognize(name, Fingerprint("d", (1, 2, 3)))
    assert reservation.settle("released") == ledger.settle(f"weekly {APART}", "again") == "released"
    assert [part.name for part in ledger.divide(APART, [f"{APART} north"])] == [f"{COMPOSED} north"]
    ledger.grant("other", 1.0)
    with pytest.raises(LedgerError, match="already"):
        ledger.divide("other", [f"{APART} north"])
    assert len(ledger.accounts()) == 3
    assert ledger.notices() == []
    ledger.verify(prices=True)
