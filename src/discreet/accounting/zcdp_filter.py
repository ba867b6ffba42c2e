"""A zCDP filter: what an adaptive run may still spend, in exact integers.

A solver that chooses its noise from earlier answers needs more than composition: a *filter*, which refuses any answer
that would bring the sum of the rho above a total fixed beforehand. For zCDP such a filter costs nothing: whatever the
(adaptive) sequence of rho_i, if their sum never exceeds rho, the run is rho-zCDP (Feldman & Zrnic 2021; Whitehouse et
al. 2023). Privacy loss distributions of a fixed schedule are no filter. (There is one for Gaussian DP, but choices are
not Gaussian.)

Charges are rounded up to a multiple of 2^-120, the total down, and everything is added in integers: spent + left is the
total, exactly, at every moment.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import AccountingError, BudgetExceeded, PlanViolation

_UNIT_BITS = 120


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
