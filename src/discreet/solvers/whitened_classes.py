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
``n_steps`` 1.5 sqrt(p) within [12, 24], momentum 0.7, step 1 / curvature, within a ball of radius 100; late iterates
averaged (``average="polynomial"``)
    In whitened coordinates the problem is round: few steps do. Wide tables like more. Margins of a hundred are certain
    of everything: the ball keeps a noisy A from making iterates diverge. The average takes out noise that the last
    iterate has. Gap at epsilon 0.5 / 1 / 4, mean of German credit and of 2,000 to 4,000 rows of electricity, credit
    default and bank (16 splits): .354 / .186 / .051 with 8 steps at least and the last iterate, .340 / .174 / .041 so.
    12 steps and the last iterate: .347 / .190 / .062; the average of 8: .354 / .174 / .038, but electricity .076 at
    epsilon 1 in place of .035.
    Not taken, where J is below 100: half the steps (better on four of the tables that rules are chosen on, mean gap .41
    -> .35; on others Adult .30 -> .21, but spam .25 -> .37 and Covertype .19 -> .23), momentum 0.5 or 0.8, a floor of
    0.7, clips of 0.3 or 0.5 (within noise), 1.5 times the steps, .3 of mu^2 for second moments, labels as numbers in
    Newton's steps (worse). Nor, for census income (510 columns), the steps of ``whitened_wide`` (gap .57 / .43 at
    epsilon .1 / 1 in place of .42 / .13).
``calibrate_probabilities`` from J = 20 (``probability_calibration``)
    One gradient more brings the logarithmic loss of logistic models at epsilon 1 from 1.07 to 1.17 times that at
    epsilon 4 with it down to 1.00 to 1.01 (bank, covertype, credit, electricity), at the same AUC. Where J is about 10
    there is nothing to calibrate by, and a gradient less is felt: spam at epsilon 0.2 lost 3 points of accuracy.
    Below J = 20 what clipping usually does is undone without a release; plain steps: ``clipped_margins``. What is
    lost of the trivial predictor's logarithmic loss, over what the model without privacy gains on it, at epsilon 0.01:
    bank 1.53 -> 1.11 and (``replace_one``) 1.27 -> 1.03, electricity (``replace_one``) 1.84 -> 1.25, credit default
    (``replace_one``) 1.95 -> 1.27; German credit 1.66 -> .63 at 0.5, 1.63 -> 1.16 at 0.1. Accuracy is the same.
Steps of plain form: 0.75 / curvature, times J / 4 below J = 4
    Noise alone throws whole steps far out: German credit at epsilon 0.01 (J = 0.3) had a logarithmic loss 3.6 above the
    optimum, 0.23 with short steps. Empirical Bayes on the slopes of plain steps lost accuracy (IPUMS at epsilon 0.01:
    gap .39 -> .41): signal lies in few directions, noise in all. They are shrunk by public numbers (``declared``).
``Refined`` from K = 75 on (``clarity``) for two classes: half of mu^2 to the steps above, half to unclipped ones
    Clips and shrunk rows bias what the steps above find, however large the signal: logarithmic loss on training rows
    above the optimum at epsilon 1 / 4 / 64 / 256, mean of credit default, electricity, bank and IPUMS, on which the
    rules were chosen: .0040 / .0037 / .0038 / .0042 without, .0025 / .0011 / .0004 / .0000 with.
    At K = 45 (epsilon 0.3) .0070 without, .0097 with; at K = 75 (epsilon 0.6) .0060 and .0054. A wider clip alone,
    with rows shrunk and as few steps, loses accuracy (credit default at epsilon 256: gap .175 in place of .075).
``n_steps`` of ``Refined``: 5, and 3 more each time K doubles, up to 40
    Each takes a coefficient a half to all of the way to its place where curvatures are a quarter to all of the largest;
    nearly separated classes (NSL-KDD) have less, and want more steps.
``reach`` .35 q typical rows, at most sqrt(.1 sharpness) of them (``sandwich_rules``), at least 1.25
    The first keeps the steps' noise in proportion to the sampling error, the second keeps the noise of M's spectrum
    below about half of a whitened direction; .03 in place of .1 leaves .0009 / .0013 / .0009 / .0005 at epsilon 4 / 16
    / 64 / 256. Without the second nothing is learned beyond epsilon 4: rows of 60 lengths drown M in noise.
``Refined`` for three classes or more, where p counts all outputs: from K = 25 on, 7 steps there, momentum .7, half the
reach above, at least 2
    Clips and shrunk rows cost more than with two classes, and no calibration undoes it. Logarithmic loss on training
    rows above the optimum at epsilon .5 / 1 / 4 / 16 / 64 / 256, mean of California prices in quarters, marital status
    (bank) and three generated tables (4, 5 and 10 classes; 20,000 to 50,000 rows), on which the rules were chosen, by
    fresh noise: .0489 / .0474 / .0466 / .0462 / .0461 / .0460 without, .0203 / .0109 / .0036 / .0020 / .0011 / .0006
    with. At K of about 20 (prices, epsilon .3) .051 (.009) without, .055 (.013) with. A class's curvature is about
    1 / K, far below the largest, 1/2: without momentum prices are at .0165 / .0099 / .0043 at epsilon 4 / 16 / 256,
    with it .0132 / .0083 / .0019, with half the reach too .0128 / .0057 / .0006. Momentum .85 rings (marital status at
    epsilon 4: .0052 in place of .0011). A quarter of the reach moves the target where the model is wrong (prices at
    epsilon 4: .031), and so does a least reach of 1.25 (marital status at epsilon 1: .014 in place of .003).
"""

import math
from dataclasses import replace
from typing import Literal, NamedTuple

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.solvers.base import Solver
from discreet.solvers.declared import Declared
from discreet.solvers.gd import GradientDescent
from discreet.solvers.gradient_loop import TYPICAL_SLOPE, slope_at_zero
from discreet.solvers.public_signal import clarity, signal
from discreet.solvers.refined import FARTHEST, Refined
from discreet.solvers.sandwich_rules import breadth, sharpness
from discreet.solvers.standardized import Standardized
from discreet.solvers.whitened import Whitened

CALIBRATED, FULL_STEP = 20.0, 4.0
PLAIN_STEPS, LEAST_STEPS, MOST_STEPS, LIMIT_STEPS = 8, 12, 24, 3000
LARGEST = 100.0
MOST_REFINED, STEPS_PER_DOUBLING = 40, 3.0
BREADTHS, SHARP = 0.35, 0.1


class RefinedRule(NamedTuple):
    """From which K on there are unclipped steps, how many there, their least reach, its factor, and their momentum."""

    clarity: float
    steps: int
    least_reach: float
    reach: float
    heavy_ball: float


TWO_CLASSES = RefinedRule(75.0, 5, 1.25, 1.0, 0.0)
SEVERAL_CLASSES = RefinedRule(25.0, 7, 2.0, 0.5, 0.7)


def classes_for(domain: Domain, loss: Loss, budget: Budget, form: str) -> Solver:
    """Return clipped steps, and unclipped ones after them where the signal bears these."""
    if form == "plain":
        return plain_classes(domain, loss, budget)
    found = descent_for(domain, loss, budget, form)
    return refined(found, domain, budget) if isinstance(found, Whitened) and refines(domain, budget) else found


def descent_for(domain: Domain, loss: Loss, budget: Budget, form: str) -> Whitened | Standardized:
    """Return gradient steps with momentum, in whitened (``full``) or standardized (``diagonal``) coordinates."""
    clip, constant = TYPICAL_SLOPE * slope_at_zero(loss), 0.5
    if budget.is_private:
        constant = constant_for(domain, budget)
        inner = GradientDescent(
            step_count(domain), relative_clip=clip, momentum=0.7, average="polynomial", radius=LARGEST
        )
    else:
        inner = GradientDescent(LIMIT_STEPS, relative_clip=clip, momentum=0.9, radius=LARGEST)
    if form == "diagonal":
        return Standardized(inner, constant=constant)
    floor = 0.35 if budget.is_private else 1e-9
    return Whitened(inner, constant=constant, floor=floor, calibrate_probabilities=calibration(domain, budget))


def plain_classes(domain: Domain, loss: Loss, budget: Budget) -> Declared:
    """Return short steps with momentum in declared coordinates."""
    step = 0.75 * min(1.0, signal(domain, budget) / FULL_STEP)
    inner = GradientDescent(
        PLAIN_STEPS, momentum=0.7, relative_step=step, relative_clip=slope_at_zero(loss), radius=LARGEST
    )
    return Declared(inner, constant=1.0 / plain_length(domain, budget), unclip_intercept=True)


def refined_rule(domain: Domain) -> RefinedRule:
    """Return the rule for two classes or for more."""
    return TWO_CLASSES if domain.n_outputs == 1 else SEVERAL_CLASSES


def refines(domain: Domain, budget: Budget) -> bool:
    """Say whether unclipped steps are worth half of the budget; never without noise."""
    return budget.is_private and clarity(domain, budget) >= refined_rule(domain).clarity


def refined(solver: Whitened, domain: Domain, budget: Budget) -> Refined:
    """Return more steps, and rows that count in full from further out, the clearer the signal is."""
    rule = refined_rule(domain)
    steps = rule.steps + round(STEPS_PER_DOUBLING * math.log2(clarity(domain, budget) / rule.clarity))
    reach = min(BREADTHS * breadth(domain, budget), math.sqrt(SHARP * sharpness(replace(domain, n_outputs=1), budget)))
    reach = min(FARTHEST, max(rule.least_reach, rule.reach * reach))
    return Refined(solver, n_steps=min(MOST_REFINED, steps), reach=reach, heavy_ball=rule.heavy_ball)


def calibration(domain: Domain, budget: Budget) -> bool | Literal["usual"]:
    """Say whether a gradient for calibration is worth its part of the budget, or what clipping usually does must do."""
    if not budget.is_private:
        return False
    return True if signal(domain, budget) >= CALIBRATED else "usual"


def step_count(domain: Domain) -> int:
    """Return how many gradients to release."""
    return int(min(MOST_STEPS, max(LEAST_STEPS, round(1.5 * math.sqrt(domain.n_features)))))


def constant_for(domain: Domain, budget: Budget) -> float:
    """Return the constant feature in units of the features' length."""
    return min(2.0, max(0.5, 24.0 / signal(domain, budget)))


def plain_length(domain: Domain, budget: Budget) -> float:
    """Return the features' length in units of the constant's where the signal is weak."""
    return min(2.0, max(0.05, 0.27 * (signal(domain, budget) - 1.0)))
