"""An account: a data set's cap, what was spent of it, and the rule by which a charge is granted or refused.

**The filters.** What a fit costs an account, in whole numbers: the filters that a cap is kept in over a lifetime.

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
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.accounting import gaussian, rdp
from discreet.accounting.events import Event, Gaussian, NonPrivate, TotalVariation, merged
from discreet.accounting.pricing import PricedPlan, epsilon_of
from discreet.budget import Budget, Neighbors
from discreet.errors import Unsupported
from discreet.typing import Floats

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
    events = merged(priced.events)
    if any(isinstance(event, NonPrivate) for event in events) or not priced.budget.is_private:
        raise Unsupported("what is released without noise has no price: a ledger is for private fits")
    if not events:
        return FREE
    low, high = _renyi_charges(events, priced.budget.neighbors, orders)
    return Amounts(_gaussian_charge(events), low, high, *_added(events, priced, cap_delta))


def epsilon_spent(spent: Amounts, delta: float, orders: tuple[int, int]) -> float:
    """What the account's releases cost together at the cap's delta: the least of the shares' conversions."""
    readings = [spent.epsilon / UNIT if spent.is_pure else math.inf]
    if delta == 0:
        return readings[0]
    if spent.gaussian < NEVER:
        readings.append(gaussian.epsilon_of(math.sqrt(spent.gaussian / UNIT) * (1 + 1e-15), GAUSSIAN_SHARE * delta))
    for divergence, order in zip((spent.low, spent.high), orders, strict=True):
        if divergence < NEVER:
            readings.append(max(0.0, rdp.epsilon_of_order(divergence / UNIT, order, RENYI_SHARE * delta)))
    return min(readings)


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
    moments = sum(event.log_moments(neighbors, alphas) for event in events)
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


UNITS = ("record", "person")


@dataclass(frozen=True)
class Spent:
    """What was spent on a data set, twice: added up, and composed.

    Parameters
    ----------
    dataset : str
        Its name.
    fits : int
        How many charges there were.
    summed_epsilon, summed_delta : float
        The sums over the fits: what a naive account would show.
    epsilon : float
        What they would cost together at the cap's delta had they been planned together. It is a reading, not a
        promise: the promise is the cap.
    share : float
        How much of the cap is gone, from 0 to 1, in the filter that has most left.
    left : float
        The epsilon of the largest fit with Gaussian noise at ``left_delta`` that would still be granted; of the
        largest pure fit where that is 0.
    left_delta : float
        The cap's delta; what is left of it where epsilons are added up.
    cap_epsilon, cap_delta : float
        The cap.

    Examples
    --------
    >>> from discreet import Ledger
    >>> ledger = Ledger(":memory:")
    >>> _ = ledger.grant("census", 1.0, 1e-6)
    >>> ledger.spent("census").fits
    0
    """

    dataset: str
    fits: int
    summed_epsilon: float
    summed_delta: float
    epsilon: float
    share: float
    left: float
    left_delta: float
    cap_epsilon: float
    cap_delta: float


@dataclass(frozen=True)
class Account:
    """The state of one data set. ``adds`` says that epsilons are added up (see ``privacy_filters``)."""

    name: str
    epsilon: float
    delta: float
    neighbors: Neighbors
    unit: str
    orders: tuple[int, int]
    caps: Amounts
    parent: str | None = None
    spent: Amounts = FREE
    charges: int = 0
    adds: bool = False

    @classmethod
    def opened(cls, name: str, epsilon: float, delta: float, neighbors: Neighbors | str, unit: str) -> "Account":
        """An account of which nothing is spent. Epsilon, delta and the relation are checked as those of a budget."""
        cap = _cap(epsilon, delta, neighbors)
        if unit not in UNITS:
            raise Unsupported(f"the unit of privacy is one of {', '.join(UNITS)}")
        orders = orders_for(cap.epsilon, cap.delta)
        caps = caps_for(cap.epsilon, cap.delta, orders)
        return cls(name, cap.epsilon, cap.delta, cap.neighbors, unit, orders, caps)

    def part(self, name: str) -> "Account":
        """A part of the data set: what the whole has spent, the part has spent."""
        return replace(self, name=name, parent=self.name)

    def granted(self, epsilon: float) -> "Account":
        """With another cap on epsilon; delta and the filters stay those that it was opened with."""
        cap = _cap(epsilon, self.delta, self.neighbors)
        return replace(self, epsilon=cap.epsilon, caps=caps_for(cap.epsilon, self.delta, self.orders))

    def charge(self, priced: PricedPlan) -> Amounts:
        """Return what a priced plan costs this account."""
        return charge_of(priced, self.orders, self.delta)

    def charged(self, charge: Amounts) -> "Account":
        """After a charge, granted or not; the first one decides whether epsilons are added up."""
        if not any(charge):
            return self
        adds = self.adds if self.charges else not charge.within_a_share(self.caps)
        return replace(self, spent=self.spent + charge, charges=self.charges + 1, adds=adds)

    @property
    def is_within(self) -> bool:
        """Whether what was spent is within the cap."""
        rule = Amounts.within_the_whole if self.adds else Amounts.within_a_share
        return not self.charges or rule(self.spent, self.caps)

    def statement(self) -> Spent:
        """What was spent, for a person."""
        added, composed = self.spent.epsilon / UNIT, 0.0
        if self.charges:
            composed = math.inf if self.adds else epsilon_spent(self.spent, self.delta, self.orders)
            composed = min(composed, added) if self.spent.delta <= self.caps.delta else composed
        return Spent(
            dataset=self.name,
            fits=self.charges,
            summed_epsilon=added,
            summed_delta=self.spent.delta / WHOLE_DELTA * self.delta,
            epsilon=composed,
            share=self._share(),
            left=self._left(),
            left_delta=self.delta * (1 - self.spent.delta / WHOLE_DELTA if self.adds else 1.0),
            cap_epsilon=self.epsilon,
            cap_delta=self.delta,
        )

    def _share(self) -> float:
        shares = [spent / cap if cap > 0 else 1.0 for spent, cap in self._pairs]
        if self.adds:
            return min(1.0, max(shares[3:]))
        return min(1.0, *shares[: 4 if self.spent.is_pure else 3])

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.spent, self.caps, strict=True))

    def _left(self) -> float:
        added = max(0, self.caps.epsilon - self.spent.epsilon) / UNIT
        if self.adds:
            return added
        if not self.charges or self.delta == 0:
            return added
        squares = [max(0, self.caps.gaussian - self.spent.gaussian) / UNIT]
        for order, cap, spent in zip(
            self.orders, (self.caps.low, self.caps.high), (self.spent.low, self.spent.high), strict=True
        ):
            squares.append(2 * max(0, cap - spent) / UNIT / order)
        return gaussian.epsilon_of(math.sqrt(max(squares)) * (1 - 1e-9), self.delta)


def _cap(epsilon: float, delta: float, neighbors: Neighbors | str) -> Budget:
    cap = Budget(epsilon, delta, neighbors)  # type: ignore[arg-type]
    if not cap.is_private:
        raise Unsupported("a cap is a finite epsilon, such as 3.0")
    return cap


AMOUNT_NAMES = ("gaussian", "low", "high", "epsilon", "delta")
GAUSSIAN_SHARE, RENYI_SHARE = 0.5, 0.25
