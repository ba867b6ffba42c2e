"""Prices of plans and events.

Every price is computed twice, by accountants that share no formula, and a disagreement is an
``AccountingError``, never a warning:

====================================  ==========================  ==================================
what was released                     the price                   checked against
====================================  ==========================  ==================================
full-batch Gaussian                   exact Gaussian DP           zCDP, tight conversion
a perturbed minimum, with Gaussians   integral of a loss bound    our own Renyi DP from above,
                                                                  Gaussian DP from below
Poisson sampling, Laplace, mixtures   privacy loss distribution   our own Renyi DP from above,
                                      (Renyi DP where lower)      explicit tests from below
selections; a zCDP claim; tiny delta  our own Renyi DP or zCDP    each other; explicit tests below
the best of several runs              Renyi DP (``selection``)    explicit tests from below
nothing but pure, delta = 0           basic composition           the same in 50-digit decimals
====================================  ==========================  ==================================

An assumed distance in total variation is no release: it takes (1 + e^epsilon) times itself from delta, because
P~(S) <= P(S) + d <= e^epsilon Q(S) + delta + d <= e^epsilon (Q~(S) + d) + delta + d, and the rest is priced as above.

**Lower bounds** from explicit tests between neighbors: an epsilon below them is wrong, whatever an accountant says. For
any set S of answers, delta(epsilon) >= P(S) - e^epsilon Q(S), where P and Q are the laws of a composition's answers on
a worst pair of neighbors; leaving answers out (post-processing) only lowers delta. So a simple test on some of the
answers bounds epsilon from below, in closed form. Two tests are tried on Poisson-sampled Gaussian answers: is their sum
large (sharp for much noise), is any of them large (sharp for little).

**Priced plans**: what will be released, with how much noise, at what price. ``price_plan`` alone makes one.

``calibrate`` finds the noise that a budget asks for: never less than is needed, and its price is checked.

The curator answers it, the ledger charges it, the certificate claims it: none of them works out a noise multiplier,
the events or their epsilon again. So all three speak of the same release.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import gammaln, ndtr, ndtri

from discreet.accounting import gaussian, rdp
from discreet.accounting.events import (
    BoundedRange,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    PerturbedMinimum,
    PoissonSampled,
    RepeatedSelection,
    TotalVariation,
    decimal_pure_epsilon,
    divergences,
    gaussian_mu,
    merged,
    pure_epsilon,
    renyi_epsilon,
)
from discreet.accounting.plan import AdaptivePlan, Plan, Release
from discreet.accounting.selection import ORDERS, epsilon_of_curve, refuted_below
from discreet.budget import Budget, Neighbors
from discreet.errors import AccountingError, DiscreetError, PlanViolation, Unsupported
from discreet.typing import Floats


def _refuted_by(p: Floats, q: Floats, delta: float) -> float:
    """The largest epsilon refuted by tests of power p and level q: ln((p - delta)/q)."""
    refuted = (p > delta) & (q > 1e-280)
    if not refuted.any():
        return 0.0
    # One part in 10^9 off, for the rounding of the distribution functions.
    return max(0.0, float(np.log((p[refuted] * (1 - 1e-9) - delta).clip(1e-300) / q[refuted]).max()) - 1e-9)


def _refuted_sampled_gaussian(
    probability: float, noise_multiplier: float, count: int, delta: float, replaced: bool
) -> float:
    """A lower bound for ``count`` Poisson-sampled Gaussian answers."""
    away = -0.5 if replaced else 0.0  # where the record's replacement, or nothing, moves an answer
    near = 0.5 if replaced else 1.0
    levels = ndtri(np.exp(np.linspace(math.log(1e-30), math.log(0.5), 200)))  # quantiles, from far to the middle
    best = 0.0
    # The sum: given k draws, normal with mean k near (k away) and standard deviation sqrt(T) z.
    mean, width = count * probability, 12 * math.sqrt(count * probability) + 30
    k = np.arange(max(0, math.floor(mean - width)), min(count, math.ceil(mean + width)) + 1, dtype=np.float64)
    log_weights = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    log_weights += k * math.log(probability) + (count - k) * math.log1p(-probability)
    weights, deviation = np.exp(log_weights), math.sqrt(count) * noise_multiplier
    missing = max(0.0, 1 - float(weights.sum()))
    thresholds = mean * away - levels * math.sqrt(deviation**2 + mean * away**2)
    p = ndtr((k * near - thresholds[:, None]) / deviation) @ weights
    q = ndtr((k * away - thresholds[:, None]) / deviation) @ weights + missing
    best = max(best, _refuted_by(p, q, delta), _refuted_by(1 - q, 1 - p, delta))
    # Any answer above a threshold, for one answer and for all.
    thresholds = away - levels * noise_multiplier
    none = ndtr(-thresholds / noise_multiplier)
    p1 = (1 - probability) * none + probability * ndtr((near - thresholds) / noise_multiplier)
    q1 = (1 - probability) * none + probability * ndtr((away - thresholds) / noise_multiplier)
    p, q = (-np.expm1(count * np.log1p(-np.minimum(single, 1 - 1e-16))) for single in (p1, q1))
    return max(best, _refuted_by(p, q, delta), _refuted_by(1 - q, 1 - p, delta))


def refuted_epsilon(events: Iterable[Event], delta: float, neighbors: Neighbors) -> float:
    """A lower bound on a composition's epsilon: the best over its parts.

    A minimum with Gaussian noise inside counts as the Gaussian release of its noise multiplier: where the other
    records pull the record to a slope that stays at its bound, it is that release (in the limit).
    """
    listed = [_attained(event.unwrapped) for event in events]
    full = [(event.count, event.noise_multiplier) for event in listed if isinstance(event, Gaussian)]
    best = gaussian.epsilon_of(gaussian.mu_of_noise(full), delta) if full else 0.0
    for event in listed:
        if isinstance(event, PoissonSampled) and isinstance(event.event, Gaussian):
            inner, replaced = event.event, neighbors is Neighbors.REPLACE_ONE
            probability = float(event.probability)
            refuted = _refuted_sampled_gaussian(probability, inner.noise_multiplier, inner.count, delta, replaced)
            best = max(best, refuted)
        elif isinstance(event, Laplace) and event.dimension == 1:
            best = max(best, event.epsilon + 2 * math.log1p(-delta))  # exactly: delta = 1 - e^{(x - epsilon)/2}
    return best * (1 - 1e-9)


def _attained(event: Event) -> Event:
    if isinstance(event, PerturbedMinimum) and event.noise == "gaussian":
        return Gaussian(event.noise_multiplier)
    return event


ARITHMETIC = (ArithmeticError, ValueError, LookupError)
"""How arithmetic ends beyond what doubles hold; accounting itself raises none of them."""
BEYOND = (
    "this cannot be priced in double precision: take an epsilon, a delta, a noise multiplier and a sampling "
    "probability that are neither huge nor tiny"
)


@dataclass(frozen=True)
class Price:
    """An epsilon that may be claimed, and what each accountant said."""

    epsilon: float
    accountants: dict[str, float] = field(default_factory=dict)


@contextmanager
def in_double_precision(*errors: type[Exception]) -> Iterator[None]:
    """Refuse numbers for which arithmetic inside the block ends in one of these errors, such as noise of 1e-320."""
    try:
        with np.errstate(all="ignore"):  # what overflows is infinite, and compared as such
            yield
    except DiscreetError:
        raise
    except errors:
        raise Unsupported(BEYOND) from None


@in_double_precision(*ARITHMETIC)
def epsilon_of(events: Iterable[Event], delta: float, neighbors: Neighbors | str = Neighbors.REPLACE_ONE) -> Price:
    """The price of a composition of events, by two accountants that agree."""
    if not 0 <= delta < 1:
        raise AccountingError("delta must lie in [0, 1)")
    price = _price(merged(events), delta, Neighbors(neighbors))
    return Price(price.epsilon, dict(price.accountants))


@lru_cache(maxsize=256)
def _price(listed: tuple[Event, ...], delta: float, relation: Neighbors) -> Price:
    if any(isinstance(event, NonPrivate) for event in listed):
        return Price(math.inf, {"none": math.inf})
    if not listed:
        return Price(0.0, {"nothing released": 0.0})
    distance = math.fsum(event.distance for event in listed if isinstance(event, TotalVariation))
    if distance:
        return _assuming_price(listed, delta, relation, distance)
    if any(isinstance(event, RepeatedSelection) for event in listed):
        return _selection_price(listed, delta, relation)
    if delta == 0:
        return _pure_price(listed)
    listed = merged(event.simplified(relation) for event in listed)
    gaussians = [event for event in listed if isinstance(event, Gaussian)]
    if len(gaussians) == len(listed):
        return _gaussian_price(gaussians, delta)
    if is_integrable(listed):
        return _perturbed_price(listed, delta, relation)
    return _numerical_price(listed, delta, relation)


def price(
    plan: Plan, noise_multiplier: float, delta: float, neighbors: Neighbors | str = Neighbors.REPLACE_ONE
) -> float:
    """Return the epsilon of a plan at a noise multiplier; delta = 0 means Laplace noise.

    Parameters
    ----------
    plan : Plan
        What is released.
    noise_multiplier : float
        Noise over sensitivity.
    delta : float
        Of the guarantee.
    neighbors : Neighbors or str, default="replace_one"
        The relation.

    Examples
    --------
    >>> from discreet.accounting import Plan, Release, price
    >>> round(price(Plan([Release("noisy_gradient", 100)]), 40.0, 1e-6), 3)
    1.061
    """
    return epsilon_of(plan.events(noise_multiplier, pure=delta == 0), delta, neighbors).epsilon


# --- full-batch Gaussian -------------------------------------------------------------------------


def _gaussian_price(events: Iterable[Gaussian], delta: float) -> Price:
    """Exact; and zCDP, whose loss is at most 5 % + 1.25 mu for mu <= 300 and delta <= 0.9 (by a scan)."""
    mu = gaussian_mu(events)
    exact, bound = gaussian.epsilon_of(mu, delta), rdp.epsilon_of_zcdp(0.5 * mu * mu, delta)
    must_hold(exact <= bound * (1 + 1e-9) + 1e-15, "Gaussian DP exceeds zCDP")
    must_hold(bound <= 1.06 * exact + 1.35 * mu, "zCDP exceeds Gaussian DP by more than its known slack")
    return Price(exact, {"gdp": exact, "zcdp": bound})


def must_hold(agreed: bool, what: str) -> None:
    """Refuse a price on which accountants disagree."""
    if not agreed:
        raise AccountingError(
            f"two accountants disagree ({what}): nothing was charged or released; use another solver or another "
            "epsilon, and please report this plan"
        )


# --- a perturbed minimum, alone or with Gaussians; total variation --------------------------------


def is_integrable(events: tuple[Event, ...]) -> bool:
    """Whether one perturbed minimum is composed with Gaussian releases only: then its price is an integral."""
    perturbed = sum(isinstance(event, PerturbedMinimum) and event.noise == "gaussian" for event in events)
    return perturbed == 1 and all(isinstance(event, (PerturbedMinimum, Gaussian)) for event in events)


def _perturbed_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> Price:
    """The integral, between Gaussian DP at the same noise and Renyi DP, whose slack is that of a few mu (by a scan)."""
    bound = next(event.loss_bound(neighbors) for event in events if isinstance(event, PerturbedMinimum))
    exact, renyi = bound.epsilon_of(delta, gaussian_mu(events)), renyi_epsilon(events, delta, neighbors)
    refuted = refuted_epsilon(events, delta, neighbors)
    mu = math.hypot(gaussian_mu(events), *(1 / e.noise_multiplier for e in events if isinstance(e, PerturbedMinimum)))
    must_hold(refuted <= exact * (1 + 1e-9), "a test refutes the loss integral")
    must_hold(exact <= renyi * (1 + 1e-6) + 1e-12, "the loss integral exceeds Renyi DP")
    slack = 1.5 * mu - math.log(delta) / 4096  # the orders end at 2^13
    must_hold(renyi <= 2.1 * exact + slack, "Renyi DP exceeds the loss integral by more than its slack")
    return Price(min(exact, renyi), {"loss integral": exact, "rdp": renyi, "refuted below": refuted})


def left_of_delta(distance: float, epsilon: float, delta: float) -> float:
    """What an assumed distance in total variation leaves of delta at epsilon, rounded down."""
    if delta == 0:
        raise Unsupported("an approximate sampler has no pure guarantee: set a delta above 0, or sample exactly")
    rest = delta - (1 + math.exp(min(epsilon, 700.0))) * distance * (1 + 1e-12)
    if rest <= 0:
        raise Unsupported(
            "delta is below (1 + e^epsilon) times the sampler's assumed distance in total variation: "
            "take a larger delta, a smaller epsilon, or more steps of the sampler for a smaller distance"
        )
    return rest * (1 - 2.0**-50)


def _assuming_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors, distance: float) -> Price:
    """The least epsilon at which the rest costs no more at what is left of delta.

    A larger epsilon leaves less of delta, so that the rest costs more: from below, the iteration climbs to the
    least solution; it ends where a step of one part in 10^9 more suffices.
    """
    rest = [event for event in events if not isinstance(event, TotalVariation)]
    epsilon = 0.0
    for _ in range(200):
        tried = epsilon * (1 + 1e-9)
        price = epsilon_of(rest, left_of_delta(distance, tried, delta), neighbors)
        if price.epsilon <= tried:
            return Price(tried, price.accountants)
        epsilon = price.epsilon
    raise Unsupported("delta is too small for the sampler's assumed distance in total variation: take a larger delta")


# --- Poisson sampling, Laplace, mixtures ---------------------------------------------------------


def _numerical_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> Price:
    from discreet.accounting import pld

    renyi, refuted = renyi_epsilon(events, delta, neighbors), refuted_epsilon(events, delta, neighbors)
    distribution = None if selects(events) else distribution_price(events, delta, neighbors)
    if distribution is None:
        must_hold(refuted <= renyi * (1 + 1e-9), "a test refutes Renyi DP")
        return _renyi_price(events, delta, renyi)
    accountants = {"pld": distribution, "rdp": renyi, "refuted below": refuted}
    must_hold(refuted <= min(distribution, renyi) * (1 + 1e-9), "a test refutes a price")
    # Both are upper bounds, so the lower one holds. The distribution is almost always it, but for sampled
    # selections (it knows them only as pure) and for very many tiny pure events (rounded up to its grid).
    factor = 5.0 if any(isinstance(event, BoundedRange) for event in events) else 1.5
    allowed = factor * renyi + 0.05 + pld.rounding_slack(events, neighbors)
    must_hold(distribution <= allowed, "the privacy loss distribution exceeds Renyi DP by far")
    return Price(min(distribution, renyi), accountants)


def selects(events: tuple[Event, ...]) -> bool:
    """Whether selections of bounded range are composed unsampled: there concentrated DP beats distributions."""
    sampled = any(isinstance(event, (PoissonSampled, PerturbedMinimum)) for event in events)
    return not sampled and any(isinstance(event, BoundedRange) for event in events)


def distribution_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> float | None:
    """The price by privacy loss distributions, or None where they have none that can be trusted."""
    from discreet.accounting import pld

    try:
        return pld.epsilon_of(events, delta, neighbors)
    except Unsupported:
        return None


def _renyi_price(events: tuple[Event, ...], delta: float, renyi: float) -> Price:
    """Where no distribution can be had: Renyi DP, against zCDP where each event has a rho.

    A composition of zCDP events cannot be cheaper than the tight conversion of the sum of their rho by
    much, nor costlier; sampled events and perturbed minima have no rho here and are left out of the sum, which
    only lowers it.
    """
    rho = math.fsum(event.zcdp for event in events)
    concentrated = rdp.epsilon_of_zcdp(rho, delta) if rho > 0 else 0.0
    if not any(isinstance(event, (PoissonSampled, PerturbedMinimum)) for event in events):
        # The best order is 1 + sqrt(ln(1/delta)/rho). Below 2 a chord from K(1) = 0 stands for the curve:
        # 2 rho (a - 1) for rho a (a - 1), up to twice as much.
        slack = 1.02 if 4 * rho <= -math.log(delta) else 2.0
        # Orders end at about 2^13, below which Renyi DP cannot see: ln(1/delta) over that.
        seen = 1e-3 - math.log(delta) / 4096
        must_hold(renyi <= slack * concentrated + seen, "Renyi DP exceeds zCDP")
        return Price(min(renyi, concentrated), {"rdp": renyi, "zcdp": concentrated})
    return Price(renyi, {"rdp": renyi, "unsampled": concentrated})


# --- the best of several runs ---------------------------------------------------------------------


def _selection_price(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> Price:
    """Renyi DP at real orders, above explicit tests."""
    selections = [event for event in events if isinstance(event, RepeatedSelection)]
    others = tuple(event for event in events if not isinstance(event, RepeatedSelection))
    if delta == 0:
        return _pure_selection_price(selections, others)
    curve = divergences(others, neighbors, ORDERS)
    for event in selections:
        curve = curve + event.log_moments(neighbors, ORDERS) / (ORDERS - 1)
    epsilon = epsilon_of_curve(curve, delta)
    tests = [refuted_below(event.stopping, event.mu, delta) for event in selections]
    refuted = max(refuted_epsilon(others, delta, neighbors), *tests)
    must_hold(refuted <= epsilon, "a test refutes the price of a selection")
    return Price(epsilon, {"rdp": epsilon, "refuted below": refuted})


def _pure_selection_price(selections: list[RepeatedSelection], others: tuple[Event, ...]) -> Price:
    """(2 + eta) times the most expensive kind of run, and the rest by basic composition; once more in decimals."""
    total, checked = pure_epsilon(others), decimal_pure_epsilon(others)
    for event in selections:
        if event.shape is None:
            raise Unsupported(
                "a Poisson number of runs has no pure guarantee: use geometric or logarithmic stopping, or set a delta"
            )
        total += (2 + event.shape) * max(map(pure_epsilon, event.runs))
        checked += (2 + event.shape) * max(map(decimal_pure_epsilon, event.runs))
    total *= 1 + 2.0**-48
    must_hold(checked * (1 - 1e-12) <= total <= checked * (1 + 1e-9), "pure epsilon in floats and in decimals")
    return Price(total, {"basic": total, "decimal": checked})


# --- pure ----------------------------------------------------------------------------------------


def _pure_price(events: tuple[Event, ...]) -> Price:
    """Basic composition, summed exactly and rounded up; checked in decimals by another formula."""
    epsilon, checked = pure_epsilon(events), decimal_pure_epsilon(events)
    must_hold(checked <= epsilon <= checked * (1 + 1e-10), "pure epsilon in floats and in decimals")
    return Price(epsilon, {"basic": epsilon, "decimal": checked})


@dataclass(frozen=True, eq=False, init=False)
class PricedPlan:
    """A plan, the budget that it keeps, its noise, its events, and what they cost at the budget's delta.

    ``plan`` has no releases where the events themselves were priced. Objects that ``price_plan`` did not make (copies
    with other fields, for example) are refused by the ledger and by the curator.

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.accounting import Plan, Release, price_plan
    >>> price_plan(Plan([Release("noisy_gradient", 10)]), Budget(1.0, 1e-6)).budget.epsilon
    1.0
    """

    plan: Plan
    budget: Budget
    noise_multiplier: float
    events: tuple[Event, ...]
    price: Price

    def __init__(self, *_: object, **__: object) -> None:
        raise PlanViolation("a priced plan is made by price_plan(plan, budget) alone")

    def only(self, place: int, clip: float) -> "PricedPlan":
        """Return one release of the plan by itself, at its own noise and with a clip: it was paid for with the rest."""
        part = Plan((replace(self.plan.releases[place], clip=clip),))
        events = part.events(self.noise_multiplier, pure=self.budget.is_pure)
        return _sealed(part, self.budget, self.noise_multiplier, events, self.price)


def price_plan(plan: Plan | Iterable[Event], budget: Budget) -> PricedPlan:
    """Find the least noise with which a plan keeps a budget, its events, and their price: all three once.

    Parameters
    ----------
    plan : Plan or iterable of events
        What will be released. The noise of a plan is calibrated to the budget; events have theirs.
    budget : Budget
        What may be claimed of it afterwards.

    Returns
    -------
    PricedPlan
        For ``Ledger.reserve``, ``PrivateData.open`` and ``Certificate.of``.

    Raises
    ------
    Unsupported
        Where the events cost more than the budget, or no noise keeps it.
    PlanViolation
        Where a class of one's own says what a release costs.

    Examples
    --------
    >>> from discreet.accounting.plan import Plan, Release
    >>> from discreet.accounting.pricing import price_plan
    >>> from discreet.budget import Budget
    >>> priced = price_plan(Plan([Release("noisy_gradient", 10)]), Budget(1.0, 1e-6))
    >>> round(priced.noise_multiplier, 2), round(priced.price.epsilon, 6)
    (13.36, 1.0)
    """
    if isinstance(plan, Plan):
        base = AdaptivePlan if isinstance(plan, AdaptivePlan) else Plan
        names = ("events", "total", "assumed_distance")  # a class that says itself what it costs might say too little
        changed = any(getattr(type(plan), name, None) is not getattr(base, name, None) for name in names)
        if changed or any(type(release) is not Release for release in plan.releases):
            raise PlanViolation(_OWN_EVENTS)
        noise_multiplier, listed = calibrate(plan, budget), plan
        events = plan.events(noise_multiplier, pure=budget.is_pure)
    else:
        noise_multiplier, listed, events = 0.0, Plan(()), tuple(plan)
    if events and not budget.is_private:
        price = Price(inf, {"none": inf})
    else:
        price = epsilon_of(events, budget.delta, budget.neighbors)
    if not price.epsilon <= budget.epsilon:
        raise Unsupported("these events cost more than their budget: nothing was charged")
    return _sealed(listed, budget, noise_multiplier, events, price)


def require_priced(priced: PricedPlan) -> PricedPlan:
    """Return what ``price_plan`` made, unchanged since then; PlanViolation for anything else."""
    seal = _seals.get(priced) if type(priced) is PricedPlan else None
    same = seal is not None and all(getattr(priced, name) is value for name, value in seal.items())
    if not same or (
        priced.plan.releases
        and priced.events != priced.plan.events(priced.noise_multiplier, pure=priced.budget.is_pure)
    ):
        raise PlanViolation("only a plan that price_plan(plan, budget) priced can be charged and opened: price it")
    return priced


_OWN_EVENTS = "what a release costs follows from its mechanism: plan with Plan, AdaptivePlan and Release"
_seals: "WeakKeyDictionary[PricedPlan, dict[str, Any]]" = WeakKeyDictionary()


def _sealed(plan: Plan, budget: Budget, noise_multiplier: float, events: tuple[Event, ...], price: Price) -> PricedPlan:
    """Make a priced plan, and remember what is in it."""
    priced, names = object.__new__(PricedPlan), (item.name for item in fields(PricedPlan))
    _seals[priced] = dict(zip(names, (plan, budget, noise_multiplier, events, price), strict=True))
    for name, value in _seals[priced].items():
        object.__setattr__(priced, name, value)
    return priced


# A calibrated plan costs at least this fraction of its budget.
CALIBRATION_TOLERANCE = 1e-3
# Renyi DP is taken to be at most this loose where a search starts.
LOOSEST = 8.0
# A price ends this much below its budget, so that rounded up by a ledger it is no more than the budget rounded down.
_SHY = 1 - 2.0**-32


@in_double_precision(*ARITHMETIC)
def calibrate(plan: Plan, budget: Budget) -> float:
    """Return the noise multiplier at which the plan costs the budget: never less than is needed.

    0.0 where epsilon is infinite, and where nothing is released. The price at the answer is at most
    the budget's epsilon and, but for the last thousandth, no less.

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.accounting import Plan, Release, calibrate
    >>> round(calibrate(Plan([Release("noisy_gradient", 100)]), Budget(1.0, 1e-6)), 1)
    42.2
    """
    if plan.least_noise is not None:  # a function, of which a cached plan says nothing
        return _noise_with_minimum(plan, budget, plan.least_noise)
    return _noise_for(plan, budget)


def _noise_with_minimum(plan: Plan, budget: Budget, least_noise: Callable[[Budget], float]) -> float:
    if not budget.is_private or plan.count == 0:
        return 0.0
    return max(calibrate(replace(plan, least_noise=None), budget), least_noise(budget))


@lru_cache(maxsize=256)
def _noise_for(plan: Plan, budget: Budget) -> float:
    fixed = plan.multiplier_for(budget)
    if fixed is not None:
        promised = fixed > 0 and budget.is_private
        if promised and not price(plan, fixed, budget.delta, budget.neighbors) <= budget.epsilon:
            raise Unsupported("this budget is too small to be accounted for: raise epsilon or delta")
        return fixed
    if not budget.is_private or plan.count == 0:
        return 0.0
    if plan.total_variation:
        rest = left_of_delta(plan.assumed_distance, budget.epsilon, budget.delta)
        # A little less epsilon, for the rounding of the price's own search.
        inner = replace(budget, epsilon=budget.epsilon * (1 - 1e-8), delta=rest)
        return calibrate(replace(plan, total_variation=0.0), inner)
    events = plan.events(1.0, pure=budget.is_pure)
    floor = math.fsum(event.least_epsilon for event in events)
    if budget.epsilon <= floor:
        raise Unsupported("no noise in the objective meets this epsilon: take a larger regularization or epsilon")

    def cost(noise_multiplier: float) -> float:
        return price(plan, noise_multiplier, budget.delta, budget.neighbors)

    if budget.is_pure:
        spent = math.fsum(event.count * event.pure_epsilon for event in events)
        start = (spent - floor) / (budget.epsilon - floor)
        return solve(cost, budget.epsilon * _SHY, start, tolerance=1e-9)
    if all(isinstance(event, Gaussian) for event in events):
        start = gaussian_mu(events) / gaussian.mu_of(budget.epsilon, budget.delta)
        return solve(cost, budget.epsilon * _SHY, start * (1 + 1e-14), tolerance=1e-9)
    if is_integrable(events):
        return _calibrate_perturbed(plan, budget)
    return _calibrate_numerically(plan, budget)


def _delta_of(events: Iterable[Event], budget: Budget) -> float:
    """The delta at the budget's epsilon of Gaussian releases with at most one perturbed minimum."""
    simplified = [event.simplified(budget.neighbors) for event in events]
    mu = gaussian_mu(simplified)
    for event in simplified:
        if isinstance(event, PerturbedMinimum):
            return event.loss_bound(budget.neighbors).delta_with_gaussian(budget.epsilon, mu)
    return gaussian.delta_of(budget.epsilon, mu)


def _calibrate_perturbed(plan: Plan, budget: Budget) -> float:
    """The noise at which delta is reached at the budget's epsilon; its price is checked."""
    at_one = math.sqrt(math.fsum(r.count / r.relative_noise**2 for r in plan.releases))

    def cost(noise_multiplier: float) -> float:
        return _delta_of(plan.events(noise_multiplier, pure=False), budget)

    # Just below the budget's delta, so that the search for the price, which rounds up, ends below its epsilon.
    target, start = budget.delta * (1 - 1e-9), at_one / gaussian.mu_of(budget.epsilon, budget.delta)
    answer = solve(cost, target, start, slope=-20.0, tolerance=1e-6)
    checked = price(plan, answer, budget.delta, budget.neighbors)
    must_hold(checked <= budget.epsilon, "the calibrated plan is over its budget")
    return answer


def _calibrate_numerically(plan: Plan, budget: Budget) -> float:
    """A guess between what Renyi DP allows and what tests refute; from there the distribution decides."""

    def released(noise_multiplier: float) -> tuple[Event, ...]:
        events = plan.events(noise_multiplier, pure=False)
        return tuple(event.simplified(budget.neighbors) for event in events)

    def guess(noise_multiplier: float) -> float:
        events = released(noise_multiplier)
        allowed = renyi_epsilon(events, budget.delta, budget.neighbors)
        refuted = refuted_epsilon(events, budget.delta, budget.neighbors)
        middle = refuted * math.sqrt(min(allowed / refuted, 2.0)) if refuted > 0 else allowed
        return max(middle, allowed / LOOSEST)  # tests refute no epsilon beyond a few hundred: doubles end there

    def numerical(noise_multiplier: float) -> float:
        return _search_epsilon(released(noise_multiplier), budget.delta, budget.neighbors)

    start = solve(guess, budget.epsilon, 1.0, tolerance=1e-2)
    slope = min(math.log(guess(1.05 * start) / guess(start)) / math.log(1.05), -0.5)
    quick = selects(plan.events(1.0, pure=False))
    tolerance = 1e-6 if quick else CALIBRATION_TOLERANCE
    answer = solve(numerical, budget.epsilon, start, slope=slope, tolerance=tolerance)
    checked = price(plan, answer, budget.delta, budget.neighbors)
    must_hold(checked <= budget.epsilon, "the calibrated plan is over its budget")
    return answer


def _search_epsilon(events: tuple[Event, ...], delta: float, neighbors: Neighbors) -> float:
    """The numerical price without its checks, for the steps of a search; its end is checked."""
    renyi = renyi_epsilon(events, delta, neighbors)
    if selects(events):
        return min(renyi, rdp.epsilon_of_zcdp(math.fsum(event.zcdp for event in events), delta))
    distribution = distribution_price(events, delta, neighbors)
    return renyi if distribution is None else min(renyi, distribution)


def solve(
    cost: Callable[[float], float], target: float, start: float, *, tolerance: float, slope: float = -1.0
) -> float:
    """A z with (1 - tolerance) target <= cost(z) <= target, for a decreasing cost.

    Log-cost is almost a line in log z: a secant step aimed just inside the target, kept within the
    bracket. Ends on a point whose cost was computed and found affordable.
    """
    aim = math.log(target) + math.log1p(-0.4 * tolerance)
    short: tuple[float, float] | None = None  # the largest z known to be too little, with its log-cost
    enough: tuple[float, float] | None = None  # the smallest z known to be enough
    z = start
    for _ in range(200):
        spent = cost(z)
        here = (z, math.log(max(spent, 1e-300)))
        if spent <= target:
            if spent >= target * (1 - tolerance) or (short and z - short[0] <= 1e-13 * z):
                return z
            enough = here
        else:
            short = here
        if short and enough and short[1] > enough[1]:
            slope = (enough[1] - short[1]) / math.log(enough[0] / short[0])
        z = _next_guess(here, aim, slope, short, enough)
    if enough is None:
        raise AccountingError("no amount of noise meets this budget: allow a larger epsilon or take fewer steps")
    return enough[0]


def _next_guess(
    here: tuple[float, float],
    aim: float,
    slope: float,
    short: tuple[float, float] | None,
    enough: tuple[float, float] | None,
) -> float:
    """The secant's guess from the nearest point; the middle of the bracket where it would leave it."""
    jump = min(max((aim - here[1]) / slope, -3.0), 3.0)
    guess = here[0] * math.exp(jump)
    low = short[0] if short else 0.0
    high = enough[0] if enough else math.inf
    if low < guess < high:
        return guess
    return math.sqrt(low * high) if short and enough else (2 * low if short else 0.5 * high)
