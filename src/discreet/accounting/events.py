"""Events say what was released, and nothing of how: the language of plan, price, ledger and certificate.

Every event is a frozen dataclass that knows its own prices: its Renyi divergences (``log_moments``), its rho of
concentrated DP (``zcdp``), its pure epsilon, and the law of its privacy loss (``loss_law``). It turns into plain JSON
types (``to_dict``) and back (``event_from_dict``, which refuses fields it does not know). ``noise_multiplier`` always
means the noise's standard deviation (its scale, for Laplace) over the sensitivity under the declared relation.
"""

import decimal
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np

from discreet.accounting import gaussian, rdp
from discreet.accounting.objective_perturbation import SLOPES, UP, LossBound, Perturbation, determinant_term, loss_bound
from discreet.accounting.selection import ORDERS, Stopping, profile_of_curve
from discreet.budget import Neighbors
from discreet.errors import AccountingError, Unsupported
from discreet.json_schemas import Json
from discreet.typing import Floats

SAMPLING_DENOMINATOR = 2**16
_NO_PURE = (
    "Gaussian noise has no pure guarantee: set a delta above 0 (such as 1e-6), or use a solver with Laplace noise"
)


def _require_count(value: int, what: str, low: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise AccountingError(f"{what} of an event must be a whole number, at least {low}")
    return value


def reciprocal_up(value: float) -> float:
    """Return a double not below 1/value."""
    answer = 1.0 / value
    if math.isinf(answer) or Fraction(answer) * Fraction(value) >= 1:
        return answer
    return math.nextafter(answer, math.inf)


@dataclass(frozen=True)
class LossLaw:
    """The law of a release's privacy loss, as ``pld`` builds its distribution.

    ``parameter`` is the noise multiplier of ``"gaussian"`` and ``"laplace"`` noise and the epsilon of a ``"pure"``
    release; ``count`` such losses are added; ``deviation`` is about the standard deviation of each, and ``width`` how
    far it extends where that makes it expensive to build. Losses of ``"pure"`` and ``"bound"`` are rounded up to the
    grid.
    """

    mechanism: Literal["gaussian", "laplace", "pure", "bound"]
    parameter: float
    count: int
    deviation: float
    width: float = 0.0
    probability: float = 1.0
    bound: LossBound | None = None

    @property
    def is_rounded_up(self) -> bool:
        """Whether each loss is rounded up to the grid."""
        return self.mechanism in ("pure", "bound")


class Event:
    """What every event says of itself."""

    kind: ClassVar[str]
    title: ClassVar[str] = "a release"
    is_release: ClassVar[bool] = True
    _positive: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self._positive:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
                raise AccountingError(f"{name} of an event must be a positive, finite number")
            object.__setattr__(self, name, float(value))
        _require_count(self.count, "count")

    @property
    def count(self) -> int:
        """How many releases there are."""
        return 1

    @property
    def inner(self) -> "Event":
        """What was released of each sample; the event itself where all records were seen."""
        return self

    @property
    def unwrapped(self) -> "Event":
        """The inner event where sampling is with probability one, else the event itself."""
        return self

    def with_count(self, count: int) -> "Event":
        """Return the same event, that many times; events without a count as they are."""
        return self

    def with_noise(self, factor: float) -> "Event":
        """Return the same releases with this much more noise."""
        raise Unsupported("the noise of this event cannot be scaled")

    def simplified(self, neighbors: Neighbors) -> "Event":
        """Return the same event as a pure or a Gaussian one where it truly is that."""
        return self

    # --- prices ------------------------------------------------------------------------------------

    def log_moments(self, neighbors: Neighbors, orders: Floats) -> Floats:
        """Return (a - 1) D_a, D_a the Renyi divergence of order a, for each of the orders (whole ones if sampled)."""
        raise AccountingError("an event without a Renyi-DP formula")

    @property
    def zcdp(self) -> float:
        """The rho of concentrated DP of all its releases; 0 where it is not known to have one."""
        return 0.0

    @property
    def is_concentrated(self) -> bool:
        """Whether the divergence of every order a is rho a, exactly."""
        return False

    @property
    def pure_epsilon(self) -> float:
        """The pure epsilon of one release, rounded up."""
        raise Unsupported(_NO_PURE)

    @property
    def exact_pure_epsilon(self) -> Fraction:
        """The same without rounding where the event is not sampled: 1/z of a double z is no double."""
        return Fraction(self.pure_epsilon)

    @property
    def decimal_pure_epsilon(self) -> decimal.Decimal:
        """The same by another formula, in the decimals of the context."""
        raise Unsupported(_NO_PURE)

    @property
    def least_epsilon(self) -> float:
        """What no amount of noise lowers."""
        return 0.0

    def loss_law(self, neighbors: Neighbors) -> LossLaw:
        """Return the law of the privacy loss."""
        raise Unsupported("no privacy loss distribution is known for this event: price it by RDP")

    @property
    def multiplier(self) -> float | Fraction | None:
        """The noise over the sensitivity that one release pays for; None where the event says nothing of noise."""
        return None

    # --- text --------------------------------------------------------------------------------------

    def to_dict(self) -> Json:
        """Return the event in plain JSON types; floats survive exactly."""
        return {"kind": self.kind, **{item.name: getattr(self, item.name) for item in fields(self)}}  # type: ignore[arg-type]

    @classmethod
    def _of(cls, values: Json) -> Self:
        """Return the event of the fields that ``to_dict`` wrote."""
        return cls(**values)

    def describe(self) -> str:
        """Return the event for a person."""
        return _phrase(self.to_dict())

    def noise_text(self, number: Callable[[float], str]) -> str:
        """Return the noise over the sensitivity, or what stands for it, for a person."""
        return "none"


class Sampleable(Event):
    """What may be released of a Poisson sample: each price takes the probability with which a record is drawn."""

    def log_moments(self, neighbors: Neighbors, orders: Floats, probability: float = 1.0) -> Floats:
        raise NotImplementedError

    def loss_law(self, neighbors: Neighbors, probability: float = 1.0) -> LossLaw:
        raise NotImplementedError

    def with_count(self, count: int) -> "Sampleable":
        return replace(self, count=count)  # type: ignore[type-var]


@dataclass(frozen=True)
class Gaussian(Sampleable):
    """``count`` adaptive releases of a vector with Gaussian noise: exactly sqrt(count)/noise_multiplier-GDP."""

    kind: ClassVar[str] = "gaussian"
    title: ClassVar[str] = "sums with Gaussian noise"
    _positive: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    noise_multiplier: float
    count: int = 1

    def with_noise(self, factor: float) -> "Gaussian":
        return replace(self, noise_multiplier=self.noise_multiplier * factor)

    def log_moments(self, neighbors: Neighbors, orders: Floats, probability: float = 1.0) -> Floats:
        replaced = neighbors is Neighbors.REPLACE_ONE
        rule = rdp.replace_moments_of_sampled_gaussian if replaced else rdp.moments_of_sampled_gaussian
        return self.count * rule(probability, self.noise_multiplier, orders)

    @property
    def zcdp(self) -> float:
        return self.count * rdp.zcdp_of_gaussian(self.noise_multiplier)

    @property
    def is_concentrated(self) -> bool:
        return True

    def loss_law(self, neighbors: Neighbors, probability: float = 1.0) -> LossLaw:
        """Return the law of the loss: unsampled releases are one, at the exact composed multiplier (rounded down)."""
        if probability >= 1:
            mu = math.sqrt(self.count) / self.noise_multiplier
            composed = self.noise_multiplier / math.sqrt(self.count) * (1 - 2.0**-50)
            return LossLaw("gaussian", composed, 1, mu, 10 * mu + mu * mu)
        mu = 1.0 / self.noise_multiplier
        deviation = probability * math.sqrt(math.expm1(min(1 / self.noise_multiplier**2, 50.0)))
        scale = 2 * self.noise_multiplier if neighbors is Neighbors.REPLACE_ONE else self.noise_multiplier
        return LossLaw("gaussian", scale, self.count, deviation, 10 * mu + mu * mu, probability)

    @property
    def multiplier(self) -> float:
        return self.noise_multiplier

    def noise_text(self, number: Callable[[float], str]) -> str:
        return f"Gaussian, {number(self.noise_multiplier)} × sensitivity"


class _Pure(Sampleable):
    """Releases that are each epsilon-DP."""

    def log_moments(self, neighbors: Neighbors, orders: Floats, probability: float = 1.0) -> Floats:
        """Return the log-moments: those of randomized response."""
        return self.count * rdp.moments_of_pure(rdp.amplified_pure(self.pure_epsilon, probability), orders)

    @property
    def zcdp(self) -> float:
        return self.count * rdp.zcdp_of_pure(self.pure_epsilon)

    @property
    def decimal_pure_epsilon(self) -> decimal.Decimal:
        return decimal.Decimal(self.pure_epsilon)

    def loss_law(self, neighbors: Neighbors, probability: float = 1.0) -> LossLaw:
        """Return the law of the loss: that of randomized response."""
        epsilon = rdp.amplified_pure(self.pure_epsilon, probability)
        return LossLaw("pure", epsilon, self.count, epsilon)

    @property
    def multiplier(self) -> float | Fraction:
        """The noise over the range of scores."""
        return 1 / Fraction(self.pure_epsilon)

    def noise_text(self, number: Callable[[float], str]) -> str:
        return f"epsilon = {number(self.pure_epsilon)} each"


@dataclass(frozen=True)
class Laplace(_Pure):
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
    with t/D. The curator's lattice keeps to it (``curator/lattice.py``).
    """

    kind: ClassVar[str] = "laplace"
    title: ClassVar[str] = "sums with Laplace noise"
    _positive: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    noise_multiplier: float
    count: int = 1
    dimension: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimension is not None:
            _require_count(self.dimension, "dimension")

    @property
    def epsilon(self) -> float:
        """The pure epsilon of one release, 1/noise_multiplier rounded up."""
        return reciprocal_up(self.noise_multiplier)

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    def with_noise(self, factor: float) -> "Laplace":
        return replace(self, noise_multiplier=self.noise_multiplier * factor)

    def log_moments(self, neighbors: Neighbors, orders: Floats, probability: float = 1.0) -> Floats:
        """Return the log-moments: exact ones for scalars that are not sampled."""
        if self.dimension == 1 and probability >= 1:
            return self.count * rdp.moments_of_laplace(self.epsilon, orders)
        return super().log_moments(neighbors, orders, probability)

    @property
    def zcdp(self) -> float:
        return self.count * rdp.zcdp_of_laplace(self.epsilon) if self.dimension == 1 else super().zcdp

    @property
    def exact_pure_epsilon(self) -> Fraction:
        """1/noise_multiplier."""
        return 1 / Fraction(self.noise_multiplier)

    @property
    def decimal_pure_epsilon(self) -> decimal.Decimal:
        return 1 / decimal.Decimal(self.noise_multiplier)

    def loss_law(self, neighbors: Neighbors, probability: float = 1.0) -> LossLaw:
        """Return the law of the loss; vectors, and sampled scalars under ``replace_one``, count as pure."""
        if self.dimension != 1 or (probability < 1 and neighbors is Neighbors.REPLACE_ONE):
            return super().loss_law(neighbors, probability)
        deviation = rdp.amplified_pure(self.epsilon, probability)
        return LossLaw("laplace", self.noise_multiplier, self.count, deviation, probability=probability)

    @property
    def multiplier(self) -> float:
        return self.noise_multiplier

    def noise_text(self, number: Callable[[float], str]) -> str:
        return f"Laplace, {number(self.noise_multiplier)} × sensitivity"


@dataclass(frozen=True)
class _OfEpsilon(_Pure):
    """Releases of which each states its epsilon."""

    _positive: ClassVar[tuple[str, ...]] = ("epsilon",)
    epsilon: float
    count: int = 1

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    def with_noise(self, factor: float) -> Self:
        return replace(self, epsilon=self.epsilon / factor)


@dataclass(frozen=True)
class PureDP(_OfEpsilon):
    """``count`` releases of which each is epsilon-DP and nothing more is known (e.g. permute-and-flip)."""

    kind: ClassVar[str] = "pure"
    title: ClassVar[str] = "choices with noise"


@dataclass(frozen=True)
class BoundedRange(_OfEpsilon):
    """``count`` selections by the exponential mechanism (or Gumbel noise), each of range ``epsilon``.

    Bounded range: the log-ratios of one pair of neighbors lie in an interval of length epsilon. Each
    is epsilon-DP and epsilon^2/8-zCDP. Permute-and-flip is not of bounded range: use ``PureDP``.
    """

    kind: ClassVar[str] = "bounded_range"
    title: ClassVar[str] = "choices by the exponential mechanism"

    def log_moments(self, neighbors: Neighbors, orders: Floats, probability: float = 1.0) -> Floats:
        """Return the log-moments: of concentrated DP or of randomized response, whichever is less."""
        if probability < 1:
            return super().log_moments(neighbors, orders, probability)
        range_bound = (orders - 1) * orders * rdp.zcdp_of_bounded_range(self.epsilon)
        return self.count * np.minimum(range_bound, rdp.moments_of_pure(self.epsilon, orders))

    @property
    def zcdp(self) -> float:
        return self.count * min(rdp.zcdp_of_bounded_range(self.epsilon), rdp.zcdp_of_pure(self.epsilon))


@dataclass(frozen=True)
class ZCDP(Event):
    """A release (or a whole filter) that is rho-zCDP."""

    kind: ClassVar[str] = "zcdp"
    title: ClassVar[str] = "adaptive answers"
    _positive: ClassVar[tuple[str, ...]] = ("rho",)
    rho: float

    def with_noise(self, factor: float) -> "ZCDP":
        return replace(self, rho=self.rho / factor**2)

    def log_moments(self, neighbors: Neighbors, orders: Floats) -> Floats:
        return (orders - 1) * orders * self.rho

    @property
    def zcdp(self) -> float:
        return self.rho

    @property
    def is_concentrated(self) -> bool:
        return True

    def noise_text(self, number: Callable[[float], str]) -> str:
        return f"rho = {number(self.rho)} in all"


@dataclass(frozen=True)
class PerturbedMinimum(Event):
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
    title: ClassVar[str] = "the minimum of a noisy objective"
    _positive: ClassVar[tuple[str, ...]] = ("noise_multiplier", "curvature", "reach")
    noise_multiplier: float
    curvature: float
    slopes: str = "two_signed"
    reach: float = 1.0
    outputs: int = 1
    noise: str = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_count(self.outputs, "outputs", 2 if self.slopes == "softmax" else 1)
        if self.slopes not in SLOPES or self.noise not in ("gaussian", "gamma") or self.reach < 1:
            raise AccountingError(f"slopes are one of {', '.join(SLOPES)}, noise gaussian or gamma, reach at least 1")

    @property
    def perturbation(self) -> Perturbation:
        """What the price needs in addition to the noise."""
        return Perturbation(self.curvature, self.slopes, self.reach, self.outputs)

    def loss_bound(self, neighbors: Neighbors) -> LossBound:
        """Return what bounds the privacy loss with Gaussian noise, in both directions."""
        if self.noise != "gaussian":
            raise AccountingError("only Gaussian noise inside an objective has a loss bound: gamma noise is pure")
        return loss_bound(self.perturbation, self.noise_multiplier, neighbors)

    def simplified(self, neighbors: Neighbors) -> Event:
        """Return a pure event for gamma noise, and a Gaussian one where the curvature adds nothing."""
        if self.noise == "gamma":
            return PureDP((self.least_epsilon + reciprocal_up(self.noise_multiplier)) * UP)
        plain = self.slopes == "logistic" and self.reach == 1 and neighbors is not Neighbors.REPLACE_ONE
        # 8 c z^2 <= 1 is kappa <= mu^2/2; a little less, for rounding.
        if plain and 8 * self.curvature * self.noise_multiplier**2 <= 1 - 2.0**-48:
            return Gaussian(self.noise_multiplier)
        return self

    def log_moments(self, neighbors: Neighbors, orders: Floats) -> Floats:
        """Return the log-moments of the bound on the loss."""
        simplified = self.simplified(neighbors)
        if simplified is not self:
            return simplified.log_moments(neighbors, orders)
        return self.loss_bound(neighbors).log_moments(orders - 1)

    @property
    def least_epsilon(self) -> float:
        """The determinant's term."""
        return determinant_term(self.perturbation)

    @property
    def pure_epsilon(self) -> float:
        self._require_gamma()
        return math.nextafter(self.least_epsilon + reciprocal_up(self.noise_multiplier), math.inf)

    @property
    def exact_pure_epsilon(self) -> Fraction:
        self._require_gamma()
        return Fraction(self.least_epsilon) + 1 / Fraction(self.noise_multiplier)

    @property
    def decimal_pure_epsilon(self) -> decimal.Decimal:
        """The same from the rank of the changed record's Hessian and the mean of its eigenvalues over lambda."""
        self._require_gamma()
        rank, mean = 1, decimal.Decimal(self.curvature)
        if self.slopes == "softmax":
            rank, mean = self.outputs - 1, 2 * mean / self.outputs
        return rank * (1 + mean).ln() + 1 / decimal.Decimal(self.noise_multiplier)

    def _require_gamma(self) -> None:
        if self.noise != "gamma":
            raise Unsupported(_NO_PURE)

    def loss_law(self, neighbors: Neighbors) -> LossLaw:
        """Return the bound on the loss; gamma noise is pure."""
        if self.noise == "gamma":
            return self.simplified(neighbors).loss_law(neighbors)
        bound, mu = self.loss_bound(neighbors), 1 / self.noise_multiplier
        return LossLaw("bound", 0.0, 1, mu, 10 * mu + mu * mu + self.least_epsilon, bound=bound)

    def describe(self) -> str:
        stored = self.to_dict() | {"slopes": self.slopes.replace("_", "-")}
        stored = {name: value for name, value in stored.items() if name not in ("reach", "outputs") or value != 1}
        stored["kind"] = f"minimum of an objective with {stored.pop('noise')} noise inside"
        return _phrase(stored)

    def noise_text(self, number: Callable[[float], str]) -> str:
        return f"{self.noise.capitalize()}, {number(self.noise_multiplier)} × sensitivity"


@dataclass(frozen=True)
class TotalVariation(Event):
    """An assumption, not a release: what was released came from a law within this distance of the intended one.

    A sampler that is only approximate (a Markov chain stopped after finitely many steps) adds
    (1 + e^epsilon) distance to delta, and has no pure guarantee at all.
    """

    kind: ClassVar[str] = "total_variation"
    is_release: ClassVar[bool] = False
    _positive: ClassVar[tuple[str, ...]] = ("distance",)
    distance: float

    def log_moments(self, neighbors: Neighbors, orders: Floats) -> Floats:
        """Refuse: it is a part of delta."""
        raise AccountingError("a distance in total variation has no Renyi-DP: it is a part of delta")

    def describe(self) -> str:
        return (
            f"ASSUMED: whatever the data, the draw's law is within {self.distance!r} of the intended one in total\n"
            "                variation. This is not proved, nor does it follow from how long the sampler ran;\n"
            "                the guarantee rests on it."
        )


@dataclass(frozen=True)
class NonPrivate(Event):
    """A release without noise. Its price is infinite."""

    kind: ClassVar[str] = "non_private"
    title: ClassVar[str] = "something without noise"

    def log_moments(self, neighbors: Neighbors, orders: Floats) -> Floats:
        return np.full_like(orders, np.inf)


@dataclass(frozen=True)
class PoissonSampled(Event):
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
        if not isinstance(self.event, Sampleable):
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
    def inner(self) -> Event:
        return self.event

    @property
    def unwrapped(self) -> Event:
        return self.event if self.numerator == SAMPLING_DENOMINATOR else self

    def with_count(self, count: int) -> "PoissonSampled":
        return replace(self, event=self.event.with_count(count))

    def with_noise(self, factor: float) -> "PoissonSampled":
        noisier = self.event.with_noise(factor)
        assert isinstance(noisier, Sampleable)
        return replace(self, event=noisier)

    def log_moments(self, neighbors: Neighbors, orders: Floats) -> Floats:
        return self.event.log_moments(neighbors, orders, float(self.probability))

    @property
    def pure_epsilon(self) -> float:
        """The pure epsilon of one release, amplified by sampling and rounded up."""
        return rdp.amplified_pure(self.event.pure_epsilon, float(self.probability))

    @property
    def decimal_pure_epsilon(self) -> decimal.Decimal:
        """The same as epsilon + ln(q + (1 - q) e^-epsilon)."""
        epsilon, q = self.event.decimal_pure_epsilon, decimal.Decimal(self.numerator) / 2**16
        return epsilon + (q + (1 - q) * (-epsilon).exp()).ln()

    def loss_law(self, neighbors: Neighbors) -> LossLaw:
        return self.event.loss_law(neighbors, self.numerator / SAMPLING_DENOMINATOR)

    @property
    def multiplier(self) -> float | Fraction | None:
        return self.event.multiplier

    def to_dict(self) -> Json:
        return {"kind": self.kind, "numerator": self.numerator, "event": self.event.to_dict()}

    @classmethod
    def _of(cls, values: Json) -> Self:
        return cls(**values | {"event": event_from_dict(values["event"])})

    def describe(self) -> str:
        return f"{self.event.describe()}, each on a fresh sample with probability {self.numerator}/65536"

    def noise_text(self, number: Callable[[float], str]) -> str:
        drawn = number(float(self.probability))
        return f"{self.event.noise_text(number)}; each row takes part with probability {drawn}"


@dataclass(frozen=True)
class RepeatedSelection(Event):
    """The best outcome of a random, secret number of runs, and nothing of the others (``selection.py``).

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
    title: ClassVar[str] = "the best of a secret number of runs"
    _positive: ClassVar[tuple[str, ...]] = ("mean",)
    runs: tuple[tuple[Event, ...], ...]
    mean: float
    shape: float | None = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
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

    @property
    def stopping(self) -> Stopping:
        """The law of the number of runs."""
        return Stopping(self.mean, self.shape)

    @property
    def mu(self) -> float:
        """The largest mu of the Gaussian releases of any kind of run."""
        return max(map(gaussian_mu, self.runs))

    def log_moments(self, neighbors: Neighbors, orders: Floats) -> Floats:
        return self.stopping.selected_moments(
            orders, partial(self._divergences, neighbors), partial(self._profile, neighbors)
        )

    def _divergences(self, neighbors: Neighbors, orders: Floats) -> Floats:
        """Return the largest Renyi divergence of any kind of run, at real orders above 1."""
        return np.asarray(np.max(np.stack([divergences(run, neighbors, orders) for run in self.runs]), axis=0))

    def _profile(self, neighbors: Neighbors, epsilons: Floats) -> Floats:
        """Return the largest delta of any kind of run at each epsilon."""
        return np.asarray(np.max(np.stack([_profile(run, neighbors, epsilons) for run in self.runs]), axis=0))

    def to_dict(self) -> Json:
        return super().to_dict() | {"runs": [[event.to_dict() for event in run] for run in self.runs]}

    @classmethod
    def _of(cls, values: Json) -> Self:
        runs = values["runs"]
        if not isinstance(runs, list) or not all(isinstance(run, list) for run in runs):
            raise AccountingError("the runs of a selection are lists of events")
        return cls(**values | {"runs": tuple(tuple(map(event_from_dict, run)) for run in runs)})

    def describe(self) -> str:
        runs = ", or ".join(" and ".join(event.describe() for event in run) for run in self.runs)
        law = self.stopping
        return f"the best of a secret number of runs ({law.name}, mean {law.mean:g}), a run at most {runs}"

    def noise_text(self, number: Callable[[float], str]) -> str:
        return "that of its runs"


_KINDS: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        Gaussian,
        Laplace,
        PoissonSampled,
        BoundedRange,
        PureDP,
        ZCDP,
        PerturbedMinimum,
        RepeatedSelection,
        TotalVariation,
        NonPrivate,
    )
}


def _phrase(stored: Json) -> str:
    """Return the fields of an event in a line."""
    kind, count = stored.pop("kind"), stored.pop("count", 1)
    settings = ", ".join(f"{name} {value}" for name, value in stored.items() if value is not None)
    return f"{count} x {kind.replace('_', ' ')}" + (f" ({settings})" if settings else "")


def event_from_dict(stored: Mapping[str, object]) -> Event:
    """Return the event that ``to_dict`` wrote. Unknown kinds, missing and unknown fields are refused."""
    if not isinstance(stored, Mapping) or not isinstance(stored.get("kind"), str) or stored["kind"] not in _KINDS:
        raise AccountingError(f"an event must be an object whose kind is one of {', '.join(sorted(_KINDS))}")
    cls = _KINDS[stored["kind"]]
    names = {item.name for item in fields(cls)}  # type: ignore[arg-type]
    if set(stored) != names | {"kind"}:
        raise AccountingError(f"an event of kind {cls.kind!r} has exactly the fields {', '.join(sorted(names))}")
    return cls._of({name: stored[name] for name in names})


# --- compositions ----------------------------------------------------------------------------------


def merged(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the same releases with equal events joined into one of a larger count, in order of appearance."""
    counts: dict[Event, int] = {}
    for event in (event.unwrapped for event in events):
        single = event.with_count(1)
        counts[single] = counts.get(single, 0) + event.count
    answer: list[Event] = []
    for event, count in counts.items():
        many = event.with_count(count)
        answer += [many] if many.count == count else [event] * count
    return tuple(answer)


def gaussian_mu(events: Iterable[Event]) -> float:
    """Return the mu of Gaussian DP of the Gaussian events."""
    return gaussian.mu_of_noise((e.count, e.noise_multiplier) for e in events if isinstance(e, Gaussian))


def renyi_epsilon(events: Iterable[Event], delta: float, neighbors: Neighbors) -> float:
    """Return the epsilon of a composition at delta > 0 by Renyi DP, an upper bound."""
    total = np.zeros_like(rdp.orders())
    for event in events:
        total = total + event.log_moments(neighbors, rdp.orders())
    return rdp.epsilon_of_curve(total, delta)


def divergences(events: Iterable[Event], neighbors: Neighbors, orders: Floats) -> Floats:
    """Return the Renyi divergences of a composition at real orders above 1.

    Exact for Gaussian and zCDP events; for others chords of the log-moments, and pure epsilon beyond them.
    """
    listed = tuple(events)
    rest = [event for event in listed if not event.is_concentrated]
    curve: Floats = math.fsum(event.zcdp for event in listed if event.is_concentrated) * orders
    if not rest:
        return curve
    whole = np.concatenate([[1.0], rdp.orders()])
    moments = np.sum([event.log_moments(neighbors, rdp.orders()) for event in rest], axis=0)
    chord: Floats = np.interp(orders, whole, np.concatenate([[0.0], moments]), right=np.inf) / (orders - 1)
    with suppress(Unsupported):
        chord = np.minimum(chord, pure_epsilon(rest))
    return curve + chord


def _profile(run: tuple[Event, ...], neighbors: Neighbors, epsilons: Floats) -> Floats:
    """Return the delta of a run at each epsilon: exact for Gaussian runs, from the curve for others."""
    if all(isinstance(event, Gaussian) for event in run):
        mu = gaussian_mu(run)
        return np.array([gaussian.delta_of(epsilon, mu) for epsilon in epsilons.tolist()])
    return profile_of_curve(divergences(run, neighbors, ORDERS), epsilons)


def pure_epsilon(events: Iterable[Event]) -> float:
    """Return the epsilon of basic composition, summed exactly and rounded up."""
    total = sum((event.count * event.exact_pure_epsilon for event in events), Fraction(0))
    epsilon = float(total)
    return epsilon if Fraction(epsilon) >= total else math.nextafter(epsilon, math.inf)


def decimal_pure_epsilon(events: Iterable[Event]) -> float:
    """Return the epsilon of basic composition by another formula, in 50 digits, rounded down."""
    with decimal.localcontext() as context:
        context.prec, context.rounding = 50, decimal.ROUND_FLOOR
        total = decimal.Decimal(0)
        for event in events:
            total += event.count * event.decimal_pure_epsilon
        answer = float(total)
        return answer if decimal.Decimal(answer) <= total else math.nextafter(answer, 0.0)
