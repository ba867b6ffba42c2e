"""What many runs on two neighbors prove: lower bounds on epsilon, each at a stated confidence.

*Accuracy.* Guess from each run's output on which of the two data sets it ran. No test's accuracy, averaged over the two
sides, exceeds (1 + d)/2, where d is the total variation distance between the laws: for mu-Gaussian-DP Phi(mu/2). The
number of right guesses over both sides is a sum of independent coins whose mean chance is at most that; among such
sums the binomial has the heaviest upper tail (Hoeffding 1956), so that the Clopper-Pearson bound of the pooled count
is one of the accuracy. One bound for both sides is tighter than one for each (0.92 against 0.88 of epsilon = 1 from
10^5 runs a side at a confidence of 0.999).

*Rates.* For any event S, (epsilon, delta)-DP says P(S) <= e^epsilon Q(S) + delta. A lower Clopper-Pearson bound of P(S)
and an upper one of Q(S) bound epsilon from below, whatever the mechanism.

The event must be fixed before the runs that are counted.
"""

import math
from collections.abc import Callable

from scipy.special import betaincinv, ndtri

from discreet.accounting import gaussian


def least_rate(count: int, trials: int, chance: float) -> float:
    """The Clopper-Pearson lower bound of a rate: a smaller one shows so many only with this chance."""
    return 0.0 if count <= 0 else float(betaincinv(count, trials - count + 1, chance))


def largest_rate(count: int, trials: int, chance: float) -> float:
    """The Clopper-Pearson upper bound of a rate."""
    return 1.0 if count >= trials else float(betaincinv(count + 1, trials - count, 1 - chance))


def least_accuracy(right: int, guesses: int, confidence: float) -> float:
    """A lower bound on the accuracy of a fixed test from its right guesses over both sides."""
    return least_rate(right, guesses, 1 - confidence)


def gaussian_epsilon(accuracy: float, delta: float) -> float:
    """The epsilon at delta of the least Gaussian DP that admits this accuracy."""
    return 0.0 if accuracy <= 0.5 else gaussian.epsilon_of(2 * float(ndtri(accuracy)), delta)


def family_epsilon(accuracy: float, distance: Callable[[float], float], price: Callable[[float], float]) -> float:
    """The price of the noisiest mechanism of a family that admits this accuracy.

    ``distance`` is the total variation distance (or more) at a noise multiplier, falling; ``price`` the epsilon there.
    """
    wanted = 2 * accuracy - 1
    if wanted <= 0 or distance(1e9) >= wanted:
        return 0.0
    low, high = 1e-6, 1e9
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if distance(middle) >= wanted else (low, middle)
    return price(high)


def rate_epsilon(hits: int, trials: int, others: int, other_trials: int, delta: float, confidence: float) -> float:
    """From an event's counts on both sides: the epsilon below which P <= e^epsilon Q + delta cannot be."""
    chance = (1 - confidence) / 2
    high, low = least_rate(hits, trials, chance) - delta, largest_rate(others, other_trials, chance)
    return max(0.0, math.log(high / low)) if high > 0 else 0.0


def either_epsilon(hits: int, trials: int, others: int, other_trials: int, delta: float, confidence: float) -> float:
    """``rate_epsilon`` for the event and for its complement, in both directions, at one confidence for all."""
    each = 1 - (1 - confidence) / 2
    misses, other_misses = trials - hits, other_trials - others
    return max(
        rate_epsilon(hits, trials, others, other_trials, delta, each),
        rate_epsilon(other_misses, other_trials, misses, trials, delta, each),
    )
