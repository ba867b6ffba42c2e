"""What no accountant may undercut: lower bounds on epsilon from explicit tests between neighbors.

For any set S of answers, delta(epsilon) >= P(S) - e^epsilon Q(S), where P and Q are the laws of a
composition's answers on a worst pair of neighbors; and leaving answers out (post-processing) only
lowers delta. So a simple test on some of the answers bounds epsilon from below, in closed form and
without any of the machinery of the accountants: an epsilon below this is wrong. Two tests are tried on
Poisson-sampled Gaussian answers: is their sum large (sharp for much noise), is any of them large
(sharp for little).
"""

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import gammaln, ndtr, ndtri

from discreet.accounting import gaussian
from discreet.accounting.events import Event, Gaussian, Laplace, PerturbedMinimum, PoissonSampled
from discreet.budget import Neighbors
from discreet.typing import Floats


def _epsilon(p: Floats, q: Floats, delta: float) -> float:
    """The largest epsilon refuted by tests of power p and level q: ln((p - delta)/q)."""
    refuted = (p > delta) & (q > 1e-280)
    if not refuted.any():
        return 0.0
    # One part in 10^9 off, for the rounding of the distribution functions.
    return max(0.0, float(np.log((p[refuted] * (1 - 1e-9) - delta).clip(1e-300) / q[refuted]).max()) - 1e-9)


def sampled_gaussian(probability: float, noise_multiplier: float, count: int, delta: float, replaced: bool) -> float:
    """A lower bound for ``count`` Poisson-sampled Gaussian answers."""
    away = -0.5 if replaced else 0.0  # where the record's replacement, or nothing, moves an answer
    near = 0.5 if replaced else 1.0
    levels = ndtri(np.exp(np.linspace(math.log(1e-30), math.log(0.5), 200)))  # quantiles, from far to the middle
    best = 0.0
    # The sum: given k draws, normal with mean k near (k away) and standard deviation sqrt(T) z.
    mean, width = count * probability, 12 * math.sqrt(count * probability) + 30
    k = np.arange(max(0, math.floor(mean - width)), min(count, math.ceil(mean + width)) + 1, dtype=np.float64)
    log_weights = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    log_weights += k * math.log(probability) + (count - k) * math.log1p(-probability)
    weights, deviation = np.exp(log_weights), math.sqrt(count) * noise_multiplier
    missing = max(0.0, 1 - float(weights.sum()))
    thresholds = mean * away - levels * math.sqrt(deviation**2 + mean * away**2)
    p = ndtr((k * near - thresholds[:, None]) / deviation) @ weights
    q = ndtr((k * away - thresholds[:, None]) / deviation) @ weights + missing
    best = max(best, _epsilon(p, q, delta), _epsilon(1 - q, 1 - p, delta))
    # Any answer above a threshold, for one answer and for all.
    thresholds = away - levels * noise_multiplier
    none = ndtr(-thresholds / noise_multiplier)
    p1 = (1 - probability) * none + probability * ndtr((near - thresholds) / noise_multiplier)
    q1 = (1 - probability) * none + probability * ndtr((away - thresholds) / noise_multiplier)
    p, q = (-np.expm1(count * np.log1p(-np.minimum(single, 1 - 1e-16))) for single in (p1, q1))
    return max(best, _epsilon(p, q, delta), _epsilon(1 - q, 1 - p, delta))


def laplace(epsilon: float, delta: float) -> float:
    """One scalar Laplace answer, exactly: delta = 1 - e^{(x - epsilon)/2}."""
    return max(0.0, epsilon + 2 * math.log1p(-delta))


def epsilon_of(events: Iterable[Event], delta: float, neighbors: Neighbors) -> float:
    """A lower bound on a composition's epsilon: the best over its parts.

    A minimum with Gaussian noise inside counts as the Gaussian release of its noise multiplier: where the other
    records pull the record to a slope that stays at its bound, it is that release (in the limit).
    """
    listed = [_attained(event.unwrapped) for event in events]
    full = [(event.count, event.noise_multiplier) for event in listed if isinstance(event, Gaussian)]
    best = gaussian.epsilon_of(gaussian.mu_of_noise(full), delta) if full else 0.0
    for event in listed:
        if isinstance(event, PoissonSampled) and isinstance(event.event, Gaussian):
            inner, replaced = event.event, neighbors is Neighbors.REPLACE_ONE
            probability = float(event.probability)
            refuted = sampled_gaussian(probability, inner.noise_multiplier, inner.count, delta, replaced)
            best = max(best, refuted)
        elif isinstance(event, Laplace) and event.dimension == 1:
            best = max(best, laplace(event.epsilon, delta))
    return best * (1 - 1e-9)


def _attained(event: Event) -> Event:
    if isinstance(event, PerturbedMinimum) and event.noise == "gaussian":
        return Gaussian(event.noise_multiplier)
    return event
