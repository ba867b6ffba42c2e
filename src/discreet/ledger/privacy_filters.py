"""What a fit costs an account, in whole numbers: the filters that a cap is kept in over a lifetime.

An account outlives any one fit, and those who plan the next fit have seen the last one's model. Composition of a fixed
list does not cover that; a *filter* does, which refuses whatever would cross a limit fixed in advance. Four are kept
side by side, each with a share of the cap's delta:

=============  ======  ==========================================================================================
filter         share   it is one because
=============  ======  ==========================================================================================
``gaussian``   1/2     Gaussian noise only: the mu^2 add up, also when chosen adaptively (Smith and Thakurta 2022)
``low``        1/4     Renyi divergences of one fixed order add up, also when chosen adaptively
``high``       1/4     (Feldman and Zrnic 2021); the same at three times that order
``epsilon``    0       pure fits only: epsilons add up, also when chosen adaptively (Rogers et al. 2016)
=============  ======  ==========================================================================================

A fit is granted while at least one filter is within its cap.

*Theorem.* All that is ever released on the account together is (epsilon, delta)-DP, no matter who chooses what.
*Proof.* Let Y be the transcript, refusals included, and l(Y) the first filter that ends within its cap. What was
spent never falls, so that this filter was within its cap all along: on {l(Y) = l} the transcript is that of the
process Y_l which obeys filter l alone, and Y_l is (epsilon, share_l delta)-DP. Let S_l be the
transcripts in a set S that the account can produce and that have l(y) = l. Then P(Y in S) = sum_l P(Y_l in S_l) <=
sum_l [e^epsilon Q(Y_l in S_l) + share_l delta] = e^epsilon Q(Y in S) + delta. QED (Fits that run side by side change
nothing: divergences add up answer by answer, in whatever order they come.)

A first fit that is too expensive for every share may still be within the whole cap. Nothing has been released by then,
so that its choice owes nothing to the data, and the account may be settled on one filter with all of delta: ``epsilon``
and ``delta`` are added up from there on.

Charges are rounded up and caps down, to multiples of 2^-40 (delta: 2^-50 of the cap's), and added as integers. The
epsilon that is added up is the events' price at the delta that is charged, not the claim, which may be a little more.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.accounting import gaussian, rdp
from discreet.accounting.events import Event, Gaussian, NonPrivate, TotalVariation, merged
from discreet.accounting.priced_plan import PricedPlan
from discreet.accounting.pricing import epsilon_of
from discreet.budget import Neighbors
from discreet.errors import Unsupported
from discreet.typing import Floats

AMOUNT_NAMES = ("gaussian", "low", "high", "epsilon", "delta")
GAUSSIAN_SHARE, RENYI_SHARE = 0.5, 0.25
UNIT, WHOLE_DELTA = 2**40, 2**50
"""Units in an epsilon (or a divergence) of 1; in the cap's delta."""
LEAST_DELTA = 1e-100
NEVER = 2**60
"""More than any cap: what has no price in a filter. Sums stop here, so that they fit 64 bits."""


@dataclass(frozen=True)
class Amounts:
    """One number for each of ``AMOUNT_NAMES``: of a charge, of a cap, or of what was spent."""

    gaussian: int = 0
    low: int = 0
    high: int = 0
    epsilon: int = 0
    delta: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        both = zip(self, other, strict=True)
        return type(self)(*[min(mine + theirs, NEVER) for mine, theirs in both])

    def __iter__(self) -> Iterator[int]:
        return iter((self.gaussian, self.low, self.high, self.epsilon, self.delta))

    def within_a_share(self, caps: "Amounts") -> bool:
        """Whether at least one filter with a share of delta is within its cap."""
        renyi = self.low <= caps.low or self.high <= caps.high
        return renyi or self.gaussian <= caps.gaussian or (self.epsilon <= caps.epsilon and self.is_pure)

    @property
    def has_no_share(self) -> bool:
        """Whether no filter with a share of delta has a price for it."""
        return min(self.gaussian, self.low, self.high) >= NEVER

    @property
    def is_pure(self) -> bool:
        """Whether nothing in it has a delta."""
        return self.delta == 0

    def within_the_whole(self, caps: "Amounts") -> bool:
        """Whether epsilon and delta, added up, are within the cap."""
        return self.epsilon <= caps.epsilon and self.delta <= caps.delta


FREE = Amounts()


def orders_for(epsilon: float, delta: float) -> tuple[int, int]:
    """The two Renyi orders of an account: the best one for concentrated DP at its share of delta, and thrice it.

    The best order for sampled Gaussian noise and for choices is hardly another (1 % of the budget, by a scan);
    selections among runs want a larger one.
    """
    if delta < LEAST_DELTA:
        return 2, 6
    per_order = _renyi_limits(epsilon, delta, rdp.orders()) / rdp.orders()
    low = int(rdp.orders()[int(np.argmax(per_order))])
    return low, 3 * low


def caps_for(epsilon: float, delta: float, orders: tuple[int, int]) -> Amounts:
    """What may be spent in each filter so that all of it is (epsilon, delta)-DP; -1 where nothing may."""
    added = math.floor(Fraction(epsilon) * UNIT)
    if added >= NEVER:
        raise Unsupported("a cap on epsilon must be below 2^20: nothing is protected by so much")
    if delta == 0:
        return Amounts(-1, -1, -1, added, 0)
    if delta < LEAST_DELTA:
        raise Unsupported(f"a cap's delta is 0, or at least {LEAST_DELTA}")
    mu = Fraction(gaussian.mu_of(epsilon, GAUSSIAN_SHARE * delta))
    renyi = _renyi_limits(epsilon, delta, np.array(orders, dtype=float)) * (1 - 1e-12)
    low, high = (_floor(Fraction(float(limit))) for limit in renyi)
    return Amounts(_floor(mu * mu), low, high, added, WHOLE_DELTA)


def charge_of(priced: PricedPlan, orders: tuple[int, int], cap_delta: float) -> Amounts:
    """Return what a priced plan costs an account with these orders, of a cap with this delta."""
    listed = merged(priced.events)
    if any(isinstance(event, NonPrivate) for event in listed) or not priced.budget.is_private:
        raise Unsupported("what is released without noise has no price: a ledger is for private fits")
    if not listed:
        return FREE
    low, high = _renyi_charges(listed, priced.budget.neighbors, orders)
    return Amounts(_gaussian_charge(listed), low, high, *_added(listed, priced, cap_delta))


def epsilon_spent(spent: Amounts, delta: float, orders: tuple[int, int]) -> float:
    """What the account's releases cost together at the cap's delta: the least of the shares' conversions."""
    found = [spent.epsilon / UNIT if spent.is_pure else math.inf]
    if delta == 0:
        return found[0]
    if spent.gaussian < NEVER:
        found.append(gaussian.epsilon_of(math.sqrt(spent.gaussian / UNIT) * (1 + 1e-15), GAUSSIAN_SHARE * delta))
    for divergence, order in zip((spent.low, spent.high), orders, strict=True):
        if divergence < NEVER:
            found.append(max(0.0, rdp.epsilon_of_order(divergence / UNIT, order, RENYI_SHARE * delta)))
    return min(found)


def _added(events: tuple[Event, ...], priced: PricedPlan, cap_delta: float) -> tuple[int, int]:
    """Epsilon and delta for adding up: delta rounded down to its unit, and the price of the events at that delta."""
    budget, at_budget = priced.budget, _ceil_float(priced.price.epsilon)
    if budget.delta == 0:
        return at_budget, 0
    if cap_delta == 0:
        return NEVER, NEVER
    units = math.floor(Fraction(budget.delta) / Fraction(cap_delta) * WHOLE_DELTA)
    if units > WHOLE_DELTA:
        return NEVER, NEVER
    if units == 0:
        return at_budget, 1
    charged = Fraction(cap_delta) * units / WHOLE_DELTA
    delta = min(budget.delta, math.nextafter(float(charged), 0.0))
    return _ceil_float(epsilon_of(events, delta, budget.neighbors).epsilon), units


def _gaussian_charge(events: tuple[Event, ...]) -> int:
    """The sum of count/z^2, exactly, rounded up; no price where anything but Gaussian noise was added."""
    total = Fraction(0)
    for event in events:
        if not isinstance(event, Gaussian):
            return NEVER
        total += event.count / Fraction(event.noise_multiplier) ** 2
    return _ceil(total)


def _renyi_charges(events: tuple[Event, ...], neighbors: Neighbors, orders: tuple[int, int]) -> tuple[int, int]:
    """The divergences of both orders, rounded up; no price for an assumption that belongs to delta."""
    if any(isinstance(event, TotalVariation) for event in events):
        return NEVER, NEVER
    alphas = np.array(orders, dtype=float)
    moments = sum(rdp.moments_of(event, neighbors, alphas) for event in events)
    low, high = (float(value) for value in moments / (alphas - 1) * (1 + 1e-12))
    return _ceil_float(low), _ceil_float(high)


def _renyi_limits(epsilon: float, delta: float, alphas: Floats) -> Floats:
    """The divergence of each order that converts to exactly epsilon at a share of delta."""
    log_delta = math.log(RENYI_SHARE * delta)
    limits: Floats = epsilon - np.log1p(-1 / alphas) + (log_delta + np.log(alphas)) / (alphas - 1)
    return limits


def _ceil_float(value: float) -> int:
    return _ceil(Fraction(value)) if math.isfinite(value) else NEVER


def _ceil(value: Fraction) -> int:
    return min(math.ceil(value * UNIT), NEVER)


def _floor(value: Fraction) -> int:
    return min(math.floor(value * UNIT), NEVER - 1) if value > 0 else -1
