"""The ledger in PostgreSQL: its rules, its lock, its rights, and what is left after crashes. A real server runs."""

import multiprocessing
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

import pytest

from discreet import Budget, Ledger
from discreet.accounting.events import Gaussian
from discreet.accounting.pricing import price_plan
from discreet.errors import BudgetExceeded, LedgerError
from discreet.ledger import postgres
from discreet.ledger.account import AMOUNT_NAMES, Account, Amounts
from discreet.ledger.chain import Entry
from discreet.ledger.ledger import Fingerprint
from discreet.ledger.postgres import SCHEMA, PostgresStore, grants_for

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL is not tested: no psycopg", exc_type=ImportError)

EVENTS = [Gaussian(5.0)]
BUDGET = Budget(1.5, 1e-7)
SMALL, SMALL_BUDGET = [Gaussian(16.0)], Budget(0.5, 1e-7)


@pytest.fixture
def ledger(database) -> Ledger:
    made = Ledger.create(database)
    made.grant("census", 3.0, 1e-6)
    return made


def charge(ledger: Ledger, charge_id: str | None = None):
    return ledger.reserve("census", price_plan(EVENTS, BUDGET), charge_id)


def exhaust(ledger: Ledger) -> int:
    for granted in range(1000):
        try:
            charge(ledger)
        except BudgetExceeded:
            return granted
    raise AssertionError("no cap was found")


def most() -> int:
    """How many charges the cap admits, one after the other."""
    alone = Ledger(":memory:")
    alone.grant("census", 3.0, 1e-6)
    return exhaust(alone)


def insert(at, ledger: Ledger, amounts: Amounts = Amounts(1, 1, 1, 1, 1)) -> None:  # noqa: B008
    """A well-formed charge that nobody checked."""
    *_, last = ledger.entries()
    entry = Entry.after(last.seq, last.hash, "charge", "census", {}, charge=amounts)
    columns = ("seq", "kind", "dataset", *AMOUNT_NAMES, "body", "prev", "hash")
    values = (entry.seq, entry.kind, entry.dataset, *astuple(entry.charge), entry.body, entry.prev, entry.hash)
    at.run(f"INSERT INTO entry ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})", *values)


def store_of(ledger: Ledger) -> PostgresStore:
    assert isinstance(ledger._store, PostgresStore)
    return ledger._store


# --- the rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["entry", "release", "known", "ledger", "account"])
def test_no_table_is_emptied(server, ledger, table):
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        server.execute(f"TRUNCATE {SCHEMA}.{table} CASCADE", database="ledgers")
    assert ledger.verify().entries == 1


def test_two_may_create_at_once(database):
    def create(_: int) -> str:
        try:
            Ledger.create(database)
        except LedgerError as error:
            return str(error)
        return "created"

    with ThreadPoolExecutor(4) as pool:
        told = sorted(pool.map(create, range(4)))
    assert told.count("created") == 1
    assert all("already" in text for text in told if text != "created")
    Ledger(database).verify()


# --- the lock -------------------------------------------------------------------------------------


@pytest.fixture
def unguarded(monkeypatch):
    """A ledger whose Python forgot the lock and the cap."""
    monkeypatch.setattr(postgres, "LOCK", "SELECT 1")
    monkeypatch.setattr(Account, "is_within", property(lambda self: True))
    return monkeypatch


def race(ledger: Ledger, tries: int = 12) -> tuple[int, int]:
    """How many charges were granted to six threads, and how many collided."""

    def one(_: int) -> tuple[int, int]:
        granted = collided = 0
        for _ in range(tries):
            try:
                charge(ledger)
                granted += 1
            except BudgetExceeded:
                pass
            except LedgerError:
                collided += 1
        return granted, collided

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(one, range(6)))
    return sum(granted for granted, _ in found), sum(collided for _, collided in found)


def test_control_without_the_check_it_overspends(server, ledger, unguarded):
    server.execute(f"ALTER TABLE {SCHEMA}.account DROP CONSTRAINT within_the_cap", database="ledgers")
    for _ in range(30):
        charge(ledger)
    unguarded.undo()
    assert most() < 30
    assert not ledger.account("census").is_within
    with pytest.raises(LedgerError):
        ledger.verify()


def test_with_the_lock_nobody_collides(ledger):
    assert race(ledger) == (most(), 0)


@pytest.mark.few(1)
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_the_servers_default_isolation_does_not_matter(server, ledger, level):
    server.execute(f"ALTER DATABASE ledgers SET default_transaction_isolation = '{level}'")
    try:
        assert server.execute("SHOW default_transaction_isolation", database="ledgers") == [(level,)]
        assert race(ledger) == (most(), 0)
    finally:
        server.execute("ALTER DATABASE ledgers RESET default_transaction_isolation")


def test_whoever_waits_too_long_is_told(ledger, monkeypatch):
    hurried = postgres._SETTINGS.replace("lock_timeout = '60s'", "lock_timeout = '100ms'")
    assert hurried != postgres._SETTINGS
    with store_of(ledger).writing():
        monkeypatch.setattr(postgres, "_SETTINGS", hurried)
        with pytest.raises(LedgerError, match=r"LockNotAvailable.*busy.*Nothing was granted"):
            charge(ledger)
        assert ledger.spent("census").fits == 0  # reading never waits
    charge(ledger)


def test_whoever_falls_silent_loses_the_lock(ledger, monkeypatch):
    session = "idle_in_transaction_session_timeout = "
    hurried = postgres._SETTINGS.replace(f"{session}'60s'", f"{session}'100ms'")
    assert hurried != postgres._SETTINGS
    patient = postgres._SETTINGS
    monkeypatch.setattr(postgres, "_SETTINGS", hurried)

    def silent() -> None:
        with store_of(ledger).writing() as at:
            insert(at, ledger)
            monkeypatch.setattr(postgres, "_SETTINGS", patient)
            charge(ledger)  # of somebody else, who waits for the lock

    with pytest.raises(LedgerError, match="Nothing was granted"):
        silent()
    assert ledger.spent("census").fits == 1
    ledger.verify(prices=True)


# --- crashes --------------------------------------------------------------------------------------


def work(url: str, folder: str, seed: int) -> None:
    """Ask, release, write down what was released; until told to stop, or killed."""
    ledger, rng = Ledger(url), random.Random(seed)
    seen = os.open(f"{folder}/{os.getpid()}.seen", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    for number in range(10**6):
        if os.path.exists(f"{folder}/stop"):
            return
        charge_id = f"request {rng.randrange(400)}"
        try:
            reservation = ledger.reserve("census", price_plan(SMALL, SMALL_BUDGET), charge_id)
            if rng.random() < 0.03:
                reservation.abandon()
                continue
            kept = reservation.release or reservation.settle(f"{os.getpid()}:{number}")
        except BudgetExceeded:
            continue
        except LedgerError as error:
            if "failed after it was charged" in str(error):
                continue
            raise
        os.write(seen, f"{charge_id}={kept}\n".encode())


@pytest.mark.thorough
def test_killed_processes(ledger, tmp_path):
    """Six processes, thirty kills at random moments, under a cap that is raised again and again."""
    ledger.grant("census", 1.0)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["discreet.ledger.ledger", "discreet.ledger.postgres", "psycopg", "pytest"])
    rng = random.Random(7)

    def started() -> multiprocessing.process.BaseProcess:
        process = context.Process(target=work, args=(ledger._address, str(tmp_path), rng.getrandbits(32)))
        process.start()
        return process

    workers, before, kills = [started() for _ in range(6)], [], 0
    try:
        end = time.monotonic() + 60
        while len(ledger.entries()) < 8:  # they are at work
            assert time.monotonic() < end
            time.sleep(0.05)
        while kills < 30:
            time.sleep(rng.uniform(0, 0.06))
            which = rng.randrange(6)
            assert workers[which].is_alive()
            os.kill(workers[which].pid, signal.SIGKILL)
            workers[which].join()
            workers[which], kills = started(), kills + 1
            ledger.grant("census", 1.0 + kills / 15)
            before = still_whole(ledger, before)
        while not is_exhausted(ledger) and time.monotonic() < end:
            before = still_whole(ledger, before)
            time.sleep(0.05)
        (tmp_path / "stop").touch()
        for worker in workers:
            worker.join(30)
        assert [worker.exitcode for worker in workers] == [0] * 6
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    assert is_exhausted(ledger)
    still_whole(ledger, before)
    ledger.verify(prices=True)
    assert_released_once(ledger, tmp_path)


def still_whole(ledger: Ledger, before: list[Entry]) -> list[Entry]:
    """At any instant: within the cap, the chain whole, and what was written is a beginning of what is."""
    account, entries = ledger.account("census"), ledger.entries()
    assert account.is_within
    assert entries[: len(before)] == before
    ledger.verify()
    return entries


def is_exhausted(ledger: Ledger) -> bool:
    account = ledger.account("census")
    return not account.charged(account.charge(price_plan(SMALL, SMALL_BUDGET))).is_within


def assert_released_once(ledger: Ledger, folder: Path) -> None:
    """Every release that anybody saw has one entry, and is the only one of its request."""
    lines = [line for path in folder.glob("*.seen") for line in path.read_text().splitlines()]
    assert len(lines) > 50
    requests = [entry.charge_id for entry in ledger.entries() if entry.kind == "charge"]
    assert len(requests) == len(set(requests)) == ledger.spent("census").fits
    with store_of(ledger).reading() as at:
        kept = dict(at.rows("SELECT charge_id, body FROM release"))
    for line in set(lines):
        charge_id, _, release = line.partition("=")
        assert charge_id in requests
        assert kept[charge_id] == release


@pytest.mark.thorough
def test_the_server_dies_in_mid_use(server, ledger):
    """What was granted is there after the restart; whoever was not told so was granted nothing."""
    ledger.grant("census", 50.0)
    granted, told = [], []

    def use(_: int) -> None:
        try:
            while True:
                granted.append(charge(ledger))
        except LedgerError as error:
            told.append(str(error))

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    try:
        for thread in threads:
            thread.start()
        while len(granted) < 20 and any(thread.is_alive() for thread in threads):
            time.sleep(0.005)
        server.stop()
        for thread in threads:
            thread.join()
        with pytest.raises(LedgerError, match=r"cannot be used \(OperationalError\): is it running"):
            ledger.spent("census")
    finally:
        server.stop()
        server.start()
    assert len(told) == 4
    assert all("cannot be used" in text and "Nothing was granted" in text for text in told)
    entries = {entry.seq: entry.hash for entry in ledger.entries("census")}
    assert all(entries[one.entry] == one.head for one in granted)
    assert len(granted) <= ledger.spent("census").fits <= len(granted) + 4
    ledger.verify(prices=True)
    charge(ledger)


@pytest.mark.thorough
def test_the_server_dies_inside_a_transaction(server, ledger):
    def interrupted() -> None:
        with store_of(ledger).writing() as at:
            insert(at, ledger)
            server.stop()

    try:
        with pytest.raises(LedgerError, match="Nothing was granted"):
            interrupted()
    finally:
        server.stop()
        server.start()
    assert ledger.spent("census").fits == 0
    assert ledger.verify().entries == 1


def test_a_backup_is_a_ledger(server, ledger):
    """Dumped and loaded elsewhere, it is whole, and its rules still hold."""
    charge(ledger, "mine").settle("released")
    dump, elsewhere = server.folder / "dump", server.fresh("restored")
    for done in (
        server.run("pg_dump", "--schema", SCHEMA, "--file", dump, server.url("ledgers")),
        server.run("psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", dump, server.url(elsewhere)),
    ):
        assert done.returncode == 0, done.stderr
    restored = Ledger(server.url(elsewhere))
    assert restored.verify(prices=True) == ledger.verify()
    assert (restored.accounts(), restored.key()) == (ledger.accounts(), ledger.key())
    assert exhaust(restored) == most() - 1
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        server.execute(f"DELETE FROM {SCHEMA}.entry", database=elsewhere)


# --- rights ---------------------------------------------------------------------------------------


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class House:
    """A ledger whose owner is no superuser, and a role with the rights to charge fits."""

    def __init__(self, server) -> None:
        self.server, self.owner, self.role, self.fits = server, server.role(), server.role(), 0
        server.execute(f"GRANT CREATE ON DATABASE {server.fresh()} TO {quoted(self.owner)}")
        self.owned = Ledger.create(server.url("ledgers", self.owner))
        self.owned.grant("census", 3.0, 1e-6)
        self.used = Ledger(server.url("ledgers", self.role))

    def grant(self) -> None:
        for statement in grants_for(self.role):
            self.as_owner(statement)

    def as_owner(self, statement: str) -> None:
        self.server.execute(statement, database="ledgers", user=self.owner)

    def as_role(self, statement: str) -> list:
        return self.server.execute(statement, database="ledgers", user=self.role)

    def fit(self) -> None:
        """Everything that fits do, on a data set that has seen none."""
        self.fits += 1
        name = f"data set {self.fits}"
        self.owned.grant(name, 3.0, 1e-6)
        self.used.key()
        done = self.used.reserve(name, price_plan(EVENTS, BUDGET), name)
        self.used.recognize(name, Fingerprint(f"first {name}", (2 * self.fits,)))
        self.used.recognize(name, Fingerprint(f"then {name}", (2 * self.fits + 1,)))
        assert done.settle("released") == "released"
        self.used.verify()


@pytest.fixture
def house(server) -> House:
    return House(server)


@contextmanager
def without(house, right):
    house.as_owner(f"REVOKE {right} FROM {quoted(house.role)}")
    try:
        yield
    finally:
        house.as_owner(f"GRANT {right} TO {quoted(house.role)}")


def test_every_right_is_needed(house):
    """Taken away one at a time, each is missed."""
    house.grant()
    rights = [f"USAGE ON SCHEMA {SCHEMA}", f"UPDATE (id) ON {SCHEMA}.ledger"]
    rights += [f"SELECT ON {SCHEMA}.{name}" for name in ("ledger", "entry", "account", "release", "secret")]
    rights += [f"INSERT ON {SCHEMA}.{name}" for name in ("entry", "release")]
    for right in rights:
        with without(house, right), pytest.raises(LedgerError, match="no right"):
            house.fit()
    house.fit()


def test_the_owners_business_stays_the_owners(house):
    house.grant()
    charge(house.used)
    before = house.owned.accounts(), house.owned.entries()
    for use in (
        lambda: house.used.grant("census", 9.0),
        lambda: house.used.grant("another", 9.0),
        lambda: house.used.divide("census", ["north"]),
        lambda: house.used.notices(),
    ):
        with pytest.raises(LedgerError, match="your role has no right"):
            use()
    assert (house.owned.accounts(), house.owned.entries()) == before


FORBIDDEN = [
    *("UPDATE {s}.account SET epsilon_cap = 99", "UPDATE {s}.account SET charges = 0"),
    *("INSERT INTO {s}.account SELECT * FROM {s}.account", "DELETE FROM {s}.account", "DELETE FROM {s}.entry"),
    *("UPDATE {s}.entry SET body = ''", "UPDATE {s}.release SET body = ''", "DELETE FROM {s}.notice"),
    *("SELECT * FROM {s}.notice", "DELETE FROM {s}.seen", "UPDATE {s}.known SET digest = ''"),
    *("TRUNCATE {s}.entry CASCADE", "UPDATE {s}.secret SET key = ''", "UPDATE {s}.ledger SET name = 'x'"),
    *("INSERT INTO {s}.ledger VALUES (2, 1, 'x')", "ALTER TABLE {s}.entry DISABLE TRIGGER ALL"),
    *("ALTER TABLE {s}.account DROP CONSTRAINT within_the_cap", "DROP TRIGGER entry_moves_account ON {s}.entry"),
    "DROP FUNCTION {s}.entry_moves_account() CASCADE",
    "CREATE OR REPLACE FUNCTION {s}.entry_moves_account() RETURNS trigger LANGUAGE sql AS ''",
    "CREATE TRIGGER x BEFORE INSERT ON {s}.entry EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    *("CREATE RULE x AS ON INSERT TO {s}.entry DO INSTEAD NOTHING", "CREATE TABLE {s}.x (id INT)"),
    *("SET session_replication_role = replica", "DROP SCHEMA {s} CASCADE"),
]


def test_no_statement_of_the_role_changes_the_rules(house):
    house.grant()
    charge(house.used, "mine").settle("released")
    admitted = []
    for statement in FORBIDDEN:
        try:
            house.as_role(statement.format(s=SCHEMA))
        except psycopg.errors.InsufficientPrivilege:
            continue
        admitted.append(statement)
    assert admitted == []
    house.owned.verify(prices=True)


def test_the_role_cannot_overspend_by_hand(house):
    house.grant()
    assert exhaust(house.used) == most()
    account = house.owned.account("census")
    with pytest.raises(psycopg.errors.CheckViolation, match="within_the_cap"):
        house.as_role(
            f"INSERT INTO {SCHEMA}.entry SELECT seq + 1, kind, dataset, NULL, {', '.join(AMOUNT_NAMES)}, body, hash, "
            f"'x' FROM {SCHEMA}.entry ORDER BY seq DESC LIMIT 1"
        )
    assert house.owned.account("census") == account


def test_the_owners_functions_serve_no_other_table(house):
    """On a table of the role's own, with types of its own, they would run its casts with the owner's rights."""
    house.grant()
    columns = ", ".join(f"{name} BIGINT" for name in AMOUNT_NAMES)
    house.server.execute(f"GRANT CREATE ON DATABASE ledgers TO {quoted(house.role)}")
    house.as_role(f"CREATE SCHEMA mine CREATE TABLE entry (dataset TEXT, {columns})")
    try:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="entry_moves_account"):
            house.as_role(
                "CREATE TRIGGER x AFTER INSERT ON mine.entry FOR EACH ROW "
                f"EXECUTE FUNCTION {SCHEMA}.entry_moves_account()"
            )
    finally:
        house.as_role("DROP SCHEMA mine CASCADE")


def test_names_are_not_looked_up_elsewhere(house):
    """A table of the same name before the ledger's in the search path is not what a charge moves."""
    house.grant()
    with psycopg.connect(house.server.url("ledgers", house.role)) as connection:
        connection.execute(f"CREATE TEMP TABLE account (LIKE {SCHEMA}.account)")
        connection.execute(f"CREATE TEMP TABLE entry (LIKE {SCHEMA}.entry)")
        connection.execute("SET search_path TO pg_temp, public")
        connection.execute(
            f"INSERT INTO {SCHEMA}.entry VALUES (2, 'charge', 'census', NULL, 1, 1, 1, 1, 1, '', 'x', 'y')"
        )
    assert house.owned.spent("census").fits == 1
