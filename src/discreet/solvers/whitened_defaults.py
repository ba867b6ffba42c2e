"""Every number of the solver ``whitened``, from public facts alone, each with its reason.

Facts: n, the columns p (with the intercept), mu (the budget as Gaussian DP), the relation's factor a, the loss. "Gap"
is 0 for the non-private model and 1 for the trivial predictor: the mean of the gaps in accuracy and AUC, or of R^2.
Figures are means over public tables in floating-point sketches at epsilon 0.1 / 0.5 / 1 / 4; differences below 0.015
are noise.

``signal`` J = n mu / (a sqrt(p))
    How far a mean over all records stands out of the noise, if it got the whole budget, for a row of length sqrt(p).
``plain`` below J = 10 (classes), J = 25 (numbers)
    There is nothing to see: the shape would cost more than it shows. Gradient steps in declared coordinates with a
    large constant feature, so that the intercept is learned first and the model falls back on the trivial one.
    On 500 rows at epsilon 0.1 the whitened steps lost 1 to 5 points of accuracy to the trivial predictor, the plain
    ones none.
``diagonal`` where records are sparse or p^2 is dear
    Scales, no matrix. Gap 0.114 against 0.067.
A count, where n is private: .02 of mu^2
    One number with sensitivity 1 needs no more.
Shares of mu^2: mean .04, scales .08, second moments .20, steps the rest
    Flat: .01 to .1 for the mean, .05 to .1 for scales, .15 to .3 for second moments are within noise of each other.
    Scales were worth 0.02 where ranges fit and 0.1 where they were declared three times too wide.
``constant`` 0.5
    The constant feature in units of the features' length: 1 gave .272/.112/.069/.030, 0.5 gave .245/.102/.066/.031.
    More of it, up to 2 (24 / J), where the signal is weak: a wrong intercept costs more than a wrong slope.
``clip`` 0.8 |f'(0)| sqrt(d_eff)
    d_eff is the number of directions that are seen: the squared length of a whitened row. 0.25 and 0.7 of it (instead
    of 0.4 = 0.8 |f'(0)| for the logistic loss) were worse.
``floor`` 0.35 of the noise's edge s sqrt(2 p)
    Added to every eigenvalue: directions below it are shrunk, not cut off (cutting: gap .355 against .117).
``n_steps`` 1.5 sqrt(p) within [8, 24], momentum 0.7, step 1 / curvature
    In whitened coordinates the problem is round: few steps do. Wide tables like more.
``calibrate`` from J = 20 (``calibration``)
    One gradient more brings the logarithmic loss of logistic models at epsilon 1 from 1.07 to 1.17 times that at
    epsilon 4 with it down to 1.00 to 1.01 (bank, covertype, credit, electricity), at the same AUC. Where J is about 10
    there is nothing to calibrate by, and a gradient less is felt: spam at epsilon 0.2 lost 3 points of accuracy.
Least squares: ``row`` 0.8, ``residual`` 1.05 (J/100)^(1/4), 3 steps
    Rows longer than 0.8 sqrt(p) standard deviations are shrunk, residuals clipped at about one standard deviation, more
    where the noise allows (skewed targets want it). 2 to 5 steps are the same within noise. Noise is filtered by its
    likelihood in each direction (``whitened_newton``).
"""

import math

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget

UNKNOWN_N = 10_000
"""Stands for n where that is private."""
PLAIN_CLASSES, PLAIN_NUMBERS, CALIBRATED = 10.0, 25.0, 20.0
MEAN, SCALE, MOMENTS, TARGET = 0.04, 0.08, 0.20, 0.05
MEAN_NUMBERS, SCALE_NUMBERS, MOMENTS_NUMBERS = 0.05, 0.10, 0.30
COUNT = 0.02
WIDEST = 2048
LEAST_STEPS, MOST_STEPS, DIAGONAL_STEPS = 8, 24, 40
LIMIT_STEPS, LIMIT_NEWTON = 3000, 100
PLAIN_RESIDUAL = 0.2


def signal(domain: Domain, budget: Budget) -> float:
    """J, infinite without privacy."""
    if not budget.is_private:
        return math.inf
    n = domain.n if domain.n is not None else UNKNOWN_N
    columns = domain.n_features * domain.n_outputs
    return n * mu_of(budget.epsilon, budget.delta) / (budget.neighbors.sum_factor * math.sqrt(columns))


def form_for(domain: Domain, budget: Budget, *, numbers: bool) -> str:
    """``plain``, ``diagonal`` or ``full``."""
    if signal(domain, budget) < (PLAIN_NUMBERS if numbers else PLAIN_CLASSES):
        return "plain"
    return "diagonal" if domain.sparse or domain.n_features > WIDEST else "full"


def calibrates(domain: Domain, budget: Budget) -> bool:
    """Whether a gradient for calibration is worth its part of the budget."""
    return signal(domain, budget) >= CALIBRATED


def step_count(domain: Domain, form: str) -> int:
    """How many gradients."""
    if form == "diagonal":
        return DIAGONAL_STEPS
    return int(min(MOST_STEPS, max(LEAST_STEPS, round(1.5 * math.sqrt(domain.n_features)))))


def constant_for(domain: Domain, budget: Budget) -> float:
    """The constant feature in units of the features' length."""
    return min(2.0, max(0.5, 24.0 / signal(domain, budget)))


def plain_length(domain: Domain, budget: Budget, *, numbers: bool) -> float:
    """The features' length in units of the constant's where the signal is weak."""
    found = signal(domain, budget)
    return min(2.0, max(0.3, 0.25 * found) if numbers else max(0.05, 0.27 * (found - 1.0)))


def plain_steps(domain: Domain, budget: Budget) -> int:
    """For numbers: as many gradients as the signal bears."""
    return int(min(40, max(10, round(2.0 * signal(domain, budget)))))


def residual_clip(domain: Domain, budget: Budget) -> float:
    """In standard deviations of the target."""
    return min(6.0, max(0.75, 1.05 * math.sqrt(math.sqrt(signal(domain, budget) / 100.0))))
