"""The constant that a target is best predicted by, from one noisy answer: where steps start.

Without it the intercept is the longest way that steps go, and where columns say little nearly all that they find.

    classes    g = noisy mean gradient at 0 of rows that are a constant 1: it tells each class's share
    counts     g = noisy mean slope of records at one constant prediction, which is linear in the mean target

Released: that answer. Privacy: that of ``noisy_coordinate_gradient``, or of ``noisy_gradient`` for several outputs, on
the records as they were admitted; what follows is post-processing.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import logsumexp, softmax

from discreet.accounting.plan import Release
from discreet.bounds import Domain
from discreet.curator import Recoding
from discreet.losses.base import Loss, slope_at_zero
from discreet.solvers.calibration import CLASSES
from discreet.solvers.shrinkage import kept
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

LEAST = float(np.finfo(np.float64).tiny)
"""The least share of a class, without noise."""
FARTHEST = 100.0
"""The largest constant: margins of a hundred are certain of everything."""
UNEVEN = 0.3
"""How far the share of a class is from an even one, mostly."""
USUAL = 1.0 / 16.0
"""The root of a count's mean square over the largest one that is declared, mostly at most."""


class Constant(NamedTuple):
    """The margin, one for each of several outputs, and the deviation of its noise."""

    margin: Floats | float
    noise: Floats | float


def constant_query(domain: Domain) -> str:
    """Return the question that is asked."""
    return "noisy_coordinate_gradient" if domain.n_outputs == 1 else "noisy_gradient"


def constant_release(domain: Domain, relative_noise: float) -> Release:
    """List the answer, with this noise."""
    dimension = 1 if domain.n_outputs == 1 else None
    return Release(constant_query(domain), 1, relative_noise=relative_noise, dimension=dimension)


def released_constant(curator: "Curator", n: float, noise: float, strength: float) -> Constant:
    """Ask for the constant; ``noise`` is the answer's, per unit of its clip, ``strength`` an L2 penalty's."""
    loss = curator.loss
    if not loss.log_link:
        shares, noise = released_shares(curator, n, noise, denoise=True)
        return Constant(best_constant(loss, shares, strength), constant_noise(loss, shares, noise, strength))
    mean, noise = released_mean(curator, n, noise)
    return Constant(best_log_mean(loss, mean, strength), noise / mean)


def released_shares(curator: "Curator", n: float, noise: float, *, denoise: bool = False) -> tuple[Floats, float]:
    """Return the noisy shares of classes, and the noise of the mean gradient that they were read from.

    That is the constant's entry of the gradient at 0; of several outputs the gradient of rows that are a constant.
    """
    domain, loss, clip = curator.domain, curator.loss, slope_at_zero(curator.loss)
    if loss.n_outputs == 1:
        gradient = curator.noisy_coordinate_gradient(np.zeros(domain.shape), domain.n_features - 1, clips=clip)
    else:
        features, column = domain.n_features - 1, np.zeros((domain.n_features, 1))
        column[-1] = 1.0
        with curator.recoded(Recoding(np.zeros(features), np.ones(features), matrix=column, reach=1.0)):
            gradient = curator.noisy_gradient(np.zeros((1, *domain.shape[1:])), clip=clip)[0]
    noise *= clip / n
    return class_shares(loss, np.atleast_1d(gradient) / n, noise, denoise=denoise), noise


def released_mean(curator: "Curator", n: float, noise: float) -> tuple[float, float]:
    """Return the noisy mean of counts or amounts, at least its noise, and its noise.

    With records at the prediction c the slope of an outcome y is in proportion to c - y, and y counts up to 2 c. Of
    outcomes with the mean square u^2 that takes at most u^2 / (8 c), because y - 2 c <= y^2 / (8 c), and the noise is
    c / N, with N the signal: c is where both together are least.
    """
    domain, loss = curator.domain, curator.loss
    usual, largest = USUAL * domain.target_bound, domain.target_bound / 2.0
    c = largest if noise == 0 else min(largest, usual * math.sqrt(n / noise / 8.0))
    place = np.zeros(domain.shape)
    place[-1] = math.log(c)
    low, high = (float(loss.slopes_at(place[-1:], y)[0]) for y in (0.0, 2.0 * c))
    gradient = curator.noisy_coordinate_gradient(place, domain.n_features - 1, clips=max(abs(low), abs(high)))
    mean = 2.0 * c * (low - float(gradient[0]) / n) / (low - high)
    noise *= 2.0 * c * max(abs(low), abs(high)) / (n * (low - high))
    return min(2.0 * c, max(mean, noise)), noise


def class_shares(loss: Loss, gradient: Floats, noise: float, *, denoise: bool = False) -> Floats:
    """Return the shares of classes that a mean gradient at 0 of constant rows tells.

    With f' at 0 of each class, a mean slope g of two classes says (g - f'_1) / (f'_0 - f'_1); K outputs each lack their
    class's share. Shares are drawn to even ones (``denoise``: onto) by what is noise in them, and are at least the
    noise.
    """
    count = max(2, len(gradient))
    if len(gradient) > 1:
        away = -gradient
    else:
        negative, positive = (float(loss.slopes_at(np.zeros(1), sign)[0]) for sign in (-1.0, 1.0))
        away, noise = (gradient - negative) / (positive - negative) - 0.5, noise / abs(positive - negative)
    if denoise and noise > 0:
        away = noise * kept(away / noise, (UNEVEN / noise) ** 2)
    elif noise > 0:
        away = away * (UNEVEN**2 / (UNEVEN**2 + noise**2))
    away = away if len(away) > 1 else np.append(-away, away)
    shares = np.maximum(1.0 / count + away, max(LEAST, min(noise, 0.5 / count)))
    return np.asarray(shares / shares.sum())


def constant_doubt(loss: Loss, shares: Floats, noise: float, strength: float) -> Floats | float:
    """Return about how far the constant of noisy shares is from the best: by their noise, and by what columns do.

    ``noise`` is that of the mean gradient that they were read from.
    """
    doubt = np.hypot(CLASSES.shift, constant_noise(loss, shares, noise, strength))
    return doubt if loss.n_outputs > 1 else float(doubt)


def constant_noise(loss: Loss, shares: Floats, noise: float, strength: float) -> Floats | float:
    """Return the deviation of the noise in the constant of noisy shares."""
    if loss.n_outputs > 1:
        return np.asarray(noise / shares)
    off = noise / abs(float(np.subtract(*(loss.slopes_at(np.zeros(1), sign)[0] for sign in (-1.0, 1.0)))))
    ends = (min(1.0, max(0.0, float(shares[1]) + sign * off)) for sign in (-1.0, 1.0))
    low, high = (best_constant(loss, np.array([1.0 - end, end]), strength) for end in ends)
    return float(high - low) / 2.0


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
    if slope(-FARTHEST) >= 0 or slope(FARTHEST) <= 0:
        return -FARTHEST if slope(-FARTHEST) >= 0 else FARTHEST
    return float(brentq(slope, -FARTHEST, FARTHEST))
