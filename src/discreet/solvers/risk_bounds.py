"""What theory says of a run before any data is read: bounds on its excess risk, and the noise of publications.

``compare_bounds`` weighs coordinate descent against stochastic gradients. Both papers' bounds for convex losses are, up
to the same factor sqrt(p ln(1/delta)) / (n epsilon) and constants,

    DP-CD   ||Delta||_{M^-1} ||w*||_M      Delta_j: sensitivities of gradient entries, M_j: coordinates' smoothness
    DP-SGD  ||Delta||_2 ||w*||_2

By Cauchy and Schwarz the first is at least sum_j Delta_j |w*_j|, and it is that where Delta_j is in proportion to
M_j |w*_j|. With equal M_j both are equal. For strongly convex losses they are, up to p ln(1/delta) / (n epsilon)^2,

    DP-CD   ||Delta||^2_{M^-1} / mu_M      mu_M: modulus in the norm ||.||_M
    DP-SGD  ||Delta||_2^2 / mu_2           mu_2: modulus in the Euclidean norm
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from discreet.accounting.plan import Plan
from discreet.accounting.pricing import price_plan
from discreet.accounting.textbook import population_gap
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss, gradient_bound, gradient_smoothness, values
from discreet.parameters import Finite, Positive, checked
from discreet.typing import Floats


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
        return replace(self, upper=self.upper / (1.0 - checked_confidence(confidence)), confidence=confidence)

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


def checked_confidence(confidence: float) -> float:
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


CALIBRATIONS = ("tight", "slides")


def published_noise(
    calibration: str, count: int, sampling_probability: float = 1.0
) -> Callable[[Budget], float] | None:
    """Return z of the slides' theorem for DP-SGD, q sqrt(8 T ln(1/delta)) / epsilon in units of the sensitivity.

    The slides' sigma is that of the mean gradient, whatever the batch: sums over samples of probability q are divided
    by q n, hence the q. Where the exact price of sampling asks for more noise, that is what runs (``least_noise``).
    """
    if calibration == "tight":
        return None

    def multiplier(budget: Budget) -> float:
        if budget.is_pure:
            raise Unsupported("the theorem's noise is for delta > 0: use calibration='tight'")
        return sampling_probability * math.sqrt(8.0 * count * math.log(1 / budget.delta)) / budget.epsilon

    return multiplier


@dataclass(frozen=True)
class NoisySteps:
    """What the proofs know of a run: n, p, epsilon, L, eta, T, ||w0||, and the second moments of noise and of sampling.

    ``noise`` is p s^2, s the noise's standard deviation per coordinate of the mean gradient; ``sampling`` is
    L^2 (1 - q) / (q n), which bounds what a Poisson sample of probability q adds.
    """

    n: int
    p: int
    epsilon: float
    lipschitz: float
    step: float
    n_steps: int
    noise: float
    sampling: float
    start: float = 0.0

    @classmethod
    def of(
        cls,
        plan: Plan,
        domain: Domain,
        loss: Loss,
        budget: Budget,
        *,
        clip: float,
        step: float,
        radius: float | None,
        n_steps: int,
        fraction: float,
    ) -> "NoisySteps":
        """Collect the constants, or say what no proof covers."""
        if domain.n is None:
            raise Unsupported("the bound needs n: declare Bounds(n=...)")
        start = float(np.linalg.norm(domain.starting_point))
        if radius is not None and start > radius:
            raise Unsupported("the bound is for steps from within the ball: give a start as short as the radius")
        if budget.is_pure or not budget.is_private:
            raise Unsupported("the bound is for Gaussian noise: give a finite epsilon and a delta, such as 1e-6")
        lipschitz = gradient_bound(loss, domain, radius)
        if clip < lipschitz * (1 - 1e-9):
            raise Unsupported("a clip below the gradients' bound adds a bias that no bound covers: leave clip out")
        s = budget.neighbors.sum_factor * price_plan(plan, budget).noise_multiplier * clip / (fraction * domain.n)
        p, sampling = domain.n_features * domain.n_outputs, lipschitz**2 * (1.0 - fraction) / (fraction * domain.n)
        return cls(domain.n, p, budget.epsilon, lipschitz, step, n_steps, p * s**2, sampling, start)

    def longest_noise(self, count: int, fails: float) -> float:
        """Return what the squared length of ``count`` coordinates' noise exceeds with probability ``fails`` only."""
        if self.sampling > 0:
            raise Unsupported("a bound with a probability is for all records: use bound(...).with_probability(...)")
        return self.noise / self.p * float(chdtri(count, fails))


def averaged_bound(
    run: NoisySteps, domain: Domain, loss: Loss, radius: float, confidence: float | None = None
) -> RiskBound:
    """Bound E F(mean of iterates) - F* for projected steps from w0 on a ball that holds a minimizer (no penalty).

    Upper: (R + ||w0||)^2 / (2 eta T) + eta G^2 / 2, where G^2 = L^2 + sampling + noise bounds the second moment of the
    noisy mean gradient. Proof: nothing is clipped, so the gradient is unbiased, and projection brings no point further
    from a minimizer (docs/theory/gradients.md). Two points of the ball are within 2 R L of each other.
    With a ``confidence`` of 1 - f: all noise together is at most as long as its quantile but for f/2, and sums
    b_t.(eta grad F(w_t) - w_t + w*), Gaussian given the past with a deviation of at most s (2 R + eta L), to at most
    sqrt(2 T ln(2/f)) deviations but for f/2.
    Lower: the order R L sqrt(p) / (n epsilon).
    """
    square, drift = run.lipschitz**2 + run.sampling + run.noise, 0.0
    if confidence is not None:
        fails = (1.0 - checked_confidence(confidence)) / 2.0
        square = run.lipschitz**2 + run.longest_noise(run.p * run.n_steps, fails) / run.n_steps
        deviation = math.sqrt(run.noise / run.p) * (2.0 * radius + run.step * run.lipschitz)
        drift = deviation * math.sqrt(-2.0 * math.log(fails) / run.n_steps)
    upper = (radius + run.start) ** 2 / (2.0 * run.step * run.n_steps) + run.step * square / 2.0 + drift
    reach, trivial = radius * run.lipschitz, excess_of_zeros(loss, domain, radius)
    lower = reach * math.sqrt(run.p) / (run.n * run.epsilon)
    in_ball = reach if domain.n_outputs == 1 else None
    return RiskBound(min(upper, 2.0 * reach), min(lower, trivial), trivial, confidence, in_ball)


def last_bound(
    run: NoisySteps, domain: Domain, loss: Loss, radius: float | None, strength: float, confidence: float | None = None
) -> RiskBound:
    """Bound E F(last iterate) - F* for steps from w0 with an L2 penalty of this strength, which is part of F.

    E ||w_T - w*||^2 <= c^(2T) (||w0|| + ||w*||)^2 + eta^2 (noise + sampling) (c^2 + ... + c^(2T)),
    c = 1 / (1 + eta lambda), since gradient steps up to 2 / beta are non-expansive and the prox shrinks by c; F is
    (beta + lambda)-smooth, and w* is no longer than L / lambda (nor than the ball's radius, which is to hold it). With
    a ``confidence``: given the past, a distance c ||u - eta b||, ||u|| <= the last distance, is stochastically largest
    where ||u|| is, so the last one is at most c^T (||w0|| + ||w*||) and the length of the noise in a linear recursion,
    by its quantile.
    Lower: the order p L^2 / (lambda n^2 epsilon^2).
    """
    beta = gradient_smoothness(loss, domain)
    if run.step > 2.0 / beta:
        raise Unsupported("the bound is for steps up to 2 / smoothness: leave step_size out")
    length = min(run.lipschitz / strength, math.inf if radius is None else radius)
    square = (1.0 + run.step * strength) ** -2
    left = square**run.n_steps
    variance = run.step**2 * square * (1.0 - left) / (1.0 - square)
    away = run.start + length
    distance = left * away**2 + (run.noise + run.sampling) * variance
    if confidence is not None:
        noise = variance * run.longest_noise(run.p, 1.0 - checked_confidence(confidence))
        distance = (math.sqrt(left) * away + math.sqrt(noise)) ** 2
    trivial = excess_of_zeros(loss, domain, length)
    lower = run.p * run.lipschitz**2 / (strength * (run.n * run.epsilon) ** 2)
    reach = None if radius is None or domain.n_outputs > 1 else radius * run.lipschitz
    return RiskBound((beta + strength) / 2.0 * distance, min(lower, trivial), trivial, confidence, reach)


@dataclass(frozen=True)
class ComparedBounds:
    """Both bounds, up to a common factor."""

    cd: float
    sgd: float

    @property
    def ratio(self) -> float:
        """DP-CD's bound over DP-SGD's: below 1 where coordinate descent is promised less error."""
        return self.cd / self.sgd

    @property
    def better(self) -> str:
        """``"cd"`` or ``"sgd"``, by the bounds alone."""
        return "cd" if self.ratio < 1 else "sgd"


@checked
def compare_bounds(
    sensitivities: Sequence[Positive],
    smoothness: Sequence[Positive],
    solution: Sequence[Finite] | None = None,
    *,
    moduli: tuple[Positive, Positive] | None = None,
) -> ComparedBounds:
    """Compare the utility bounds of DP-CD and DP-SGD for constants that are publicly known.

    Parameters
    ----------
    sensitivities : sequence of float
        Delta_j, or L_j or clips C_j in proportion to it: how far a record can move entry j of the gradient.
    smoothness : sequence of float
        M_j, the smoothness of the mean loss along coordinate j.
    solution : sequence of float, optional
        For convex losses: the sizes of the coefficients that are expected, w* - w0: a guess or bounds on them.
    moduli : tuple of two float, optional
        For strongly convex losses, in place of ``solution``: (mu_M, mu_2), the moduli of strong convexity in the norm
        of M and in the Euclidean one. mu_2 lies between mu_M times the least and mu_M times the largest M_j.

    Returns
    -------
    ComparedBounds
        ``cd`` and ``sgd`` up to a common factor, their ``ratio``, and which is ``better``.

    Raises
    ------
    Unsupported
        If these are no vectors of one length, with positive sensitivities and smoothness, or the moduli contradict
        each other.

    Examples
    --------
    >>> from discreet.solvers import compare_bounds
    >>> found = compare_bounds([1.0, 0.1, 0.1], [1.0, 0.01, 0.01], [0.1, 3.0, 3.0])
    >>> found.better, round(found.ratio, 2)
    ('cd', 0.18)
    >>> compare_bounds([1.0, 0.1], [1.0, 0.01], moduli=(0.5, 0.005)).better
    'cd'
    """
    entries, curvatures = np.array(sensitivities), np.array(smoothness)
    if (solution is None) == (moduli is None) or entries.shape != curvatures.shape:
        raise Unsupported("give one sensitivity and one smoothness per column, and either solution or moduli")
    if moduli is not None:
        return _compare_strong(entries, curvatures, *moduli)
    sizes = np.abs(np.array(solution, dtype=np.float64))
    if not entries.shape == curvatures.shape == sizes.shape or not (np.isfinite(sizes).all() and sizes.any()):
        raise Unsupported("give one sensitivity, one smoothness and one coefficient per column, not all of them 0")
    cd = np.sqrt(np.sum(entries**2 / curvatures) * np.sum(curvatures * sizes**2))
    return ComparedBounds(float(cd), float(np.linalg.norm(entries) * np.linalg.norm(sizes)))


def _compare_strong(entries: Floats, curvatures: Floats, scaled: float, euclidean: float) -> ComparedBounds:
    """Compare the bounds for strongly convex losses: min M ||v||^2 <= ||v||_M^2 <= max M ||v||^2 ties the moduli."""
    least, most = scaled * float(curvatures.min()), scaled * float(curvatures.max())
    if not (scaled <= 1 and least * (1 - 1e-9) <= euclidean <= most * (1 + 1e-9)):
        raise Unsupported("mu_M is at most 1, and mu_2 lies between mu_M min(M) and mu_M max(M)")
    return ComparedBounds(float(np.sum(entries**2 / curvatures) / scaled), float(np.sum(entries**2) / euclidean))
