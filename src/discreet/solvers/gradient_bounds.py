"""What theory says of gradient steps as they are configured: noise of a publication, and a bound on the excess risk."""

import math
from collections.abc import Callable

import numpy as np

from discreet.accounting.plan import Plan
from discreet.accounting.priced_plan import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound
from discreet.solvers.risk_bound import RiskBound, excess_of_zeros

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


def averaged_bound(
    plan: Plan,
    domain: Domain,
    loss: Loss,
    budget: Budget,
    *,
    clip: float,
    step: float,
    radius: float,
    n_steps: int,
    fraction: float,
) -> RiskBound:
    """Bound E F(mean of iterates) - F* for projected steps from 0 on a ball that holds a minimizer (no penalty).

    Upper: R^2 / (2 eta T) + eta G^2 / 2, where G^2 = L^2 (1 + (1 - q) / (q n)) + p s^2 bounds the second moment of the
    noisy mean gradient, s its noise's standard deviation per coordinate, q the sampling probability. Proof: nothing is
    clipped, so the gradient is unbiased, and projection brings no point further from a minimizer (docs/solvers/gd.md).
    Two points of the ball are within 2 R L of each other. Lower: the order R L sqrt(p) / (n epsilon).
    """
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
    p = domain.n_features * domain.n_outputs
    square = lipschitz**2 * (1.0 + (1.0 - fraction) / (fraction * domain.n)) + p * s**2
    reach = radius * lipschitz
    upper = radius**2 / (2.0 * step * n_steps) + step * square / 2.0
    lower, trivial = reach * math.sqrt(p) / (domain.n * budget.epsilon), excess_of_zeros(loss, domain, radius)
    in_ball = reach if domain.n_outputs == 1 else None
    return RiskBound(min(upper, 2.0 * reach), min(lower, trivial), trivial, reach=in_ball)
