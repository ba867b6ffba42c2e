"""What every answer of a curator shares: the open session, and the certificate."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.certificate import Certificate
from discreet.accounting.priced_plan import PricedPlan
from discreet.bounds import Domain
from discreet.curator.claims import Claim, issued, promise
from discreet.curator.engines.base import Engine
from discreet.curator.session import Session
from discreet.ledger.reservation import Reservation


class Wall:
    """Public facts outside, the session inside."""

    def __init__(
        self,
        engine: Engine,
        domain: Domain,
        loss: Any,
        *,
        priced: PricedPlan,
        facts: dict[str, Any],
        reservation: Reservation | None = None,
    ) -> None:
        self.reservation = reservation
        self.domain, self.loss, self.priced = domain, loss, priced
        self.plan, self.budget, self.noise_multiplier = priced.plan, priced.budget, priced.noise_multiplier
        self._session = Session(engine, domain, self.plan, self.budget, self.noise_multiplier)
        self._facts = facts

    def public_coins(self, sides: int, count: int) -> NDArray[np.int64]:
        """``count`` uniform numbers below ``sides`` that depend on no record: for random schedules. Free.

        Privacy
        -------
        Nothing of the data is in them.
        """
        words = self._session.entropy.words(count)
        if sides & (sides - 1) == 0:
            return (words >> np.uint64(65 - sides.bit_length())).astype(np.int64)
        return ((words >> np.uint64(11)).astype(np.float64) * (2.0**-53 * sides)).astype(np.int64)

    def next_round(self) -> None:
        """Begin the next round of an adaptive plan's budget trace. Free."""
        if self._session.filter is not None:
            self._session.filter.round += 1

    def certificate(self, *, model: str, solver: dict[str, Any], notes: tuple[str, ...] = ()) -> Certificate:
        """What may be claimed of anything computed from this curator's answers."""
        return self.issued(promise(self.priced, self._facts, Claim(model, solver, notes)), self.reservation)

    def issued(self, promised: Certificate, reservation: Reservation | None) -> Certificate:
        """Return what was promised, with what only this curator tells: its noise's source, and who looked on."""
        return issued(promised, reservation, self._session)
