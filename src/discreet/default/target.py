"""Where a target lies: a number's center and scale, and the constant that the shares of classes or a count start from.

A number's place is found by few noisy looks, however wide the range that was declared for it:

    m = the middle of the range, c = a quarter of the range; for t = 1, ..., T:
        share = noisy share of the targets within c of m
        g     = noisy mean of y - m, each record's clipped at c
        c <- c exp( -rate (share - quantile) );   m <- m + g
    center = the mean of m over the second half;   scale = c / (that quantile of |N(0, 1)|)

The mean and the mean square over the whole range have the noise of the range: where it is ten times too wide, so is the
scale that they show. Here the noise of a look is that of the window, which shrinks by what was seen before. Eight in
ten targets are to be in it first, which tells a window that is too wide fastest; more later, as far as the noise of a
share allows, because the tails of a skewed target carry its mean.

Released: T shares, T clipped means. Privacy: those of ``noisy_share_within`` and ``noisy_coordinate_gradient``, at the
constant's coordinate; the windows follow released numbers only.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import logsumexp, softmax

from discreet.accounting.plan import Release
from discreet.losses.base import Loss
from discreet.solvers.calibration import CLASSES
from discreet.solvers.coordinates import TINY, Target, noises, shares_to_noise
from discreet.solvers.settings import LARGEST
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


FIRST_QUANTILE, FEWEST_OUTSIDE = 0.8, 0.03
"""What the window is to hold first, and the least that it may leave out in the end."""
OUTSIDE = 0.65
"""What the window leaves out in the end, in deviations of the noise of a look: less is not distinguished from it."""
FIRST_RATE, LAST_RATE, LARGEST_CHANGE = 3.0, 0.3, 0.7
"""Steps of log c: first; in the end, where shares of 1 - quantile must move it; and their bound."""
LEAST_WINDOW = 0.002
"""In units of half the declared range."""


def search_releases(share: float, rounds: int) -> tuple[Release, ...]:
    """List the looks: half of this share of mu^2 for the shares, half for the means."""
    noise = shares_to_noise(share / 2.0, rounds)
    return (
        Release("noisy_share_within", rounds, relative_noise=noise, dimension=1),
        Release("noisy_coordinate_gradient", rounds, relative_noise=noise, dimension=1),
    )


def search_target(curator: "Curator", n: float, rounds: int) -> Target:
    """Take the looks, and return what they found."""
    low, high = curator.domain.target_range or (-1.0, 1.0)
    half = (high - low) / 2.0 or 1.0
    noise = noises(curator, "noisy_coordinate_gradient")[0] / n
    outside = min(1.0 - FIRST_QUANTILE, max(FEWEST_OUTSIDE, OUTSIDE * noise))
    center, window, centers, windows = (low + high) / 2.0, half / 2.0, [], []
    for t in range(rounds):
        share, mean = _look(curator, n, center, window)
        center = min(high, max(low, center - mean))
        part = min(1.0, max(0.0, (t + 1 - rounds / 2) / (rounds / 4)))
        beyond = (1.0 - FIRST_QUANTILE) * (1.0 - part) + outside * part
        step = (FIRST_RATE if part == 0 else LAST_RATE / beyond) * (1.0 - beyond - share)
        window *= math.exp(min(LARGEST_CHANGE, max(-LARGEST_CHANGE, step)))
        window = min(half, max(LEAST_WINDOW * half, window))
        centers.append(center)
        windows.append(window)
    center = float(np.mean(centers[rounds // 2 :]))
    window = float(np.exp(np.mean(np.log(windows[-(rounds // 4) or -1 :]))))
    scale = window / NormalDist().inv_cdf(1.0 - outside / 2.0)
    return Target(center, scale, noise * window / math.sqrt(rounds - rounds // 2))


def _look(curator: "Curator", n: float, center: float, window: float) -> tuple[float, float]:
    """Return the noisy share of targets in the window, and the noisy mean of what they miss its middle by, clipped."""
    columns = curator.domain.n_features
    place = np.append(np.zeros(columns - 1), center)
    share = curator.noisy_share_within(place, columns - 1, clip=window) / n + 0.5
    mean = float(curator.noisy_coordinate_gradient(place, columns - 1, clips=window)[0]) / n
    return min(1.0, max(0.0, share)), mean


UNEVEN = 0.3
"""How far the share of a class is from an even one, mostly."""


def class_shares(loss: Loss, gradient: Floats, noise: float) -> Floats:
    """Return the shares of classes that a mean gradient at 0 of constant rows tells.

    With f' at 0 of each class, a mean slope g of two classes says (g - f'_1) / (f'_0 - f'_1); K outputs each lack their
    class's share. Shares are drawn to even ones by what is noise in them, and are at least the noise.
    """
    count = max(2, len(gradient))
    if len(gradient) > 1:
        shares = 1.0 / count - gradient
    else:
        negative, positive = (float(loss.slopes_at(np.zeros(1), sign)[0]) for sign in (-1.0, 1.0))
        share = (float(gradient[0]) - negative) / (positive - negative)
        shares, noise = np.array([1.0 - share, share]), noise / abs(positive - negative)
    kept = UNEVEN**2 / (UNEVEN**2 + noise**2)
    shares = np.maximum(1.0 / count + kept * (shares - 1.0 / count), max(TINY, min(noise, 0.5 / count)))
    return np.asarray(shares / shares.sum())


def constant_doubt(loss: Loss, shares: Floats, noise: float, strength: float) -> Floats | float:
    """Return about how far the constant of noisy shares is from the best: by their noise, and by what columns do.

    ``noise`` is that of the mean gradient that they were read from.
    """
    if loss.n_outputs > 1:
        return np.asarray(np.hypot(CLASSES.shift, noise / shares))
    off = noise / abs(float(np.subtract(*(loss.slopes_at(np.zeros(1), sign)[0] for sign in (-1.0, 1.0)))))
    ends = (min(1.0, max(0.0, float(shares[1]) + sign * off)) for sign in (-1.0, 1.0))
    low, high = (best_constant(loss, np.array([1.0 - end, end]), strength) for end in ends)
    return math.hypot(CLASSES.shift, float(high - low) / 2.0)


def best_constant(loss: Loss, shares: Floats, strength: float) -> Floats | float:
    """Return the constant margin (one per class of several) with the least expected loss and L2 penalty."""
    if loss.n_outputs > 1:

        def sloped(margins: Floats) -> tuple[float, Floats]:
            height = float(logsumexp(margins) - shares @ margins + strength * margins @ margins / 2.0)
            return height, softmax(margins) - shares + strength * margins

        return np.asarray(minimize(sloped, np.zeros(len(shares)), jac=True, method="BFGS").x)

    def slope(margin: float) -> float:
        each = [float(loss.slopes_at(np.array([margin]), sign)[0]) for sign in (-1.0, 1.0)]
        return float(shares @ each) + strength * margin

    return _flat_point(slope)


def best_log_mean(loss: Loss, mean: float, strength: float) -> float:
    """Return the log of the constant with the least expected loss (linear in the target) and L2 penalty."""
    return _flat_point(lambda margin: float(loss.slopes_at(np.array([margin]), mean)[0]) + strength * margin)


def _flat_point(slope: Callable[[float], float]) -> float:
    """Return where a slope that does not fall is 0; the end at which it is nearest to 0 where it is not."""
    if slope(-LARGEST) >= 0 or slope(LARGEST) <= 0:
        return -LARGEST if slope(-LARGEST) >= 0 else LARGEST
    return float(brentq(slope, -LARGEST, LARGEST))
