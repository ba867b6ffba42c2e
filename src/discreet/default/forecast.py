"""What privacy will probably cost, before anything is charged: a forecast from public facts, and its floor.

In whitened coordinates all directions look alike, so one number tells what the noise of T clipped steps makes of each
coefficient (``uncertainty/propagation``), and another what is left of the way from 0. With theta^2 the variance of the
best predictor, assumed, noise s^2 in it costs s^2 / (s^2 + theta^2) of what can be learned once the predictor has been
calibrated, and what is left of the way its square.

    noise    s^2 = p (step clip sqrt(T / share) / N)^2 gain
    floor    the same with the whole budget in one step along the true curvature: no choice of steps could be better
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet.default.recipe import Recipe
from discreet.losses.base import Loss
from discreet.solvers.gradient_loop import average_weights, slope_at_zero
from discreet.solvers.signal import Signal
from discreet.solvers.uncertainty.propagation import gain, left_of_start

VARIANCE = {"classification": 1.5, "regression": 0.25}
"""What is assumed of the best predictor's variance: of margins, and of a target of variance 1."""
CURVED = 0.3
"""What clips leave of the largest curvature for classes, about; for numbers the share of residuals within the clip."""
DIRECTIONS = 0.8
"""p columns are correlated: noise is felt in about this power of p directions."""
SPREAD = {"classification": 0.25, "regression": 0.35}
"""Nine in ten public tables were within this of the forecast."""


@dataclass(frozen=True)
class Forecast:
    """The share of what can be learned that privacy will cost: the forecast, how far off it may be, and the floor.

    Parameters
    ----------
    lost : float
        0: as good as without privacy; 1: nothing learned.
    spread : float
        Nine in ten tables are within this of it.
    floor : float
        What the noise of one answer with the whole budget would cost.

    Examples
    --------
    >>> from discreet.default.forecast import Forecast
    >>> Forecast(lost=0.1, spread=0.3, floor=0.02).range
    (0.0, 0.4)
    """

    lost: float
    spread: float
    floor: float

    @property
    def range(self) -> tuple[float, float]:
        """From where to where the loss probably is."""
        return max(0.0, self.lost - self.spread), min(1.0, self.lost + self.spread)


def forecast(recipe: Recipe, signal: Signal, loss: Loss, share: float) -> Forecast:
    """Return what a recipe will probably cost; ``share`` is what its clipped steps get of mu^2."""
    variance, directions = VARIANCE[loss.task], signal.coefficients**DIRECTIONS
    curved = CURVED if loss.task == "classification" else math.erf(recipe.clip / math.sqrt(2.0))
    momenta, weights = np.full(recipe.n_steps, recipe.momentum), average_weights("polynomial", recipe.n_steps)
    pull = np.array([curved])
    clip = recipe.clip * slope_at_zero(loss) * math.sqrt(directions)
    one = clip / loss.smoothness * math.sqrt(recipe.n_steps / share) / signal.total
    noise = directions * one**2 * float(gain(momenta, weights, pull)[0])
    left = float(left_of_start(momenta, weights, pull)[0])
    least = directions * (clip / (curved * loss.smoothness * signal.total)) ** 2
    lost = min(1.0, noise / (noise + variance) + left**2)
    return Forecast(lost, SPREAD[loss.task], least / (least + variance))
