"""What may be read of a ledger: accounts, what was spent, entries, and whether they are whole."""

from dataclasses import replace

from discreet.accounting.certificate import Certificate
from discreet.errors import LedgerError, Unsupported
from discreet.ledger import recognition, rows
from discreet.ledger.account import Account, Spent
from discreet.ledger.chain import Entry
from discreet.ledger.fingerprint import Notice
from discreet.ledger.names import name_of
from discreet.ledger.store import FORMAT, Connection, Store
from discreet.ledger.verification import Verified, check_certificate, verified


class Statements:
    """Half of ``Ledger`` that changes nothing."""

    _store: Store

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

        Parameters
        ----------
        dataset : str
            Its registered name.

        Returns
        -------
        Account
            Its cap, and what was spent of it.

        Examples
        --------
        >>> ledger.account("census").charges
        2
        """
        with self._store.reading() as at:
            return self._account(at, dataset)

    def accounts(self) -> list[Account]:
        """Return all accounts, by name.

        Returns
        -------
        list of Account
            The accounts.

        Examples
        --------
        >>> [one.name for one in Ledger(":memory:").accounts()]
        []
        """
        with self._store.reading() as at:
            return rows.accounts(at)

    def spent(self, dataset: str) -> Spent:
        """Return what was spent on a data set and what is left: for a whole, in its fullest part.

        Parameters
        ----------
        dataset : str
            Its registered name.

        Returns
        -------
        Spent
            Both sums, and what is left.

        Examples
        --------
        >>> ledger.spent("census").fits
        2
        """
        with self._store.reading() as at:
            own = self._account(at, dataset).statement()
            family = [one.statement() for one in rows.family(at, own.dataset)]
        least = min(family, key=lambda one: one.left)
        return replace(own, left=least.left, left_delta=least.left_delta, share=max(one.share for one in family))

    def entries(self, dataset: str | None = None, limit: int | None = None) -> list[Entry]:
        """Return the entries in order.

        Parameters
        ----------
        dataset : str, default=None
            Of one data set alone.
        limit : int, default=None
            The last so many.

        Returns
        -------
        list of Entry
            Grants, parts and charges.

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
            return rows.entries(at, None if dataset is None else name_of(dataset), limit)

    def verify(self, certificate: Certificate | None = None, *, prices: bool = False) -> Verified:
        """Work the whole ledger out again from its entries.

        With a certificate: is its charge in this ledger, and is it the certificate that was charged for? Everything on
        it is compared that was known before records were read; ``Verified.whole`` is false where an older entry does
        not say all of it. A ledger that was rolled back to an older copy is whole in itself, and only the certificates
        issued since then can tell.

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
            name, entries, accounts = self._name(at), rows.entries(at), rows.accounts(at)
        found = verified(entries, accounts, prices=prices)
        if certificate is None:
            return found
        return replace(found, whole=check_certificate(certificate, name, entries, accounts))

    def notices(self) -> list[Notice]:
        """Return, for the owner's eyes, which data sets' records were seen under another name.

        Returns
        -------
        list of Notice
            The data set, the other, and the share of records in both.

        Examples
        --------
        >>> ledger.notices()
        []
        """
        with self._store.reading() as at:
            return recognition.notices(at)

    # --- inside a transaction -----------------------------------------------------------------------

    @staticmethod
    def _name(at: Connection) -> str:
        stored, name = at.rows("SELECT format, name FROM ledger")[0]
        if stored != FORMAT:
            raise LedgerError(f"the ledger has another format than {FORMAT}: use the version of discreet that made it")
        return str(name)

    @staticmethod
    def _account(at: Connection, dataset: str) -> Account:
        found = rows.account(at, name_of(dataset))
        if found is None:
            raise LedgerError(
                f"the ledger has no data set {dataset!r}: its owner registers it with `discreet budget grant`"
            )
        return found
