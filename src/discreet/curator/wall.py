"""What every answer of a curator shares: the open session, and the certificate."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import __version__
from discreet.accounting.certificate import Certificate
from discreet.accounting.plan import Plan
from discreet.accounting.pricing import epsilon_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator.engines.base import Engine
from discreet.curator.lattice.entropy import current_entropy
from discreet.curator.observer import current_observer
from discreet.curator.session import Session, doubts, idealized
from discreet.ledger.reservation import Reservation


class Wall:
    """Public facts outside, the session inside."""

    def __init__(
        self,
        engine: Engine,
        domain: Domain,
        loss: Any,
        *,
        plan: Plan,
        budget: Budget,
        noise_multiplier: float,
        facts: dict[str, Any],
        reservation: Reservation | None = None,
    ) -> None:
        self.reservation = reservation
        self.domain, self.loss, self.plan, self.budget = domain, loss, plan, budget
        self.noise_multiplier = noise_multiplier
        self._session = Session(engine, domain, plan, budget, noise_multiplier)
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
        claim = promise(
            self.plan, self.budget, self.noise_multiplier, self._facts, model=model, solver=solver, notes=notes
        )
        return replace(
            claim,
            entropy=self._session.entropy.name,
            created=date.today().isoformat(),
            not_private=tuple(self._session.reasons()),
            trace=() if self._session.filter is None else self._session.filter.trace,
            ledger=None if self.reservation is None else self.reservation.reference,
        )


def promise(
    plan: Plan,
    budget: Budget,
    noise_multiplier: float,
    facts: Mapping[str, Any],
    *,
    model: str,
    solver: Mapping[str, Any],
    notes: tuple[str, ...] = (),
) -> Certificate:
    """The certificate of a plan as far as it is known before records are read: what a ledger is told to expect."""
    events = plan.events(noise_multiplier, pure=budget.is_pure)
    reasons, entropy = idealized(plan, budget), current_entropy()
    return Certificate(
        epsilon=budget.epsilon,
        delta=budget.delta,
        neighbors=budget.neighbors,
        events=events,
        unit=facts["unit"],
        model=model,
        solver=solver,
        accountants=epsilon_of(events, budget.delta, budget.neighbors).accountants,
        assumed_public={key: value for key, value in facts.items() if key != "unit" and value is not None},
        noise_multiplier=noise_multiplier,
        arithmetic="idealized" if reasons else "exact lattice",
        entropy=entropy.name,
        library_version=__version__,
        notes=(*notes, *reasons),
        not_private=doubts(entropy, observed=current_observer() is not None),
    )
