"""A ledger file as an outsider sees it: plain SQL, and the invariants worked out without the library's own rules."""

import math
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AMOUNT_NAMES = ("gaussian", "low", "high", "epsilon", "delta")
UNIT, MOST = 2**40, 2**60


@dataclass(frozen=True)
class Snapshot:
    """One moment of a ledger file: all entries in order, the accounts by name, what was released by request."""

    entries: list[tuple[Any, ...]]
    accounts: dict[str, dict[str, Any]]
    releases: dict[str, str | None]

    @property
    def charges(self) -> list[tuple[Any, ...]]:
        return [entry for entry in self.entries if entry[1] == "charge"]

    @property
    def requests(self) -> list[str]:
        return [entry[3] for entry in self.entries if entry[3] is not None]


def raw(path: Path | str) -> sqlite3.Connection:
    """A connection with nothing of the ledger's own settings."""
    return sqlite3.connect(path, timeout=30, isolation_level=None)


def snapshot(path: Path | str) -> Snapshot:
    with closing(raw(path)) as connection:
        connection.execute("BEGIN")
        entries = connection.execute("SELECT * FROM entry ORDER BY seq").fetchall()
        found = connection.execute("SELECT * FROM account")
        names = [column[0] for column in found.description]
        accounts = {row[0]: dict(zip(names, row, strict=True)) for row in found.fetchall()}
        releases = dict(connection.execute("SELECT charge_id, body FROM release").fetchall())
    return Snapshot(entries, accounts, releases)


def faults(now: Snapshot, before: Snapshot | None = None) -> list[str]:
    """What no moment of a ledger may show, in words; nothing where all is well. For accounts without parts."""
    found = []
    if [entry[0] for entry in now.entries] != list(range(1, len(now.entries) + 1)):
        found.append("entries are missing")
    if len(set(now.requests)) != len(now.requests):
        found.append("a request has two entries")
    if not set(now.releases) <= set(now.requests):
        found.append("a release has no entry")
    for name, account in now.accounts.items():
        charges = [entry[4:9] for entry in now.charges if entry[2] == name]
        for at, filter in enumerate(AMOUNT_NAMES):
            if account[f"{filter}_spent"] != min(sum(charge[at] for charge in charges), MOST):
                found.append(f"{filter} is not the sum of the charges")
        if account["charges"] != len(charges):
            found.append("the charges are miscounted")
        if charges and not is_within(account):
            found.append("more was spent than the cap")
    if before is not None:
        if now.entries[: len(before.entries)] != before.entries:
            found.append("an entry changed or went away")
        if any(now.releases.get(charge_id, "") != body for charge_id, body in before.releases.items()):
            found.append("a release changed or went away")
    return found


def is_within(account: dict[str, Any], charge: tuple[int, ...] = (0, 0, 0, 0, 0)) -> bool:
    """Whether an account would be within its cap after one more charge."""
    room = [
        account[f"{name}_spent"] + more <= account[f"{name}_cap"]
        for name, more in zip(AMOUNT_NAMES, charge, strict=True)
    ]
    pure = account["delta_spent"] + charge[4] == 0
    return all(room[3:]) if account["adds"] else any(room[:3]) or (pure and room[3])


def delta_of(mu_squared: float, epsilon: float) -> float:
    """The delta of Gaussian noise with this mu^2 in all, by the formula of Balle and Wang."""
    from scipy.stats import norm  # heavy: whoever forks often does without

    mu = math.sqrt(mu_squared)
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def integrity(path: Path | str) -> str:
    with closing(raw(path)) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
