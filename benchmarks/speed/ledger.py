"""The ledger: durable reservations a second, a long ledger opened and verified, and what it adds to a fit."""

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Row, at_least, at_most
from benchmarks.problems.logistic import features_and_targets
from benchmarks.sizes import size
from discreet import Budget, DPLogisticRegression, Ledger
from discreet.accounting.events import Gaussian
from discreet.accounting.pricing import price_plan
from discreet.curator.private_data import fingerprint_of
from discreet.ledger import store as rows
from discreet.ledger.chain import Entry
from discreet.solvers import GradientDescent

EVENTS, BUDGET = (Gaussian(noise_multiplier=500.0, count=10),), Budget(0.1, 1e-8)
ENTRIES = size(100_000, 100)
N, P, STEPS = size(100_000, 1000), 20, 100
LARGE, WIDE = size(1_000_000, 1000), 100


def run(rounds: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from reservations(Path(folder) / "reservations.db", rounds)
        yield from long_ledger(Path(folder) / "long.db", max(2, rounds // 5))
        yield from fits(Path(folder) / "fits.db", max(5, rounds // 3))
        yield fingerprint(max(2, rounds // 5))


def _opened(path: Path) -> Ledger:
    ledger = Ledger.create(path)
    ledger.grant("data", 1000.0, 1e-6)
    return ledger


def reservations(path: Path, rounds: int) -> Iterator[Row]:
    """Priced, checked, chained and on disk; against the bare writes of the same columns on a connection kept open."""
    ledger = _opened(path)
    with closing(_raw(path.with_name("raw.db"))) as raw:
        taken = interleaved(
            {
                "ours": lambda: ledger.reserve("data", price_plan(EVENTS, BUDGET)),
                "peer": lambda: _insert(raw),
                "priced": lambda: ledger.account("data").charge(price_plan(EVENTS, BUDGET)),
            },
            rounds=rounds,
            least_seconds=0.1,
        )
    ours, peer = taken["ours"], taken["peer"]
    spread = max(ours.spread, peer.spread)
    note = (
        f"median round {1 / ours.median_wall:.0f}/s; to open, read and price alone {1e3 * taken['priced'].wall:.2g} ms"
    )
    yield Row("durable reservations", "/s", 1 / ours.wall, goal=at_least(150, absolute=True), spread=spread, note=note)
    yield Row.faster("one reservation, against a bare durable INSERT on a kept connection", ours, peer, None)


def _raw(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE entry (seq INTEGER PRIMARY KEY, charge INTEGER, body TEXT, hash TEXT UNIQUE)")
    connection.execute("CREATE TABLE account (name TEXT PRIMARY KEY, spent INTEGER)")
    connection.execute("INSERT INTO account VALUES ('data', 0)")
    return connection


def _insert(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM entry").fetchone()
    connection.execute("INSERT INTO entry VALUES (?, 1, ?, ?)", (last + 1, "b" * 200, f"{last:064d}"))
    connection.execute("UPDATE account SET spent = spent + 1 WHERE name = 'data'")
    connection.execute("COMMIT")


def long_ledger(path: Path, rounds: int) -> Iterator[Row]:
    """Opened, shown and verified, as a fresh process would do; written in one transaction beforehand."""
    _fill(path)
    steps: dict[str, Callable[[], object]] = {
        "show": lambda: Ledger(path).spent("data"),
        "history": lambda: Ledger(path).entries(limit=20),
        "verify": lambda: Ledger(path).verify(),
        "prices": lambda: Ledger(path).verify(prices=True),
    }
    taken = interleaved(steps, rounds=rounds, least_seconds=0.0)
    total = sum(taken[name].wall for name in ("show", "history", "verify"))
    spread = taken["verify"].spread
    note = ", ".join(f"{name} {one.wall:.3g} s" for name, one in taken.items() if name != "prices")
    goal = at_most(5.0, absolute=True)
    yield Row(f"ledger of {ENTRIES:.0e} entries: open, show, verify", "s", total, goal=goal, spread=spread, note=note)
    yield Row("the same, every charge priced anew", "s", taken["prices"].wall, spread=taken["prices"].spread)
    before = time.perf_counter()
    Ledger(path).reserve("data", price_plan(EVENTS, BUDGET))
    yield Row("one more reservation there, the first of its process", "ms", 1e3 * (time.perf_counter() - before))


def _fill(path: Path) -> None:
    ledger = _opened(path)
    charge = ledger.account("data").charge(price_plan(EVENTS, BUDGET))
    budget = {"epsilon": BUDGET.epsilon, "delta": BUDGET.delta, "neighbors": str(BUDGET.neighbors)}
    body = {"budget": budget, "events": [event.to_dict() for event in EVENTS], "label": "benchmark", "time": "then"}
    with ledger._store.writing() as at:
        seq, head = rows.last(at)
        for number in range(seq, ENTRIES):
            entry = Entry.after(number, head, "charge", "data", body, charge=charge)
            rows.append(at, entry)
            head = entry.hash


def fits(path: Path, rounds: int) -> Iterator[Row]:
    X, y = features_and_targets(N, P)
    plain = DPLogisticRegression(
        0.1, 1e-8, bounds=1.0, classes=(-1.0, 1.0), solver=GradientDescent(n_steps=STEPS), ledger=False
    )
    charged = DPLogisticRegression(**{**plain.get_params(), "ledger": _opened(path), "dataset": "data"})
    taken = interleaved({"ours": lambda: charged.fit(X, y), "peer": lambda: plain.fit(X, y)}, rounds=rounds)
    title = f"fit of {STEPS} gradients, n={N:.0e}, p={P}, with a ledger, against without"
    extra = 1e3 * (taken["ours"].wall - taken["peer"].wall)
    yield Row(
        title,
        "ms",
        1e3 * taken["ours"].wall,
        1e3 * taken["peer"].wall,
        taken["ours"].wall / taken["peer"].wall,
        spread=max(one.spread for one in taken.values()),
        note=f"{extra:.3g} ms more",
    )


def fingerprint(rounds: int) -> Row:
    X = np.random.default_rng(0).uniform(-1, 1, (LARGE, WIDE))
    key = bytes(32)
    taken = interleaved({"ours": lambda: fingerprint_of(X, key), "peer": lambda: X.sum()}, rounds=rounds)
    title = f"fingerprint of {LARGE:.0e} x {WIDE}, against one pass of numpy's sum"
    return Row.faster(title, taken["ours"], taken["peer"], None)
