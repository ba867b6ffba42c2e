"""An account: a data set's cap, what was spent of it, and the rule by which a charge is granted or refused."""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from discreet.accounting import gaussian
from discreet.accounting.events import Event
from discreet.budget import Budget, Neighbors
from discreet.errors import Unsupported
from discreet.ledger import currency
from discreet.ledger.currency import FREE, UNIT, WHOLE_DELTA, Amounts

UNITS = ("record", "person")


@dataclass(frozen=True)
class Spent:
    """What was spent on a data set, twice: added up, and composed.

    Parameters
    ----------
    fits
        How many charges there were.
    summed_epsilon, summed_delta
        The sums over the fits: what a naive account would show.
    epsilon
        What they cost together at the cap's delta. It is a reading, not a promise: the promise is the cap.
    share
        How much of the cap is gone, from 0 to 1, in the currency that has most left.
    left
        The epsilon (at the cap's delta) of the largest fit with Gaussian noise that would still be granted; with
        Laplace noise where the cap has no delta.
    """

    dataset: str
    fits: int
    summed_epsilon: float
    summed_delta: float
    epsilon: float
    share: float
    left: float
    cap_epsilon: float
    cap_delta: float


@dataclass(frozen=True)
class Account:
    """The state of one data set. ``adds`` says that epsilons are added up (see ``currency``)."""

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
        cap = Budget(epsilon, delta, neighbors)  # type: ignore[arg-type]
        if not cap.is_private:
            raise Unsupported("a cap is a finite epsilon, such as 3.0")
        if unit not in UNITS:
            raise Unsupported(f"the unit of privacy is one of {', '.join(UNITS)}")
        orders = currency.orders_for(cap.epsilon, cap.delta)
        caps = currency.caps_for(cap.epsilon, cap.delta, orders)
        return cls(name, cap.epsilon, cap.delta, cap.neighbors, unit, orders, caps)

    def part(self, name: str) -> "Account":
        """A part of the data set: what the whole has spent, the part has spent."""
        return replace(self, name=name, parent=self.name)

    def granted(self, epsilon: float) -> "Account":
        """With another cap on epsilon; delta and the currencies stay those that it was opened with."""
        cap = Budget(epsilon, self.delta, self.neighbors)
        return replace(self, epsilon=cap.epsilon, caps=currency.caps_for(cap.epsilon, self.delta, self.orders))

    def charge(self, events: Sequence[Event], budget: Budget) -> Amounts:
        """What a fit costs this account that releases these events under this budget."""
        return currency.charge_of(events, budget, self.orders, self.delta)

    def charged(self, charge: Amounts) -> "Account":
        """After a charge, granted or not; the first one decides whether epsilons are added up."""
        if not any(astuple(charge)):
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
            composed = added if self.adds else currency.epsilon_spent(self.spent, self.delta, self.orders)
        return Spent(
            dataset=self.name,
            fits=self.charges,
            summed_epsilon=added,
            summed_delta=self.spent.delta / WHOLE_DELTA * self.delta,
            epsilon=composed,
            share=self._share(),
            left=self._left(),
            cap_epsilon=self.epsilon,
            cap_delta=self.delta,
        )

    def _share(self) -> float:
        pairs = list(zip(astuple(self.spent), astuple(self.caps), strict=True))
        if self._is_summed:
            return min(1.0, max(spent / cap if cap > 0 else float(spent > 0) for spent, cap in pairs[3:]))
        return min(1.0, min(spent / cap if cap > 0 else 1.0 for spent, cap in pairs[:3]))

    def _left(self) -> float:
        if self._is_summed:
            exhausted = self.delta > 0 and self.spent.delta >= self.caps.delta
            return 0.0 if exhausted else max(0, self.caps.epsilon - self.spent.epsilon) / UNIT
        if not self.charges:
            return self.epsilon
        squares = [max(0, self.caps.gaussian - self.spent.gaussian) / UNIT]
        for order, cap, spent in zip(
            self.orders, (self.caps.low, self.caps.high), (self.spent.low, self.spent.high), strict=True
        ):
            squares.append(2 * max(0, cap - spent) / UNIT / order)
        return gaussian.epsilon_of(math.sqrt(max(squares)) * (1 - 1e-9), self.delta)

    @property
    def _is_summed(self) -> bool:
        return self.adds or self.delta == 0
