"""How far what is asked of the records stands out of the noise, from public facts alone.

N = n mu / a is the signal-to-noise ratio of a private mean of all records that spends the whole budget, for rows of
length 1: mu is the budget as Gaussian DP, a the relation's factor (1, or 2 where a record is replaced). A row of p
columns of one size has the length sqrt(p), a matrix has p^2 entries, K outputs are K times as many numbers; so each
notion of signal is N over a power of p K. ``per_record`` compares the noise with the sampling error of n records.
"""

import math
from dataclasses import dataclass

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget

PRIVATE_N = 2_000
"""Stands for n where that is private: rather too few, as steps for too many records are mostly noise."""
LAPLACE_ANSWERS = 3.5
"""A pure budget counts as mu = epsilon / (3.5 sqrt(p)): contributions are clipped in L1, Laplace noise is sqrt(2) times
as wide as its scale, and about six answers share epsilon itself, not its square."""


@dataclass(frozen=True)
class Signal:
    """N and its powers of the number of coefficients; infinite without privacy.

    Parameters
    ----------
    total : float
        N = n mu / a.
    n : float
        Records, or what stands for them.
    columns : int
        p, the intercept's among them.
    outputs : int, default=1
        K.
    answers : float, default=1.0
        How many times as large N is for a single answer: pure budgets are shared by several.

    Examples
    --------
    >>> from discreet.solvers.signal import Signal
    >>> Signal(total=1000.0, n=10_000, columns=25).per_row
    200.0
    """

    total: float
    n: float
    columns: int
    outputs: int = 1
    answers: float = 1.0

    @classmethod
    def of(cls, domain: Domain, budget: Budget) -> "Signal":
        """Return the signal that declared facts and the budget make."""
        n, coefficients = float(domain.n if domain.n is not None else PRIVATE_N), domain.n_features * domain.n_outputs
        total, answers = math.inf, LAPLACE_ANSWERS if budget.is_pure else 1.0
        if budget.is_private:
            pure = budget.epsilon / (LAPLACE_ANSWERS * math.sqrt(coefficients))
            mu = pure if budget.is_pure else mu_of(budget.epsilon, budget.delta)
            total = n * mu / budget.neighbors.sum_factor
        return cls(total, n, domain.n_features, domain.n_outputs, answers)

    @property
    def coefficients(self) -> int:
        """The number of coefficients, p K."""
        return self.columns * self.outputs

    @property
    def single(self) -> float:
        """N of one answer that spends the whole budget, of a pure one too."""
        return self.total * self.answers

    @property
    def single_per_row(self) -> float:
        """The same of a row of length sqrt(p K)."""
        return self.single / math.sqrt(self.coefficients)

    @property
    def per_output(self) -> float:
        """N / sqrt(K): of a number for each output."""
        return self.total / math.sqrt(self.outputs)

    @property
    def per_row(self) -> float:
        """N / sqrt(p K): of a mean of rows of length sqrt(p K)."""
        return self.total / math.sqrt(self.coefficients)

    @property
    def per_coefficient(self) -> float:
        """N / (p K): of one coefficient, in the noise that a gradient of all has."""
        return self.total / self.coefficients

    @property
    def per_matrix(self) -> float:
        """N / p^(3/2): of a direction of a second moment, in the noise that p^2 entries have."""
        return self.total / math.sqrt(self.columns) ** 3

    @property
    def per_record(self) -> float:
        """N / sqrt(n p K): the sampling error of a coefficient over its noise, for rows of length sqrt(p K)."""
        return self.total / math.sqrt(self.n * self.coefficients)
