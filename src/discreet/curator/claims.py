"""From a priced plan to its certificate: what is promised before records are read, and what is issued afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from discreet.accounting.certificate import Certificate
from discreet.accounting.priced_plan import PricedPlan
from discreet.curator.lattice.entropy import current_entropy
from discreet.curator.observer import current_observer
from discreet.curator.session import doubts, idealized

if TYPE_CHECKING:
    from discreet.curator.session import Session
    from discreet.ledger.reservation import Reservation


@dataclass(frozen=True)
class Claim:
    """What a certificate says of its release, in addition to the price.

    Parameters
    ----------
    model, solver, notes
        As in ``Certificate``.
    facts
        The declared facts, where they are not those of the records that are opened.
    noise_multiplier, idealized
        Those of what is inside a selection; None: those of the priced plan.
    """

    model: str
    solver: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] | None = None
    noise_multiplier: float | None = None
    idealized: tuple[str, ...] | None = None


def promise(priced: PricedPlan, facts: Mapping[str, Any], claim: Claim) -> Certificate:
    """Return the certificate as far as it is known before records are read: what a ledger is to expect."""
    entropy, reasons = current_entropy(), claim.idealized
    return Certificate.of(
        priced,
        facts if claim.facts is None else claim.facts,
        model=claim.model,
        solver=claim.solver,
        notes=claim.notes,
        idealized=idealized(priced.plan, priced.budget) if reasons is None else reasons,
        noise_multiplier=claim.noise_multiplier,
        entropy=entropy.name,
        not_private=doubts(entropy, observed=current_observer() is not None),
    )


def issued(promised: Certificate, reservation: "Reservation | None", session: "Session | None" = None) -> Certificate:
    """Return what was promised with what only the run tells: where its noise came from, who looked, its charge."""
    known: dict[str, Any] = {}
    if session is not None:
        trace = () if session.filter is None else session.filter.trace
        known = {"entropy": session.entropy.name, "not_private": tuple(session.reasons()), "trace": trace}
    reference = None if reservation is None else reservation.reference
    return replace(promised, created=date.today().isoformat(), ledger=reference, **known)
