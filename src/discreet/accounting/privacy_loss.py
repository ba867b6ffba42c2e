"""``LossBound``: a random variable that is stochastically above a privacy loss, and every price that follows.

Let W = log(P/Q) under P be the privacy loss between neighbors, in either direction. All that is asked of a
mechanism here is a *survival bound* S(t) >= P(W > t). Let U >= 0 have the survival function S. Then

* delta(epsilon) = E(1 - e^{epsilon-W})_+ <= E(1 - e^{epsilon-U})_+ for every real epsilon, since
  w -> (1 - e^{epsilon-w})_+ does not decrease;
* E e^{-U} <= E e^{-W} <= 1, so that U is the privacy loss of a pair of laws: P' is the law of U, and Q' has the
  density e^{-U} next to it and the missing mass where P' has none. By the line above this pair dominates both
  directions, and dominating pairs compose, adaptively (Zhu, Dong and Wang 2022).

Write f for a function of the loss that does not decrease, such as (1 - e^{epsilon-t})_+. Then, for any x,

    E f(U) <= f(x) + integral over t > x of f'(t) S(t) dt.                                                  (1)

S is built of pieces on which it is P(Z > z(t)), Z standard normal and z linear in t, or a sum of such terms. On
each piece log S is concave, and so is log f' for each f used here. The tangent of log(f' S) in the middle of a
cell lies above it, so that the integral of its exponential, which has a closed form, is an upper bound; it is
above the truth by about (width of the cell in z)^2/24, relatively. All terms are positive: there is no
cancellation, and rounding errors are relative ones of at most (1 + |log S| + epsilon) times a few ulps, below 1e-11
for all S above 1e-300 and epsilon below 1e4. The final factor ``_MARGIN`` covers them; the one difference of numbers
of equal size, t - shift in ``Tail.scores``, is lowered by its own rounding error.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from discreet.accounting import gaussian
from discreet.typing import Floats

_MARGIN = 1 + 1e-11
_ULP = 2.0**-52
_LOG_2 = math.log(2)
_FAR = 38.0  # P(Z > 38) < 1e-315
_CELL = 0.1  # in standard deviations: 4e-4 of relative error


@dataclass(frozen=True)
class Tail:
    """weight P(G > t - shift), G ~ N(mu^2/2, mu^2) the privacy loss of a Gaussian mechanism."""

    weight: float
    mu: float
    shift: float

    def scores(self, losses: Floats) -> Floats:
        """The z(t) with P(G > t - shift) = P(Z > z(t)), rounded down."""
        beyond = losses - self.shift - 4 * _ULP * (losses + self.shift)
        answer: Floats = beyond / self.mu - 0.5 * self.mu
        return answer


@dataclass(frozen=True, eq=False)
class LossBound:
    """S(t) = 1 below the first knot, P(Z > z(t)) between knots, a sum of tails from the last knot on.

    Parameters
    ----------
    knots
        Increasing losses; the last is not below the shift of any tail.
    scores
        z at the knots, non-decreasing; linear in between.
    tails
        What bounds the survival from the last knot on.
    """

    knots: Floats
    scores: Floats
    tails: tuple[Tail, ...]

    def survival(self, losses: Floats) -> Floats:
        """S at the given losses, made monotone."""
        inner = ndtr(-np.interp(losses, self.knots, self.scores))
        outer = np.zeros_like(losses)
        for tail in self.tails:
            outer += tail.weight * ndtr(-tail.scores(losses))
        bound = np.where(losses < self.knots[0], 1.0, np.where(losses < self.knots[-1], inner, outer))
        answer: Floats = np.minimum.accumulate(np.minimum(bound * _MARGIN, 1.0))
        return answer

    def delta_of(self, epsilon: float) -> float:
        """The delta at epsilon >= 0, an upper bound; beyond the last knot exact, by Gaussian DP."""
        first, last = float(self.knots[0]), float(self.knots[-1])
        total = -math.expm1(epsilon - first) if epsilon < first else 0.0
        if epsilon < last:
            nodes = np.concatenate([[max(epsilon, first)], self.knots[self.knots > max(epsilon, first)]])
            middles = 0.5 * (nodes[1:] + nodes[:-1])
            scores, rates = self._between(nodes)
            total += _integral(nodes, scores, rates, epsilon - middles, np.full_like(middles, -1.0))
        x = max(epsilon, last)
        for tail in self.tails:
            beyond = max(0.0, x - tail.shift - 4 * _ULP * (x + tail.shift))
            total += math.exp(epsilon - x) * tail.weight * gaussian.delta_of(beyond, tail.mu)
        return min(1.0, total * _MARGIN)

    def delta_with_gaussian(self, epsilon: float, mu: float) -> float:
        """The delta of the composition with mu-GDP: E f(U), f(t) = delta_GDP(epsilon - t; mu), by (1).

        The integral over the other releases' answers of (p1 p2 - e^epsilon q1 q2)_+ is
        E delta_2(epsilon - W1), at any real argument. With x = epsilon - t, f'(t) = e^x Phi(-x/mu - mu/2),
        whose logarithm is concave.
        """
        if mu == 0:
            return self.delta_of(epsilon)
        last = float(self.knots[-1])
        # In units of mu, f' turns from nothing into e^x between these two; outside it is smooth.
        low, high = -0.5 * mu - _FAR, 0.5 * mu + 6.0
        turn = epsilon + mu * np.linspace(low, high, math.ceil(min((high - low) / _CELL, 2e4)))
        x = max(float(self.knots[0]), float(turn[0]))
        total = _gaussian_delta(epsilon - x, mu)
        if x < last:
            nodes = np.unique(np.concatenate([[x], self.knots[self.knots > x], turn[(turn > x) & (turn < last)]]))
            scores, rates = self._between(nodes)
            total += _integral(nodes, scores, rates, *_gaussian_slope(epsilon, nodes, mu))
        x = max(x, last)
        for tail in self.tails:
            low = float(tail.scores(np.array([x]))[0])
            steps = np.arange(low, max(_FAR, low) + _CELL, max(_CELL, (_FAR - low) / 2e4))
            ladder = (steps + 0.5 * tail.mu) * tail.mu + tail.shift
            inside = turn[(turn > x) & (turn < ladder[-1])]
            nodes = np.unique(np.concatenate([[x], ladder[ladder > x], inside]))
            middles = 0.5 * (nodes[1:] + nodes[:-1])
            rates = np.full_like(middles, 1 / tail.mu)
            values = _integral(nodes, tail.scores(middles), rates, *_gaussian_slope(epsilon, nodes, mu))
            total += tail.weight * (values + float(ndtr(-tail.scores(nodes[-1:])[0])))  # f <= 1 beyond the ladder
        return min(1.0, total * _MARGIN)

    def epsilon_of(self, delta: float, mu: float = 0.0) -> float:
        """The smallest epsilon with this delta, with mu-GDP in addition; rounded up, infinite beyond 1e6."""

        def over(epsilon: float) -> float:
            return math.log(max(self.delta_with_gaussian(epsilon, mu), 1e-320) / delta)

        low, high = 0.0, 1.0
        before, here = (low, over(low)), (high, over(high))
        if before[1] <= 0:
            return 0.0
        while here[1] > 0:
            low, high, before = high, 2 * high, here
            if high > 1e6:
                return math.inf
            here = (high, over(high))
        for step in range(100):
            if -1e-11 <= here[1] <= 0 or high - low <= 4 * _ULP * high:
                break
            # The secant of the last two points, aimed just inside; the middle where it leaves the bracket.
            slope = (here[1] - before[1]) / (here[0] - before[0])
            guess = here[0] - (here[1] + 5e-12) / slope if slope < 0 else low
            if not low < guess < high or step % 8 == 7:
                guess = 0.5 * (low + high)
            before, here = here, (guess, over(guess))
            low, high = (guess, high) if here[1] > 0 else (low, guess)
        return high

    def log_moments(self, powers: Floats) -> Floats:
        """Upper bounds on log E e^{theta U} for each power theta > 0: the Renyi route. By (1), f(t) = e^{theta t}."""
        first, last = float(self.knots[0]), float(self.knots[-1])
        parts = [powers * first]
        if len(self.knots) > 1:
            scores, rates = self._between(self.knots)
            width, middles = np.diff(self.knots), 0.5 * (self.knots[1:] + self.knots[:-1])
            slopes = powers[:, None] - rates * _hazard(scores)
            terms = log_ndtr(-scores) + np.log(width) + powers[:, None] * middles + _log_sinhc(0.5 * slopes * width)
            top = terms.max(axis=1)
            parts.append(np.log(powers) + top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
        for tail in self.tails:
            parts.append(math.log(tail.weight) + _log_tail_moments(powers, tail, last))
        answer: Floats = np.logaddexp.reduce(np.array(parts), axis=0)
        return np.maximum(answer, 0.0) * _MARGIN + 1e-12

    def masses(self, interval: float, smallest: float = 1e-18) -> tuple[dict[int, float], float]:
        """Probabilities on multiples of the interval, each loss rounded up; and that of an infinite loss.

        The law on the grid is stochastically above U, hence still dominates.
        """
        reach = max(tail.shift + tail.mu * (9.0 + 0.5 * tail.mu) for tail in self.tails)
        count = math.ceil(max(reach, float(self.knots[-1])) / interval)
        survivals = self.survival(np.arange(count + 1, dtype=np.float64) * interval)
        lost = np.concatenate([[1.0], survivals[:-1]]) - survivals
        kept = {index: float(mass) for index, mass in enumerate(lost) if mass > smallest}
        # What is too small to keep is moved to infinity, with what lies beyond the grid.
        return kept, float(survivals[-1] + lost[lost <= smallest].sum()) * _MARGIN

    def _between(self, nodes: Floats) -> tuple[Floats, Floats]:
        """The scores in the middle of cells that no knot divides, and their slopes."""
        at = np.interp(nodes, self.knots, self.scores)
        return 0.5 * (at[1:] + at[:-1]), np.diff(at) / np.diff(nodes)


def _hazard(scores: Floats) -> Floats:
    """phi(z)/P(Z > z)."""
    answer: Floats = math.sqrt(2 / math.pi) / erfcx(scores / math.sqrt(2))
    return answer


def _log_sinhc(x: Floats) -> Floats:
    """log(sinh(x)/x), at most x^2/6."""
    size = np.maximum(np.abs(x), 1e-3)
    answer: Floats = np.where(np.abs(x) < 1e-3, x * x / 6, size + np.log(-np.expm1(-2 * size) / (2 * size)))
    return answer


def _integral(nodes: Floats, scores: Floats, rates: Floats, log_f: Floats, slope_f: Floats) -> float:
    """The sum over cells of the integrals of exp(tangent) of f' S; scores, rates, f in the middles."""
    width = np.diff(nodes)
    slopes = slope_f - rates * _hazard(scores)
    return float(np.exp(log_f + log_ndtr(-scores) + _log_sinhc(0.5 * slopes * width)) @ width)


def _gaussian_slope(epsilon: float, nodes: Floats, mu: float) -> tuple[Floats, Floats]:
    """log f' and its derivative in t in the middles of cells, f(t) = delta_GDP(epsilon - t; mu)."""
    x = epsilon - 0.5 * (nodes[1:] + nodes[:-1])
    scores = x / mu + 0.5 * mu
    return x + log_ndtr(-scores), _hazard(scores) / mu - 1


def _gaussian_delta(epsilon: float, mu: float) -> float:
    """The delta of mu-GDP at any real epsilon: H_{1/a} = 1 - 1/a + H_a/a for a symmetric pair; rounded up."""
    if epsilon >= 0:
        return gaussian.delta_of(epsilon, mu)
    return min(1.0, -math.expm1(epsilon) + math.exp(epsilon) * gaussian.delta_of(-epsilon, mu))


def _log_tail_moments(powers: Floats, tail: Tail, x: float) -> Floats:
    """log of theta times the integral over t > x of e^{theta t} P(G > t - shift), by parts.

    With z = z(x) and m(u) = Phi(u)/phi(u) it is e^{theta x} phi(z) [m(theta mu - z) - m(-z)]; where m would
    overflow, its second term is nothing next to the first and is left out, which is the safe side.
    """
    z = float(tail.scores(np.array([x]))[0])
    there = powers * tail.mu - z
    near = np.minimum(there, 20.0)
    log_mills = np.where(there < 20, np.log(erfcx(-near / math.sqrt(2))), _LOG_2 + log_ndtr(there) + 0.5 * there**2)
    less = -np.inf if z < -20 else math.log(erfcx(z / math.sqrt(2)))
    share = -np.expm1(np.minimum(less - log_mills, 0.0)) + 1e-14
    answer: Floats = powers * x - 0.5 * z * z - _LOG_2 + log_mills + np.log(share)
    return answer
