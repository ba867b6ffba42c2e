"""Where clipped, noisy steps were headed: the intercept of a logistic model without a release.

Let all margins be m, so that a share sigmoid(m) of labels is positive, and take the solver's own steps (their number,
size, momentum and clip) on that population, from 0, without noise. Short steps end before m, long ones beyond it, since
clips make a model too sure. Given where the released intercept ended and its noise, ``likely_middle`` is the mean of m.
Post-processing: it costs no budget.
"""

import numpy as np
from scipy.special import expit

from discreet.solvers.uncertainty.whitened_noise import Steps
from discreet.typing import Floats

LONGER = 1.1
"""What the clip leaves of a slope, in units of its value for a row of typical length: shorter rows keep more."""
FARTHEST, USUAL = 6.0, 2.0
"""Within which m is searched, and how far it usually is from 0: shares of positives from .02 to .98."""


def likely_middle(b: float, deviation: float, steps: Steps) -> float:
    """Return the mean of m, given that steps with noise of this deviation ended at b; 0 where noise hides b."""
    m = np.linspace(-FARTHEST, FARTHEST, 121)
    logs = -0.5 * np.square((constant_path(m, steps) - b) / deviation) - 0.5 * np.square(m / USUAL)
    weights = np.exp(logs - logs.max())
    return float(weights @ m / weights.sum())


def constant_path(m: Floats, steps: Steps) -> Floats:
    """Return where the steps end for each m, without noise."""
    clip, positive = LONGER * steps.slope, expit(m)
    now = before = np.zeros_like(m)
    for momentum in steps.momenta:
        ahead = now + momentum * (now - before)
        chance = expit(ahead)
        pull = (1.0 - positive) * np.minimum(chance, clip) - positive * np.minimum(1.0 - chance, clip)
        before, now = now, ahead - steps.size * pull
    return now
