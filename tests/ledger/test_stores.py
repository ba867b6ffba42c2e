"""One ledger, three stores: whatever is asked of them, memory, SQLite and PostgreSQL answer the same."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple

import pytest

import discreet.ledger.ledger
from discreet import Budget, Ledger
from discreet.accounting.events import Gaussian, Laplace, PoissonSampled
from discreet.accounting.pricing import price_plan
from discreet.errors import BudgetExceeded, LedgerError, Unsupported
from discreet.ledger.account import AMOUNT_NAMES, NEVER, Amounts
from discreet.ledger.chain import GENESIS, Entry
from discreet.ledger.ledger import Fingerprint
from discreet.ledger.store import OverCap

CAP = {"epsilon": 3.0, "delta": 1e-6}
EVENTS = [Gaussian(5.0)]
BUDGET = Budget(1.5, 1e-7)
SAMPLED = [PoissonSampled(2**12, Gaussian(1.5, 20))]
STORES = ("memory", "sqlite", "postgres")


@pytest.fixture(params=STORES)
def address(request, tmp_path) -> str:
    """Where a ledger may be created."""
    if request.param == "postgres":
        return request.getfixturevalue("database")
    return ":memory:" if request.param == "memory" else str(tmp_path / "budget.db")


@pytest.fixture
def ledger(address) -> Ledger:
    return Ledger.create(address)


@pytest.fixture
def stopped_clock(monkeypatch):
    """With the same times and no chance in them, the same entries have the same hashes."""
    monkeypatch.setattr(discreet.ledger.ledger, "_now", lambda: "2030-01-01T00:00:00+00:00")
    monkeypatch.setattr(discreet.ledger.ledger, "_nonce", lambda: "0")


def charge(ledger: Ledger, dataset: str = "census", charge_id: str | None = None, label: str = ""):
    return ledger.reserve(dataset, price_plan(EVENTS, BUDGET), charge_id, label=label)


def exhaust(ledger: Ledger, dataset: str = "census") -> int:
    """How many charges were granted."""
    for granted in range(1000):
        try:
            charge(ledger, dataset)
        except BudgetExceeded:
            return granted
    raise AssertionError("no cap was found")


def everything(ledger: Ledger):
    """All that a ledger tells, but for its own name."""
    accounts = ledger.accounts()
    spent = [ledger.spent(account.name) for account in accounts]
    return accounts, spent, ledger.entries(), ledger.notices(), ledger.verify(prices=True)


# --- charges --------------------------------------------------------------------------------------


def busy_day(ledger: Ledger) -> list[str]:
    """Everything that happens to a ledger, once."""
    ledger.grant("census", **CAP)
    ledger.divide("census", ["north", "south"])
    ledger.grant("pure", 1.0)
    ledger.grant("persons", 2.0, 1e-7, neighbors="add_remove", unit="person")
    charge(ledger, "north", "one", "first")
    charge(ledger, "south").abandon()
    charge(ledger, "census", "two").settle("released")
    ledger.reserve("pure", price_plan([Laplace(4.0)], Budget(0.25)))
    ledger.reserve("persons", price_plan(SAMPLED, Budget(1.9, 1e-8, "add_remove")), unit="person")
    ledger.grant("census", 4.0)
    refused = []
    for dataset in ("north", "south", "census"):
        exhaust(ledger, dataset)
        with pytest.raises(BudgetExceeded) as error:
            charge(ledger, dataset)
        refused.append(str(error.value))
    ledger.recognize("census", Fingerprint("a", (1, 2, 3)))
    ledger.recognize("pure", Fingerprint("b", (2, 3, 4)))
    return refused


@pytest.mark.few(1)
@pytest.mark.usefixtures("stopped_clock")
def test_stores_agree_to_the_last_unit_and_hash(ledger):
    other = Ledger(":memory:")
    assert busy_day(ledger) == busy_day(other)
    assert everything(ledger) == everything(other)


def test_a_refusal_changes_nothing_and_a_raise_opens_again(ledger):
    ledger.grant("census", **CAP)
    exhaust(ledger)
    before = everything(ledger)
    with pytest.raises(BudgetExceeded, match="Nothing was charged, no record was read"):
        charge(ledger, charge_id="again")
    assert everything(ledger) == before
    ledger.grant("census", 6.0)
    assert charge(ledger, charge_id="again").release is None


def test_parts_are_declared_once_and_of_the_whole(ledger):
    ledger.grant("census", **CAP)
    ledger.divide("census", ["north"])
    for parts, whole in ((["south", "north"], "census"), (["census"], "census"), (["x"], "north"), (["x"], "absent")):
        with pytest.raises(LedgerError):
            ledger.divide(whole, parts)
    with pytest.raises(LedgerError, match="grant to the whole"):
        ledger.grant("north", 9.0)
    assert len(ledger.entries()) == 2


# --- requests -------------------------------------------------------------------------------------


def test_a_request_is_charged_once_and_released_once(ledger):
    ledger.grant("census", **CAP)
    first, again = charge(ledger, charge_id="mine"), charge(ledger, charge_id="mine")
    assert (first.entry, first.head, first.release) == (again.entry, again.head, again.release)
    assert first.release is None
    assert again.settle("its release") == "its release"
    assert first.settle("another release") == "its release"
    first.abandon()  # too late: it was released
    assert charge(ledger, charge_id="mine").release == "its release"
    assert ledger.spent("census").fits == 1


def test_a_failed_request_stays_failed(ledger):
    ledger.grant("census", **CAP)
    failed = charge(ledger, charge_id="mine")
    failed.abandon()
    for late in (lambda: charge(ledger, charge_id="mine"), lambda: failed.settle("late")):
        with pytest.raises(LedgerError, match="failed after it was charged"):
            late()
    assert ledger.spent("census").fits == 1


def test_a_request_is_for_one_thing(ledger):
    ledger.grant("census", **CAP)
    ledger.grant("other", **CAP)
    charge(ledger, charge_id="mine")
    with pytest.raises(LedgerError, match="for something else"):
        charge(ledger, "other", "mine")
    with pytest.raises(LedgerError, match="for something else"):
        ledger.reserve("census", price_plan([Gaussian(6.0)], BUDGET), "mine")
    assert ledger.spent("other").fits == 0


# --- records --------------------------------------------------------------------------------------


def test_notices(ledger):
    for name in ("census", "copy", "apart"):
        ledger.grant(name, **CAP)
    ledger.divide("census", ["north"])
    seen = Fingerprint("d1", tuple(range(100, 200)))
    ledger.recognize("census", seen)
    ledger.recognize("census", seen)
    ledger.recognize("north", seen)  # a part of it has its records
    ledger.recognize("apart", Fingerprint("d2", tuple(range(1000, 1100))))
    assert ledger.notices() == []
    for _ in range(2):
        ledger.recognize("copy", seen)
    found = [(notice.dataset, notice.other, notice.share) for notice in ledger.notices()]
    assert found == [("copy", "census", 1.0), ("copy", "north", 1.0)]
    ledger.recognize("apart", Fingerprint("d3", tuple(range(2000, 2100))))
    assert ("apart", "apart", 0.0) in [astuple(notice) for notice in ledger.notices()]
    before = everything(ledger)
    ledger.recognize("absent", seen)  # an error here would come after a charge, for some records only
    assert everything(ledger) == before


def test_every_look_at_records_is_one_write(ledger):
    """Known or not, alike or not: one transaction, and one row that changes whatever is found."""
    for name in ("census", "copy"):
        ledger.grant(name, **CAP)
    writing, counted = type(ledger._store).writing, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ledger._store), "writing", lambda self: counted.append(1) or writing(self))
        for name, number in (("census", 1), ("census", 1), ("census", 2), ("copy", 1), ("copy", 1), ("copy", 3)):
            ledger.recognize(name, Fingerprint(f"d{number}", (number,)))
    assert len(counted) == 6
    assert {(one.dataset, one.other) for one in ledger.notices()} >= {("census", "census"), ("copy", "census")}
    with ledger._store.reading() as at:
        assert sorted(at.rows("SELECT dataset, times FROM seen")) == [("census", 3), ("copy", 3)]


def test_a_look_that_fails_says_nothing(ledger):
    ledger.grant("census", **CAP)
    charge(ledger)

    def broken(self):
        raise LedgerError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ledger._store), "writing", broken)
        ledger.recognize("census", Fingerprint("d", (1,)))
        with pytest.raises(LedgerError):
            charge(ledger)


# --- reading --------------------------------------------------------------------------------------


def test_entries_are_the_history(ledger):
    ledger.grant("census", **CAP)
    ledger.grant("other", **CAP)
    for label in "abc":
        charge(ledger, label=label)
    charge(ledger, "other")
    entries = ledger.entries()
    assert [entry.seq for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert entries[0].prev == GENESIS
    assert ledger.entries("other") == [entries[1], entries[5]]
    assert ledger.entries(limit=2) == entries[-2:]
    assert [entry.contents["label"] for entry in ledger.entries("census", limit=2)] == ["b", "c"]
    assert ledger.entries("absent") == ledger.entries(limit=0) == []
    with pytest.raises(Unsupported, match="0 or more"):
        ledger.entries(limit=-1)
    found = ledger.verify()
    assert (found.entries, found.datasets, found.head) == (6, 2, entries[-1].hash)


def test_a_reader_sees_one_moment(ledger):
    ledger.grant("census", **CAP)
    count = "SELECT (SELECT count(*) FROM entry), (SELECT sum(charges) FROM account)"
    with ThreadPoolExecutor(1) as pool, ledger._store.reading() as at:
        before = at.rows(count)
        written = pool.submit(charge, ledger)
        if ledger.address != ":memory:":  # there, a writer waits for readers
            written.result(20)
        assert at.rows(count) == before
        if ledger.address == ":memory:":
            assert not written.done()
    with ledger._store.reading() as at:
        assert at.rows(count) == [(2, 1)]


# --- writing --------------------------------------------------------------------------------------


def test_an_exception_leaves_nothing(ledger):
    ledger.grant("census", **CAP)
    before, entry = everything(ledger), forged(ledger, Amounts(1, 1, 1, 1, 1))

    def interrupted() -> None:
        with ledger._store.writing() as at:
            insert(at, entry)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert everything(ledger) == before
    charge(ledger)


def test_threads_queue(ledger):
    """As many charges are granted as to one alone, each once."""
    alone = Ledger(":memory:")
    for one in (ledger, alone):
        one.grant("census", **CAP)
    with ThreadPoolExecutor(6) as pool:
        granted = sum(pool.map(lambda _: exhaust(ledger), range(6)))
    assert granted == exhaust(alone)
    assert ledger.account("census") == alone.account("census")
    ledger.verify(prices=True)


def test_one_request_from_many_threads(ledger):
    ledger.grant("census", **CAP)

    def ask(number: int) -> str:
        return charge(ledger, charge_id="the one").settle(f"release {number}")

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(ask, range(12)))) == 1
    assert ledger.spent("census").fits == 1


# --- the database's own rules ---------------------------------------------------------------------


def forged(ledger: Ledger, amounts: Amounts, dataset: str = "census") -> Entry:
    """A well-formed entry that nobody checked."""
    *_, last = ledger.entries()
    return Entry.after(last.seq, last.hash, "charge", dataset, {}, charge=amounts)


def insert(at, entry: Entry) -> None:
    columns = ("seq", "kind", "dataset", *AMOUNT_NAMES, "body", "prev", "hash")
    values = (entry.seq, entry.kind, entry.dataset, *astuple(entry.charge), entry.body, entry.prev, entry.hash)
    at.run(f"INSERT INTO entry ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})", *values)


@pytest.mark.parametrize(
    "amounts", [Amounts(NEVER, NEVER, NEVER, NEVER, NEVER), Amounts(2**45, 2**45, 2**45, 2**45, 0)]
)
def test_no_statement_overspends(ledger, amounts):
    ledger.grant("census", **CAP)
    ledger.divide("census", ["north"])
    charge(ledger, "north")
    before = everything(ledger)
    for dataset in ("north", "census"):  # to the whole: its part would leave its cap
        entry = forged(ledger, amounts, dataset)
        with pytest.raises(OverCap), ledger._store.writing() as at:
            insert(at, entry)
    assert everything(ledger) == before


def test_the_last_unit_may_be_spent_and_not_one_more(ledger):
    caps = ledger.grant("census", **CAP).caps
    entry = forged(ledger, Amounts(caps.gaussian, NEVER, NEVER, NEVER, NEVER))
    with ledger._store.writing() as at:
        insert(at, entry)
    entry = forged(ledger, Amounts(gaussian=1))
    with pytest.raises(OverCap), ledger._store.writing() as at:
        insert(at, entry)
    assert ledger.account("census").spent.gaussian == caps.gaussian


CHANGES = [
    "UPDATE entry SET body = body",
    "UPDATE entry SET seq = seq + 100",
    "DELETE FROM entry",
    "UPDATE release SET body = 'another'",
    "DELETE FROM release",
    "UPDATE known SET digest = 'another'",
    "DELETE FROM known",
    "UPDATE ledger SET name = 'another'",
    "DELETE FROM ledger",
    "DELETE FROM account",
    "UPDATE account SET charges = charges - 1",
    *(f"UPDATE account SET {filter}_spent = {filter}_spent - 1" for filter in AMOUNT_NAMES),
    "UPDATE account SET gaussian_cap = 0, low_cap = 0, high_cap = 0",
    "INSERT INTO entry SELECT seq + 1, kind, dataset, NULL, -1, 0, 0, 0, 0, body, hash, 'x' FROM entry WHERE seq = 2",
    "INSERT INTO entry SELECT seq + 1, kind, dataset, NULL, 1, 1, 1, 1, 1, body, prev, 'x' FROM entry WHERE seq = 2",
    "INSERT INTO release (charge_id, body) VALUES ('mine', 'another')",
    "INSERT INTO release (charge_id, body) VALUES ('never asked', 'x')",
]


def test_no_statement_changes_what_was_written(ledger):
    ledger.grant("census", **CAP)
    charge(ledger, charge_id="mine").settle("released")
    ledger.recognize("census", Fingerprint("d", (1,)))
    before = everything(ledger)
    admitted = []
    for statement in CHANGES:
        try:
            with ledger._store.writing() as at:
                at.run(statement)
        except (LedgerError, OverCap):
            continue
        admitted.append(statement)
    assert admitted == []
    assert everything(ledger) == before
