"""An account: a data set's cap, what was spent of it, and the rule by which a charge is granted or refused."""

import math
from dataclasses import dataclass, replace

from discreet.accounting import gaussian
from discreet.accounting.priced_plan import PricedPlan
from discreet.budget import Budget, Neighbors
from discreet.errors import Unsupported
from discreet.ledger import privacy_filters
from discreet.ledger.privacy_filters import FREE, UNIT, WHOLE_DELTA, Amounts

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
        orders = privacy_filters.orders_for(cap.epsilon, cap.delta)
        caps = privacy_filters.caps_for(cap.epsilon, cap.delta, orders)
        return cls(name, cap.epsilon, cap.delta, cap.neighbors, unit, orders, caps)

    def part(self, name: str) -> "Account":
        """A part of the data set: what the whole has spent, the part has spent."""
        return replace(self, name=name, parent=self.name)

    def granted(self, epsilon: float) -> "Account":
        """With another cap on epsilon; delta and the filters stay those that it was opened with."""
        cap = _cap(epsilon, self.delta, self.neighbors)
        return replace(self, epsilon=cap.epsilon, caps=privacy_filters.caps_for(cap.epsilon, self.delta, self.orders))

    def charge(self, priced: PricedPlan) -> Amounts:
        """Return what a priced plan costs this account."""
        return privacy_filters.charge_of(priced, self.orders, self.delta)

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
            composed = math.inf if self.adds else privacy_filters.epsilon_spent(self.spent, self.delta, self.orders)
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
