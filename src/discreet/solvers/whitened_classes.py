"""The composition that ``solver="whitened"`` stands for where targets are classes: numbers from public facts alone.

Facts, signal J and gap: as in ``whitened_defaults``.

``Declared`` below J = 10
    There is nothing to see: the shape would cost more than it shows. Gradient steps in declared coordinates with a
    large constant feature, so that the intercept is learned first and the model falls back on the trivial one.
    On 500 rows at epsilon 0.1 the whitened steps lost 1 to 5 points of accuracy to the trivial predictor, the plain
    ones none.
``Standardized`` where records are sparse or p^2 is expensive, without noise; with noise ``whitened_wide``
    Scales, no matrix.
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
Classes keep their clip as signal grows
    Wider ones lose accuracy (credit default at epsilon 256: gap .175 in place of .075).
"""

import math

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.solvers.declared import Declared
from discreet.solvers.gd import GradientDescent
from discreet.solvers.gradient_loop import TYPICAL_SLOPE, slope_at_zero
from discreet.solvers.public_signal import signal
from discreet.solvers.standardized import Standardized
from discreet.solvers.whitened import Whitened

CALIBRATED = 20.0
LEAST_STEPS, MOST_STEPS, LIMIT_STEPS = 8, 24, 3000
LARGEST = 100.0


def descent_for(domain: Domain, loss: Loss, budget: Budget, form: str) -> Whitened | Standardized:
    """Return gradient steps with momentum, in whitened (``full``) or standardized (``diagonal``) coordinates."""
    clip, constant = TYPICAL_SLOPE * slope_at_zero(loss), 0.5
    if budget.is_private:
        constant = constant_for(domain, budget)
        inner = GradientDescent(step_count(domain), relative_clip=clip, momentum=0.7, radius=LARGEST)
    else:
        inner = GradientDescent(LIMIT_STEPS, relative_clip=clip, momentum=0.9, radius=LARGEST)
    if form == "diagonal":
        return Standardized(inner, constant=constant)
    floor = 0.35 if budget.is_private else 1e-9
    return Whitened(inner, constant=constant, floor=floor, calibrate_probabilities=calibrates(domain, budget))


def plain_classes(domain: Domain, loss: Loss, budget: Budget) -> Declared:
    """Return short steps with momentum in declared coordinates."""
    inner = GradientDescent(
        LEAST_STEPS, momentum=0.7, relative_step=0.75, relative_clip=slope_at_zero(loss), radius=LARGEST
    )
    return Declared(inner, constant=1.0 / plain_length(domain, budget))


def calibrates(domain: Domain, budget: Budget) -> bool:
    """Say whether a gradient for calibration is worth its part of the budget: never without noise."""
    return budget.is_private and signal(domain, budget) >= CALIBRATED


def step_count(domain: Domain) -> int:
    """Return how many gradients to release."""
    return int(min(MOST_STEPS, max(LEAST_STEPS, round(1.5 * math.sqrt(domain.n_features)))))


def constant_for(domain: Domain, budget: Budget) -> float:
    """Return the constant feature in units of the features' length."""
    return min(2.0, max(0.5, 24.0 / signal(domain, budget)))


def plain_length(domain: Domain, budget: Budget) -> float:
    """Return the features' length in units of the constant's where the signal is weak."""
    return min(2.0, max(0.05, 0.27 * (signal(domain, budget) - 1.0)))
