"""``Certificate``: what may be claimed of a fitted model, what was assumed, and how to check it.

A certificate is plain data. ``verify`` needs nothing but the certificate: it prices the listed events
again with both accountants and refuses a claim that is below the price.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from typing import Any

from discreet import __version__
from discreet.accounting import certificate_text, group_privacy
from discreet.accounting.cell_counts import CHECKED, ESTIMATED
from discreet.accounting.certificate_fields import check_fields
from discreet.accounting.certificate_json import decoded, decoded_number, encoded, plain
from discreet.accounting.coverage import not_covered, weaknesses
from discreet.accounting.events import ZCDP, Event, NonPrivate, event_from_dict, to_dict
from discreet.accounting.priced_plan import PricedPlan
from discreet.accounting.pricing import epsilon_of
from discreet.accounting.zcdp_filter import Charge
from discreet.budget import Neighbors
from discreet.errors import AccountingError, Unsupported

FORMAT = 1
UNITS = ("record", "person")
ARITHMETICS = ("exact lattice", "idealized")
LATER = ("trace", "created", "ledger")
"""The fields that are not known before records are read; ``ESTIMATED_RANGES`` is the fourth thing that is not."""


@dataclass(frozen=True)
class Verification:
    """What ``Certificate.verify`` found: the claim, the price of the events, and who computed it."""

    claimed: float
    epsilon: float
    delta: float
    accountants: dict[str, float]
    is_private: bool


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Guarantee of a fitted model, with all that it rests on.

    Parameters
    ----------
    epsilon, delta : float
        The claim: (epsilon, delta)-DP. The delta printed is the delta used.
    neighbors : Neighbors
        The relation.
    events : tuple of Event
        Everything that was released.
    unit : {"record", "person"}, default="record"
        Whom the claim protects.
    model : str, default=""
        What was fitted.
    solver : dict
        The solver's public settings.
    accountants : dict
        What each accountant says of the events at this delta.
    assumed_public : dict
        The declared facts on which the guarantee rests, and where they come from.
    noise_multiplier : float, default=0.0
        Noise over sensitivity under the relation.
    arithmetic : str, default="exact lattice"
        ``"exact lattice"`` where the proof covers the bits that ran, ``"idealized"`` where it is of real numbers.
    entropy : str, default="ChaCha20 keyed by os.urandom"
        Where the noise came from.
    library_version : str, default=""
        The version of discreet.
    notes : tuple of str, default=()
        Remarks for the reader.
    created : str, default=None
        The date.
    not_private : tuple of str, default=()
        Reasons why there is no guarantee at all, such as seeded noise. An infinite epsilon and an
        event without noise are found without being listed.
    trace : tuple of Charge, default=()
        For adaptive runs: what each answer cost, in which round, and what the filter refused.
    ledger : dict, default=None
        Where the fit was charged: the ledger's name, the data set, the entry and the chain's head. None: nowhere.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Certificate, DPRidge
    >>> certificate = DPRidge(bounds=1.0, target=(0, 1), delta=1e-6).fit(np.eye(3), np.ones(3)).certificate_
    >>> certificate.epsilon, certificate.stamp
    (1.0, 'PRIVATE')
    """

    epsilon: float
    delta: float
    neighbors: Neighbors
    events: tuple[Event, ...]
    unit: str = "record"
    model: str = ""
    solver: Mapping[str, Any] = field(default_factory=dict)
    accountants: Mapping[str, float] = field(default_factory=dict)
    assumed_public: Mapping[str, Any] = field(default_factory=dict)
    noise_multiplier: float = 0.0
    arithmetic: str = "exact lattice"
    entropy: str = "ChaCha20 keyed by os.urandom"
    library_version: str = ""
    notes: tuple[str, ...] = ()
    created: str | None = None
    not_private: tuple[str, ...] = ()
    trace: tuple[Charge, ...] = ()
    ledger: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbors", Neighbors(self.neighbors))
        for name in ("events", "notes", "not_private", "trace"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("solver", "accountants", "assumed_public", "ledger"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        for name in ("epsilon", "delta", "noise_multiplier"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not (self.epsilon >= 0 and 0 <= self.delta < 1 and self.noise_multiplier >= 0):
            raise AccountingError("a certificate needs epsilon >= 0, delta in [0, 1) and noise_multiplier >= 0")
        if self.ledger is not None and not _is_reference(self.ledger):
            raise AccountingError("a certificate names a ledger, a data set, an entry and its head, or none of them")
        if self.unit not in UNITS or self.arithmetic not in ARITHMETICS:
            raise AccountingError(f"unit must be one of {UNITS} and arithmetic one of {ARITHMETICS}")

    @classmethod
    def of(
        cls,
        priced: PricedPlan,
        facts: Mapping[str, Any],
        *,
        notes: tuple[str, ...] = (),
        idealized: tuple[str, ...] = (),
        noise_multiplier: float | None = None,
        **known: Any,
    ) -> "Certificate":
        """Return what may be claimed of a priced plan.

        ``facts`` are the declared facts and the ``"unit"``, with None where something was not declared; ``idealized``
        says why the proof is of real numbers, where it is; ``known`` are further fields.
        """
        return cls(
            epsilon=priced.budget.epsilon,
            delta=priced.budget.delta,
            neighbors=priced.budget.neighbors,
            events=priced.events,
            unit=facts["unit"],
            accountants=priced.price.accountants,
            assumed_public={key: value for key, value in facts.items() if key != "unit" and value is not None},
            noise_multiplier=priced.noise_multiplier if noise_multiplier is None else noise_multiplier,
            arithmetic="idealized" if idealized else "exact lattice",
            library_version=__version__,
            notes=(*notes, *idealized),
            **known,
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why there is no guarantee; empty where there is one."""
        found = list(self.not_private)
        if math.isinf(self.epsilon):
            found.append("epsilon is infinite")
        if any(isinstance(event, NonPrivate) for event in self.events):
            found.append("something was released without noise")
        if "seed" in self.entropy.lower() and not any("seed" in reason.lower() for reason in found):
            found.append("the noise is seeded")
        return tuple(found)

    @property
    def is_private(self) -> bool:
        """Whether there is a guarantee."""
        return not self.reasons

    @property
    def stamp(self) -> str:
        """``PRIVATE``, or ``NOT PRIVATE`` with the reasons."""
        return "PRIVATE" if self.is_private else f"NOT PRIVATE ({'; '.join(self.reasons)})"

    @property
    def weaknesses(self) -> tuple[str, ...]:
        """Why the guarantee promises little, from public thresholds; empty where none of them is passed."""
        return weaknesses(self.epsilon, self.delta, self.assumed_public.get("n")) if self.is_private else ()

    @property
    def headline(self) -> str:
        """The stamp as it is shown: with its weaknesses. Derived, so that stored certificates stay readable."""
        return f"{self.stamp}, but weak: {'; '.join(self.weaknesses)}" if self.weaknesses else self.stamp

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the guarantee does not cover, in fixed words."""
        return not_covered(has_ledger=self.ledger is not None)

    def group(self, size: int) -> tuple[float, float]:
        """Return the (epsilon, delta) that holds for ``size`` records (persons) together.

        Parameters
        ----------
        size : int
            How many.

        Returns
        -------
        tuple of float
            Epsilon and delta.

        Examples
        --------
        >>> round(certificate.group(2)[0], 6)
        2.0
        """
        return group_privacy.group(self.epsilon, self.delta, size) if self.is_private else (math.inf, 1.0)

    def verify(self) -> Verification:
        """Price the events again, with both accountants.

        Returns
        -------
        Verification
            What is claimed, and what was found.

        Raises
        ------
        AccountingError
            If the claim is below what the events cost.

        Examples
        --------
        >>> certificate.verify().epsilon <= certificate.epsilon
        True
        """
        try:
            found = epsilon_of(self.events, self.delta, self.neighbors)
        except Unsupported:  # numbers that nobody would choose, such as noise of 1e-300
            raise AccountingError("the certificate's events cannot be priced: do not rely on it") from None
        if not self.epsilon >= found.epsilon * (1 - 1e-12):
            raise AccountingError("the certificate claims less epsilon than its events cost: do not rely on it")
        for name, stated in self.accountants.items():
            if name not in found.accountants or not _close(stated, found.accountants[name]):
                raise AccountingError("the certificate's accountants do not say what it reports: do not rely on it")
        spent = sum(Fraction(charge.rho) for charge in self.trace if charge.answered)
        if self.is_private and self.trace and spent > sum(Fraction(e.rho) for e in self.events if isinstance(e, ZCDP)):
            raise AccountingError("the certificate's trace spends more than its events: do not rely on it")
        return Verification(self.epsilon, found.epsilon, self.delta, found.accountants, self.is_private)

    def public_digest(self) -> str:
        """Return the SHA-256 of all that is known before records are read: what a ledger chains with the charge.

        Left out is what the fit itself releases, or what follows from the charge: ``LATER``, and the values of ranges
        and counts that were estimated with privacy budget; of which columns they are is in it. A new field is in it
        unless it is named there.

        Returns
        -------
        str
            64 hexadecimal digits.

        Examples
        --------
        >>> len(certificate.public_digest())
        64
        """
        known = {name: value for name, value in self._stored().items() if name not in LATER}
        known["assumed_public"] = {
            key: _columns_of(key, fact) if key in ESTIMATED else fact for key, fact in self.assumed_public.items()
        }
        text = json.dumps(encoded(known), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> str:
        """Return the certificate as JSON: sorted, without NaN or infinity as numbers, floats exact.

        Returns
        -------
        str
            The text.

        Examples
        --------
        >>> Certificate.from_json(certificate.to_json()) == certificate
        True
        """
        return json.dumps(encoded(self._stored()), sort_keys=True, indent=2, allow_nan=False)

    def _stored(self) -> dict[str, Any]:
        """All fields as plain data, with the format and the stamp."""
        stored: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        stored["neighbors"] = str(self.neighbors)
        stored["events"] = [to_dict(event) for event in self.events]
        stored["trace"] = [asdict(charge) for charge in self.trace]
        return {**stored, "format": FORMAT, "stamp": self.stamp}

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Read what ``to_json`` wrote. Unknown or missing fields and a stamp that does not follow are refused.

        Parameters
        ----------
        text : str
            The JSON.

        Returns
        -------
        Certificate
            The certificate.

        Raises
        ------
        AccountingError
            If the text is no certificate.

        Examples
        --------
        >>> Certificate.from_json(certificate.to_json()).epsilon
        1.0
        """
        try:
            stored = decoded(text)
        except ValueError:
            raise AccountingError("this is not a certificate: it is not valid JSON") from None
        names = {item.name for item in fields(cls)}
        if not isinstance(stored, dict) or set(stored) != names | {"format", "stamp"} or stored["format"] != FORMAT:
            raise AccountingError(f"this is not a certificate of format {FORMAT}: fields are missing or unknown")
        check_fields(stored)
        values = {name: stored[name] for name in names}
        try:
            for name in ("epsilon", "delta", "noise_multiplier"):
                values[name] = decoded_number(values[name])
            values["accountants"] = {name: decoded_number(value) for name, value in values["accountants"].items()}
            values["events"] = tuple(event_from_dict(event) for event in values["events"])
            values["trace"] = tuple(Charge(**charge) for charge in values["trace"])
            certificate = cls(**values)
        except (TypeError, ValueError, AttributeError, ArithmeticError):
            raise AccountingError("this is not a certificate: a field has the wrong type") from None
        if certificate.stamp != stored["stamp"]:
            raise AccountingError("the certificate's stamp does not follow from its contents: do not rely on it")
        return certificate

    def text(self) -> str:
        """Return the certificate for a person.

        Returns
        -------
        str
            Several lines.

        Examples
        --------
        >>> "PRIVATE" in certificate.text()
        True
        """
        return certificate_text.text(self)

    def summary(self) -> str:
        """Return what matters first, for a person.

        Returns
        -------
        str
            The headline, the claim and what it does not cover.

        Examples
        --------
        >>> "epsilon" in certificate.summary()
        True
        """
        return certificate_text.summary(self)

    def __str__(self) -> str:
        return self.text()


def _columns_of(key: str, fact: Any) -> list[str]:
    """Return the columns of which something was estimated; all keys of what is no such fact."""
    within = fact.get("columns", fact) if key == CHECKED and isinstance(fact, Mapping) else fact
    return sorted(map(str, within)) if isinstance(within, (Mapping, list)) else [str(within)]


def _is_reference(ledger: Any) -> bool:
    """Whether this says where in a ledger a fit was charged."""
    kinds = {"ledger": str, "dataset": str, "entry": int, "head": str}
    return isinstance(ledger, dict) and {name: type(value) for name, value in ledger.items()} == kinds


def _close(stated: float, found: float) -> bool:
    return stated == found or math.isclose(stated, found, rel_tol=1e-6, abs_tol=1e-9)
