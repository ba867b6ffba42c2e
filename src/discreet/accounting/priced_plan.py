"""``PricedPlan``: what will be released, with how much noise, at what price. ``price_plan`` alone makes one.

``calibrate`` finds the noise that a budget asks for: never less than is needed, and its price is checked.

The curator answers it, the ledger charges it, the certificate claims it: none of them works out a noise multiplier,
the events or their epsilon again. So all three speak of the same release.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

from discreet.accounting import gaussian, lower_bounds, rdp
from discreet.accounting.events import Event, Gaussian, PerturbedMinimum, gaussian_mu, renyi_epsilon
from discreet.accounting.plan import AdaptivePlan, Plan, Release
from discreet.accounting.pricing import (
    ARITHMETIC,
    Price,
    distribution_price,
    epsilon_of,
    in_double_precision,
    is_integrable,
    left_of_delta,
    must_hold,
    price,
    selects,
)
from discreet.budget import Budget, Neighbors
from discreet.errors import AccountingError, PlanViolation, Unsupported


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
        return _sealed(part, self.budget, self.noise_multiplier, _events(part, self), self.price)


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
    >>> from discreet.accounting.priced_plan import price_plan
    >>> from discreet.budget import Budget
    >>> priced = price_plan(Plan([Release("noisy_gradient", 10)]), Budget(1.0, 1e-6))
    >>> round(priced.noise_multiplier, 2), round(priced.price.epsilon, 6)
    (13.36, 1.0)
    """
    if isinstance(plan, Plan):
        _refuse_own_events(plan)
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
    if not same or (priced.plan.releases and priced.events != _events(priced.plan, priced)):
        raise PlanViolation("only a plan that price_plan(plan, budget) priced can be charged and opened: price it")
    return priced


def _events(plan: Plan, priced: PricedPlan) -> tuple[Event, ...]:
    """Return what a plan costs at the noise of a priced one."""
    return plan.events(priced.noise_multiplier, pure=priced.budget.is_pure)


def _refuse_own_events(plan: Plan) -> None:
    """Refuse plans and releases whose class says itself what they cost: it might be less than what is answered."""
    base = AdaptivePlan if isinstance(plan, AdaptivePlan) else Plan
    names = ("events", "total", "assumed_distance")
    changed = any(getattr(type(plan), name, None) is not getattr(base, name, None) for name in names)
    if changed or any(type(release) is not Release for release in plan.releases):
        raise PlanViolation("what a release costs follows from its mechanism: plan with Plan, AdaptivePlan and Release")


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

    Parameters
    ----------
    plan : Plan
        What is released.
    budget : Budget
        What it may cost.

    Returns
    -------
    float
        Noise over sensitivity.

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
        refuted = lower_bounds.epsilon_of(events, budget.delta, budget.neighbors)
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
    cost: Callable[[float], float],
    target: float,
    start: float,
    *,
    tolerance: float,
    slope: float = -1.0,
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
