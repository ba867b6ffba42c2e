"""One opened plan at work: what is left of it, its lattice, its noise, its hook for tests.

The hook shows what a mechanism is about to release, before and after its noise. Inside ``observe(observer)`` every
release of every curator passes through ``observer``, which sees the exact integers and may put other answers in place
of the noisy ones (replay). An observer sees private data: the curator's certificate is stamped NOT PRIVATE.
"""

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import AdaptivePlan, Filter, Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import noise
from discreet.curator.engines import Engine
from discreet.curator.lattice import CHOICE_N_CAP, LARGEST_BOUND, PRIVATE_N_CAP, ROOT_TWO, Unit, for_a_scalar, unit_for
from discreet.curator.noise import Entropy, current_entropy
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import Loss
from discreet.typing import Integers


@dataclass(frozen=True)
class Measurement:
    """One release: the exact integer sum, the bound on a contribution, its norm, the relation's factor, the lattice."""

    query: str
    exact: Integers
    noisy: Integers
    norm: str
    factor: int | Fraction
    unit: Unit


class Observer(Protocol):
    """Takes a measurement, returns the integers to release."""

    def __call__(self, measurement: Measurement) -> Integers: ...


_observer: ContextVar[Observer | None] = ContextVar("discreet_observer", default=None)


def current_observer() -> Observer | None:
    """The observer in force, if any."""
    return _observer.get()


@contextmanager
def observe(observer: Observer) -> Iterator[Observer]:
    """Pass every release inside the block through ``observer``."""
    token = _observer.set(observer)
    try:
        yield observer
    finally:
        _observer.reset(token)


_SAMPLED = ("noisy_gradient", "noisy_gradient_change")
_NOISE = ("additive", "laplace")
_IN_L2 = (
    "noisy_weighted_gradient",
    "noisy_curvature",
    "noisy_score_covariance",
    "noisy_squared_slopes",
    "noisy_shells",
    "noisy_magnitudes",
)
"""Sums of contributions that are bounded in the L2 norm alone."""
_ANSWERS = {
    "select_": ("exponential", "permute_and_flip", "noisy_max"),
    "sample_": ("additive", "exponential"),
    "perturb_": ("objective",),
    **dict.fromkeys(_IN_L2, ("additive",)),
}


def check_answers_match_prices(plan: Plan, budget: Budget) -> None:
    """Refuse a plan whose price would be of another mechanism than the curator's answer.

    Only gradients and their changes draw a sample, so only they may be priced as sampled; sums are answered by added
    noise and selections by a choice, and may not be priced as each other. Laplace noise is priced by L1 norms, so that
    sums whose contributions are bounded in the L2 norm are never planned with it. A Laplace answer is priced as scalar
    only where that makes no difference (pure budgets).
    """
    for release in plan.releases:
        if isinstance(plan, AdaptivePlan) and (
            release.sampling_numerator < SAMPLING_DENOMINATOR or release.mechanism == "laplace"
        ):
            raise PlanViolation("adaptive plans answer with Gaussian noise and choices, and draw no samples")
        if release.sampling_numerator < SAMPLING_DENOMINATOR and release.query not in _SAMPLED:
            raise PlanViolation(f"{release.query} sees all records: plan it without a sampling probability")
        allowed = next((some for start, some in _ANSWERS.items() if release.query.startswith(start)), _NOISE)
        if release.mechanism not in allowed:
            raise PlanViolation(f"{release.query} is answered by one of {', '.join(allowed)}: plan one of these")
        if release.query == "exact_minimizer" and budget.is_private:
            raise PlanViolation("exact_minimizer adds no noise: plan it for epsilon=inf alone")
        if release.query in _IN_L2 and budget.is_pure:
            raise Unsupported("effects are estimated with Gaussian noise, which needs a delta above 0: leave delta out")
        if release.query.startswith("sample_") and release.mechanism == "additive" and budget.is_pure:
            raise Unsupported(
                "a draw with an L2 penalty or regularization is Gaussian DP, never pure: set a delta, pass candidates, "
                "or draw one coefficient from a ball without a penalty"
            )
        if release.mechanism == "laplace" and release.dimension is not None and not budget.is_pure:
            raise PlanViolation("a laplace release next to a delta is priced as pure: plan it without a dimension")


def idealized(plan: Plan, budget: Budget) -> tuple[str, ...]:
    """Why a proof is of real numbers, where the lattice does not reach; empty where the bits that run are covered."""
    if not budget.is_private:
        return ()
    queries = {release.query for release in plan.releases if release.count}
    reasons = []
    if budget.is_pure and queries & {"noisy_minimizer", "noisy_descent", "perturb_objective"}:
        reasons.append("the noise's length is drawn in floating point (a Gamma variable), not on the lattice")
    if any(query.startswith("sample_") for query in queries):
        reasons.append("the draw from the exponential mechanism's density is in floating point, not on the lattice")
    return tuple(reasons)


def doubts(entropy: Entropy, *, observed: bool) -> tuple[str, ...]:
    """Why there is no guarantee, beyond what the events tell."""
    seeded = () if entropy.is_private else ("the noise came from a test generator with a public seed",)
    return (*seeded, "an observer saw the exact sums") if observed else seeded


@dataclass
class Entry:
    """A release of the plan, and how many of its answers are left."""

    release: Release
    left: int


class Session:
    """The private side of a curator. It spends first; a sum's noise is drawn before records are read.

    ``engine``, ``domain`` and ``loss`` are those of the records as they were recoded last.
    """

    loss: Loss

    def __init__(self, engine: Engine, domain: Domain, plan: Plan, budget: Budget, noise_multiplier: float) -> None:
        self.budget, self.noise_multiplier = budget, noise_multiplier
        self.factor = budget.neighbors.sum_factor
        """Sensitivity of a sum of contributions within +-B, in units of B."""
        self.nonnegative_factor = ROOT_TWO if self.factor == 2 else self.factor
        """The same in L2 of vectors without negative entries, and of positive semidefinite matrices."""
        public_n = domain.n if budget.neighbors.n_is_public else None
        self.largest_n = public_n or PRIVATE_N_CAP
        """What keeps sums from wrapping: n where it is public."""
        self.largest_n_of_choices = public_n or CHOICE_N_CAP
        """The same for scores, which must not wrap at all: more records than any machine holds where n is private."""
        self.admitted, self.admitted_domain = engine, domain
        self.see(engine, domain)
        check_answers_match_prices(plan, budget)
        self.entropy = current_entropy()
        self._schedule: dict[str, list[Entry]] = {}  # each query's entries, in the order of the plan
        for release in plan.releases:
            self._schedule.setdefault(release.query, []).append(Entry(release, release.count))
        if isinstance(plan, AdaptivePlan) and len(self._schedule) < len(plan.releases):
            raise PlanViolation("an adaptive plan names each query once: merge the releases of one query")
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._units: dict[tuple[str, float, float, int | Fraction, int], Unit] = {}
        self.filter = Filter(plan.total(budget)) if isinstance(plan, AdaptivePlan) else None
        self._observed = current_observer() is not None
        self.total_variation = plan.total_variation

    def see(self, engine: Engine, domain: Domain) -> None:
        """Go on with these records; compiled loops trust that they are as wide as the domain, which is priced."""
        if engine.n_columns != domain.n_features:
            raise PlanViolation("the records have other columns than their domain: open the data again")
        self.engine, self.domain = engine, domain

    def remember_count(self, released: float) -> float:
        """Return a released count, and keep it with the public facts, so that it is asked for once."""
        count = float(released)
        recoded = self.domain is not self.admitted_domain
        self.admitted_domain = replace(self.admitted_domain, count=count)
        self.domain = replace(self.domain, count=count) if recoded else self.admitted_domain
        return count

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError("a curator holds private records and a spent budget: it is neither copied nor pickled")

    def spend(self, query: str, clip: float | None = None, count: int = 1, rho: float | None = None) -> Release:
        """Take answers off the plan before anything else happens; what was planned is what is answered.

        Under a fixed plan the noise was fixed with it. Where a plan lists a query several times, with several noises,
        its answers take these entries in the order of the plan, each as often as its count says: every answer has the
        noise of exactly one entry, and no entry answers more often than it was priced for. Under an adaptive plan each
        answer brings its ``rho``, unless the plan lists it with a count: then its noise multiplier z is fixed too, and
        its rho is 1/(2 z^2). Either way the filter is charged first, and a filter does not mind which rho were fixed
        beforehand.
        """
        if os.getpid() != self._process:
            raise PlanViolation("a curator answers in the process that opened it: open the data in each")
        entries = self._schedule.get(query, [])
        entry = next((entry for entry in entries if entry.left > 0), entries[-1] if entries else None)
        has_noise = entry is not None and entry.left > 0 and entry.release.mechanism == "additive"  # fixed by the plan
        fixed = rho is None and (self.filter is None or has_noise)
        if entry is None or (fixed and entry.left < count):
            raise PlanViolation(f"the plan has no (further) {query}: plan it before opening the data")
        if not fixed and (self.filter is None) != (rho is None):
            raise PlanViolation("an answer's rho belongs to adaptive plans, and to each of their answers")
        release = entry.release
        if clip is not None and not (math.isfinite(clip) and clip > 0):
            raise PlanViolation("the clip must be positive and finite")
        if release.clip is not None and clip != release.clip:
            raise PlanViolation(f"{query} was planned with another clip")
        if self.filter is not None and rho is not None:
            self.filter.charge(query, rho)
            return self._noisier(release, rho)
        if self.filter is not None:
            self.filter.charge(query, self._fixed_rho(release, count))
        entry.left -= count
        return release

    def _fixed_rho(self, release: Release, count: int) -> float:
        """What Gaussian answers with the planned noise cost, rounded up; any number where nothing is limited."""
        z = self.multiplier(release)
        return count / (2.0 * z**2) * (1 + 2.0**-50) if z > 0 else 1.0

    def _noisier(self, release: Release, rho: float) -> Release:
        """The release with the noise that makes one answer rho-zCDP (``accounting/rdp.py``), rounded up.

        1/(2 z^2) for Gaussian noise, epsilon^2 / 8 for bounded range and epsilon^2 / 2 for pure choices, epsilon = 1/z.
        """
        if self.noise_multiplier == 0:
            return release
        cost = 8.0 if release.mechanism == "exponential" else 2.0
        multiplier = math.sqrt(1 / (cost * rho)) * (1 + 2.0**-50)
        return replace(release, relative_noise=multiplier / self.noise_multiplier * (1 + 2.0**-50))

    def multiplier(self, release: Release) -> float:
        """A release's own noise multiplier; 0 where there is no noise."""
        return self.noise_multiplier * release.relative_noise

    def unit(
        self, release: Release, clip: float, factor: int | Fraction | None = None, largest: int = LARGEST_BOUND
    ) -> Unit:
        """The lattice of a release whose contributions have norm ``clip``; ``factor`` where it is not the sum's."""
        factor = self.factor if factor is None else factor
        key = (release.query, clip, release.relative_noise, factor, largest)
        if key not in self._units:
            unit = unit_for(self.multiplier(release), factor, clip, self.largest_n, largest)
            is_scalar = self.uses_l1(release) and release.dimension == 1
            self._units[key] = for_a_scalar(unit, clip) if is_scalar else unit
        return self._units[key]

    def uses_l1(self, release: Release) -> bool:
        """Whether a release adds Laplace noise, so that contributions are bounded in the L1 norm."""
        return self.budget.is_pure or release.mechanism == "laplace"

    def noise(self, release: Release, unit: Unit, count: int, *, answers: int = 1) -> Integers:
        """Integers of scale 2^m: Gaussian, or discrete Laplace for pure budgets; zeros where there is none.

        ``count`` in all, for so many answers: a release that was planned as a scalar is answered with one number.
        """
        if release.dimension == 1 and count > answers:
            raise PlanViolation(f"{release.query} was planned as one number: plan it without a dimension")
        if unit.m is None:
            return np.zeros(count, dtype=np.int64)
        draw = noise.discrete_laplace if self.uses_l1(release) else noise.rounded_gaussian
        return draw(count, unit.m, self.entropy)

    def discrete_laplace(self, count: int, m: int) -> Integers:
        """Return integers of scale 2^m for a choice by noisy maximum, whatever the budget."""
        return noise.discrete_laplace(count, m, self.entropy)

    def choice(self, scores: Integers, m: int, *, permute_and_flip: bool = False) -> int:
        """Return an index by the exponential mechanism on integer scores, or by permute-and-flip."""
        choose = noise.permute_and_flip_choice if permute_and_flip else noise.exponential_choice
        return choose(scores, m, self.entropy)

    def sample(self, release: Release) -> Integers | None:
        """The units of a Poisson sample; None for everybody."""
        numerator = release.sampling_numerator
        if numerator == SAMPLING_DENOMINATOR:
            return None
        return noise.poisson_sample(self.engine.n_units, numerator, self.entropy)

    def release(
        self,
        release: Release,
        unit: Unit,
        exact: Integers,
        noisy: Integers,
        *,
        norm: str | None = None,
        factor: int | Fraction | None = None,
    ) -> Integers:
        """What leaves: the noisy integers, unless an observer puts others in their place."""
        observer = current_observer()
        if observer is None:
            return noisy
        self._observed = True
        norm = norm or ("l1" if self.uses_l1(release) else "l2")
        factor = self.factor if factor is None else factor
        return observer(Measurement(release.query, exact, noisy, norm, factor, unit))

    @property
    def is_observed(self) -> bool:
        """Whether a test looks on, or did."""
        return self._observed or current_observer() is not None
