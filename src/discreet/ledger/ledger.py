"""``Ledger``: caps are granted, fits are charged before they touch a record, and nothing is ever forgotten.

**The default.** Which ledger is meant where none is named: the environment's, then the configuration file's.

``DISCREET_LEDGER`` is a path or a URL. The file is ``discreet/config.toml`` under ``XDG_CONFIG_HOME`` (``~/.config``),
with a line ``ledger = "..."``.

**Fingerprints** say whether two tables hold the same records, from keyed hashes of their rows that mean nothing to
others. A fingerprint depends on the multiset of rows alone, in single precision: neither on their order nor on the
container. The sketch (the smallest of the rows' hashes) tells how many rows two tables share. Both stay in the ledger:
they depend on every record, so that they appear in no certificate, no report and no message to an analyst, and nothing
that an analyst sees depends on them.
"""

import json
import os
import secrets
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any

from discreet.accounting.certificate import Certificate
from discreet.accounting.pricing import PricedPlan, require_priced
from discreet.budget import Budget, Neighbors
from discreet.errors import BudgetExceeded, LedgerError, Unsupported
from discreet.json_schemas import Json
from discreet.ledger import store
from discreet.ledger.account import Account, Spent
from discreet.ledger.chain import Entry, Verified, canonical, check_certificate, verified
from discreet.ledger.store import FORMAT, MEMORY, Connection, OverCap, is_path, name_of, store_for

SKETCH = 256
NOTICEABLE = 0.1
"""The share of a table's rows in another one from which on the owner is notified."""
_RANGE = 2**64


@dataclass(frozen=True)
class Fingerprint:
    """A digest that equal tables share, the ``SKETCH`` smallest hashes of distinct rows, and the number of rows."""

    digest: str
    sketch: tuple[int, ...]
    rows: int = 0

    def share_in(self, other: "Fingerprint") -> float:
        """About how much of this table's distinct rows the other one holds.

        Hashes are uniform, so that those below the smaller of the two sketches' ends are a fair sample of both.
        """
        if self.digest == other.digest:
            return 1.0
        if not (self.tells and other.tells):
            return 0.0
        end = min(_end(self.sketch), _end(other.sketch))
        mine = [value for value in self.sketch if value < end]
        theirs = set(other.sketch)
        return sum(value in theirs for value in mine) / len(mine) if mine else 0.0

    @property
    def tells(self) -> bool:
        """Whether rows tell records apart: of a few zeros and ones, unrelated tables hold the same rows."""
        distinct = len(self.sketch) * _RANGE / _end(self.sketch) if self.sketch else 0.0
        return distinct >= self.rows / 2

    def stores(self) -> tuple[str, str]:
        """The digest and the rest as they are stored."""
        return self.digest, json.dumps([self.rows, *self.sketch])

    @classmethod
    def stored(cls, digest: str, rest: str) -> "Fingerprint":
        """From what was stored."""
        rows, *sketch = json.loads(rest)
        return cls(digest, tuple(sketch), rows)


def _end(sketch: Sequence[int]) -> int:
    """Up to where a sketch is complete: everywhere, where the table has fewer rows than it holds."""
    return sketch[-1] + 1 if len(sketch) >= SKETCH else _RANGE


@dataclass(frozen=True)
class Notice:
    """For the owner: about ``share`` of the records charged to ``dataset`` are those of ``other``.

    ``other`` is the data set itself where few of its own records were seen: other records under its name.
    """

    dataset: str
    other: str
    share: float

    def __str__(self) -> str:
        if self.dataset == self.other:
            return (
                f"a fit charged to {self.dataset!r} saw other records than those first seen under this name "
                f"(about {self.share:.0%} the same)"
            )
        return (
            f"about {self.share:.0%} of the records of a fit charged to {self.dataset!r} are in {self.other!r} too: "
            "anyone who is in both is protected by neither cap alone"
        )


_SEEN = "INSERT INTO seen (dataset, times) VALUES (?, 1) ON CONFLICT (dataset) DO UPDATE SET times = seen.times + 1"
_KNOWN = "SELECT dataset, digest, sketch FROM known"
_NOTED = "INSERT INTO notice (dataset, other, share) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


def compare(at: Connection, account: Account, fingerprint: Fingerprint) -> None:
    """Compare records with those of all data sets, keep their fingerprint the first time, note what does not fit."""
    dataset = account.name
    at.run(_SEEN, dataset)
    parents: dict[str, str | None] = dict(at.rows("SELECT name, parent FROM account"))
    fingerprints = {name: Fingerprint.stored(*stored) for name, *stored in at.rows(_KNOWN)}
    if dataset not in fingerprints:
        at.run("INSERT INTO known (dataset, digest, sketch) VALUES (?, ?, ?)", dataset, *fingerprint.stores())
    for name, other in fingerprints.items():
        if name != account.parent and parents[name] != dataset:
            share = _share(fingerprint, other, is_own=name == dataset)
            if (share < NOTICEABLE) == (name == dataset):
                at.run(_NOTED, dataset, name, share)


def notices(at: Connection) -> list[Notice]:
    """Return what was noted, by name."""
    return [Notice(*row) for row in at.rows("SELECT dataset, other, share FROM notice ORDER BY dataset, other")]


def _share(fingerprint: Fingerprint, other: Fingerprint, *, is_own: bool) -> float:
    """How much of the records seen is in another data set, or the other way round; in its own: the first alone."""
    share = fingerprint.share_in(other)
    return share if is_own else max(share, other.share_in(fingerprint))


@dataclass(frozen=True)
class Reservation:
    """Charge that is on disk: the fit that it pays for may begin.

    Parameters
    ----------
    ledger : Ledger
        Where it was charged.
    name : str
        The ledger's name.
    dataset : str
        The data set.
    entry : int
        The number of the entry.
    head : str
        The chain's head after it.
    charge_id : str, default=None
        The name under which it may be repeated.
    release : str, default=None
        What was released under the same ``charge_id`` before: then there is nothing to run.
    epsilon, delta : float, default=0.0
        What was charged.

    Examples
    --------
    >>> from discreet import Budget, Ledger
    >>> from discreet.accounting import Plan, Release, price_plan
    >>> ledger = Ledger(":memory:")
    >>> _ = ledger.grant("census", 1.0, 1e-6)
    >>> ledger.reserve("census", price_plan(Plan([Release("noisy_count", 1)]), Budget(0.5, 1e-7))).entry
    2
    """

    ledger: "Ledger"
    name: str
    dataset: str
    entry: int
    head: str
    charge_id: str | None = None
    release: str | None = None
    epsilon: float = 0.0
    delta: float = 0.0

    @property
    def reference(self) -> Json:
        """For the certificate: the ledger, the data set, the entry, and the chain's head when it was written."""
        return {"ledger": self.name, "dataset": self.dataset, "entry": self.entry, "head": self.head}

    @property
    def note(self) -> str:
        """What was charged, in words: for errors of the run that it paid for."""
        cost = f"epsilon = {self.epsilon:g}, delta = {self.delta:g}"
        return f"{cost} was charged to {self.dataset!r} for this (entry {self.entry}), and stays charged"

    def settle(self, release: str) -> str:
        """Keep what was released under the charge's id, and return what is kept: the first one, ever.

        Publish nothing but what this returns. Without a ``charge_id`` there is nothing to keep.
        """
        return release if self.charge_id is None else self.ledger.settle(self.charge_id, release)

    def abandon(self) -> None:
        """Mark the run as failed. The charge stands, and cannot be tried again under its id."""
        if self.charge_id is not None:
            self.ledger.abandon(self.charge_id)


@contextmanager
def settled(reservation: Reservation | None) -> Iterator[None]:
    """A run that fails is never run again under the same charge: its failure was an answer.

    One that is stopped from outside has answered nothing, and may be asked for again. Whatever ends the run says what
    was charged for it.
    """
    with noted(reservation):
        try:
            yield
        except Exception:
            if reservation is not None:
                with suppress(LedgerError):  # what went wrong first is what is reported
                    reservation.abandon()
            raise


@contextmanager
def noted(reservation: Reservation | None) -> Iterator[None]:
    """Let every error that leaves the block say what was charged: public numbers, nothing of the data."""
    try:
        yield
    except BaseException as error:
        if reservation is not None and reservation.note not in getattr(error, "__notes__", ()):
            error.add_note(reservation.note)
        raise


VARIABLE = "DISCREET_LEDGER"


class Ledger:
    """Account of everything that is ever spent on data sets, across fits, processes, people and years.

    Parameters
    ----------
    address : str or Path
        A file (SQLite), ``postgresql://...``, or ``":memory:"`` for a ledger that ends with the process.
        ``Ledger.create`` makes a new one.

    Examples
    --------
    >>> from discreet import Budget, Ledger
    >>> from discreet.accounting import Plan, Release, price_plan
    >>> ledger = Ledger(":memory:")
    >>> _ = ledger.grant("census", epsilon=1.0, delta=1e-6)
    >>> for _ in range(2):
    ...     _ = ledger.reserve("census", price_plan(Plan([Release("noisy_gradient", 10)]), Budget(0.6, 1e-7)))
    >>> spent = ledger.spent("census")
    >>> round(spent.summed_epsilon, 3), round(spent.epsilon, 3)
    (1.2, 0.803)
    """

    def __init__(self, address: str | Path) -> None:
        self._address = Path(address).expanduser().absolute() if is_path(address) else address
        self._store = store_for(self._address)
        self._terms: dict[str, Account] = {}  # for what never changes: delta, relation, unit and orders
        if str(address) == MEMORY:
            self._store.create(secrets.token_hex(8), secrets.token_bytes(32))

    @classmethod
    def create(cls, address: str | Path) -> "Ledger":
        """Make a new, empty ledger; an error where there is one already.

        Examples
        --------
        >>> Ledger.create(":memory:").accounts()
        []
        """
        ledger = cls(address)
        if str(address) != MEMORY:
            ledger._store.create(secrets.token_hex(8), secrets.token_bytes(32))
        return ledger

    def __repr__(self) -> str:
        return f"Ledger({self.address!r})"

    def __copy__(self) -> "Ledger":
        return self

    def __deepcopy__(self, memo: object) -> "Ledger":
        return self  # a copy of an account would be a second budget

    def __reduce__(self) -> Any:
        """By its address, without a password: another process looks for it in PGPASSWORD and ~/.pgpass."""
        if str(self._address) == MEMORY:
            raise TypeError("a ledger in memory cannot leave its process: use a ledger file for parallel work")
        if self._store.open_address is None:
            raise TypeError("this ledger's URL may hold a password: write it as postgresql://user@host/database")
        return type(self), (self._store.open_address,)

    # --- the owner ---------------------------------------------------------------------------------

    def grant(
        self,
        dataset: str,
        epsilon: float,
        delta: float | None = None,
        *,
        neighbors: Neighbors | str | None = None,
        unit: str | None = None,
    ) -> Account:
        """Register a data set with a cap on all that is ever released, or change its epsilon; return the account.

        Parameters
        ----------
        dataset : str
            The name under which fits are charged.
        epsilon : float
            The cap. The guarantee is the largest cap that you would ever grant: a cap that is raised because of what
            was released was never a cap.
        delta : float, default=None
            Of the cap. Without a delta only pure budgets are admitted. It cannot be changed.
        neighbors : str, default=None
            The relation of the guarantee: ``"replace_one"`` by default. It cannot be changed.
        unit : {"record", "person"}, default=None
            Whom it protects: ``"record"`` by default. It cannot be changed.

        Raises
        ------
        LedgerError
            If something but epsilon would change, or more than the new cap is spent already.

        Examples
        --------
        >>> ledger.grant("census", epsilon=2.0).epsilon
        2.0
        """
        with self._store.writing() as at:
            dataset = name_of(dataset)
            before = store.account(at, dataset)
            if before is None:
                new = Account.opened(dataset, epsilon, delta or 0.0, neighbors or "replace_one", unit or "record")
                self._append(at, "grant", dataset, _cap(new))
                store.add(at, new)
                return new
            if before.parent is not None:
                raise LedgerError("a part has the cap of the whole: grant to the whole")
            if (
                Budget(1.0, 0.0, neighbors or before.neighbors).neighbors is not before.neighbors  # type: ignore[arg-type]
                or (unit or before.unit) != before.unit
                or (before.delta if delta is None else delta) != before.delta
            ):
                raise LedgerError("delta, the relation and the unit of a data set cannot be changed: only epsilon can")
            changed = [account.granted(epsilon) for account in store.family(at, dataset)]
            if not all(account.is_within for account in changed):
                raise LedgerError("more than this cap is spent already: a cap cannot be lowered below that")
            self._append(at, "grant", dataset, _cap(changed[0]))
            store.set_caps(at, changed)
            return next(account for account in changed if account.name == dataset)

    def divide(self, dataset: str, parts: Sequence[str]) -> list[Account]:
        """Return accounts of disjoint parts of a data set: what is spent on one costs the others nothing.

        Anyone who is in one part is in no other, so that only charges to that part and to the whole concern them
        (parallel composition). It is the owner's declaration. It holds where the part follows from who somebody is;
        where it follows from a value in the record, exchanging the record may move it, so that ``replace_one`` and
        ``zero_out`` would have to count two parts: divide such data under ``add_remove`` only.

        Parameters
        ----------
        dataset : str
            The whole.
        parts : sequence of str
            Names of the parts.

        Raises
        ------
        LedgerError
            If the data set is a part, or divided already.
        Unsupported
            If ``parts`` is no list.

        Examples
        --------
        >>> [part.parent for part in ledger.divide("census", ["north", "south"])]
        ['census', 'census']
        """
        if isinstance(parts, str):
            raise Unsupported("parts are a list of names, such as ['north', 'south']")
        with self._store.writing() as at:
            whole = self._account(at, dataset)
            if whole.parent is not None:
                raise LedgerError("a part cannot be divided: declare finer parts of the whole")
            if len(store.family(at, whole.name)) > 1:
                raise LedgerError("the data set is divided already: people in parts of both would have two caps")
            accounts = []
            for name in map(name_of, parts):
                if store.account(at, name) is not None:
                    raise LedgerError(f"there is a data set {name!r} already: choose another name for the part")
                accounts.append(whole.part(name))
                self._append(at, "part", name, {"of": whole.name})
                store.add(at, accounts[-1])
            return accounts

    def bind(self) -> None:
        """Take the place where the ledger's file is now for its own: after it was moved, copied or restored.

        Two copies in use are two budgets for the same people: bind one only when no other is in use any more.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Ledger.create(f"{folder}/budget.db").bind()
        """
        self._store.bind()

    # --- fits --------------------------------------------------------------------------------------

    def reserve(
        self,
        dataset: str,
        priced: PricedPlan,
        charge_id: str | None = None,
        *,
        unit: str = "record",
        label: str = "",
        about: str = "",
        certificates: Sequence[Certificate] = (),
    ) -> Reservation:
        """Charge a plan to a data set, and return the charge, which is durable then.

        Parameters
        ----------
        dataset : str
            Its registered name.
        priced : PricedPlan
            What will be released, and at what price: ``price_plan(plan, budget)``. The charge follows from its events.
        charge_id : str, default=None
            A name for this charge. Asked again under the same name, the same thing is charged once, and released
            once (``Reservation.settle``).
        unit : {"record", "person"}, default="record"
            Whom the fit protects. It must be the data set's.
        label : str, default=""
            What the charge is for, for the history.
        about : str, default=""
            What else must be the same for a charge to be the same, such as a digest of public settings.
        certificates : sequence of Certificate, default=()
            The certificates of which one will be issued, as far as they are known before records are read. Their
            digests are chained with the charge, so that ``verify`` finds a certificate that was changed.

        Raises
        ------
        BudgetExceeded
            If the cap does not allow it. Nothing is charged then.
        LedgerError
            If the data set is unknown, or registered for another relation or unit.

        Examples
        --------
        >>> priced = price_plan(Plan([Release("noisy_count", 1)]), Budget(0.1, 1e-8))
        >>> ledger.reserve("census", priced).dataset
        'census'
        """
        if charge_id is not None:
            charge_id = name_of(charge_id)
        events, budget = require_priced(priced).events, priced.budget
        terms = self._terms.get(dataset) or self._terms.setdefault(dataset, self.account(dataset))
        dataset = terms.name
        if terms.neighbors is not budget.neighbors or terms.unit != unit:
            raise LedgerError(
                f"{dataset!r} is registered for {terms.neighbors} per {terms.unit}: "
                f"fit with neighbors={str(terms.neighbors)!r}, and groups= for persons only"
            )
        charge = terms.charge(priced)
        body: Json = {
            "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "neighbors": str(budget.neighbors)},
            "events": [event.to_dict() for event in events],
            "label": label,
            "about": about,
        }
        if certificates:
            body["certificates"] = sorted({member.public_digest() for member in certificates})
        try:
            with self._store.writing() as at:
                if charge_id is not None and (old := store.entry_of_charge(at, charge_id)):
                    return self._reservation(at, old, _repeated(at, old, dataset, body))
                family = store.family(at, dataset)
                if not all(member.charged(charge).is_within for member in family):
                    raise OverCap
                entry = self._append(at, "charge", dataset, body, charge_id=charge_id, charge=charge)
                return self._reservation(at, entry)
        except OverCap:
            unpriced = not charge.is_pure and (terms.delta == 0 or charge.has_no_share)
            raise BudgetExceeded(_UNPRICED if unpriced else _exhausted(self.spent(dataset))) from None

    def recognize(self, dataset: str, fingerprint: Fingerprint) -> None:
        """Compare the records of a fit with those of all data sets, and note for the owner what does not fit.

        Nothing that anybody but the owner sees depends on it: a refusal would reveal the records, and so would
        another number of durable writes.
        """
        with suppress(LedgerError), self._store.writing() as at:  # a failure here alone would reveal the records
            compare(at, self._account(at, dataset), fingerprint)

    def key(self) -> bytes:
        """Return the key of the fingerprints: for whatever reads the records, and nobody else."""
        return self._store.key()

    # --- what may be read ---------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where the ledger is, without a password."""
        return self._store.address

    @property
    def name(self) -> str:
        """Name that the ledger was given when it was made, which certificates state."""
        with self._store.reading() as at:
            return self._name(at)

    def account(self, dataset: str) -> Account:
        """Return the state of one data set's account.

        Examples
        --------
        >>> ledger.account("census").charges
        2
        """
        with self._store.reading() as at:
            return self._account(at, dataset)

    def accounts(self) -> list[Account]:
        """Return all accounts, by name.

        Examples
        --------
        >>> [one.name for one in Ledger(":memory:").accounts()]
        []
        """
        with self._store.reading() as at:
            return store.accounts(at)

    def spent(self, dataset: str) -> Spent:
        """Return what was spent on a data set and what is left: for a whole, in its fullest part.

        Examples
        --------
        >>> ledger.spent("census").fits
        2
        """
        with self._store.reading() as at:
            statement = self._account(at, dataset).statement()
            family = [member.statement() for member in store.family(at, statement.dataset)]
        least = min(family, key=lambda member: member.left)
        return replace(
            statement, left=least.left, left_delta=least.left_delta, share=max(member.share for member in family)
        )

    def entries(self, dataset: str | None = None, limit: int | None = None) -> list[Entry]:
        """Return the entries in order.

        Parameters
        ----------
        dataset : str, default=None
            Of one data set alone.
        limit : int, default=None
            The last so many.

        Raises
        ------
        Unsupported
            If the limit is negative.

        Examples
        --------
        >>> [entry.kind for entry in ledger.entries("census", limit=2)]
        ['charge', 'charge']
        """
        if limit is not None and limit < 0:
            raise Unsupported("limit is how many entries to show: 0 or more")
        with self._store.reading() as at:
            return store.entries(at, None if dataset is None else name_of(dataset), limit)

    def verify(self, certificate: Certificate | None = None, *, prices: bool = False) -> Verified:
        """Work the whole ledger out again from its entries.

        With a certificate: is its charge in this ledger, and is it the certificate that was charged for? Everything on
        it is compared that was known before records were read; ``Verified.whole`` is false where a charge was made by
        hand, without its certificate. A ledger that was rolled back to an older copy is whole in itself, and only the
        certificates issued since then can tell.

        Parameters
        ----------
        certificate : Certificate, default=None
            One to look for.
        prices : bool, default=False
            Recompute what every charge's events cost, too, which takes longer.

        Returns
        -------
        Verified
            What was counted. A LedgerError names the first thing that is wrong.

        Examples
        --------
        >>> ledger.verify().entries > 0
        True
        """
        with self._store.reading() as at:
            name, entries, accounts = self._name(at), store.entries(at), store.accounts(at)
        summary = verified(entries, accounts, prices=prices)
        if certificate is None:
            return summary
        return replace(summary, whole=check_certificate(certificate, name, entries, accounts))

    def notices(self) -> list[Notice]:
        """Return, for the owner's eyes, which data sets' records were seen under another name.

        Examples
        --------
        >>> ledger.notices()
        []
        """
        with self._store.reading() as at:
            return notices(at)

    # --- inside a transaction -----------------------------------------------------------------------

    @staticmethod
    def _name(at: Connection) -> str:
        version, name = at.rows("SELECT format, name FROM ledger")[0]
        if version != FORMAT:
            raise LedgerError(f"the ledger has another format than {FORMAT}: use the version of discreet that made it")
        return str(name)

    @staticmethod
    def _account(at: Connection, dataset: str) -> Account:
        account = store.account(at, name_of(dataset))
        if account is None:
            raise LedgerError(
                f"the ledger has no data set {dataset!r}: its owner registers it with `discreet budget grant`"
            )
        return account

    # --- inside ------------------------------------------------------------------------------------

    @staticmethod
    def _append(at: Connection, kind: str, dataset: str, body: Json, **more: Any) -> Entry:
        entry = Entry.after(*store.last(at), kind, dataset, {**body, "time": _now(), "nonce": _nonce()}, **more)
        store.append(at, entry)
        return entry

    def _reservation(self, at: Connection, entry: Entry, release: str | None = None) -> Reservation:
        cost = entry.contents["budget"]
        charge = (entry.dataset, entry.seq, entry.hash, entry.charge_id, release)
        return Reservation(self, self._name(at), *charge, epsilon=cost["epsilon"], delta=cost["delta"])

    def settle(self, charge_id: str, release: str) -> str:
        """Keep what a charge released, the first time; return what is kept (``Reservation.settle``)."""
        charge_id = name_of(charge_id)
        with self._store.writing() as at:
            _keep_release(at, charge_id, release)
            return _released(at, charge_id) or ""

    def abandon(self, charge_id: str) -> None:
        """Mark a charge's run as failed, unless it has released something (``Reservation.abandon``)."""
        charge_id = name_of(charge_id)
        with self._store.writing() as at:
            _keep_release(at, charge_id, None)


_KEEP = (
    "INSERT INTO release (charge_id, body) SELECT CAST(? AS TEXT), CAST(? AS TEXT) "
    "WHERE NOT EXISTS (SELECT 1 FROM release WHERE charge_id = ?)"
)
_ASKED = ("budget", "events", "label", "about")
"""What makes two charges the same."""
_UNPRICED = (
    "this fit has no price in the data set's account: fit with delta=0 (a pure budget) where the cap has no delta, and "
    "without an approximate sampler next to other fits. Nothing was charged, no record was read"
)


def _exhausted(spent: Spent) -> str:
    return (
        f"the budget of {spent.dataset!r} does not allow this fit: of its cap (epsilon {spent.cap_epsilon:g}, "
        f"delta {spent.cap_delta:g}) about epsilon {spent.left:.3g} at delta {spent.left_delta:.3g} is left for one "
        "more. Ask for less, or ask the data's owner for a grant (`discreet budget grant`). Nothing was charged, no "
        "record was read"
    )


def _cap(account: Account) -> Json:
    return {
        "epsilon": account.epsilon,
        "delta": account.delta,
        "orders": list(account.orders),
        "caps": list(account.caps),
        "neighbors": str(account.neighbors),
        "unit": account.unit,
    }


def _now() -> str:
    """For people: nothing depends on the clock."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _nonce() -> str:
    """So that no two entries ever have the same hash, not even in two copies of one ledger that go on by themselves."""
    return secrets.token_hex(16)


def _keep_release(at: Connection, charge_id: str, release: str | None) -> None:
    """Keep what a charge released, the first time; None: its run failed."""
    at.run(_KEEP, charge_id, release, charge_id)


def _released(at: Connection, charge_id: str | None) -> str | None:
    """Return what a charge released; an error where its run failed."""
    releases = at.rows("SELECT body FROM release WHERE charge_id = ?", charge_id)
    if releases and releases[0][0] is None:
        raise LedgerError(
            "the run under this charge_id failed after it was charged: ask again under another id, at another charge"
        )
    return releases[0][0] if releases else None


def _repeated(at: Connection, old: Entry, dataset: str, body: Json) -> str | None:
    """Return what the same charge released before; None: it may run under the charge that stands."""
    request, before = ({name: stored.get(name) for name in _ASKED} for stored in (body, old.contents))
    if old.dataset != dataset or canonical(before) != canonical(request):
        raise LedgerError("this charge_id was used before, for something else: give each charge an id of its own")
    release, promised = _released(at, old.charge_id), old.contents.get("certificates")
    if release is None and promised not in (None, body.get("certificates")):
        raise LedgerError(
            "this charge was made and not answered, and its certificate would say something else now: was it "
            "made by another version of discreet? Ask again under another name, at another charge"
        )
    return release


# --- the ledger that is meant where none is named ---------------------------------------------------


def config_file() -> Path:
    """Where the configuration file is, whether it exists or not."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "discreet" / "config.toml"


def default_address() -> str | None:
    """The ledger that is used where none is named; None where none is configured."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    path = config_file()
    try:
        configuration = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise LedgerError("the configuration file discreet/config.toml cannot be read as TOML: correct it") from None
    ledger = configuration.get("ledger")
    if ledger is not None and not isinstance(ledger, str):
        raise LedgerError('in the configuration file, ledger must be a text: ledger = "/path/to/budget.db"')
    return ledger or None


def account_of(ledger: Ledger | str | Path | bool | None, dataset: str | None) -> Ledger | None:
    """The ledger that a data set's fits are charged to; an error where only one of the two is named."""
    charged = ledger_for(ledger)
    if charged is not None and dataset is None:
        raise LedgerError(
            "a ledger is configured, so name the data set: pass dataset='...' as its owner registered it, or "
            "ledger=False where the records are public"
        )
    if charged is None and dataset is not None and ledger is not False:
        raise LedgerError("the data set is named, but no ledger: pass ledger='budget.db', or set DISCREET_LEDGER")
    return charged


def storable(ledger: object) -> Any:
    """What an estimator may keep of the ledger that it was given: an address that shows no secret.

    A path stays as it is. A URL that holds a password becomes a ``Ledger``, which neither shows nor pickles it. What is
    no address is refused at once: nobody knows what is in it.
    """
    if not isinstance(ledger, (str, Path)) or is_path(ledger) or ledger == MEMORY:
        return ledger
    return ledger if store_for(ledger).open_address == str(ledger) else Ledger(ledger)


def ledger_for(named: Ledger | str | Path | bool | None) -> Ledger | None:
    """The ledger that is meant: itself, by its address, the configured one for None; None for False."""
    if named is False:
        return None
    if named is None:
        named = default_address()
    if not isinstance(named, (str, Path, Ledger, NoneType)):
        raise LedgerError("ledger is a path, a URL or a Ledger; False for public data")
    return named if named is None or isinstance(named, Ledger) else Ledger(named)
