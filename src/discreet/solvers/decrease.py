"""What noisy gradient steps gained, by their gradients alone, and how much of their way is kept. Post-processing.

Steps ask for g_t = grad F(x_t) + N(0, sigma^2 I) at x_0, x_1, ..., and end at w. What slopes add to F(x_0) - F(w) is a
line integral, exact for a quadratic F:

    D = sum_t <grad F(x_t) + grad F(x_{t+1}), x_t - x_{t+1}> / 2 + <grad F(x_{T-1}), x_{T-1} - w>

Of all noise in g_t only its part -(1 + b_{t+1}) r eta in x_{t+1} - x_t depends on it, r being the derivative of the
penalty's prox. So with g for grad F the sum is too large by (1 + b_{t+1}) r eta sigma^2 / 2 for each coordinate and
step, whatever F is, and what noise is left is a martingale, whose variance adds up. No curvature is assumed: that of
thousands of columns is not known.

Where slopes tell nothing, their noise costs B / 2, B = sum_j (h_j + penalty''_j) var_j, with typical curvatures h. Else
let D = (A - B) / 2, A / 2 being anywhere up to all there is to gain. Steps that came to rest would gain A / 2 without
noise, so that F falls by u A - u^2 (A + B) / 2 from the best constant, u = 0, on the way to w, u = 1, and most at

    u = E[A | D] / (E[A | D] + B)

One number for all slopes keeps what is spread over thousands of columns, none of which stands out of its noise.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, log_ndtr

from discreet.losses.base import Loss, value
from discreet.penalties.base import Penalty
from discreet.solvers.calibration import POINTS, WEIGHTS, best_constant, class_shares
from discreet.solvers.shrinkage import bend_of, curved, mean_squares, strengths_of
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.solvers.traces import DescentTrace

USUALLY = 3.0
"""How much likelier it is that slopes tell something than that they do not, before anything is asked."""
NUMBER = 0.2
"""The deviation of a number in half-ranges, mostly at most."""
EXACT, FARTHEST = 1e-12, 1e6
"""A deviation that is so small a part of the largest gain is none; beyond so many deviations below 0 all is alike."""


class Decrease:
    """The sum and its variance, for each coordinate; ``noise`` is the deviation of an entry of a mean gradient.

    ``constants`` has for each gradient the last coordinate, its entry, and the sum of squares of the others.
    """

    def __init__(self, noise: float, penalty: Penalty) -> None:
        self.noise, self._penalty = noise, penalty
        self.value: Floats = np.zeros(())
        self.variance: Floats = np.zeros(())
        self.constants: list[tuple[Floats, Floats, float]] = []
        self._last: tuple[Floats, Floats, Floats, Floats] | None = None

    def add(self, x: Floats, gradient: Floats, w: Floats, step: float, momentum: float) -> None:
        """Take the gradient at x, reached with this momentum, and where a step of this size led from there."""
        before = np.zeros_like(x) if self._last is None else self._leg(x, gradient, (1.0 + momentum) / 2.0)
        self._last = x, gradient, before, step * derivative(self._penalty, w, step)
        self.constants.append((x[-1], gradient[-1], float(np.sum(np.square(x[:-1])))))

    def end(self, w: Floats) -> None:
        """Take the end of the path."""
        assert self._last is not None
        self._leg(w, self._last[1], 1.0)
        self._last = None

    def _leg(self, x: Floats, gradient: Floats, moved: float) -> Floats:
        """Add the way to x; ``moved`` is how far noise in the gradient before it went, times its weight here."""
        assert self._last is not None
        there, last, before, loose = self._last
        half = (x - there) / 2.0
        own = moved * loose * self.noise**2
        self.value = self.value - (last + gradient) * half - own
        after = half if gradient is not last else 2.0 * half
        self.variance = self.variance + np.square(self.noise * (before + after)) + np.square(own)
        return half


def derivative(penalty: Penalty, w: Floats, step: float) -> Floats:
    """Return the derivative of a penalty's prox that led to w, by coordinate: 0 where a corner holds it."""
    strengths = strengths_of(penalty, len(w))
    left = 1.0 / (1.0 + step * strengths).reshape(-1, *[1] * (w.ndim - 1))
    held = penalty.l1_l2 is not None and bool(np.any(penalty.l1_l2[0]))
    return np.broadcast_to(left * (w != 0) if held else left, w.shape)


def share_of_way(
    w: Floats, trace: "DescentTrace", decrease: Decrease, curator: "Curator", penalty: Penalty, *, intercept: bool
) -> float:
    """Return u: how much is kept of the way from the best constant to w, whose penalty is part of F."""
    loss, domain, features = curator.loss, curator.domain, len(w) - intercept
    bends = bend_of(loss, domain) * curved(trace, loss, domain) * mean_squares(domain)
    strengths = strengths_of(penalty, len(w))
    noise = float(((bends + strengths) * trace.variances(bends, strengths))[:features].sum()) * loss.n_outputs
    without = w.copy()
    without[:features] = 0.0
    gained = float(decrease.value[:features].sum()) - penalty.value(w) + penalty.value(without)
    found = expected_gain(
        gained + noise / 2.0, math.sqrt(float(decrease.variance[:features].sum())), largest_gain(loss)
    )
    return found / (found + noise / 2.0) if found > 0 else 0.0


def largest_gain(loss: Loss) -> float:
    """Return the loss of zeros, mostly at most."""
    if loss.task == "classification":
        return math.log(loss.n_outputs) if loss.n_outputs > 1 else float(value(loss, 0.0, 1.0))
    return float(value(loss, NUMBER, 0.0))


def expected_gain(shown: float, deviation: float, largest: float) -> float:
    """Return the mean of a gain, which is none or anywhere up to the largest, of one that is shown with this noise."""
    shown = min(max(shown, -FARTHEST * deviation), largest)
    if deviation <= EXACT * largest:
        return max(0.0, shown)
    low, high = -shown / deviation, (largest - shown) / deviation
    ends = float(log_ndtr(-low)), float(log_ndtr(-high))
    inside = ends[0] + math.log1p(-math.exp(min(ends[1] - ends[0], -1e-12)))
    logs = [-(end**2) / 2.0 - math.log(2.0 * math.pi) / 2.0 - inside for end in (low, high)]
    mean = shown + deviation * (math.exp(logs[0]) - math.exp(logs[1]))
    chance = expit(math.log(USUALLY * deviation / largest) - logs[0])
    return float(chance * min(max(mean, 0.0), largest))


def best_constant_along(decrease: Decrease, curator: "Curator", trace: "DescentTrace", strength: float) -> float | None:
    """Return the constant that is best if slopes tell nothing, by the constant's entry of all gradients; None: unknown.

    Margins are then the constant and what noise in slopes makes of rows, and the mean of clipped slopes is linear in
    the share of a class, or in the mean of numbers. ``strength`` is an L2 penalty's.
    """
    loss, domain = curator.loss, curator.domain
    typical = domain.typical
    if typical is None or typical.norm is None or loss.n_outputs > 1 or domain.grouped:  # a person's rows are one sum
        return None
    if not (loss.sigmoid_link or loss.movable_target):
        return None
    most, square = trace.clip / typical.norm, float(mean_squares(domain)[:-1].mean())
    shares, precisions = [], []
    for constant, entry, squares in decrease.constants:
        margins = float(constant) + math.sqrt(square * squares) * POINTS
        if loss.movable_target:
            left = curved(trace, loss, domain)
            shares.append(float(constant) - float(entry) / left)
            precisions.append(left**2)
            continue
        low, high = (
            float(np.clip(loss.slopes_at(margins, sign), -most, most) @ WEIGHTS / WEIGHTS.sum()) for sign in (-1.0, 1.0)
        )
        shares.append((float(entry) - low) / (high - low))
        precisions.append((high - low) ** 2)
    noise = decrease.noise / math.sqrt(math.fsum(precisions))
    found = float(np.average(shares, weights=precisions))
    if loss.movable_target:
        return found / (1.0 + strength)
    negative, positive = (float(loss.slopes_at(np.zeros(1), sign)[0]) for sign in (-1.0, 1.0))
    gradient = np.array([negative + found * (positive - negative)])
    return float(best_constant(loss, class_shares(loss, gradient, noise * abs(positive - negative)), strength))
