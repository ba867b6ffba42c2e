"""Signal-to-noise ratios of records, from public facts alone: what the default rules are functions of.

``signal`` J = n mu / (a sqrt(p))
    Signal-to-noise ratio of a private mean of all records that spends the whole budget, for a row of length sqrt(p).
    mu: the budget as Gaussian DP; a: the relation's factor; p: the columns with the intercept, times the outputs.
    A pure budget counts as mu = epsilon / (3.5 sqrt(p)): contributions are clipped in L1, Laplace noise is sqrt(2)
    times as wide as its scale, and about six answers share epsilon itself, not its square.
``clarity`` K = J / sqrt(p)
    Signal-to-noise ratio of one coefficient in a gradient of p coefficients.
"""

import math

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.solvers.default_rules import count_of

PURE = 3.5


def signal(domain: Domain, budget: Budget) -> float:
    """Return J, infinite without privacy."""
    if not budget.is_private:
        return math.inf
    n, columns = count_of(domain), _columns(domain)
    pure = budget.epsilon / (PURE * math.sqrt(columns)) if budget.is_pure else None
    mu = mu_of(budget.epsilon, budget.delta) if pure is None else pure
    return n * mu / (budget.neighbors.sum_factor * math.sqrt(columns))


def clarity(domain: Domain, budget: Budget) -> float:
    """Return K, infinite without privacy."""
    return signal(domain, budget) / math.sqrt(_columns(domain))


def _columns(domain: Domain) -> int:
    return domain.n_features * domain.n_outputs
