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
from collections.abc import Sequence
from dataclasses import replace

from scipy.special import betaincinv, ndtri

from discreet.accounting import gaussian, pld, rdp
from discreet.accounting.events import Event, Gaussian, PoissonSampled
from discreet.accounting.pricing import epsilon_of, zcdp_of
from discreet.budget import Neighbors


def least_rate(count: int, trials: int, chance: float) -> float:
    """The Clopper-Pearson lower bound of a rate: a smaller one shows so many only with this chance."""
    return 0.0 if count <= 0 else float(betaincinv(count, trials - count + 1, chance))


def largest_rate(count: int, trials: int, chance: float) -> float:
    """The Clopper-Pearson upper bound of a rate."""
    return 1.0 if count >= trials else float(betaincinv(count + 1, trials - count, 1 - chance))


def least_accuracy(right: int, guesses: int, confidence: float) -> float:
    """A lower bound on the accuracy of a fixed test from its right guesses over both sides."""
    return least_rate(right, guesses, 1 - confidence)


def accuracy_epsilon(accuracy: float, events: Sequence[Event], delta: float, neighbors: Neighbors) -> float | None:
    """The price of the noisiest releases of the claimed kinds that admit this accuracy; None where no formula has one.

    Gaussian releases: mu = 2 Phi^-1(accuracy). Releases on samples: the noise at which the total variation distance of
    their privacy loss distribution is 2 accuracy - 1. Others that are rho-zCDP: Pinsker's inequality, 2 d^2 <= rho.
    """
    distance = 2 * accuracy - 1
    if distance <= 0:
        return 0.0
    if all(isinstance(event, Gaussian) for event in events):
        return gaussian.epsilon_of(2 * float(ndtri(accuracy)), delta)
    if all(isinstance(event.event if isinstance(event, PoissonSampled) else event, Gaussian) for event in events):
        return _sampled_epsilon(distance, events, delta, neighbors)
    if all(zcdp_of(event) > 0 for event in events):
        return rdp.epsilon_of_zcdp(2 * distance * distance, delta)
    return None


def _sampled_epsilon(distance: float, events: Sequence[Event], delta: float, neighbors: Neighbors) -> float:
    """By bisection over a common factor of the noise; the price is that of the noisier end."""
    low, high = 2.0**-10, 2.0**10
    for _ in range(16):
        middle = math.sqrt(low * high)
        reached = pld.delta_of(_scaled(events, middle), 0.0, neighbors) >= distance
        low, high = (middle, high) if reached else (low, middle)
    return epsilon_of(_scaled(events, high), delta, neighbors).epsilon


def _scaled(events: Sequence[Event], factor: float) -> list[Event]:
    """The same releases with this much more noise."""
    answer: list[Event] = []
    for event in events:
        if isinstance(event, Gaussian):
            answer.append(replace(event, noise_multiplier=event.noise_multiplier * factor))
        elif isinstance(event, PoissonSampled) and isinstance(event.event, Gaussian):
            noisier = replace(event.event, noise_multiplier=event.event.noise_multiplier * factor)
            answer.append(replace(event, event=noisier))
    return answer


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
