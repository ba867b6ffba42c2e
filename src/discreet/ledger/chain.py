"""Entries, each bound to the one before by its hash, and whether a ledger holds together.

Changing an entry changes every hash after it. Verification works chain, rules and accounts out again from the entries.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import event_from_dict
from discreet.accounting.pricing import price_plan
from discreet.budget import Budget
from discreet.errors import DiscreetError, LedgerError
from discreet.json_schemas import Json
from discreet.ledger.account import FREE, Account, Amounts

GENESIS = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One line of the ledger: a cap granted, a part declared, or a charge."""

    seq: int
    kind: str
    dataset: str
    charge_id: str | None
    charge: Amounts
    body: str
    prev: str
    hash: str

    @classmethod
    def after(
        cls,
        seq: int,
        prev: str,
        kind: str,
        dataset: str,
        body: Mapping[str, object],
        *,
        charge_id: str | None = None,
        charge: Amounts = FREE,
    ) -> "Entry":
        """The next entry of a chain whose last one has this number and hash."""
        return cls(seq + 1, kind, dataset, charge_id, charge, canonical(body), prev, "").sealed()

    def sealed(self) -> "Entry":
        """With the hash of everything else in it."""
        return replace(self, hash=self.digest())

    def digest(self) -> str:
        """The hash of everything else in it."""
        parts = [self.seq, self.kind, self.dataset, self.charge_id, *self.charge, self.body, self.prev]
        return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()

    @property
    def contents(self) -> Json:
        """The body, read."""
        body: Json = json.loads(self.body)
        return body


def canonical(body: Mapping[str, object]) -> str:
    """One text for one meaning: sorted, without spaces, floats exact, no NaN."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Verified:
    """A ledger that holds together: how many entries and data sets it has, and the hash of the last entry.

    ``whole`` says of a certificate whether all of it was compared, and is None without one. An entry of a charge
    by hand holds the releases, the budget and the unit alone.
    """

    entries: int
    datasets: int
    head: str
    whole: bool | None = None


def verified(entries: Sequence[Entry], accounts: Iterable[Account], *, prices: bool) -> Verified:
    """Replay the entries, compare with the accounts as they stand; LedgerError names the first thing that is wrong."""
    head = _chained(entries)
    replayed = _replayed(entries, _Prices() if prices else None)
    stated = {account.name: account for account in accounts}
    for name in replayed.keys() | stated.keys():
        if replayed.get(name) != stated.get(name):
            raise LedgerError(f"the account of {name!r} is not what its entries come to: restore the ledger")
    return Verified(len(entries), len(replayed), head)


def _chained(entries: Sequence[Entry]) -> str:
    head = GENESIS
    for number, entry in enumerate(entries, start=1):
        if entry.seq != number or entry.prev != head or entry.digest() != entry.hash:
            raise LedgerError(
                f"the chain is broken at entry {number}: it, or one before, was changed, removed or inserted"
            )
        head = entry.hash
    return head


def _replayed(entries: Iterable[Entry], prices: "_Prices | None") -> dict[str, Account]:
    """The accounts that the entries make; an entry that no ledger would have written is an error."""
    accounts: dict[str, Account] = {}
    for entry in entries:
        try:
            _apply(entry, accounts, prices)
        except (DiscreetError, LookupError, TypeError, ValueError, AttributeError):
            raise LedgerError(f"entry {entry.seq} is not one that a ledger writes: do not rely on it") from None
    return accounts


def _apply(entry: Entry, accounts: dict[str, Account], prices: "_Prices | None") -> None:
    name = entry.dataset
    body = {} if entry.kind == "charge" and prices is None else entry.contents
    if entry.kind == "part":
        accounts[name] = accounts[body["of"]].part(name)
    elif entry.kind == "grant" and name not in accounts:
        opened = Account.opened(name, body["epsilon"], body["delta"], body["neighbors"], body["unit"])
        accounts[name] = _as_granted(opened, body)
    elif entry.kind == "grant":
        for account in _moved(accounts, name):
            accounts[account.name] = _as_granted(account.granted(body["epsilon"]), body)
    elif entry.kind == "charge":
        if prices is not None and not prices.covered(entry.charge, accounts[name], body):
            raise LedgerError("less was charged than the events cost")
        for account in _moved(accounts, name):
            accounts[account.name] = account.charged(entry.charge)
            if not accounts[account.name].is_within:
                raise LedgerError("a charge over the cap")
    else:
        raise LedgerError("an unknown kind")


def _as_granted(account: Account, body: Json) -> Account:
    """With the caps that were granted: those worked out today, but for rounding, which differs between machines."""
    caps, orders = Amounts(*body["caps"]), tuple(body["orders"])
    agrees = orders == account.orders and all(_close(*pair) for pair in zip(caps, account.caps, strict=True))
    if not agrees:
        raise LedgerError("other caps than follow from epsilon and delta")
    return replace(account, caps=caps)


def _close(stored: int, computed: int) -> bool:
    return stored <= computed * (1 + 1e-9) + 2 and computed <= stored * (1 + 1e-9) + 2


def _moved(accounts: dict[str, Account], name: str) -> list[Account]:
    return [account for account in accounts.values() if name in (account.name, account.parent)]


class _Prices:
    """What events cost today; equal ones are priced once."""

    def __init__(self) -> None:
        self._found: dict[Any, Amounts] = {}

    def covered(self, charge: Amounts, account: Account, body: Json) -> bool:
        """Whether a charge is what its events cost, but for rounding, which differs between machines."""
        key = (repr(body["events"]), repr(body["budget"]), account.orders, account.delta)
        if key not in self._found:
            events = [event_from_dict(event) for event in body["events"]]
            budget = Budget(**body["budget"])
            generous = replace(budget, epsilon=budget.epsilon * (1 + 1e-6))  # for rounding, as below
            self._found[key] = account.charge(price_plan(events, generous))
        pairs = zip(charge, self._found[key], strict=True)
        return all(stored >= computed * (1 - 1e-6) - 2 for stored, computed in pairs)


def check_certificate(
    certificate: Certificate, name: str, entries: Sequence[Entry], accounts: Iterable[Account]
) -> bool:
    """Whether all of a certificate is what was charged; LedgerError where anything on it is something else.

    The entry's hash covers its body. The body holds the digests of the certificates that the charge may lead to
    (``Certificate.public_digest``): one for a fit or a score, one per candidate for a selection.
    """
    stated = certificate.ledger
    if stated is None:
        raise LedgerError("the certificate names no ledger: its fit was charged nowhere")
    if stated["ledger"] != name:
        raise LedgerError("the certificate names another ledger: verify it there")
    number = stated["entry"]
    entry = entries[number - 1] if isinstance(number, int) and 0 < number <= len(entries) else None
    is_charge = entry is not None and entry.kind == "charge" and entry.dataset == stated["dataset"]
    if entry is None or not is_charge or entry.hash != stated["head"]:
        raise LedgerError(
            "the certificate's charge is not in this ledger: it was rolled back to an older copy, or the certificate "
            "was changed"
        )
    body, account = entry.contents, next(candidate for candidate in accounts if candidate.name == entry.dataset)
    if body["events"] != [event.to_dict() for event in certificate.events]:
        raise LedgerError("the certificate lists other releases than were charged: do not rely on it")
    charged = {**body["budget"], "unit": account.unit}
    for field, value in charged.items():
        if getattr(certificate, field) != value:
            raise LedgerError(f"the certificate states another {field} than was charged: do not rely on it")
    if "certificates" not in body:
        return False
    if certificate.public_digest() not in body["certificates"]:
        raise LedgerError("the certificate is not the one that was charged for: it was changed, do not rely on it")
    return True
