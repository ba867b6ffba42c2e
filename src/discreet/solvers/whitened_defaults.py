"""The composition that ``solver="whitened"`` stands for: every number from public facts alone, with its reason.

Facts: n, the columns p (with the intercept), mu (the budget as Gaussian DP), the relation's factor a, the loss. "Gap"
is 0 for the non-private model and 1 for the trivial predictor: the mean of the gaps in accuracy and AUC, or of R^2.
Figures are means over public tables in floating-point sketches at epsilon 0.1 / 0.5 / 1 / 4; differences below 0.015
are noise.

``signal`` J = n mu / (a sqrt(p))
    How far a mean over all records stands out of the noise, if it got the whole budget, for a row of length sqrt(p).
``Declared`` below J = 10 (classes), J = 25 (numbers)
    There is nothing to see: the shape would cost more than it shows. Gradient steps in declared coordinates with a
    large constant feature, so that the intercept is learned first and the model falls back on the trivial one.
    On 500 rows at epsilon 0.1 the whitened steps lost 1 to 5 points of accuracy to the trivial predictor, the plain
    ones none.
``Standardized`` where records are sparse or p^2 is expensive
    Scales, no matrix. Gap 0.114 against 0.067.
A count, where n is private: .02 of mu^2
    One number with sensitivity 1 needs no more.
Shares of mu^2: mean .04, scales .08, second moments .20, steps the rest
    Flat: .01 to .1 for the mean, .05 to .1 for scales, .15 to .3 for second moments are within noise of each other.
    Scales were worth 0.02 where ranges fit and 0.1 where they were declared three times too wide.
``constant`` 0.5
    The constant feature in units of the features' length: 1 gave .272/.112/.069/.030, 0.5 gave .245/.102/.066/.031.
    More of it, up to 2 (24 / J), where the signal is weak: a wrong intercept costs more than a wrong slope.
``relative_clip`` 0.8 |f'(0)|, so a clip of 0.8 |f'(0)| sqrt(d_eff)
    d_eff is the number of directions above the noise: the squared length of a whitened row. 0.25 and 0.7 of it (instead
    of 0.4 = 0.8 |f'(0)| for the logistic loss) were worse.
``floor`` 0.35 of the noise's edge s sqrt(2 p)
    Added to every eigenvalue: directions below it are shrunk, not cut off (cutting: gap .355 against .117).
``n_steps`` 1.5 sqrt(p) within [8, 24], momentum 0.7, step 1 / curvature, within a ball of radius 100
    In whitened coordinates the problem is round: few steps do. Wide tables like more. Margins of a hundred are certain
    of everything: the ball keeps a noisy A from making iterates diverge.
``calibrate_probabilities`` from J = 20 (``probability_calibration``)
    One gradient more brings the logarithmic loss of logistic models at epsilon 1 from 1.07 to 1.17 times that at
    epsilon 4 with it down to 1.00 to 1.01 (bank, covertype, credit, electricity), at the same AUC. Where J is about 10
    there is nothing to calibrate by, and a gradient less is felt: spam at epsilon 0.2 lost 3 points of accuracy.
Least squares: ``row_norm`` 0.8, ``relative_clip`` 1.05 (J/100)^(1/4), 3 Newton steps
    Rows longer than 0.8 sqrt(p) standard deviations are shrunk, residuals clipped at about one standard deviation, more
    where the noise allows (skewed targets want it). 2 to 5 steps are the same within noise. Noise is filtered by its
    likelihood in each direction (``newton``).
Least squares from J = 1000 on: limits on rows times (J/1000)^(1/4)
    So that the model tends to least squares as signal grows. Gap at epsilon 4 / 16 / 64 / 256, mean of six tables:
    -.002 / -.007 / -.010 / -.011 without, -.004 / -.012 / -.015 / -.016 with; the largest at 256 is .011 without, .003
    with. Below J = 1000, and where n is private, nothing changes. Classes keep their clip: wider ones lose accuracy
    (credit default at epsilon 256: gap .175 in place of .075).
"""

import math
from dataclasses import replace

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.solvers.declared import Declared
from discreet.solvers.default_rules import count_of
from discreet.solvers.gd import GradientDescent
from discreet.solvers.gradient_loop import TYPICAL_SLOPE, slope_at_zero
from discreet.solvers.newton import NewtonDescent
from discreet.solvers.stage import Stage
from discreet.solvers.standardized import Standardized
from discreet.solvers.whitened import LENGTHS, Whitened

PLAIN_CLASSES, PLAIN_NUMBERS, CALIBRATED = 10.0, 25.0, 20.0
NUMBERS = {"mean_share": 0.05, "scale_share": 0.10, "target_share": 0.05, "moment_share": 0.30}
WIDEST = 2048
LEAST_STEPS, MOST_STEPS, DIAGONAL_STEPS = 8, 24, 40
LIMIT_STEPS, LIMIT_NEWTON = 3000, 100
PLAIN_RESIDUAL = 0.2
RELAXED = 1000.0
LARGEST = 100.0


def whitened_for(domain: Domain, loss: Loss, budget: Budget) -> Stage:
    """Return the composition that public facts suggest: steps for classes, Newton steps for numbers."""
    numbers = loss.task == "regression"
    form = form_for(domain, budget, numbers=numbers)
    if form == "plain":
        return _plain(domain, loss, budget)
    return newton_for(domain, loss, budget) if numbers else descent_for(domain, loss, budget, form)


def newton_for(domain: Domain, loss: Loss, budget: Budget) -> Whitened:
    """Return filtered Newton steps; many without noise where Huber's loss needs them."""
    if not budget.is_private:
        inner = NewtonDescent(n_steps=4 if loss.quadratic else LIMIT_NEWTON, floor=1e-9)
    else:
        inner = NewtonDescent(relative_clip=residual_clip(domain, budget))
    wide = relaxed(domain, budget)
    stage = Whitened(inner, constant=None, relative_row_norm=0.8 * wide, calibrate_probabilities=False, **NUMBERS)
    return replace(stage, lengths=LENGTHS * wide)


def descent_for(domain: Domain, loss: Loss, budget: Budget, form: str) -> Whitened | Standardized:
    """Return gradient steps with momentum, in whitened (``full``) or standardized (``diagonal``) coordinates."""
    clip, full, constant = TYPICAL_SLOPE * slope_at_zero(loss), form == "full", 0.5
    if budget.is_private:
        constant, momentum = constant_for(domain, budget), 0.7 if full else 0.9
        inner = GradientDescent(step_count(domain, form), relative_clip=clip, momentum=momentum, radius=LARGEST)
    else:
        inner = GradientDescent(LIMIT_STEPS, relative_clip=clip, momentum=0.9, radius=LARGEST)
    if not full:
        return Standardized(inner, constant=constant)
    floor = 0.35 if budget.is_private else 1e-9
    return Whitened(inner, constant=constant, floor=floor, calibrate_probabilities=calibrates(domain, budget))


def _plain(domain: Domain, loss: Loss, budget: Budget) -> Declared:
    """Return short steps in declared coordinates: averaged ones without momentum for numbers."""
    numbers = loss.task == "regression"
    constant = 1.0 / plain_length(domain, budget, numbers=numbers)
    if numbers:
        steps, clip = plain_steps(domain, budget), PLAIN_RESIDUAL
        inner = GradientDescent(steps, relative_step=3.0, relative_clip=clip, average="tail", radius=LARGEST)
        return Declared(inner, constant=constant)
    inner = GradientDescent(
        LEAST_STEPS, momentum=0.7, relative_step=0.75, relative_clip=slope_at_zero(loss), radius=LARGEST
    )
    return Declared(inner, constant=constant)


def signal(domain: Domain, budget: Budget) -> float:
    """J, infinite without privacy."""
    if not budget.is_private:
        return math.inf
    n = count_of(domain)
    columns = domain.n_features * domain.n_outputs
    return n * mu_of(budget.epsilon, budget.delta) / (budget.neighbors.sum_factor * math.sqrt(columns))


def form_for(domain: Domain, budget: Budget, *, numbers: bool) -> str:
    """``plain``, ``diagonal`` or ``full``."""
    if signal(domain, budget) < (PLAIN_NUMBERS if numbers else PLAIN_CLASSES):
        return "plain"
    return "diagonal" if domain.sparse or domain.n_features > WIDEST else "full"


def calibrates(domain: Domain, budget: Budget) -> bool:
    """Say whether a gradient for calibration is worth its part of the budget: never without noise."""
    return budget.is_private and signal(domain, budget) >= CALIBRATED


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


def relaxed(domain: Domain, budget: Budget) -> float:
    """For numbers: what limits on rows are multiplied by, the fourth root of a known signal beyond J = 1000."""
    if domain.n is None or not budget.is_private:
        return 1.0
    return max(1.0, math.sqrt(math.sqrt(signal(domain, budget) / RELAXED)))


def residual_clip(domain: Domain, budget: Budget) -> float:
    """In standard deviations of the target."""
    return min(6.0, max(0.75, 1.05 * math.sqrt(math.sqrt(signal(domain, budget) / 100.0))))
