"""From a priced plan to its certificate: what is promised before records are read, and what is issued afterwards."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.certificate import Certificate
from discreet.accounting.coverage import GIVEN
from discreet.accounting.priced_plan import PricedPlan
from discreet.bounds import Domain, Moments
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
    given
        Numbers that the user handed in, in addition to those among the solver's settings: see ``given_with``.
    noise_multiplier, idealized
        Those of what is inside a selection; None: those of the priced plan.
    """

    model: str
    solver: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] | None = None
    noise_multiplier: float | None = None
    idealized: tuple[str, ...] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


def promise(priced: PricedPlan, facts: Mapping[str, Any], claim: Claim) -> Certificate:
    """Return the certificate as far as it is known before records are read: what a ledger is to expect."""
    entropy, reasons = current_entropy(), claim.idealized
    given = {**claim.given, **dict(_vectors(claim.solver))}
    return Certificate.of(
        priced,
        {**(facts if claim.facts is None else claim.facts), **({GIVEN: given} if given else {})},
        model=claim.model,
        solver=claim.solver,
        notes=claim.notes,
        idealized=idealized(priced.plan, priced.budget) if reasons is None else reasons,
        noise_multiplier=claim.noise_multiplier,
        entropy=entropy.name,
        not_private=doubts(entropy, observed=current_observer() is not None),
    )


def given_with(domain: Domain) -> dict[str, Any]:
    """Return the numbers that were handed in with the records, in training coordinates: a start, public moments."""
    start = {} if domain.start is None else {"start": domain.start.tolist()}
    return start if domain.moments is None else {**start, "public_moments": _listed(domain.moments)}


def _listed(moments: Moments) -> dict[str, object]:
    """Return moments for the certificate; of a covariance a digest of its p^2 numbers."""
    known = {"mean": moments.mean.tolist(), "scale": moments.scale.tolist()}
    if moments.covariance is None:
        return known
    return {**known, "covariance_sha256": hashlib.sha256(moments.covariance.astype("<f8").tobytes()).hexdigest()}


def _vectors(settings: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings that are vectors or tables of numbers: a solver computes none, so the user gave them."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _vectors(value, f"{within}{name}.")
        elif isinstance(value, (list, tuple, np.ndarray)) and _holds_numbers(value):
            yield f"{within}{name}", value


def _holds_numbers(value: Any) -> bool:
    """Whether a number stands anywhere in nested sequences."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return any(_holds_numbers(item) for item in value)
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def issued(promised: Certificate, reservation: "Reservation | None", session: "Session | None" = None) -> Certificate:
    """Return what was promised with what only the run tells: where its noise came from, who looked, its charge."""
    known: dict[str, Any] = {}
    if session is not None:
        trace = () if session.filter is None else session.filter.trace
        known = {"entropy": session.entropy.name, "not_private": tuple(session.reasons()), "trace": trace}
    reference = None if reservation is None else reservation.reference
    return replace(promised, created=date.today().isoformat(), ledger=reference, **known)
