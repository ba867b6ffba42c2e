"""What is known of honest and of broken audits beforehand: the laws of their counts."""

import math

from scipy.stats import binom, norm

from discreet.accounting import gaussian
from discreet.audit import guessing

NEVER = 1e-6
"""Statistical gates fail an honest library this rarely."""


def least_refuting(accuracy: float, guesses: int, confidence: float) -> int:
    """The fewest right guesses that prove more than this accuracy."""
    low, high = 0, guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        refutes = guessing.least_accuracy(middle, guesses, confidence) > accuracy
        low, high = (low, middle) if refutes else (middle, high)
    return high


def accuracy_of(mu: float) -> float:
    """Of the best guess between the two sides of mu-Gaussian DP."""
    return float(norm.cdf(mu / 2))


def power(claimed_mu: float, true_accuracy: float, guesses: int, confidence: float) -> float:
    """The chance that so many guesses at this accuracy refute claimed_mu-Gaussian DP."""
    needed = least_refuting(accuracy_of(claimed_mu), guesses, confidence)
    return float(binom.sf(needed - 1, guesses, true_accuracy))


def mu_of(epsilon: float, delta: float) -> float:
    """The Gaussian DP that is just (epsilon, delta)-DP."""
    return gaussian.mu_of(epsilon, delta)


def most_exceptions(repetitions: int, rate: float) -> int:
    """More than that many events of this rate happen with a chance below ``NEVER``."""
    return int(binom.isf(NEVER, repetitions, rate))


def laplace_distance(epsilon: float) -> float:
    """The total variation distance of two Laplace laws, one sensitivity apart."""
    return 1 - math.exp(-epsilon / 2)
