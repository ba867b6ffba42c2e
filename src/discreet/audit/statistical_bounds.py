"""What many runs on two neighbors prove: lower bounds on epsilon, each at a stated confidence.

*Accuracy.* Guess from each run's output on which of the two data sets it ran. No test's accuracy, averaged over the two
sides, exceeds (1 + d)/2, where d is the total variation distance between the laws: for mu-Gaussian-DP Phi(mu/2). The
number of right guesses over both sides is a sum of independent coins whose mean chance is at most that; among such
sums the binomial has the heaviest upper tail (Hoeffding 1956), so that the Clopper-Pearson bound of the pooled count
is one of the accuracy. One bound for both sides is tighter than one for each (0.92 against 0.88 of epsilon = 1 from
10^5 runs per side at a confidence of 0.999).

*Rates.* For any event S, (epsilon, delta)-DP says P(S) <= e^epsilon Q(S) + delta. A lower Clopper-Pearson bound of P(S)
and an upper one of Q(S) bound epsilon from below, whatever the mechanism.

The event must be fixed before the runs that are counted.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

from scipy.special import betaincinv, ndtri

from discreet.accounting import gaussian, pld
from discreet.accounting.events import ZCDP, BoundedRange, Event, Gaussian, Laplace, PoissonSampled, PureDP
from discreet.accounting.pricing import epsilon_of
from discreet.accounting.root_finding import find_root
from discreet.budget import Neighbors
from discreet.errors import Unsupported


def least_rate(count: int, trials: int, chance: float) -> float:
    """The Clopper-Pearson lower bound of a rate: a smaller one shows so many only with this chance."""
    return 0.0 if count <= 0 else float(betaincinv(count, trials - count + 1, chance))


def largest_rate(count: int, trials: int, chance: float) -> float:
    """The Clopper-Pearson upper bound of a rate."""
    return 1.0 if count >= trials else float(betaincinv(count + 1, trials - count, 1 - chance))


def least_accuracy(right: int, guesses: int, confidence: float) -> float:
    """A lower bound on the accuracy of a fixed test from its right guesses over both sides.

    Hoeffding's comparison of tails holds from one above the mean on, hence for confidences of at least 3/4.
    """
    if not 0.75 <= confidence < 1:
        raise Unsupported("confidence lies in [0.75, 1), such as 0.99")
    return least_rate(right, guesses, 1 - confidence)


def accuracy_epsilon(accuracy: float, events: Sequence[Event], delta: float, neighbors: Neighbors) -> float | None:
    """The price of the noisiest releases of the claimed kinds that admit this accuracy; None where no formula has one.

    Gaussian releases: mu = 2 Phi^-1(accuracy). Others: all their noise is multiplied by one factor, and the largest is
    sought at which the total variation distance may still be 2 accuracy - 1: by their privacy loss distribution for
    Gaussian noise on samples, by Pinsker's inequality (2 d^2 <= rho) for what is rho-zCDP. Infinite where no noise is
    little enough, as on samples, whose distance is at most the chance of being drawn.
    """
    wanted = 2 * accuracy - 1
    distance = _distance_of(events, neighbors)
    if distance is None:
        return None
    if wanted <= 0:
        return 0.0
    if delta > 0 and all(isinstance(event, Gaussian) for event in events):
        return gaussian.epsilon_of(2 * float(ndtri(accuracy)), delta)
    if wanted > _largest_distance(events):
        return math.inf
    near = find_root(
        lambda factor: distance([event.with_noise(factor) for event in events]) >= wanted,
        2.0**-10,
        2.0**10,
        steps=20,
        ratio=True,
    )
    return epsilon_of([event.with_noise(near[1]) for event in events], delta, neighbors).epsilon


def _largest_distance(events: Sequence[Event]) -> float:
    """What no noise at all would admit: on samples, the chance of being drawn at least once."""
    missed = 0.0
    for event in events:
        if not isinstance(event, PoissonSampled):
            return 1.0
        missed += event.count * math.log1p(-min(float(event.probability), 1 - 1e-16))
    return -math.expm1(missed)


def _distance_of(events: Sequence[Event], neighbors: Neighbors) -> Callable[[Sequence[Event]], float] | None:
    """A bound on the total variation distance of releases of these kinds; None where there is none."""
    inner = [event.inner for event in events]
    if any(isinstance(event, PoissonSampled) for event in events):
        is_gaussian = all(isinstance(event, Gaussian) for event in inner)
        return partial(_sampled_distance, neighbors) if is_gaussian else None
    if all(isinstance(event, (Gaussian, Laplace, BoundedRange, PureDP, ZCDP)) for event in inner):
        return lambda scaled: math.sqrt(0.5 * math.fsum(event.zcdp for event in scaled))
    return None


def _sampled_distance(neighbors: Neighbors, events: Sequence[Event]) -> float:
    try:
        return pld.delta_of(events, 0.0, neighbors)
    except Unsupported:  # too little noise for its grid
        return 1.0


def rate_epsilon(hits: int, trials: int, others: int, other_trials: int, delta: float, confidence: float) -> float:
    """From an event's counts on both sides: the epsilon below which P <= e^epsilon Q + delta cannot be."""
    chance = (1 - confidence) / 2
    high, low = least_rate(hits, trials, chance) - delta, largest_rate(others, other_trials, chance)
    return max(0.0, math.log(high / low)) if high > 0 else 0.0


def either_epsilon(hits: int, trials: int, others: int, other_trials: int, delta: float, confidence: float) -> float:
    """``rate_epsilon`` for the event and for its complement, in both directions, at one confidence for all."""
    each = 1 - (1 - confidence) / 4
    here, there = (hits, trials), (others, other_trials)
    pairs = [(here, there), (there, here)]
    pairs += [((n - k, n), (m - j, m)) for (k, n), (j, m) in pairs]
    return max(rate_epsilon(*one, *other, delta, each) for one, other in pairs)
