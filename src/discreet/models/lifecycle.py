"""The life of everything that is released of private records: declare, plan, price, reserve, open, answer, certify.

A fit, a private score and a private selection share it. They differ in what they plan and in how they answer.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from numpy.linalg import LinAlgError

from discreet.accounting.certificate import Certificate
from discreet.accounting.priced_plan import PricedPlan
from discreet.curator import Claim, PrivateData, promise
from discreet.errors import Diverged
from discreet.ledger.reservation import Reservation, settled
from discreet.losses.base import Loss

Answer = TypeVar("Answer")
_DIVERGED = (
    "the steps ended in numbers that double precision does not hold: take smaller steps, or settings nearer to their "
    "defaults"
)
Certify = Callable[[Certificate, Reservation | None], Certificate]
"""Adds to what was promised what only the run tells."""


@dataclass(frozen=True)
class Priced:
    """Declared, planned and priced: a release of private records before anything is charged or read.

    ``opens`` says that the records are read by a curator of this very plan (``PrivateData.open``).
    """

    data: PrivateData
    loss: Loss
    plan: PricedPlan
    opens: bool = True

    def carry_out(
        self,
        claims: Sequence[Claim],
        answer: Callable[[Reservation | None], tuple[Answer, Claim, Certify]],
        **words: str | None,
    ) -> tuple[Answer, Certificate, Reservation | None]:
        """Reserve, answer, certify.

        Parameters
        ----------
        claims
            Those of which one will be issued as a certificate.
        answer
            Reads the records, after the charge, and returns its answer, which of the claims holds, and what adds to it
            what only the run tells.
        words
            Those of ``Ledger.reserve``: label, request, about.

        Returns
        -------
        tuple
            The answer, its certificate, and the charge; None without a ledger.

        Raises
        ------
        AlreadyReleased
            Where the same request was answered before.
        """
        self.data.check(self.plan, self.loss, opens=self.opens)
        reservation = self.data.reserve(self.plan, claims, **words)
        with settled(reservation), _arithmetic():
            answered, claim, certify = answer(reservation)
            promised = promise(self.plan, self.data.facts(self.plan), claim)
            certificate = certify(promised, reservation)
        return answered, certificate, reservation


@contextmanager
def _arithmetic() -> Iterator[None]:
    """Report in our own words that a computation on released values failed, and nothing else of it."""
    try:
        yield
    except (ArithmeticError, LinAlgError):
        raise Diverged(_DIVERGED) from None
