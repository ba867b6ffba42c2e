"""Textbook theorems as functions: baselines that lectures and papers use. No price of this library rests on them.

Composition of (epsilon, delta) claims, the classical Gaussian mechanism, the zCDP shortcut of a lecture on private
gradient descent, and how many records make training losses speak of a population.
"""

import math
from collections.abc import Iterable

from discreet.errors import AccountingError, Unsupported


def basic_composition(claims: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the sums of epsilons and deltas: what any adaptive sequence of such mechanisms guarantees together.

    Parameters
    ----------
    claims : iterable of (float, float)
        Each mechanism's epsilon and delta, equal or not.

    Returns
    -------
    (float, float)
        Epsilon and delta of all.

    Examples
    --------
    >>> from discreet.accounting import basic_composition
    >>> basic_composition([(0.5, 1e-6), (0.25, 0.0)])
    (0.75, 1e-06)
    """
    listed = list(claims)
    for epsilon, delta in listed:
        _require(epsilon >= 0 and 0 <= delta <= 1, "every claim is an epsilon of at least 0 and a delta within [0, 1]")
    return math.fsum(epsilon for epsilon, _ in listed), min(1.0, math.fsum(delta for _, delta in listed))


def advanced_composition(epsilon: float, delta: float, count: int, slack: float) -> tuple[float, float]:
    """Return the guarantee of ``count`` adaptive (epsilon, delta) mechanisms (Dwork, Rothblum and Vadhan 2010).

    epsilon sqrt(2 T ln(1/slack)) + T epsilon (e^epsilon - 1), at T delta + slack. Gaussian and most other mechanisms
    compose far better by their own events (``price``).

    Parameters
    ----------
    epsilon, delta : float
        Of one mechanism.
    count : int
        T, how many.
    slack : float
        What the theorem adds to delta.

    Returns
    -------
    (float, float)
        Epsilon and delta of all.

    Examples
    --------
    >>> from discreet.accounting import advanced_composition
    >>> [round(number, 7) for number in advanced_composition(0.1, 1e-8, 100, 1e-6)]
    [6.308231, 2e-06]
    """
    _require(epsilon >= 0 and 0 <= delta <= 1 and count >= 1, "give one mechanism's epsilon and delta, and a count")
    _require(0 < slack < 1, "the slack lies between 0 and 1")
    grown = epsilon * math.sqrt(2 * count * math.log(1 / slack)) + count * epsilon * math.expm1(epsilon)
    return grown, min(1.0, count * delta + slack)


def heterogeneous_composition(claims: Iterable[tuple[float, float]], slack: float) -> tuple[float, float]:
    """Return what unequal adaptive mechanisms guarantee together (Kairouz, Oh and Viswanath 2015, theorem 3.5).

    sum e_i tanh(e_i / 2) + sqrt(2 ln(1/slack) sum e_i^2), or sum e_i where that is less, at 1 - (1 - slack) prod(1 -
    d_i): an e-DP mechanism's loss is at most that of randomized response, within +-e with mean e tanh(e/2), and sums of
    such are concentrated (Azuma). ``composed_epsilon`` has the exact price.

    Parameters
    ----------
    claims : iterable of (float, float)
        Each mechanism's epsilon and delta, equal or not.
    slack : float
        What the theorem adds to delta.

    Returns
    -------
    (float, float)
        Epsilon and delta of all.

    Examples
    --------
    >>> from discreet.accounting import heterogeneous_composition
    >>> [round(number, 7) for number in heterogeneous_composition([(0.1, 1e-8)] * 100, 1e-6)]
    [5.7561055, 2e-06]
    """
    listed = list(claims)
    basic, _ = basic_composition(listed)
    _require(0 < slack < 1, "the slack lies between 0 and 1")
    drift = math.fsum(epsilon * math.tanh(epsilon / 2) for epsilon, _ in listed)
    spread = math.sqrt(2 * math.log(1 / slack) * math.fsum(epsilon**2 for epsilon, _ in listed))
    kept = math.prod(1.0 - delta for _, delta in listed)
    return min(basic, drift + spread), 1.0 - (1.0 - slack) * kept


def advanced_share(epsilon: float, count: int, slack: float) -> float:
    """Return the epsilon of each of ``count`` mechanisms: epsilon / sqrt(8 T ln(1/slack)), the theorem's corollary.

    It is about half of what the theorem itself allows.

    Parameters
    ----------
    epsilon : float
        Of all mechanisms together, at most 1.
    count : int
        T, how many.
    slack : float
        What is added to the sum of deltas.

    Returns
    -------
    float
        Epsilon of one.

    Raises
    ------
    Unsupported
        Where epsilon is above 1.

    Examples
    --------
    >>> from discreet.accounting import advanced_composition, advanced_share
    >>> share = advanced_share(0.9, 100, 1e-6)
    >>> round(advanced_composition(share, 0.0, 100, 1e-6)[0], 3)
    0.457
    """
    _require(0 < slack < 1 and count >= 1, "the slack lies between 0 and 1, and the count is at least 1")
    if not 0 < epsilon <= 1:
        raise Unsupported("the corollary holds for epsilon within (0, 1]: use advanced_composition")
    return epsilon / math.sqrt(8 * count * math.log(1 / slack))


def classical_gaussian(epsilon: float, delta: float) -> float:
    """Return the classical noise multiplier sqrt(2 ln(1.25/delta)) / epsilon, where its theorem holds.

    Beyond epsilon = 1 the theorem is false: at epsilon 10 and delta 1e-5 its true delta is 2.3e-5. ``calibrate`` is
    exact at every epsilon, and asks for less noise.

    Parameters
    ----------
    epsilon, delta : float
        The budget; epsilon below 1.

    Returns
    -------
    float
        Standard deviation over sensitivity.

    Raises
    ------
    Unsupported
        Where the theorem does not hold.

    Examples
    --------
    >>> from discreet.accounting import classical_gaussian
    >>> round(classical_gaussian(0.5, 1e-5), 4)
    9.6896
    """
    if not (0 < epsilon < 1 and 0 < delta < 1):
        raise Unsupported("the classical theorem holds for epsilon and delta within (0, 1): use calibrate")
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def lecture_epsilon(rho: float, count: int, delta: float) -> float:
    """Return k rho + sqrt(2 k rho ln(1/delta)): a lecture's price of k answers with noise multiplier 1/sqrt(rho).

    The privacy loss is N(k rho / 2, k rho), so that k rho / 2 for the first term is enough, and the tail's bound is
    loose too: ``price`` is exact.

    Parameters
    ----------
    rho : float
        One over the squared noise multiplier of one answer.
    count : int
        k, how many answers.
    delta : float
        Of the guarantee.

    Returns
    -------
    float
        Epsilon.

    Examples
    --------
    >>> from discreet.accounting import Plan, Release, lecture_epsilon, price
    >>> rho, plan = 1e-4, Plan([Release("noisy_gradient", 100)])
    >>> round(lecture_epsilon(rho, 100, 1e-6), 3), round(price(plan, rho**-0.5, 1e-6), 3)
    (0.536, 0.397)
    """
    _require(rho > 0 and count >= 1 and 0 < delta < 1, "give a positive rho, a count, and a delta within (0, 1)")
    return count * rho + math.sqrt(2 * count * rho * math.log(1 / delta))


def records_for_uniform_convergence(candidates: int, alpha: float, beta: float) -> int:
    """Return n from which all candidates' mean losses on a sample are within alpha of their population losses.

    Hoeffding's inequality for losses within [0, 1] and a union over candidates and both sides: ln(2 |C| / beta) / (2
    alpha^2) with probability 1 - beta. A lecture has ln(|C| / beta), which bounds one side only. Then a candidate that
    is within gamma of the best on the sample is within gamma + 2 alpha of the best in the population.

    Parameters
    ----------
    candidates : int
        |C|, fixed before the records are read.
    alpha : float
        How far a mean loss may be from its population's.
    beta : float
        The probability of failure.

    Returns
    -------
    int
        The least such number of independent records.

    Examples
    --------
    >>> from discreet.accounting import records_for_uniform_convergence
    >>> records_for_uniform_convergence(1000, 0.05, 0.05)
    2120
    """
    _require(candidates >= 1 and 0 < alpha <= 1 and 0 < beta < 1, "give candidates, alpha in (0, 1] and beta in (0, 1)")
    return math.ceil(math.log(2 * candidates / beta) / (2 * alpha**2))


def population_gap(n: int, candidates: int, beta: float) -> float:
    """Return alpha for n records: ``records_for_uniform_convergence`` the other way round.

    Parameters
    ----------
    n : int
        Independent records.
    candidates : int
        |C|, fixed before the records are read.
    beta : float
        The probability of failure.

    Returns
    -------
    float
        How far any candidate's mean loss, within [0, 1], is from its population's.

    Examples
    --------
    >>> from discreet.accounting import population_gap
    >>> round(population_gap(2120, 1000, 0.05), 4)
    0.05
    """
    _require(n >= 1 and candidates >= 1 and 0 < beta < 1, "give n, candidates and beta in (0, 1)")
    return math.sqrt(math.log(2 * candidates / beta) / (2 * n))


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise AccountingError(text)
