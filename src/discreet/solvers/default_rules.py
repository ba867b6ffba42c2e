"""What the default rules of several solvers share: public facts in, numbers out. No rule looks at a record.

Facts: the columns p (with the intercept) and their bounds, n, epsilon, delta, the relation, a declared
row norm, the loss. Training coordinates have |x_j| <= 1.

``typical row norm``
    rho = 0.4 sqrt(sum of squared feature bounds), or the declared row norm where that is smaller. A
    feature within +-1 has a root mean square of 0.58 if uniform, of about 0.3 if one-hot or skewed;
    the worst case, every value at its bound, does not occur in tables of people. Steps and clips made
    for the worst case starve: on six public data sets the mean gap to the non-private model (0: none,
    1: the trivial predictor) was 0.82, 0.53 and 0.37 at epsilon 0.1, 1 and 4 with them, and 0.52, 0.23
    and 0.10 with rho (zero_out, delta 1/n^2). Privacy does not depend on rho: the clip is executed.
``clip``
    C = (typical slope of the loss) rho. A clipped GLM gradient is the gradient of a Huberized convex
    loss, so a tight clip costs little, and the noise is proportional to it.
``step_size``
    1 / (typical curvature rho^2).
``n_steps``
    I = n mu / (a sqrt(p)) is the signal-to-noise ratio of one gradient if it got the whole budget. More
    steps divide the budget among them: T = 8 sqrt(I), within [8, 200].
``epsilon=inf``
    Nothing is noisy: worst-case constants, no clip that bites, many steps with restarts: the non-private
    optimum.
"""

import math

import numpy as np

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss, value
from discreet.losses.constants import gradient_smoothness

UNKNOWN_N = 10_000
"""Stands for n where that is private."""
TYPICAL_RMS = 0.4
STEEP = 1.6
MIN_STEPS, MAX_STEPS, LIMIT_STEPS = 8, 200, 5000
BATCH = 1024
TYPICAL_LENGTH = 25.0
LIMIT_LOSS = 1e3  # beyond any loss on the way to an optimum
LIMIT_STRENGTH = 1e-9  # without noise any strong convexity will do
COUNTS_WIDEN = 250.0
"""For counts: clips are two typical slopes, more from this I on.

Counts are skewed, and a clip cuts what is rare and large. Deviance explained on RAND health (.074 without privacy) at
epsilon .1 / .5 / 1 / 4 / 1000: -.02 / .00 / .00 / .00 / .00 with one typical slope, .01 / .05 / .05 / .05 / .05 with
two, -.45 / -.07 / .04 / .07 / .07 with eight, .01 / .05 / .06 / .07 / .07 by this rule."""
LIMIT_MARGIN = 16.0  # without noise: the largest margin on the way to an optimum of an unbounded loss


def count_of(domain: Domain) -> int:
    """Return n, or what stands for it where it is private."""
    return domain.n if domain.n is not None else UNKNOWN_N


def mu_for(domain: Domain, budget: Budget) -> float:
    """Return the budget as Gaussian DP; a pure one pays for Laplace noise in L1: as if mu were epsilon / sqrt(p)."""
    if budget.is_pure:
        return budget.epsilon / math.sqrt(domain.n_features * domain.n_outputs)
    return mu_of(budget.epsilon, budget.delta)


def information(domain: Domain, budget: Budget) -> float:
    """Return I, the signal-to-noise ratio of one gradient that gets the whole budget."""
    coordinates = domain.n_features * domain.n_outputs
    return count_of(domain) * mu_for(domain, budget) / (budget.neighbors.sum_factor * math.sqrt(coordinates))


def step_count(domain: Domain, budget: Budget) -> int:
    """Return how many full-batch gradients to release."""
    if not budget.is_private:
        return LIMIT_STEPS
    return int(min(MAX_STEPS, max(MIN_STEPS, round(8.0 * math.sqrt(information(domain, budget))))))


def typical_row_norm(domain: Domain) -> float:
    """Return rho, from declared bounds."""
    return min(domain.row_norm, TYPICAL_RMS * math.sqrt(float(np.sum(np.square(domain.feature_bounds)))))


def typical_clip(domain: Domain, loss: Loss, budget: Budget) -> float:
    """Return (typical slope) rho, or more than any gradient where there is no noise to fear."""
    if not budget.is_private:
        return limit_clip(domain, loss)
    wide = max(2.0, 2.0 * math.sqrt(information(domain, budget) / COUNTS_WIDEN)) if loss.log_link else 1.0
    return wide * loss.typical_slope(domain.target_bound) * typical_row_norm(domain)


def limit_clip(domain: Domain, loss: Loss) -> float:
    """Return more than any gradient on the way to an optimum, within the lattice's precision."""
    largest = loss.lipschitz_for(domain.target_bound, math.inf)
    if not math.isfinite(largest):
        largest = loss.lipschitz_for(domain.target_bound, LIMIT_MARGIN)
    return float(largest) * domain.row_norm


def typical_loss(domain: Domain, loss: Loss) -> float:
    """Return a bound on a record's loss: 4.33 times that of a model that knows nothing, where losses are compared.

    Logistic: 3. For numbers a residual twice as long as a typical one, which is the target's deviation in a stage.
    """
    if loss.task == "classification":
        return 3.0 * (slope_free_loss(loss) / math.log(2.0))
    if loss.log_link:
        return 3.0
    residual = 2.0 * (1.0 if domain.typical is not None else loss.typical_slope(domain.target_bound))
    return float(value(loss, residual, 0.0))


def slope_free_loss(loss: Loss) -> float:
    """Return the loss of a record of either class where all margins are 0."""
    return math.log(loss.n_outputs) if loss.n_outputs > 1 else float(value(loss, 0.0, 1.0))


def typical_step(domain: Domain, loss: Loss, budget: Budget) -> float:
    """Return one over the curvature of a typical row; without noise, of the longest one."""
    if not budget.is_private:
        return 1.0 / gradient_smoothness(loss, domain)
    rho = typical_row_norm(domain)
    if loss.task == "regression":  # features are not centered: their mean's direction is steep, and residuals grow
        rho = min(domain.row_norm, STEEP * rho)
    return 1.0 / (float(loss.typical_curvature(domain.target_bound)) * rho**2)
