"""What theory says of a run before any data is read: ``RiskBound``, and what a model of zeros is certain to have."""

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.accounting.textbook import population_gap
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses.base import Loss, values
from discreet.losses.constants import gradient_bound


@dataclass(frozen=True)
class RiskBound:
    """Bounds on the excess risk F - F* of a run as configured; F is what the solver minimizes.

    Parameters
    ----------
    upper : float
        A bound: in expectation, or with a probability of ``confidence``.
    lower : float
        The order, without its constant, of what no private algorithm can beat on the worst problem with these
        constants; never above ``trivial``.
    trivial : float
        What a model of zeros has, at most. ``upper`` may be larger: noise can make a model worse than zeros.
    confidence : float or None, default=None
        The probability with which ``upper`` holds. None: in expectation.
    reach : float or None, default=None
        L R, where the release lies in a ball of radius R on which the losses are L-Lipschitz. None: in no known ball.
    """

    upper: float
    lower: float
    trivial: float
    confidence: float | None = None
    reach: float | None = None

    def with_probability(self, confidence: float) -> "RiskBound":
        """Return the bound with a probability in place of an expectation, by Markov's inequality: F - F* >= 0.

        Loose, and true of every bound in expectation; ``bound(..., confidence=...)`` is tighter where a solver has it.
        """
        if self.confidence is not None:
            raise Unsupported("this bound holds with a probability already: ask the solver's bound for another")
        return replace(self, upper=self.upper / (1.0 - checked(confidence)), confidence=confidence)

    def population(self, n: int) -> float:
        """Bound the excess risk on the population, for n independent records: by uniform convergence on the ball.

        In expectation: upper + 2 L R / sqrt(n), as E sup (F - F_n) is at most twice the Rademacher complexity of the
        losses of a linear model. Where ``upper`` has a confidence c, with probability 2 c - 1: in addition, the
        supremum and the mean loss at the population's best are within 2 L R sqrt(ln(2/(1 - c)) / (2n)) of their means.

        Raises
        ------
        Unsupported
            Where the release is in no known ball: mean losses then need not be near the population's.
        """
        if self.reach is None:
            raise Unsupported("population risk needs a ball that the release is in, and one output: set the radius")
        around = 0.0 if self.confidence is None else 4.0 * population_gap(n, 1, 1.0 - self.confidence)
        return self.upper + self.reach * (2.0 / math.sqrt(n) + around)


def checked(confidence: float) -> float:
    """Return a probability that a bound may be asked to hold with."""
    if not 0 < confidence < 1:
        raise Unsupported("confidence must lie between 0 and 1")
    return confidence


def excess_of_zeros(loss: Loss, domain: Domain, diameter: float) -> float:
    """Return what F(0) - F* is at most: L D, and for losses that are never negative the largest loss at 0.

    That is convex in a numeric target, so its ends suffice. Poisson's loss is negative somewhere.
    """
    length = gradient_bound(loss, domain, diameter) * diameter
    if not loss.nonnegative:
        return length
    targets = (-1.0, 1.0) if loss.task == "classification" else (-domain.target_bound, domain.target_bound)
    if loss.n_outputs > 1:
        targets = (0.0, 1.0)  # at 0 all classes are alike
    return min(length, max(float(values(loss, np.zeros(loss.n_outputs), target)) for target in targets))
