"""Noisy counts of cells that do not hold what was declared, as a certificate keeps them, and what they tell.

A wrong schema gives a poor model and no error: a category that is spelled otherwise is *other*, a text in a column of
numbers is missing. A small part of the budget counts such cells. The counts are released with noise under the
certificate; everything here is post-processing.

``Certificate``: what may be claimed of a fitted model, what was assumed, and how to check it.

A certificate is plain data. ``verify`` needs nothing but the certificate: it prices the listed events
again with both accountants and refuses a claim that is below the price.
"""

import hashlib
import json
import math
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, Never, TypeGuard

from discreet import __version__
from discreet.accounting.events import ZCDP, Event, NonPrivate, event_from_dict
from discreet.accounting.plan import Charge
from discreet.accounting.pricing import PricedPlan, epsilon_of
from discreet.budget import Neighbors
from discreet.errors import AccountingError, Unsupported
from discreet.json_schemas import Json

CHECKED = "noisy_checks"
"""Among a certificate's facts: the noisy counts."""
ESTIMATED_RANGES = "estimated_ranges"
"""Among a certificate's facts: ranges that were released with noise, under this certificate."""
ESTIMATED = (ESTIMATED_RANGES, CHECKED)
"""Among a certificate's facts: what was estimated with privacy budget, and not declared."""
QUERY: str = "noisy_counts"
"""The release of counts for private ranges."""
CHECKS: str = "noisy_checks"
"""The release of counts of cells that do not hold what was declared."""
NULL = "null_records"
_SURE, _MANY = 4.0, 0.02
"""A count stands out above this many standard deviations of its noise, and above this part of all records."""
MEANING = {
    "empty": "are empty",
    "no_number": "are empty or no number",
    "outside": "lie outside the declared range, and were clipped to it",
    "unknown": "hold none of the declared labels",
}


@dataclass(frozen=True)
class Checked:
    """Noisy counts: records that count as null, and cells per column by what is wrong with them.

    ``noise`` is the standard deviation of each count, ``n`` the number of records (persons) where it is public. A
    person counts as the mean of their rows.
    """

    noise: float
    null: float
    columns: Mapping[str, Mapping[str, float]]
    n: int | None
    unit: str = "record"

    @property
    def alarms(self) -> list[str]:
        """Return what stands out, in words, the largest count first."""
        cells = "cells" if self.unit == "record" else f"{self.unit}s' cells"
        candidates = [
            (self.null, f"{self._about(self.null)} {self.unit}s count as null: they taught the model nothing")
        ]
        candidates += [
            (count, f"{name}: {self._about(count)} {cells} {MEANING.get(what, what)}")
            for name, counts in self.columns.items()
            for what, count in counts.items()
        ]
        least = max(_SURE * self.noise, 0.0 if self.n is None else _MANY * self.n)
        noticeable = [(count, text) for count, text in candidates if count > least]
        return [text for _, text in sorted(noticeable, key=lambda item: -item[0])]

    def mismatch(self, name: str, more_than: float = 0.5) -> str:
        """Return what is wrong with more than this part of a column's cells, in words; "" for nothing, or not known."""
        count, what = max(((count, what) for what, count in self.columns.get(name, {}).items()), default=(0.0, ""))
        if self.n is None or count <= max(_SURE * self.noise, self.n * more_than):
            return ""
        return f"about {min(1.0, count / self.n):.0%} of the cells of {name} {MEANING.get(what, what)}"

    @property
    def scale(self) -> str:
        """Return how far noise alone may move a count, in words."""
        return f"noise moves each count by about ± {self._within} (95 %)"

    @property
    def _within(self) -> str:
        return f"{max(1.0, 2 * self.noise):,.0f}"

    def lines(self) -> list[str]:
        """Return the result in a few sentences."""
        if self.n is not None and _SURE * self.noise > self.n:
            return [f"Too few {self.unit}s for this budget to tell what the cells hold: {self.scale}."]
        if not self.alarms:
            return [f"No column has noticeably many invalid cells (counts are accurate to about ± {self._within})."]
        return [*(f"{alarm}." for alarm in self.alarms), f"Compare schema and table; {self.scale}."]

    def _about(self, count: float) -> str:
        if self.n is None:
            return f"about {count:,.0f}"
        return f"about {min(count, self.n):,.0f} of {self.n:,} ({min(1.0, count / self.n):.0%})"


def checked_in(public: Mapping[str, Any], unit: str = "record") -> Checked | None:
    """Return the counts among a certificate's facts; None where there are none, or none that make sense."""
    stored = public.get(CHECKED)
    try:
        if stored is None:
            return None
        columns = {
            str(name): {str(k): float(v) for k, v in counts.items()} for name, counts in stored["columns"].items()
        }
        n = public.get("n")
        return Checked(float(stored["noise"]), float(stored[NULL]), columns, None if n is None else int(n), unit)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


FORMAT = 1
GIVEN = "given"
"""The name in ``Certificate.assumed_public`` of vectors and tables of numbers that the user handed in."""
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
        **details: Any,
    ) -> "Certificate":
        """Return what may be claimed of a priced plan.

        ``facts`` are the declared facts and the ``"unit"``, with None where something was not declared; ``idealized``
        says why the proof is of real numbers, where it is; ``details`` are further fields.
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
            **details,
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why there is no guarantee; empty where there is one."""
        reasons = list(self.not_private)
        if math.isinf(self.epsilon):
            reasons.append("epsilon is infinite")
        if any(isinstance(event, NonPrivate) for event in self.events):
            reasons.append("something was released without noise")
        if "seed" in self.entropy.lower() and not any("seed" in reason.lower() for reason in reasons):
            reasons.append("the noise is seeded")
        return tuple(reasons)

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

        Examples
        --------
        >>> round(certificate.group(2)[0], 6)
        2.0
        """
        return group_guarantee(self.epsilon, self.delta, size) if self.is_private else (math.inf, 1.0)

    def verify(self) -> Verification:
        """Price the events again, with both accountants.

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
            price = epsilon_of(self.events, self.delta, self.neighbors)
        except Unsupported:  # numbers that nobody would choose, such as noise of 1e-300
            raise AccountingError("the certificate's events cannot be priced: do not rely on it") from None
        if not self.epsilon >= price.epsilon * (1 - 1e-12):
            raise AccountingError("the certificate claims less epsilon than its events cost: do not rely on it")
        for name, stated in self.accountants.items():
            if name not in price.accountants or not math.isclose(
                stated, price.accountants[name], rel_tol=1e-6, abs_tol=1e-9
            ):
                raise AccountingError("the certificate's accountants do not say what it reports: do not rely on it")
        spent = sum(Fraction(charge.rho) for charge in self.trace if charge.answered)
        if self.is_private and self.trace and spent > sum(Fraction(e.rho) for e in self.events if isinstance(e, ZCDP)):
            raise AccountingError("the certificate's trace spends more than its events: do not rely on it")
        return Verification(self.epsilon, price.epsilon, self.delta, price.accountants, self.is_private)

    def public_digest(self) -> str:
        """Return the SHA-256 of all that is known before records are read: what a ledger chains with the charge.

        Left out is what the fit itself releases, or what follows from the charge: ``LATER``, and the values of ranges
        and counts that were estimated with privacy budget; of which columns they are is in it. A new field is in it
        unless it is named there.

        Examples
        --------
        >>> len(certificate.public_digest())
        64
        """
        public = {name: value for name, value in self._stored().items() if name not in LATER}
        public["assumed_public"] = {
            key: _columns_of(key, fact) if key in ESTIMATED else fact for key, fact in self.assumed_public.items()
        }
        text = json.dumps(encoded(public), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> str:
        """Return the certificate as JSON: sorted, without NaN or infinity as numbers, floats exact.

        Examples
        --------
        >>> Certificate.from_json(certificate.to_json()) == certificate
        True
        """
        return json.dumps(encoded(self._stored()), sort_keys=True, indent=2, allow_nan=False)

    def _stored(self) -> Json:
        """All fields as plain data, with the format and the stamp."""
        values: Json = {item.name: getattr(self, item.name) for item in fields(self)}
        values["neighbors"] = str(self.neighbors)
        values["events"] = [event.to_dict() for event in self.events]
        values["trace"] = [asdict(charge) for charge in self.trace]
        return {**values, "format": FORMAT, "stamp": self.stamp}

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Read what ``to_json`` wrote. Unknown or missing fields and a stamp that does not follow are refused.

        Examples
        --------
        >>> Certificate.from_json(certificate.to_json()).epsilon
        1.0
        """
        try:
            stored = decoded(text)
        except (ValueError, RecursionError):
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

        Examples
        --------
        >>> "PRIVATE" in certificate.text()
        True
        """
        return _joined(_lines(self))

    def summary(self) -> str:
        """Return what matters first, for a person.

        Examples
        --------
        >>> "epsilon" in certificate.summary()
        True
        """
        title = f"Privacy certificate: {self.headline}"
        lines = (*_claim_lines(self), *_range_lines(self), *_check_lines(self))
        return _joined((title, "", *lines, *_ledger_lines(self.ledger), *_coverage_lines(self)))

    def __str__(self) -> str:
        return self.text()


def _columns_of(key: str, fact: object) -> list[str]:
    """Return the columns of which something was estimated; all keys of what is no such fact."""
    within = fact.get("columns", fact) if key == CHECKED and isinstance(fact, Mapping) else fact
    return sorted(map(str, within)) if isinstance(within, (Mapping, list)) else [str(within)]


def _is_reference(ledger: object) -> bool:
    """Whether this says where in a ledger a fit was charged."""
    kinds = {"ledger": str, "dataset": str, "entry": int, "head": str}
    return isinstance(ledger, dict) and {name: type(value) for name, value in ledger.items()} == kinds


Check = Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> TypeGuard[float]:
    """Whether a double holds it: larger whole numbers end arithmetic in an error."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_price(value: object) -> bool:
    return value == "inf" or (_is_number(value) and value >= 0)


def _is_count(value: object) -> bool:
    return type(value) is int and _is_number(value) and value >= 0


def _is_range(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1]


def _is_size(value: object) -> bool:
    return _is_number(value) and value > 0


def _is_scalar(value: object) -> bool:
    return _is_text(value) or _is_number(value) or isinstance(value, bool)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_setting(value: object) -> bool:
    """Whether a setting could have this form: a scalar, none, or lists and objects that hold some."""
    if isinstance(value, (list, dict)):
        return len(value) > 0 and all(map(_is_setting, value.values() if isinstance(value, dict) else value))
    return value is None or value in ("inf", "-inf") or _is_scalar(value)


def _is_declaration(value: object) -> bool:
    """Whether a stream may declare this: as settings are, and empty lists and objects."""
    if isinstance(value, (list, dict)):
        return all(map(_is_declaration, value.values() if isinstance(value, dict) else value))
    return _is_setting(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _object_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _is_table(value: object) -> bool:
    return _is_object(value) and _is_setting(value)


def _are_settings(value: object) -> bool:
    return _object_of(_is_setting)(value)


SCHEMA: Mapping[str, Check] = {
    "columns": _object_of(_is_table),
    "target": _is_table,
    "weight": _is_table,
    "offset": _is_table,
    "person": _is_text,
    "ignore": _list_of(_is_text),
    "rows": _is_count,
    "separator": _is_text,
    "interactions": _list_of(_list_of(_is_text)),
    "missing_texts": _list_of(_is_text),
}
"""The keys of a schema file."""


def _is_schema(value: object) -> bool:
    return isinstance(value, dict) and all(name in SCHEMA and SCHEMA[name](part) for name, part in value.items())


def _are_checks(value: object) -> bool:
    if not isinstance(value, dict) or not {"noise", NULL, "columns"} <= set(value):
        return False
    return (
        _is_number(value["noise"]) and _is_number(value[NULL]) and _object_of(_object_of(_is_number))(value["columns"])
    )


def _is_date(value: object) -> bool:
    try:
        return value is None or date.fromisoformat(str(value)).isoformat() == value
    except (TypeError, ValueError):
        return False


FACTS: Mapping[str, Check] = {
    "n": _is_count,
    "features": lambda value: _is_size(value) or _list_of(_is_range)(value) or _object_of(_is_range)(value),
    "row_norm": lambda value: value is None or _is_size(value),
    "target": _is_range,
    "classes": _list_of(_is_scalar),
    "class_weights": _list_of(_is_size),
    "weights": _is_range,
    "offsets": _is_range,
    "scale": _is_text,
    "schema": _is_schema,
    "feature_names": _list_of(_is_text),
    "kept": _is_text,
    "parts": _is_count,
    GIVEN: _are_settings,
    ESTIMATED_RANGES: _object_of(_is_range),
    CHECKED: _are_checks,
}
"""The facts of ``assumed_public`` whose form is known. Others, which a stream declares, are of any form."""
TABLES = ("schema", "feature_names", ESTIMATED_RANGES)
"""Those that streams of tables declare."""


def check_declarations(facts: Mapping[str, object]) -> None:
    """Refuse what a stream declares where a certificate could not be read back, or would say it of something else."""
    if taken := [name for name in facts if name == "unit" or (name in FACTS and name not in TABLES)]:
        raise Unsupported(
            f"a stream's facts may not be called {', '.join(taken)}: certificates use the name themselves"
        )
    try:
        stored = decoded(json.dumps(encoded(plain(facts)), allow_nan=False))
        wrong = [name for name, fact in stored.items() if not FACTS.get(name, _is_declaration)(fact)]
    except (AccountingError, ValueError, RecursionError) as error:
        raise Unsupported(f"a stream's facts must be plain JSON: {error}") from None
    if wrong:
        raise Unsupported(f"a stream's facts must be plain JSON: {', '.join(wrong)} has another form")


def _are_facts(value: object) -> bool:
    return isinstance(value, dict) and all(FACTS.get(name, _is_declaration)(fact) for name, fact in value.items())


FIELDS: Mapping[str, Check] = {
    "epsilon": _is_price,
    "delta": _is_price,
    "neighbors": _is_text,
    "events": _list_of(_is_object),
    "unit": _is_text,
    "model": _is_text,
    "solver": _are_settings,
    "accountants": _object_of(_is_price),
    "assumed_public": _are_facts,
    "noise_multiplier": _is_price,
    "arithmetic": _is_text,
    "entropy": _is_text,
    "library_version": _is_text,
    "notes": _list_of(_is_text),
    "created": _is_date,
    "not_private": _list_of(_is_text),
    "trace": _list_of(_is_object),
    "ledger": lambda value: value is None or _is_reference(value),
    "stamp": _is_text,
}


def check_fields(stored: Mapping[str, object]) -> None:
    """Refuse a certificate, as JSON holds it, one of whose fields has another type than discreet writes."""
    try:
        wrong = [name for name, check in FIELDS.items() if not check(stored[name])]
    except RecursionError:
        raise AccountingError("this is not a certificate: it is nested too deeply") from None
    if wrong:
        raise AccountingError(f"this is not a certificate: {', '.join(wrong)} has the wrong form")


def plain(value: object) -> Any:
    """As JSON would give it back: lists for tuples, dictionaries in the order of their keys."""
    if isinstance(value, Mapping):
        return {str(name): plain(value[name]) for name in sorted(value, key=str)}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def encoded(value: object) -> Any:
    """JSON types only: infinity as a string, tuples as lists."""
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise AccountingError("a certificate holds no NaN")
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(name): encoded(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(item) for item in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return encoded(value.item())
    raise AccountingError("a certificate holds plain numbers, texts, lists and dictionaries only")


def decoded(text: str) -> Any:
    """Return what a JSON text holds; a ValueError where a name stands twice, and for NaN and infinity."""
    return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)


def decoded_number(value: object) -> float:
    """Return a number that ``encoded`` wrote."""
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _without_duplicates(pairs: list[tuple[str, object]]) -> Json:
    answer = dict(pairs)
    if len(answer) != len(pairs):
        raise ValueError
    return answer


def _refuse_constant(_: str) -> Never:
    raise ValueError


_RELATIONS = {
    Neighbors.REPLACE_ONE: "any one {unit} is exchanged for any other",
    Neighbors.ZERO_OUT: "any one {unit} is blanked",
    Neighbors.ADD_REMOVE: "any one {unit} is added or removed",
}

LINE_EACH = (GIVEN, "public_moments")
"""Facts with a line for each of their parts, which may be long vectors."""


def _joined(lines: Iterable[str]) -> str:
    """Return the lines as one text; a line break within a value is written out, so that it cannot forge a line."""
    return "\n".join("\\n".join(line.splitlines()) for line in lines)


def at_most(value: float, digits: int = 3) -> float:
    """Return a number of so many digits that is not below the value: a bound stays one when it is shown."""
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value))))


def _claim_lines(certificate: "Certificate") -> list[str]:
    if not certificate.is_private:
        return ["  Guarantee     none: do not release this model"]
    unit, factor = certificate.unit, at_most(math.exp(min(certificate.epsilon, 700.0)), 4)
    return [
        f"  Guarantee     epsilon = {certificate.epsilon:.6g}, delta = {certificate.delta!r}, per {unit}",
        f"  Meaning       When {_RELATIONS[certificate.neighbors].format(unit=unit)}, no outcome becomes more than",
        f"                {factor:.4g} times as likely, up to a probability of {at_most(certificate.delta):.3g}.",
    ]


def _check_lines(certificate: "Certificate") -> list[str]:
    checks = checked_in(certificate.assumed_public, certificate.unit)
    lines = [] if checks is None else checks.lines()
    return [f"  {'Checks' if i == 0 else '':<14}{line}" for i, line in enumerate(lines)]


def _range_lines(certificate: "Certificate") -> list[str]:
    ranges = certificate.assumed_public.get(ESTIMATED_RANGES, {})
    return [f"  Estimated     {name} from {low:.6g} to {high:.6g}" for name, (low, high) in ranges.items()]


def _lines(certificate: "Certificate") -> list[str]:
    unit = certificate.unit
    lines = [f"Privacy certificate: {certificate.headline}", "", *_claim_lines(certificate)]
    if certificate.is_private:
        lines.append(f"  Neighbors     {certificate.neighbors}")
        together, slack = certificate.group(5)
        if slack < 1:
            lines.append(f"  Five {unit}s{'':<{7 - len(unit)}} epsilon = {together:.6g}, delta = {slack:.3g}, together")
    lines.append(f"  Model         {certificate.model or 'not named'}")
    lines += [f"    {name:<23} {value}" for name, value in certificate.solver.items()]
    lines.append(f"  Noise         {certificate.noise_multiplier:.6g} times the sensitivity")
    lines.append("  Released")
    released = [event for event in certificate.events if event.is_release]
    lines += [f"    {event.describe()}" for event in released] or ["    nothing"]
    lines += [f"  {event.describe()}" for event in certificate.events if not event.is_release]
    lines += _trace_lines(certificate.trace)
    lines.append(
        "  Accountants   " + ", ".join(f"{name} {value:.6g}" for name, value in certificate.accountants.items())
    )
    lines += [*_range_lines(certificate), *_check_lines(certificate)]
    lines.append("  Taken as public, not measured")
    public = {name: value for name, value in certificate.assumed_public.items() if name not in ESTIMATED}
    lines += [line for name, value in public.items() for line in _fact_lines(name, value)] or ["    nothing"]
    lines += _ledger_lines(certificate.ledger) + _coverage_lines(certificate)
    lines.append(f"  Arithmetic    {certificate.arithmetic}; noise from {certificate.entropy}")
    lines += [f"  Note          {note}" for note in certificate.notes]
    maker = " ".join(part for part in (certificate.library_version, certificate.created) if part)
    return [*lines, f"  Made by       discreet {maker}".rstrip()]


def _fact_lines(name: str, value: object, indent: str = "    ") -> list[str]:
    """A fact in a line; a schema in a line for each of its columns; many ranges by how many are alike."""
    if isinstance(value, dict) and (name in LINE_EACH or any(isinstance(item, dict) for item in value.values())):
        within = [_fact_lines(key, item, indent + "  ") for key, item in value.items()]
        return [f"{indent}{name}", *(line for lines in within for line in lines)]
    if isinstance(value, dict):
        value = ", ".join(f"{key} {item}" for key, item in value.items()) or "not declared"
    elif isinstance(value, list) and len(value) > 12:
        alike = Counter(map(str, value))
        few = [f"{count} x {item}" for item, count in alike.items()]
        value = ", ".join(few) if len(few) < 5 else f"{len(value)}, from {value[0]} to {value[-1]}"
    return [f"{indent}{name:<23} {value}"]


def _trace_lines(trace: tuple[Charge, ...]) -> list[str]:
    """A line a query: how often it was answered, what that cost, how often it was refused."""
    lines = []
    for query in dict.fromkeys(charge.query for charge in trace):
        paid = [charge.rho for charge in trace if charge.query == query and charge.answered]
        refused = sum(1 for charge in trace if charge.query == query and not charge.answered)
        said = f"{len(paid)} answers for rho {math.fsum(paid):.4g}" + (f", {refused} refused" if refused else "")
        lines.append(f"    {query:<23} {said}")
    rounds = max((charge.round for charge in trace), default=0)
    return [f"  Spent         in {rounds} rounds", *lines] if lines else []


def _ledger_lines(ledger: Mapping[str, object] | None) -> list[str]:
    if ledger is None:
        return ["  Ledger        Not charged to a ledger: other releases from these records are not accounted for."]
    entry = f"entry {ledger['entry']} of ledger {ledger['ledger']}"
    return [f"  Ledger        charged to {ledger['dataset']!r}, {entry}", f"                head {ledger['head']}"]


def _coverage_lines(certificate: "Certificate") -> list[str]:
    wrapped = [line for said in certificate.not_covered for line in textwrap.wrap(said, 104)]
    return [f"  {'Not covered' if place == 0 else '':<14}{line}" for place, line in enumerate(wrapped)]


WEAK_EPSILON = 8.0
"""Above this epsilon little is promised: a guess between two equally likely values may be right in 99.97% of cases."""
VERY_WEAK_EPSILON = 16.0
"""Above this epsilon next to nothing is promised."""

STEPS_BEFORE = (
    "Steps before the model that were fitted on the rows, such as scalers, encoders and feature selection: what they "
    "learned from the rows was not counted."
)
READ_OFF = (
    "Facts taken as public that were read off the rows, such as ranges, classes, a start or moments: they are "
    "published as they were given, and were not counted."
)
EXACT_SCORES = "Exact scores of the rows, such as model.score(X, y): each is a release without noise."
OTHER_FITS = "Earlier and other fits of the same rows, such as those of a search: each spent its own budget."
UNCHARGED_FITS = "Fits and scores of the same rows that were not charged to this ledger."


def not_covered(*, has_ledger: bool) -> tuple[str, ...]:
    """Return what no certificate covers, in sentences."""
    return STEPS_BEFORE, READ_OFF, EXACT_SCORES, UNCHARGED_FITS if has_ledger else OTHER_FITS


def weaknesses(epsilon: float, delta: float, n: object) -> tuple[str, ...]:
    """Return why a guarantee promises little, from public values; ``n`` counts where it is a whole number.

    A mechanism that publishes one record in full, drawn at random, is (0, 1/n)-DP.
    """
    reasons = [f"epsilon is above {WEAK_EPSILON:g}"] if epsilon > WEAK_EPSILON else []
    if isinstance(n, int) and not isinstance(n, bool) and delta * n >= 1:
        reasons.append("delta is at least 1/n")
    return tuple(reasons)


def promises_nothing(epsilon: float, delta: float, n: object) -> bool:
    """Say whether a guarantee is so weak that it should be shown as none: a huge epsilon, or delta >= 1/n."""
    return epsilon > VERY_WEAK_EPSILON or len(weaknesses(0.0, delta, n)) > 0


def group_guarantee(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """The guarantee for ``size`` records at once: (k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1)).

    *Proof.* Along a chain of k neighbors, P_i(S) <= e^epsilon P_{i+1}(S) + delta; unroll: the deltas
    add up to delta (1 + e^epsilon + ... + e^{(k-1) epsilon}). Rounded up; a delta of 1 promises nothing.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise AccountingError("the size of a group must be a whole number, at least 1")
    total = size * epsilon
    if size == 1 or delta == 0:
        return (epsilon, delta) if size == 1 else (math.nextafter(total, math.inf), 0.0)
    if total > 700:
        return total, 1.0
    factor = math.expm1(total) / math.expm1(epsilon) if epsilon > 0 else float(size)
    return math.nextafter(total, math.inf), min(1.0, delta * factor * (1 + 2.0**-48))
