"""The shares of classes from a noisy gradient, and the constant that predicts them best. Post-processing."""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp, softmax

from discreet.losses.base import Loss, derivative, value
from discreet.typing import Floats

UNEVEN = 0.3
"""How far the share of a class is from an even one, mostly."""
LARGEST = 20.0
"""A constant beyond this is certain of everything."""


def class_shares(loss: Loss, gradient: Floats, noise: float) -> Floats:
    """Return the shares of classes that a mean gradient at 0 of constant rows tells.

    With f' at 0 of each class, a mean slope g of two classes says (g - f'_1) / (f'_0 - f'_1); K outputs each lack their
    class's share. Shares are drawn to even ones by what is noise in them, and are at least the noise.
    """
    count = max(2, len(gradient))
    if len(gradient) > 1:
        shares = 1.0 / count - gradient
    else:
        negative, positive = (float(derivative(loss, 0.0, sign)) for sign in (-1.0, 1.0))
        share = (float(gradient[0]) - negative) / (positive - negative)
        shares, noise = np.array([1.0 - share, share]), noise / abs(positive - negative)
    kept = UNEVEN**2 / (UNEVEN**2 + noise**2)
    shares = np.maximum(1.0 / count + kept * (shares - 1.0 / count), min(noise, 0.5 / count))
    return np.asarray(np.maximum(shares, 1e-9) / np.maximum(shares, 1e-9).sum())


def best_constant(loss: Loss, shares: Floats, strength: float) -> Floats | float:
    """Return the constant margin (one per class of several) with the least expected loss and L2 penalty."""
    if loss.n_outputs > 1:

        def sloped(margins: Floats) -> tuple[float, Floats]:
            height = float(logsumexp(margins) - shares @ margins + strength * margins @ margins / 2.0)
            return height, softmax(margins) - shares + strength * margins

        return np.asarray(minimize(sloped, np.zeros(len(shares)), jac=True, method="BFGS").x)

    def expected(margin: float) -> float:
        each = (share * float(value(loss, margin, sign)) for share, sign in zip(shares, (-1.0, 1.0), strict=True))
        return math.fsum(each) + strength * margin**2 / 2.0

    return _least(expected)


def best_log_count(mean: float, strength: float) -> float:
    """Return the logarithm of a constant count with the least expected Poisson loss and L2 penalty."""
    return _least(lambda margin: math.exp(margin) - mean * margin + strength * margin**2 / 2.0)


def _least(expected: Callable[[float], float]) -> float:
    return float(minimize_scalar(expected, bounds=(-LARGEST, LARGEST), method="bounded").x)
