"""What theory says of gradient steps as they are configured: noise of a publication, and a bound on the excess risk."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from discreet.accounting.plan import Plan
from discreet.accounting.priced_plan import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound, gradient_smoothness
from discreet.solvers.risk_bound import RiskBound, checked, excess_of_zeros

CALIBRATIONS = ("tight", "slides")


def published_noise(calibration: str, count: int) -> Callable[[Budget], float] | None:
    """Return z of the slides' theorem for DP-SGD, sqrt(8 T ln(1/delta)) / epsilon in units of the sensitivity."""
    if calibration == "tight":
        return None

    def multiplier(budget: Budget) -> float:
        if budget.is_pure:
            raise Unsupported("the theorem's noise is for delta > 0: use calibration='tight'")
        return math.sqrt(8.0 * count * math.log(1 / budget.delta)) / budget.epsilon

    return multiplier


@dataclass(frozen=True)
class NoisySteps:
    """What the proofs know of a run: n, p, epsilon, L, eta, T, and the second moments of noise and of sampling.

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
        if np.any(domain.starting_point):
            raise Unsupported("the bound is for steps from 0: leave the start out")
        if budget.is_pure or not budget.is_private:
            raise Unsupported("the bound is for Gaussian noise: give a finite epsilon and a delta, such as 1e-6")
        lipschitz = gradient_bound(loss, domain, radius)
        if clip < lipschitz * (1 - 1e-9):
            raise Unsupported("a clip below the gradients' bound adds a bias that no bound covers: leave clip out")
        s = budget.neighbors.sum_factor * price_plan(plan, budget).noise_multiplier * clip / (fraction * domain.n)
        p, sampling = domain.n_features * domain.n_outputs, lipschitz**2 * (1.0 - fraction) / (fraction * domain.n)
        return cls(domain.n, p, budget.epsilon, lipschitz, step, n_steps, p * s**2, sampling)

    def longest_noise(self, count: int, fails: float) -> float:
        """Return what the squared length of ``count`` coordinates' noise exceeds with probability ``fails`` only."""
        if self.sampling > 0:
            raise Unsupported("a bound with a probability is for all records: use bound(...).with_probability(...)")
        return self.noise / self.p * float(chdtri(count, fails))


def averaged_bound(
    run: NoisySteps, domain: Domain, loss: Loss, radius: float, confidence: float | None = None
) -> RiskBound:
    """Bound E F(mean of iterates) - F* for projected steps from 0 on a ball that holds a minimizer (no penalty).

    Upper: R^2 / (2 eta T) + eta G^2 / 2, where G^2 = L^2 + sampling + noise bounds the second moment of the noisy mean
    gradient. Proof: nothing is clipped, so the gradient is unbiased, and projection brings no point further from a
    minimizer (docs/solvers/gd.md). Two points of the ball are within 2 R L of each other.
    With a ``confidence`` of 1 - f: all noise together is at most as long as its quantile but for f/2, and sums
    b_t.(eta grad F(w_t) - w_t + w*), Gaussian given the past with a deviation of at most s (2 R + eta L), to at most
    sqrt(2 T ln(2/f)) deviations but for f/2.
    Lower: the order R L sqrt(p) / (n epsilon).
    """
    square, drift = run.lipschitz**2 + run.sampling + run.noise, 0.0
    if confidence is not None:
        fails = (1.0 - checked(confidence)) / 2.0
        square = run.lipschitz**2 + run.longest_noise(run.p * run.n_steps, fails) / run.n_steps
        deviation = math.sqrt(run.noise / run.p) * (2.0 * radius + run.step * run.lipschitz)
        drift = deviation * math.sqrt(-2.0 * math.log(fails) / run.n_steps)
    upper = radius**2 / (2.0 * run.step * run.n_steps) + run.step * square / 2.0 + drift
    reach, trivial = radius * run.lipschitz, excess_of_zeros(loss, domain, radius)
    lower = reach * math.sqrt(run.p) / (run.n * run.epsilon)
    in_ball = reach if domain.n_outputs == 1 else None
    return RiskBound(min(upper, 2.0 * reach), min(lower, trivial), trivial, confidence, in_ball)


def last_bound(
    run: NoisySteps,
    domain: Domain,
    loss: Loss,
    radius: float | None,
    strength: float,
    confidence: float | None = None,
) -> RiskBound:
    """Bound E F(last iterate) - F* for steps from 0 with an L2 penalty of this strength, which is part of F.

    E ||w_T - w*||^2 <= c^(2T) ||w*||^2 + eta^2 (noise + sampling) (c^2 + ... + c^(2T)), c = 1 / (1 + eta lambda), since
    gradient steps up to 2 / beta are non-expansive and the prox shrinks by c; F is (beta + lambda)-smooth, and w* is no
    longer than L / lambda (nor than the ball's radius, which is to hold it). With a ``confidence``: given the past, a
    distance c ||u - eta b||, ||u|| <= the last distance, is stochastically largest where ||u|| is, so the last one is
    at most c^T ||w*|| and the length of the noise in a linear recursion, by its quantile.
    Lower: the order p L^2 / (lambda n^2 epsilon^2).
    """
    beta = gradient_smoothness(loss, domain)
    if run.step > 2.0 / beta:
        raise Unsupported("the bound is for steps up to 2 / smoothness: leave step_size out")
    length = min(run.lipschitz / strength, math.inf if radius is None else radius)
    square = (1.0 + run.step * strength) ** -2
    left = square**run.n_steps
    kept = run.step**2 * square * (1.0 - left) / (1.0 - square)
    distance = left * length**2 + (run.noise + run.sampling) * kept
    if confidence is not None:
        noise = kept * run.longest_noise(run.p, 1.0 - checked(confidence))
        distance = (math.sqrt(left) * length + math.sqrt(noise)) ** 2
    trivial = excess_of_zeros(loss, domain, length)
    lower = run.p * run.lipschitz**2 / (strength * (run.n * run.epsilon) ** 2)
    reach = None if radius is None or domain.n_outputs > 1 else radius * run.lipschitz
    return RiskBound((beta + strength) / 2.0 * distance, min(lower, trivial), trivial, confidence, reach)
