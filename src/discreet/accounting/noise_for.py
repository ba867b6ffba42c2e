"""The noise that a budget asks for: never less than is needed, and its price is checked."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

from discreet.accounting import gaussian, lower_bounds, rdp
from discreet.accounting.events import Event, Gaussian, PerturbedMinimum, gaussian_mu, renyi_epsilon
from discreet.accounting.plan import Plan
from discreet.accounting.pricing import (
    ARITHMETIC,
    distribution_price,
    in_double_precision,
    is_integrable,
    left_of_delta,
    must_hold,
    price,
    selects,
)
from discreet.budget import Budget, Neighbors
from discreet.errors import AccountingError, Unsupported

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
