"""A charge that is on disk, and what its run released."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.errors import LedgerError
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


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
