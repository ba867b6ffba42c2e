"""Textbook theorems as functions: baselines that lectures and papers use. No price of this library rests on them.

Composition of (epsilon, delta) claims, the classical Gaussian mechanism, the zCDP shortcut of a lecture on private
gradient descent, how many records make training losses speak of a population, and the privacy loss as a random
variable.

**The privacy loss** (``PrivacyLoss``). For two neighboring tables with output laws P and Q the privacy loss is
W = log(P/Q) at an output drawn from P.

*Theorem.* If W <= epsilon with probability at least 1 - delta, for every pair of neighbors in both orders, then the
mechanism is (epsilon, delta)-DP. Proof: P(S) <= P(S and W <= epsilon) + delta <= e^epsilon Q(S) + delta.
*The converse is false*: the exact delta is E(1 - e^(epsilon - W))_+, which is less than P(W > epsilon). A Gaussian
answer of noise multiplier 3.73 is (1, 1e-5)-DP, while its loss exceeds 1 with a larger probability (see the example).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import ndtr

from discreet.accounting import gaussian
from discreet.accounting.events import Event, Gaussian, Laplace, PerturbedMinimum, PureDP, gaussian_mu, merged
from discreet.accounting.gaussian import bracketed
from discreet.accounting.pricing import epsilon_of
from discreet.budget import Neighbors
from discreet.errors import AccountingError, Unsupported
from discreet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def basic_composition(claims: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the sums of epsilons and deltas: what any adaptive sequence of such mechanisms guarantees together.

    Parameters
    ----------
    claims : iterable of (float, float)
        Each mechanism's epsilon and delta, equal or not.

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
    undisclosed = math.prod(1.0 - delta for _, delta in listed)
    return min(basic, drift + spread), 1.0 - (1.0 - slack) * undisclosed


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

    Examples
    --------
    >>> from discreet.accounting import classical_gaussian
    >>> round(classical_gaussian(0.5, 1e-5), 4)
    9.6896
    """
    if not (0 < epsilon <= 1 and 0 < delta < 1):
        raise Unsupported("the classical theorem holds for epsilon up to 1 and delta within (0, 1): use calibrate")
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


def composed_epsilon(
    claims: Iterable[tuple[float, float]],
    delta: float,
    events: Iterable[Event] = (),
    neighbors: Neighbors | str = Neighbors.REPLACE_ONE,
) -> float:
    """Return the epsilon of mechanisms that claim (epsilon_i, delta_i), and of events, all together.

    By the accountants of ``price``, hence never more than basic or advanced composition, up to rounding.

    *Theorem* (after Kairouz, Oh and Viswanath 2015). Let mechanism i be (epsilon_i, delta_i)-DP and let the rest be
    known by its events, all chosen adaptively, their parameters fixed. If the same with epsilon_i-DP mechanisms in
    place of these is (epsilon, d)-DP, all of it is (epsilon, 1 - (1 - d) prod(1 - delta_i))-DP.
    *Proof.* For neighbors with laws P and Q, P = (1 - delta_i) P' + delta_i P'' and Q = (1 - delta_i) Q' + delta_i Q''
    with P' and Q' within e^epsilon_i of each other both ways: so mechanism i is a post-processing of a coin that shows
    everything with probability delta_i, and else of an epsilon_i-DP answer. The coins do not depend on the data or on
    each other: none shows everything with probability prod(1 - delta_i), and then the composition is the one without
    them. QED

    Parameters
    ----------
    claims : iterable of (float, float)
        Each mechanism's epsilon and delta, equal or not, under the same relation and unit.
    delta : float
        Of all together: more than the sum of the claims' deltas, or 0 where all of these are 0.
    events : iterable of events, default=()
        What else was released, such as a certificate's ``events``.
    neighbors : Neighbors or str, default="replace_one"
        The relation.

    Raises
    ------
    AccountingError
        If the claims' deltas leave nothing of delta.

    Examples
    --------
    >>> from discreet.accounting import composed_epsilon
    >>> print(f"{composed_epsilon([(0.1, 1e-8)] * 100 + [(0.5, 1e-7)], 1e-5):.2f}")
    4.71
    """
    listed = list(claims)
    basic, _ = basic_composition(listed)  # which checks them
    rest = list(events)
    shown = -math.expm1(math.fsum(math.log1p(-share) if share < 1 else -math.inf for _, share in listed))
    left = delta - shown * (1 + 2.0**-50)  # at most (delta - shown) / (1 - shown), which the theorem allows
    if delta > 0 and left <= 0:
        raise AccountingError("the claims' deltas leave nothing of delta: ask for a larger one")
    if delta == 0 and any(share > 0 for _, share in listed):
        raise AccountingError("a mechanism with a delta has no pure guarantee: ask for a delta above their sum")
    pure = [PureDP(epsilon) for epsilon, _ in listed if epsilon > 0]
    composed = epsilon_of([*pure, *rest], max(0.0, left), neighbors).epsilon
    return composed if rest else min(composed, basic * (1 + 2.0**-50))


@dataclass(frozen=True)
class PrivacyLoss:
    """The privacy loss between a worst pair of neighbors, or a variable stochastically above it (``is_bound``).

    Make one with ``PrivacyLoss.of``.

    Parameters
    ----------
    survival : callable
        t to P(W > t), an array for an array.
    delta : callable
        epsilon to the least delta.
    reach : float
        A loss beyond which next to nothing lies.
    is_bound : bool, default=False
        Whether this is an upper bound, and not the loss itself.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.accounting import PrivacyLoss
    >>> from discreet.accounting.events import Gaussian
    >>> loss = PrivacyLoss.of([Gaussian(3.7306317)])
    >>> f"{loss.delta(1.0):.1e} {float(loss.survival(np.array(1.0))):.1e}"
    '1.0e-05 1.6e-04'
    """

    survival: Callable[[Floats], Floats]
    delta: Callable[[float], float]
    reach: float
    is_bound: bool = False

    @classmethod
    def of(cls, events: Iterable[Event], neighbors: Neighbors | str = Neighbors.REPLACE_ONE) -> Self:
        """Return the loss of what was released: Gaussian answers, one Laplace answer, or one perturbed minimum.

        Parameters
        ----------
        events : iterable of events
            As in a certificate.
        neighbors : Neighbors or str, default="replace_one"
            The relation.

        Returns
        -------
        PrivacyLoss
            Exact for Gaussian and scalar Laplace answers; an upper bound for a perturbed minimum.

        Examples
        --------
        >>> from discreet.accounting import PrivacyLoss
        >>> from discreet.accounting.events import Laplace
        >>> PrivacyLoss.of([Laplace(2.0, dimension=1)]).delta(0.5)
        0.0
        """
        listed = merged(events)
        if listed and all(isinstance(event, Gaussian) for event in listed):
            return cls._gaussian(gaussian_mu(listed))
        if len(listed) == 1 and isinstance(listed[0], Laplace) and listed[0].count == listed[0].dimension == 1:
            return cls._laplace(listed[0].epsilon)
        if len(listed) == 1 and isinstance(listed[0], PerturbedMinimum) and listed[0].noise == "gaussian":
            bound = listed[0].loss_bound(Neighbors(neighbors))
            far = max(tail.shift + tail.mu * (6.0 + tail.mu) for tail in bound.tails)
            return cls(lambda t: bound.survival(np.atleast_1d(t)), bound.delta_of, far, is_bound=True)
        raise Unsupported(
            "a privacy loss can be shown for Gaussian answers, one Laplace answer of one number, or one perturbed "
            "minimum: use price for other events"
        )

    @classmethod
    def _gaussian(cls, mu: float) -> Self:
        """Return N(mu^2/2, mu^2)."""
        return cls(
            lambda t: np.asarray(ndtr(mu / 2 - np.asarray(t) / mu)),
            lambda epsilon: gaussian.delta_of(epsilon, mu),
            mu * mu / 2 + 5 * mu,
        )

    @classmethod
    def _laplace(cls, epsilon: float) -> Self:
        """Return the loss of one number: P(W > t) = 1 - e^((t - epsilon)/2)/2 for |t| < epsilon."""

        def survival(t: Floats) -> Floats:
            inside = 1.0 - 0.5 * np.exp((np.asarray(t) - epsilon) / 2)
            return np.where(np.asarray(t) >= epsilon, 0.0, np.where(np.asarray(t) < -epsilon, 1.0, inside))

        return cls(survival, lambda e: max(0.0, -math.expm1((e - epsilon) / 2)), epsilon * 1.2)

    def cdf(self, t: Floats) -> Floats:
        """Return P(W <= t)."""
        return 1.0 - self.survival(t)

    def quantile(self, delta: float) -> float:
        """Return the least epsilon with P(W > epsilon) <= delta: what the theorem claims, more than is needed.

        Parameters
        ----------
        delta : float
            Within (0, 1).

        Returns
        -------
        float
            To one part in a million.

        Examples
        --------
        >>> from discreet.accounting import PrivacyLoss
        >>> from discreet.accounting.events import Gaussian
        >>> round(PrivacyLoss.of([Gaussian(3.7306317)]).quantile(1e-5), 3)
        1.179
        """
        if not 0 < delta < 1:
            raise AccountingError("delta lies between 0 and 1")
        low, high = 0.0, bracketed(lambda t: self._beyond(t) <= delta, max(self.reach, 1e-9))
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._beyond(middle) > delta else (low, middle)
        return high

    def _beyond(self, t: float) -> float:
        return float(np.ravel(self.survival(np.array([t])))[0])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw P(W > t) and the delta at epsilon = t. Needs matplotlib (``pip install "discreet[plot]"``)."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 4)).subplots()
        t = np.linspace(0.0, self.reach, 400)
        ax.semilogy(t, np.maximum(self.survival(t), 1e-16), label="P(loss > t)")
        ax.semilogy(t, [max(self.delta(float(e)), 1e-16) for e in t], label="delta at epsilon = t")
        ax.set_xlabel("t")
        ax.set_ylim(1e-12, 1.0)
        ax.legend()
        return ax
