"""What a solver will release, known before any record is read: ``Release``, ``Plan`` and ``AdaptivePlan``.

A solver that chooses its noise from earlier answers needs more than composition: a *filter*, which refuses any answer
that would bring the sum of the rho above a total fixed beforehand. For zCDP such a filter costs nothing: whatever the
(adaptive) sequence of rho_i, if their sum never exceeds rho, the run is rho-zCDP (Feldman & Zrnic 2021; Whitehouse et
al. 2023). Privacy loss distributions of a fixed schedule are no filter. (There is one for Gaussian DP, but choices are
not Gaussian.) ``Filter`` rounds charges up to a multiple of 2^-120 and the total down, and adds in integers: spent +
left is the total, exactly, at every moment.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.accounting import rdp
from discreet.accounting.events import (
    SAMPLING_DENOMINATOR,
    ZCDP,
    BoundedRange,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    PerturbedMinimum,
    PoissonSampled,
    PureDP,
    Sampleable,
    TotalVariation,
    reciprocal_up,
)
from discreet.accounting.objective_perturbation import Perturbation as Perturbation
from discreet.budget import Budget
from discreet.errors import AccountingError, BudgetExceeded, PlanViolation, Unsupported

MECHANISMS = ("additive", "laplace", "exponential", "permute_and_flip", "noisy_max", "objective")


@dataclass(frozen=True)
class Release:
    """Answers to one kind of query.

    Parameters
    ----------
    query : str
        The curator's method that will be asked.
    count : int
        How many times. Zero is allowed and costs nothing.
    sampling_probability : float or Fraction, default=1
        Each answer sees a fresh Poisson sample of the records; rounded up to a multiple of 2^-16, and
        the curator draws with exactly that.
    relative_noise : float, default=1.0
        This release's noise multiplier, in units of the plan's.
    clip : float, default=None
        The bound on a record's contribution, where the query has one.
    mechanism : str, default="additive"
        ``"additive"`` noise (Gaussian, or Laplace for a pure plan), ``"laplace"`` noise in any plan, or a
        selection: ``"exponential"`` (of bounded range 1/noise_multiplier), ``"permute_and_flip"`` or
        ``"noisy_max"`` (both pure 1/noise_multiplier); ``"objective"`` is noise inside an objective that is
        minimized, whose price needs a ``perturbation``.
    dimension : int, default=None
        The number of coordinates of an answer, where known; matters to scalar Laplace answers only.
    perturbation : Perturbation, default=None
        For ``"objective"``: the curvature and the slopes of the records' losses.

    Examples
    --------
    >>> from discreet.accounting import Release
    >>> Release("noisy_gradient", 100, sampling_probability=0.01, clip=1.0).sampling_numerator
    656
    """

    query: str
    count: int
    sampling_probability: Fraction | float = 1
    relative_noise: float = 1.0
    clip: float | None = None
    mechanism: str = "additive"
    dimension: int | None = None
    perturbation: Perturbation | None = None
    sampling_numerator: int = field(init=False, repr=False, compare=False)
    """The sampling probability in units of 2^-16, rounded up."""

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or int(self.count) != self.count or self.count < 0:
            raise PlanViolation("a release needs a whole, non-negative count")
        object.__setattr__(self, "count", int(self.count))
        if not 0 < self.sampling_probability <= 1:
            raise PlanViolation("a sampling probability must lie in (0, 1]")
        numerator = math.ceil(Fraction(self.sampling_probability) * SAMPLING_DENOMINATOR)
        object.__setattr__(self, "sampling_numerator", numerator)
        if not (math.isfinite(self.relative_noise) and self.relative_noise > 0):
            raise PlanViolation("relative_noise must be positive and finite")
        if self.clip is not None and not (math.isfinite(self.clip) and self.clip >= 0):
            raise PlanViolation("clip must be finite and not negative, or None")
        if self.mechanism not in MECHANISMS:
            raise PlanViolation(f"mechanism must be one of {', '.join(MECHANISMS)}")
        if (self.mechanism == "objective") != (self.perturbation is not None) or (self.perturbation and self.count > 1):
            raise PlanViolation("objective perturbation needs its perturbation, and is released once")

    def event(self, noise_multiplier: float, *, pure: bool) -> Event:
        """Return what the release costs at this noise multiplier of the plan."""
        if noise_multiplier == 0:
            return NonPrivate()
        scaled = noise_multiplier * self.relative_noise
        if self.perturbation is not None:
            return PerturbedMinimum(scaled, **vars(self.perturbation), noise="gamma" if pure else "gaussian")
        inner: Sampleable
        if self.mechanism == "exponential":
            inner = BoundedRange(reciprocal_up(scaled), self.count)
        elif self.mechanism in ("permute_and_flip", "noisy_max"):
            inner = PureDP(reciprocal_up(scaled), self.count)
        elif pure or self.mechanism == "laplace":
            inner = Laplace(scaled, self.count, self.dimension)
        else:
            inner = Gaussian(scaled, self.count)
        numerator = self.sampling_numerator
        return inner if numerator == SAMPLING_DENOMINATOR else PoissonSampled(numerator, inner)


@dataclass(frozen=True)
class Plan:
    """All the releases of a fit. The curator answers these, and nothing else.

    Parameters
    ----------
    releases : iterable of Release
        What will be asked.
    least_noise : callable, default=None
        Gives, for a budget, a noise multiplier below which the plan is not run: the constants of
        a paper's theorem, where an experiment wants them. The tight calibration is never undercut.
    total_variation : float, default=0.0
        How far the law of a draw by an approximate sampler is assumed to be from the intended one.

    Examples
    --------
    >>> from discreet.accounting import Plan, Release
    >>> Plan([Release("noisy_gradient", 100), Release("noisy_count", 1)]).count
    101
    """

    releases: tuple[Release, ...]
    least_noise: Callable[[Budget], float] | None = field(default=None, compare=False)
    total_variation: float = 0.0

    def __init__(
        self,
        releases: Iterable[Release],
        least_noise: Callable[[Budget], float] | None = None,
        total_variation: float = 0.0,
    ) -> None:
        object.__setattr__(self, "releases", tuple(releases))
        object.__setattr__(self, "least_noise", least_noise)
        object.__setattr__(self, "total_variation", total_variation)
        if not 0 <= total_variation < 1:
            raise PlanViolation("total_variation is a distance: it lies in [0, 1)")

    @property
    def assumed_distance(self) -> float:
        """How far the law of all answers may be from the intended one: the sum over the draws."""
        draws = sum(release.count for release in self.releases if release.query.startswith("sample_"))
        return self.total_variation * max(1, draws)

    @property
    def count(self) -> int:
        """How many answers there are in all."""
        return sum(release.count for release in self.releases)

    @property
    def is_sampled(self) -> bool:
        """Whether any release sees a sample only."""
        return any(release.count and release.sampling_numerator < SAMPLING_DENOMINATOR for release in self.releases)

    def multiplier_for(self, budget: Budget) -> float | None:
        """Return the noise multiplier, where it does not have to be searched for."""
        return None

    def events(self, noise_multiplier: float, *, pure: bool) -> tuple[Event, ...]:
        """Return the events at a noise multiplier: Gaussian, or Laplace where ``pure``; 0 means no privacy."""
        releases = (release for release in self.releases if release.count)
        assumed = (TotalVariation(self.assumed_distance),) if self.total_variation and noise_multiplier else ()
        return (*(release.event(noise_multiplier, pure=pure) for release in releases), *assumed)


_UNIT_BITS = 120


@dataclass(frozen=True)
class AdaptivePlan(Plan):
    """Queries in any order and number, each with a rho of its own, within one total: a zCDP filter.

    Parameters
    ----------
    queries : iterable of Release
        The queries, their mechanisms and clips. A count of 0: each answer brings its own rho. Above 0: so many answers
        may be asked for without one, each with the noise multiplier of the whole total times ``relative_noise``.
    papers_total : bool, default=False
        Take the total from the textbook's conversion rho + 2 sqrt(rho ln(1/delta)) = epsilon, which is less.

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.accounting import AdaptivePlan, Release
    >>> plan = AdaptivePlan([Release("noisy_gradient", 1)])
    >>> round(plan.total(Budget(1.0, 1e-6)), 3)
    0.024
    """

    papers_total: bool = False

    def __init__(self, queries: Iterable[Release], *, papers_total: bool = False) -> None:
        super().__init__(queries)
        object.__setattr__(self, "papers_total", papers_total)

    def total(self, budget: Budget) -> float:
        """Return the rho that may be spent in all: infinite where there is no privacy."""
        if not budget.is_private:
            return math.inf
        if budget.is_pure:
            raise Unsupported("an adaptive run is accounted for in zCDP, which needs a delta above 0, such as 1e-6")
        rule = rdp.loose_zcdp_of_budget if self.papers_total else rdp.zcdp_of_budget
        return rule(budget.epsilon, budget.delta)

    def multiplier_for(self, budget: Budget) -> float:
        """Return that of one Gaussian answer for the whole total: 1/sqrt(2 rho); 0 without privacy."""
        total = self.total(budget)
        return 0.0 if math.isinf(total) else math.sqrt(0.5 / total)

    def events(self, noise_multiplier: float, *, pure: bool) -> tuple[Event, ...]:
        """Return the whole run as one zCDP event, whatever is asked."""
        if noise_multiplier == 0:
            return (NonPrivate(),)
        return (ZCDP(rdp.zcdp_of_gaussian(noise_multiplier) * (1 + 2.0**-50)),)  # the rounding of two roots, upwards


@dataclass(frozen=True)
class Charge:
    """One line of a budget trace: a query, its rho, the round it belongs to, and whether it was answered."""

    query: str
    rho: float
    round: int
    answered: bool = True

    def __post_init__(self) -> None:
        named = isinstance(self.query, str) and type(self.round) is int and type(self.answered) is bool
        if not named or type(self.rho) is not float or not 0 < self.rho < math.inf or self.round < 0:
            raise AccountingError(
                "a line of a budget trace is a query, a positive rho, a round and whether it was answered"
            )


class Filter:
    """Spends a total rho in any order, and never more. An infinite total refuses nothing and counts nothing."""

    def __init__(self, total: float) -> None:
        if not total > 0:
            raise PlanViolation("a filter needs a positive total rho")
        self._total = None if math.isinf(total) else math.floor(Fraction(total) * 2**_UNIT_BITS)
        self._spent = 0
        self._trace: list[Charge] = []
        self.round = 0

    @staticmethod
    def _units(rho: float) -> int:
        if not (math.isfinite(rho) and rho > 0):
            raise PlanViolation("an adaptive query needs a positive, finite rho")
        units: int = math.ceil(Fraction(rho) * 2**_UNIT_BITS)
        return units

    @property
    def is_limited(self) -> bool:
        """Whether there is a total at all."""
        return self._total is not None

    @property
    def total(self) -> Fraction:
        """The total, exactly; 0 where there is none."""
        return Fraction(self._total or 0, 2**_UNIT_BITS)

    @property
    def spent(self) -> Fraction:
        """What was charged, exactly."""
        return Fraction(self._spent, 2**_UNIT_BITS)

    @property
    def left(self) -> Fraction:
        """What can still be spent, exactly; 0 where there is no total."""
        return self.total - self.spent if self.is_limited else Fraction(0)

    @property
    def trace(self) -> tuple[Charge, ...]:
        """Every charge and every refusal, in order. A function of released answers only."""
        return tuple(self._trace)

    def affords(self, rho: float) -> bool:
        """Whether this could be charged now; free to ask, since what was spent follows from released answers."""
        needed = self._units(rho)
        return self._total is None or self._spent + needed <= self._total

    def charge(self, query: str, rho: float) -> None:
        """Pay before the answer; raise BudgetExceeded, and write the refusal down, where it would cross the total."""
        answered = self.affords(rho)
        if self._total is None:
            return
        self._trace.append(Charge(query, float(rho), self.round, answered))
        if not answered:
            raise BudgetExceeded("this answer would cross the run's total rho: nothing was asked of the data")
        self._spent += self._units(rho)
