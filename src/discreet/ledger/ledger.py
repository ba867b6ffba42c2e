"""``Ledger``: caps are granted, fits are charged before they touch a record, and nothing is ever forgotten."""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import to_dict
from discreet.accounting.priced_plan import PricedPlan, require_priced
from discreet.budget import Budget, Neighbors
from discreet.errors import BudgetExceeded, LedgerError, Unsupported
from discreet.ledger import charges, recognition, rows
from discreet.ledger.account import Account, Spent
from discreet.ledger.chain import Entry
from discreet.ledger.fingerprint import Fingerprint
from discreet.ledger.names import name_of
from discreet.ledger.reservation import Reservation
from discreet.ledger.statements import Statements
from discreet.ledger.store import MEMORY, Connection, OverCap, is_path, store_for


class Ledger(Statements):
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

        Parameters
        ----------
        address : str or Path
            As in the constructor.

        Returns
        -------
        Ledger
            The ledger.

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

    def __deepcopy__(self, memo: Any) -> "Ledger":
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
        """Register a data set with a cap on all that is ever released of it; or change the cap's epsilon.

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

        Returns
        -------
        Account
            The state of the account.

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
            found = rows.account(at, dataset)
            if found is None:
                new = Account.opened(dataset, epsilon, delta or 0.0, neighbors or "replace_one", unit or "record")
                self._append(at, "grant", dataset, _cap(new))
                rows.add(at, new)
                return new
            if found.parent is not None:
                raise LedgerError("a part has the cap of the whole: grant to the whole")
            if (
                Budget(1.0, 0.0, neighbors or found.neighbors).neighbors is not found.neighbors  # type: ignore[arg-type]
                or (unit or found.unit) != found.unit
                or (found.delta if delta is None else delta) != found.delta
            ):
                raise LedgerError("delta, the relation and the unit of a data set cannot be changed: only epsilon can")
            changed = [one.granted(epsilon) for one in rows.family(at, dataset)]
            if not all(one.is_within for one in changed):
                raise LedgerError("more than this cap is spent already: a cap cannot be lowered below that")
            self._append(at, "grant", dataset, _cap(changed[0]))
            rows.set_caps(at, changed)
            return next(one for one in changed if one.name == dataset)

    def divide(self, dataset: str, parts: Sequence[str]) -> list[Account]:
        """Declare disjoint parts of a data set, each with an account: what is spent on one costs the others nothing.

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

        Returns
        -------
        list of Account
            Their accounts.

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
            if len(rows.family(at, whole.name)) > 1:
                raise LedgerError("the data set is divided already: people in parts of both would have two caps")
            made = []
            for name in map(name_of, parts):
                if rows.account(at, name) is not None:
                    raise LedgerError(f"there is a data set {name!r} already: choose another name for the part")
                made.append(whole.part(name))
                self._append(at, "part", name, {"of": whole.name})
                rows.add(at, made[-1])
            return made

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
        """Charge a plan to a data set; when this returns, the charge is durable.

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

        Returns
        -------
        Reservation
            The charge.

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
        known = self._terms.get(dataset) or self._terms.setdefault(dataset, self.account(dataset))
        dataset = known.name
        if known.neighbors is not budget.neighbors or known.unit != unit:
            raise LedgerError(
                f"{dataset!r} is registered for {known.neighbors} per {known.unit}: "
                f"fit with neighbors={str(known.neighbors)!r}, and groups= for persons only"
            )
        charge = known.charge(priced)
        body: dict[str, Any] = {
            "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "neighbors": str(budget.neighbors)},
            "events": [to_dict(event) for event in events],
            "label": label,
            "about": about,
        }
        if certificates:
            body["certificates"] = sorted({one.public_digest() for one in certificates})
        try:
            with self._store.writing() as at:
                if charge_id is not None and (old := rows.entry_of_charge(at, charge_id)):
                    return self._reservation(at, old, charges.repeated(at, old, dataset, body))
                family = rows.family(at, dataset)
                if not all(one.charged(charge).is_within for one in family):
                    raise OverCap
                entry = self._append(at, "charge", dataset, body, charge_id=charge_id, charge=charge)
                return self._reservation(at, entry)
        except OverCap:
            unpriced = not charge.is_pure and (known.delta == 0 or charge.has_no_share)
            raise BudgetExceeded(_UNPRICED if unpriced else _exhausted(self.spent(dataset))) from None

    def recognize(self, dataset: str, fingerprint: Fingerprint) -> None:
        """Compare the records of a fit with those of all data sets, and note for the owner what does not fit.

        Nothing that anybody but the owner sees depends on it: a refusal would reveal the records, and so would
        another number of durable writes.
        """
        with suppress(LedgerError), self._store.writing() as at:  # a failure here alone would reveal the records
            recognition.compare(at, self._account(at, dataset), fingerprint)

    def key(self) -> bytes:
        """Return the key of the fingerprints: for whatever reads the records, and nobody else."""
        return self._store.key()

    # --- inside ------------------------------------------------------------------------------------

    @staticmethod
    def _append(at: Connection, kind: str, dataset: str, body: dict[str, Any], **more: Any) -> Entry:
        entry = Entry.after(*rows.last(at), kind, dataset, {**body, "time": _now(), "nonce": _nonce()}, **more)
        rows.append(at, entry)
        return entry

    def _reservation(self, at: Connection, entry: Entry, release: str | None = None) -> Reservation:
        cost = entry.contents["budget"]
        charge = (entry.dataset, entry.seq, entry.hash, entry.charge_id, release)
        return Reservation(self, self._name(at), *charge, epsilon=cost["epsilon"], delta=cost["delta"])

    def settle(self, charge_id: str, release: str) -> str:
        """Keep what a charge released, the first time; return what is kept (``Reservation.settle``)."""
        charge_id = name_of(charge_id)
        with self._store.writing() as at:
            charges.keep(at, charge_id, release)
            return charges.released(at, charge_id) or ""

    def abandon(self, charge_id: str) -> None:
        """Mark a charge's run as failed, unless it has released something (``Reservation.abandon``)."""
        charge_id = name_of(charge_id)
        with self._store.writing() as at:
            charges.keep(at, charge_id, None)


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


def _cap(account: Account) -> dict[str, Any]:
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
