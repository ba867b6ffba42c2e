"""The composition that ``solver="whitened"`` stands for where targets are numbers: settings from public facts alone.

Facts, signal J and gap: as in ``whitened_defaults``. S = J sqrt(p) is the signal of one number: how far a target's mean
stands out of the noise. Chosen on California housing, Friedman, melting point, RAND health and generated tables.

``Declared(ShrunkenDescent)`` below J = 5 or S = 40
    There is little to see: the shape would cost more than it shows. Short steps in declared coordinates, shrunk by
    their own noise, with a large constant feature, so that the intercept is learned first. R^2 on parts of the tables,
    epsilon .1, S = 11 / 22 / 41: California -.06 / -.03 / .00 with these, -.09 / -.07 / .10 with Newton steps; Friedman
    -.10 / .02 / .17 and -.62 / -.02 / .06; RAND health at S = 22 / 44 / 83: -.06 / -.03 / -.02 and -.20 / -.04 / -.05.
``relative_clip`` 0.3, then S / 160 within [0.05, 0.2] half target ranges, 20 steps of 1 at most
    The noise in the intercept is 1.4 last clips / S, whatever the number of steps; a wide clip has the noise of the
    range, a narrow one the bias of a median. R^2 at epsilon .1, 1,000 rows, with S / 40 within [0.1, 0.4] throughout
    and with these: a range ten times too wide -8.2 and -2.0 (zero_out), -2.9 and -.3 (replace_one); a target near the
    end of it -1.3 and -.2, -5.9 and -.6 (on six other
    seeds with these: -1.0 / -.6 and -1.6 / -1.5). Skewed tables want more: RAND health and California at epsilon .01
    -.03 / .03 before and -.05 / -.02 with these. Steps of more than 1 overshoot along the
    constant; 10 and 40 were worse.
``row_norm`` 0.8, ``relative_clip`` 1.05 (J/100)^(1/4), 4 Newton steps, ``floor`` 0.25 + 1 / sqrt(2 p)
    Rows longer than 0.8 sqrt(p) standard deviations are shrunk, residuals clipped at about one standard deviation, more
    where the noise allows (skewed targets want it). 3 to 5 steps are the same within noise on narrow tables; wide
    ones take sqrt(p) / 2 of them, up to 8: 6,000 x 300, 15 relevant columns, gap .95 / .64 / .07 at epsilon .5 / 1 / 4
    with 4 and .89 / .59 / .06 with 8, melting point at 64 and 256 .077 / .060 and .070 / .053. Noise is filtered by its
    likelihood in each direction (``shrinkage``). Mean gap .132 / .073 / .013 at epsilon .5 / 1 / 4 with 3 steps, a
    floor of 0.5 and rows that widen from J = 1000 on, .102 / .050 / .008 with these.
``floor`` in more detail: times (J/100)^(1/2) from J = 100 on, at most 1
    A direction's own noise is edge / sqrt(2 p), and a step along a direction whose eigenvalue came out at less than
    half of what it is overshoots, unless the filter holds it back, which it does where J is small. At 0.25 alone 4
    columns in ranges 30 times too wide ended at R^2 -4 at epsilon 4 (.83 at 0.5), and at 0.3 3,000 rows of 150 columns
    at -3.6 at epsilon 64 (.71 at 1). Wide tables with little signal want 0.25 (melting point at epsilon 1: .27, .29).
``least_scale`` 20 / J within [.002, .1]
    How small a feature's scale may be in its range; its own noise keeps it from less. Features in ranges 100 times too
    wide (15,000 rows, ceiling .57): R^2 .16 / .47 / .57 at epsilon 1 / 4 / 64, and .00 / .00 / .00 at 0.1.
``whiten_rows``, with 6 steps at least, .6 of the clip, and 1 edge added to M's eigenvalues; not for penalties with
corners or pure budgets
    On standardized rows the noise of a coefficient is in proportion to 1 / e, e being the variance of rows in its
    direction, on whitened ones to 1 / sqrt(e). Eigenvalues are kept above the same floor: with the whitened edge, 1/2,
    2 floors of it times e + edge are at least floor edge. Gap at epsilon .5 / 1 / 4, mean of California housing and
    RAND health (both whole, and 2,000 and 5,000 rows of them), 1,000 rows of Friedman and a generated table of 20
    columns whose spreads differ 30 times (six seeds): .058 / .005 / -.021 without, .040 / -.007 / -.022 with 8 steps
    and half the clip; the generated one alone .153 / .023 / .0009 and .067 / .008 / .0004. Under ``replace_one`` (four
    seeds, melting point too) .144 / .065 / -.001 without, .126 / .037 / -.000 with 6 steps and .6 of the clip. With .35
    edges and the floors as they were one fit of California ran away (mean gap .35 in place of -.05); 12 steps were
    worse with heavy tails.
From J = 100 on: limits on rows times (J/100)^0.35
    So that the model tends to least squares as signal grows. RAND health, which is heavy-tailed: .196 / .091 / .014 at
    epsilon .5 / 1 / 4 from J = 1000 on, .107 / .032 / -.005 with this. Where n is private, nothing widens.
Pure budgets: 2 Newton steps, second moments .50, means and scales .02 each; 8 plain steps
    Shares are of mu^2, so an answer gets the root of its share of epsilon: few answers, most of it for the p^2 numbers.
    Gap at epsilon .5 / 1 / 4, replace_one: California -.03 / -.08 / -.09, Friedman .01 / .00 / .00, RAND health .25 /
    .27 / .17; with gradient steps in declared coordinates 2.2 / .55 / -.04, 5.5 / .40 / .02, 31 / 22 / 1.0.
``target_share`` 12 / S within [.05, .3], ``target_rounds`` 16
    A wrong mean costs more than a wrong slope where little is known. Looks for center and scale (``target_search``)
    instead of moments over the declared range: R^2 at epsilon .1, 15,000 rows, lognormal target in 0 to 1000
    (ceiling .39) -9.5 before and .29 with them (zero_out), -27 and .19 (replace_one); a range ten times too wide
    (ceiling .63) .25 and .62, -1.0 and .59.
``calibrate_predictions`` 0.2 sqrt(S) deviations of the target
    Its noise, .6 / sqrt(S) deviations, falls as its bias does. 0.15 and 0.3 are the same within noise.
"""

import math
from typing import Any

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.solvers.center_and_scale import LEAST_SCALE
from discreet.solvers.declared import Declared
from discreet.solvers.newton import NewtonDescent
from discreet.solvers.public_signal import signal
from discreet.solvers.shrunken import ShrunkenDescent
from discreet.solvers.whitened import LENGTHS, Whitened

NUMBERS = {"mean_share": 0.04, "scale_share": 0.06, "target_share": 0.05, "moment_share": 0.25}
PURE_NUMBERS = {"mean_share": 0.02, "scale_share": 0.02, "moment_share": 0.50}
LIMIT_NEWTON = 100
LEAST_SIGNAL, LEAST_TARGET_SIGNAL = 5.0, 40.0
PLAIN_STEPS = 20
ROUNDS = 16
RELAXED, RELAXING = 100.0, 0.35
WHITENED_FLOOR, WHITENED_CLIP = 1.0, 0.6


def sees_numbers(domain: Domain, budget: Budget) -> bool:
    """Say whether estimating the shape of features and target is worth its part of the budget."""
    return signal(domain, budget) >= LEAST_SIGNAL and target_signal(domain, budget) >= LEAST_TARGET_SIGNAL


def newton_for(domain: Domain, loss: Loss, budget: Budget, *, corners: bool = False) -> Whitened:
    """Return filtered Newton steps, on whitened rows unless a penalty has corners; many without noise for Huber's."""
    whiten = budget.is_private and not budget.is_pure and not corners
    if not budget.is_private:
        inner = NewtonDescent(n_steps=4 if loss.quadratic else LIMIT_NEWTON, floor=1e-9)
    else:
        floor = (0.25 + 1.0 / math.sqrt(2.0 * domain.n_features)) * math.sqrt(max(1.0, signal(domain, budget) / 100.0))
        floor, clip = min(1.0, floor), residual_clip(domain, budget)
        steps = 2 if budget.is_pure else min(8, max(6 if whiten else 4, round(math.sqrt(domain.n_features) / 2.0)))
        inner = NewtonDescent(steps, WHITENED_CLIP * clip if whiten else clip, 2.0 * floor if whiten else floor)
    wide, one = relaxed(domain, budget), target_signal(domain, budget)
    settings: dict[str, Any] = {
        **(PURE_NUMBERS if budget.is_pure else NUMBERS),
        "target_share": min(0.3, max(0.05, 12.0 / one)),
        "relative_row_norm": 0.8 * wide,
        "lengths": LENGTHS * wide,
        "least_scale": least_scale(domain, budget),
        "whiten_rows": whiten,
        "floor": WHITENED_FLOOR if whiten else 0.35,
    }
    if budget.is_private and not budget.is_pure:  # a pure budget has few answers
        settings |= {"target_rounds": ROUNDS, "calibrate_predictions": 0.2 * math.sqrt(one)}
    return Whitened(inner, constant=None, calibrate_probabilities=False, **settings)


def plain_numbers(domain: Domain, budget: Budget) -> Declared:
    """Return short, shrunken steps in declared coordinates."""
    length = plain_length(domain, budget)
    last = min(0.2, max(0.05, target_signal(domain, budget) / 160.0))
    steps = 8 if budget.is_pure else PLAIN_STEPS
    inner = ShrunkenDescent(steps, relative_clip=0.3, last_clip=last, step_size=min(1.0, 3.0 / (1.0 + length**2)))
    return Declared(inner, constant=1.0 / length)


def plain_length(domain: Domain, budget: Budget) -> float:
    """Return the features' length in units of the constant's where the signal is weak."""
    return min(2.0, max(0.3, 0.25 * signal(domain, budget)))


def target_signal(domain: Domain, budget: Budget) -> float:
    """Return S, the signal of one number."""
    return signal(domain, budget) * math.sqrt(domain.n_features)


def relaxed(domain: Domain, budget: Budget) -> float:
    """Return what limits on rows are multiplied by: a root of a known signal beyond J = 100."""
    if domain.n is None or not budget.is_private:
        return 1.0
    return float(max(1.0, (signal(domain, budget) / RELAXED) ** RELAXING))


def least_scale(domain: Domain, budget: Budget) -> float:
    """Return the smallest scale of a feature, in units of its declared range."""
    if domain.n is None or not budget.is_private:
        return LEAST_SCALE
    return min(LEAST_SCALE, max(0.002, 20.0 / signal(domain, budget)))


def residual_clip(domain: Domain, budget: Budget) -> float:
    """Return the clip of residuals, in standard deviations of the target."""
    clip = max(0.75, 1.05 * math.sqrt(math.sqrt(signal(domain, budget) / 100.0)))
    return min(6.0 * relaxed(domain, budget), clip)
