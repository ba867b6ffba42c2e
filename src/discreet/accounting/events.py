"""Events say what was released, and nothing of how: the language of plan, price, ledger and certificate.

Every event is a frozen dataclass that turns into plain JSON types (``to_dict``) and back
(``event_from_dict``, which refuses fields it does not know). ``noise_multiplier`` always means the
noise's standard deviation (its scale, for Laplace) over the sensitivity under the declared relation.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, cast, get_args

from discreet.accounting.number_of_runs import Stopping
from discreet.errors import AccountingError

SAMPLING_DENOMINATOR = 2**16


def _require_positive(value: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (math.isfinite(value) and value > 0):
        raise AccountingError(f"{what} of an event must be a positive, finite number")
    return float(value)


def _require_count(value: int, what: str, low: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise AccountingError(f"{what} of an event must be a whole number, at least {low}")
    return value


def reciprocal_up(value: float) -> float:
    """A double not below 1/value."""
    answer = 1.0 / value
    if math.isinf(answer) or Fraction(answer) * Fraction(value) >= 1:
        return answer
    return math.nextafter(answer, math.inf)


class _Released:
    """What every event says of itself."""

    @property
    def inner(self) -> "Event":
        """What was released of each sample; the event itself where all records were seen."""
        return cast("Event", self)

    def describe(self) -> str:
        """Return the event for a person."""
        return _phrase(to_dict(self.inner))


@dataclass(frozen=True)
class Gaussian(_Released):
    """``count`` adaptive releases of a vector with Gaussian noise: exactly sqrt(count)/noise_multiplier-GDP."""

    kind: ClassVar[str] = "gaussian"
    noise_multiplier: float
    count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _require_positive(self.noise_multiplier, "noise_multiplier"))
        _require_count(self.count, "count")


@dataclass(frozen=True)
class Laplace(_Released):
    """``count`` releases with Laplace noise of scale noise_multiplier times the L1-sensitivity.

    Each is pure (1/noise_multiplier)-DP. ``dimension`` is that of each answer; None (not said) and
    anything above 1 are priced as "some pure mechanism", which is always valid. A scalar
    (``dimension=1``) is priced by the privacy loss distribution of the continuous Laplace mechanism,
    which discrete noise obeys only after one unit is added to the sensitivity:

    *Lemma.* Let X be discrete Laplace with P(X = k) proportional to e^{-h|k|}, h = 1/t, and D a whole
    number. For 0 <= epsilon < D h the hockey-stick divergence between X + D and X is at most
    1 - e^{-h s} / cosh(h/2) with s = (D - epsilon t)/2, and this is at most 1 - e^{-h (s + 1/2)},
    the divergence of continuous Laplace noise of scale t at sensitivity D + 1 (cosh x <= e^x for
    x >= 0). For epsilon >= D h the discrete divergence is zero. Both pairs are symmetric, so that
    epsilon < 0 follows from H_{1/a}(P||Q) = 1 - 1/a + H_a(Q||P)/a.

    *Proof.* The log-likelihood ratio at k is h(|k| - |k - D|), non-decreasing in k, and exceeds
    epsilon from the first integer m > (D + epsilon t)/2 on. With r = e^{-h} and 0 <= m <= D the
    divergence is P(X >= m - D) - e^epsilon P(X >= m) = 1 - (r^{D-m+1} + e^epsilon r^m)/(1 + r).
    Put m = (D + epsilon t)/2 + v with v in (0, 1]; then r^{D-m+1} = r^{s} r^{1-v} and
    e^epsilon r^m = r^{s} r^{v}, so that it is 1 - r^s (r^{1-v} + r^v)/(1 + r). By convexity
    r^{1-v} + r^v >= 2 sqrt(r), and 2 sqrt(r)/(1 + r) = 1/cosh(h/2). QED

    A hockey-stick divergence that is smaller at every order dominates the privacy loss, so that all prices (Renyi
    divergences, too, which are mixtures of hockey-stick divergences) follow. So a scalar with discrete noise of scale
    t and whole sensitivity D is entered here with a noise_multiplier of at most t/(D + 1); a vector (or a pure claim)
    with t/D. The curator's lattice keeps to it (``curator/lattice/lattice.py``).
    """

    kind: ClassVar[str] = "laplace"
    noise_multiplier: float
    count: int = 1
    dimension: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", _require_positive(self.noise_multiplier, "noise_multiplier"))
        _require_count(self.count, "count")
        if self.dimension is not None:
            _require_count(self.dimension, "dimension")

    @property
    def epsilon(self) -> float:
        """The pure epsilon of one release, 1/noise_multiplier rounded up."""
        return reciprocal_up(self.noise_multiplier)


@dataclass(frozen=True)
class BoundedRange(_Released):
    """``count`` selections by the exponential mechanism (or Gumbel noise), each of range ``epsilon``.

    Bounded range: the log-ratios of one pair of neighbors lie in an interval of length epsilon. Each
    is epsilon-DP and epsilon^2/8-zCDP. Permute-and-flip is not of bounded range: use ``PureDP``.
    """

    kind: ClassVar[str] = "bounded_range"
    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _require_positive(self.epsilon, "epsilon"))
        _require_count(self.count, "count")


@dataclass(frozen=True)
class PureDP(_Released):
    """``count`` releases of which each is epsilon-DP and nothing more is known (e.g. permute-and-flip)."""

    kind: ClassVar[str] = "pure"
    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _require_positive(self.epsilon, "epsilon"))
        _require_count(self.count, "count")


@dataclass(frozen=True)
class ZCDP(_Released):
    """A release (or a whole filter) that is rho-zCDP."""

    kind: ClassVar[str] = "zcdp"
    count: ClassVar[int] = 1
    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _require_positive(self.rho, "rho"))


SLOPES = ("logistic", "one_signed", "two_signed", "softmax")
"""What is known of a record's slope f' in objective perturbation (see ``accounting/objective_perturbation.py``)."""


@dataclass(frozen=True)
class PerturbedMinimum(_Released):
    """The exact minimizer of a sum of convex losses of linear models, plus (lambda/2) ||w||^2 + b.w with a random b.

    Its privacy loss has a part from the noise and a part from the curvature (the density's Jacobian), so that it
    is no Gaussian event: ``accounting/objective_perturbation.py`` has the proof and the price.

    Parameters
    ----------
    noise_multiplier
        The scale of b over the sensitivity of the sum of gradients under the declared relation: the standard
        deviation of a coordinate for ``noise="gaussian"``, t in the density exp(-||b|| / t) for ``"gamma"``.
    curvature
        beta/lambda, where beta bounds a record's f'' ||x||^2.
    slopes
        ``"logistic"``: |f'| = s C/||x|| and f'' ||x||^2 <= 4 beta s (1 - s) in the simplest case (see ``reach``);
        ``"one_signed"``: the record fixes the sign of f'; ``"two_signed"``: nothing is known; ``"softmax"``.
    reach
        For ``"logistic"``: R/C >= 1, how far a row's norm may exceed the clip on its gradient; 1 without a clip.
    outputs
        The number of classes, for ``"softmax"``.
    noise
        ``"gaussian"``, or ``"gamma"`` for pure epsilon.
    """

    kind: ClassVar[str] = "perturbed_minimum"
    count: ClassVar[int] = 1
    noise_multiplier: float
    curvature: float
    slopes: str = "two_signed"
    reach: float = 1.0
    outputs: int = 1
    noise: str = "gaussian"

    def __post_init__(self) -> None:
        for name in ("noise_multiplier", "curvature", "reach"):
            object.__setattr__(self, name, _require_positive(getattr(self, name), name))
        _require_count(self.outputs, "outputs", 2 if self.slopes == "softmax" else 1)
        if self.slopes not in SLOPES or self.noise not in ("gaussian", "gamma") or self.reach < 1:
            raise AccountingError(f"slopes are one of {', '.join(SLOPES)}, noise gaussian or gamma, reach at least 1")

    def describe(self) -> str:
        """Return the event for a person."""
        stored = to_dict(self) | {"slopes": self.slopes.replace("_", "-")}
        stored = {name: value for name, value in stored.items() if name not in ("reach", "outputs") or value != 1}
        stored["kind"] = f"minimum of an objective with {stored.pop('noise')} noise inside"
        return _phrase(stored)


@dataclass(frozen=True)
class TotalVariation(_Released):
    """An assumption, not a release: what was released came from a law within this distance of the intended one.

    A sampler that is only approximate (a Markov chain stopped after finitely many steps) adds
    (1 + e^epsilon) distance to delta, and has no pure guarantee at all.
    """

    kind: ClassVar[str] = "total_variation"
    count: ClassVar[int] = 1
    distance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", _require_positive(self.distance, "distance"))

    def describe(self) -> str:
        """Return the assumption for a person."""
        return (
            f"ASSUMED: whatever the data, the draw's law is within {self.distance!r} of the intended one in total\n"
            "                variation. This is not proved, nor does it follow from how long the sampler ran;\n"
            "                the guarantee rests on it."
        )


@dataclass(frozen=True)
class NonPrivate(_Released):
    """A release without noise. Its price is infinite."""

    kind: ClassVar[str] = "non_private"
    count: ClassVar[int] = 1


Sampleable = Gaussian | Laplace | BoundedRange | PureDP


@dataclass(frozen=True)
class PoissonSampled(_Released):
    """Each of the inner event's ``count`` releases sees its own, fresh Poisson sample of the records.

    The sampling probability is numerator/2^16, exactly. One sample that serves several releases is a
    different, costlier event. Under ``replace_one`` a record that is not drawn must move the query by at
    most half its sensitivity (a sum of contributions of norm at most C: 2C against C) for Gaussian
    noise, and by at most its sensitivity for the pure mechanisms.
    """

    kind: ClassVar[str] = "poisson_sampled"
    numerator: int
    event: Sampleable

    def __post_init__(self) -> None:
        _require_count(self.numerator, "numerator")
        if self.numerator > SAMPLING_DENOMINATOR:
            raise AccountingError(f"the numerator of a sampling probability is at most {SAMPLING_DENOMINATOR}")
        if not isinstance(self.event, (Gaussian, Laplace, BoundedRange, PureDP)):
            raise AccountingError("only Gaussian, Laplace, BoundedRange and PureDP events can be Poisson-sampled")

    @property
    def probability(self) -> Fraction:
        """The exact probability with which a record is drawn."""
        return Fraction(self.numerator, SAMPLING_DENOMINATOR)

    @property
    def count(self) -> int:
        """How many samples are drawn, each for a release."""
        return self.event.count

    @property
    def inner(self) -> "Event":
        """What was released of each sample."""
        return self.event

    def describe(self) -> str:
        """Return the event for a person."""
        return f"{self.event.describe()}, each on a fresh sample with probability {self.numerator}/65536"


@dataclass(frozen=True)
class RepeatedSelection(_Released):
    """The best outcome of a random, secret number of runs, and nothing of the others (``repeated_selection.py``).

    Parameters
    ----------
    runs
        What a run releases, its score included: one list of events for each kind of run, of which the costliest counts.
    mean
        The mean of the number of runs.
    shape
        None for Poisson, else that of a truncated negative binomial: 1 geometric, 0 logarithmic.
    """

    kind: ClassVar[str] = "repeated_selection"
    count: ClassVar[int] = 1
    runs: tuple[tuple["Event", ...], ...]
    mean: float
    shape: float | None = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _require_positive(self.mean, "mean"))
        if self.shape is not None and (isinstance(self.shape, bool) or not isinstance(self.shape, (int, float))):
            raise AccountingError("the shape of a selection is a number, or None for Poisson")
        if not self.runs or not all(isinstance(run, tuple) and run for run in self.runs):
            raise AccountingError("a selection lists the events of at least one kind of run")
        refused = (RepeatedSelection, TotalVariation, NonPrivate)
        if any(isinstance(event, refused) for run in self.runs for event in run):
            raise AccountingError("the runs of a selection are private, exact and select nothing themselves")
        if self.shape is not None:
            object.__setattr__(self, "shape", float(self.shape))
        Stopping(self.mean, self.shape)

    def describe(self) -> str:
        """Return the event for a person."""
        runs = ", or ".join(" and ".join(event.describe() for event in run) for run in self.runs)
        law = Stopping(self.mean, self.shape)
        return f"the best of a secret number of runs ({law.name}, mean {law.mean:g}), a run at most {runs}"


Event = (
    Gaussian
    | Laplace
    | PoissonSampled
    | BoundedRange
    | PureDP
    | ZCDP
    | PerturbedMinimum
    | RepeatedSelection
    | TotalVariation
    | NonPrivate
)

_KINDS: dict[str, type[Any]] = {cls.kind: cls for cls in get_args(Event)}


def to_dict(event: Event) -> dict[str, Any]:
    """The event in plain JSON types; floats survive exactly."""
    answer: dict[str, Any] = {"kind": event.kind}
    for item in fields(event):
        value = getattr(event, item.name)
        if item.name == "runs":
            value = [[to_dict(inner) for inner in run] for run in value]
        answer[item.name] = to_dict(value) if item.name == "event" else value
    return answer


def _phrase(stored: dict[str, Any]) -> str:
    """The fields of an event in a line."""
    kind, count = stored.pop("kind"), stored.pop("count", 1)
    settings = ", ".join(f"{name} {value}" for name, value in stored.items() if value is not None)
    return f"{count} x {kind.replace('_', ' ')}" + (f" ({settings})" if settings else "")


def event_from_dict(stored: Mapping[str, Any]) -> Event:
    """The inverse of ``to_dict``. Unknown kinds, missing and unknown fields are refused."""
    if not isinstance(stored, Mapping) or not isinstance(stored.get("kind"), str) or stored["kind"] not in _KINDS:
        raise AccountingError(f"an event must be an object whose kind is one of {', '.join(sorted(_KINDS))}")
    cls = _KINDS[stored["kind"]]
    names = {item.name for item in fields(cls)}
    if set(stored) != names | {"kind"}:
        raise AccountingError(f"an event of kind {cls.kind!r} has exactly the fields {', '.join(sorted(names))}")
    values = {name: stored[name] for name in names}
    if cls is PoissonSampled:
        values["event"] = event_from_dict(values["event"])
    if cls is RepeatedSelection:
        if not isinstance(values["runs"], list) or not all(isinstance(run, list) for run in values["runs"]):
            raise AccountingError("the runs of a selection are lists of events")
        values["runs"] = tuple(tuple(event_from_dict(inner) for inner in run) for run in values["runs"])
    event: Event = cls(**values)
    return event


def unwrapped(event: Event) -> Event:
    """The inner event where sampling is with probability one, else the event itself."""
    if isinstance(event, PoissonSampled) and event.numerator == SAMPLING_DENOMINATOR:
        return event.event
    return event


def merged(events: Iterable[Event]) -> tuple[Event, ...]:
    """The same releases with equal events joined into one of a larger count, in order of appearance."""
    counts: dict[Event, int] = {}
    for event in map(unwrapped, events):
        one = with_count(event, 1)
        counts[one] = counts.get(one, 0) + event.count
    answer: list[Event] = []
    for event, count in counts.items():
        many = with_count(event, count)
        answer += [many] if many.count == count else [event] * count
    return tuple(answer)


def with_count(event: Event, count: int) -> Event:
    """The same event, that many times; events without a count are returned as they are."""
    if isinstance(event, PoissonSampled):
        return replace(event, event=replace(event.event, count=count))
    return replace(event, count=count) if isinstance(event, (Gaussian, Laplace, BoundedRange, PureDP)) else event
