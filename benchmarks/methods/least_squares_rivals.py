"""AdaSSP and Iterative Hessian Mixing with noise that meets their claim, for least squares. Nothing of discreet.

Rows x of norm at most 1 and targets in [-1, 1]; a neighbor has one record less (its sums are those of ``zero_out``).

AdaSSP (Wang 2018)
    Noisy least eigenvalue, X'X and X'y, each a Gaussian; a ridge that grows where the least eigenvalue is small. The
    three are one Gaussian of mu = sqrt(3) / sigma, so sigma = sqrt(3) / mu(epsilon, delta): 1.6 times less noise than
    the paper's constants, which are a valid but loose composition.
Iterative Hessian Mixing (Lev et al. 2026, arXiv 2601.07545)
    Three Newton steps, each with a fresh Gaussian sketch S X + s N of k rows for the Hessian, and a noisy gradient with
    residuals clipped at 1; s^2 fills the least eigenvalue up to gamma, after a noisy look at it. The rows of a sketch
    are independent N(0, X'X + s^2 I): removing x with v = x' (X'X + s^2 I)^{-1} x <= 1 / gamma moves them by a
    Renyi divergence of (k / (2 (a - 1))) (a log(1 - v) - log(1 - a v)), or (k / (2 (a - 1))) ((1 - a) log(1 - v) -
    log(1 + (a - 1) v)) the other way. It is added to those of the Gaussians, and converted to (epsilon, delta) by the
    tight conversion. The paper's own accounting gives half of epsilon to each part.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

Array = NDArray[np.float64]
ORDERS = 1.0 + np.geomspace(1e-2, 1e4, 400)
STEPS = 3
FAILURE = 0.1
"""In units of delta: the chance with which a ridge or a sketch may be too small; of accuracy only."""


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu such that mu-Gaussian DP implies (epsilon, delta)-DP."""

    def beyond(mu: float) -> float:
        first = ndtr(-epsilon / mu + mu / 2)
        return float(first - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)) - delta)

    return float(brentq(beyond, 1e-6, 100.0))


def adassp(X: Array, y: Array, epsilon: float, delta: float, rng: np.random.Generator) -> Array:
    """Return the coefficients."""
    d = X.shape[1]
    sigma = math.sqrt(3.0) / gaussian_mu(epsilon, delta)
    least = float(np.linalg.eigvalsh(X.T @ X)[0]) + sigma * rng.normal()
    least = max(0.0, least - sigma * math.sqrt(2.0 * math.log(6.0 / delta)))
    ridge = max(0.0, sigma * math.sqrt(d * math.log(2.0 * d**2 / (FAILURE * delta))) - least)
    noise = rng.normal(size=(d, d))
    gram = X.T @ X + sigma * (noise + noise.T) / 2.0  # post-processing of noise on the whole matrix
    values, vectors = np.linalg.eigh(gram)
    floored = np.maximum(values, 0.0) + max(ridge, 1e-9)
    cross = X.T @ y + sigma * rng.normal(size=d)
    return np.asarray(vectors @ ((vectors.T @ cross) / floored))


def sketch_divergence(k: int, gamma: float) -> Array:
    """Return the Renyi divergence of a sketch at every order, infinite where it has none."""
    v = 1.0 / gamma
    with np.errstate(invalid="ignore", divide="ignore"):
        removed = ORDERS * np.log1p(-v) - np.log1p(-ORDERS * v)
    added = -(ORDERS - 1.0) * np.log1p(-v) - np.log1p((ORDERS - 1.0) * v)
    worst = np.maximum(np.where(ORDERS * v < 1.0, removed, np.inf), added)
    return np.asarray(k / (2.0 * (ORDERS - 1.0)) * worst)


def epsilon_of(divergence: Array, delta: float) -> float:
    """Return the epsilon of a curve of Renyi divergences (Canonne, Kamath & Steinke 2020)."""
    found = divergence + np.log1p(-1.0 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1.0)
    return float(np.min(found))


@cache
def mixing_noise(k: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return gamma and the noise multiplier of the four Gaussians, each part with about half of the privacy loss."""
    half = delta / 2.0  # the other half is for the chance that the least eigenvalue was overestimated

    def gaussians(z: float) -> Array:
        return np.asarray((STEPS + 1.0) * ORDERS / (2.0 * z**2))

    z = float(brentq(lambda z: epsilon_of(gaussians(z), half) - epsilon / 2.0, 1e-2, 1e6))

    def beyond(log_gamma: float) -> float:
        return epsilon_of(STEPS * sketch_divergence(k, math.exp(log_gamma)) + gaussians(z), half) - epsilon

    above = brentq(beyond, math.log(1.001), math.log(1e9))
    return math.exp(float(above)), z


def hessian_mixing(X: Array, y: Array, epsilon: float, delta: float, rng: np.random.Generator) -> Array:
    """Return the coefficients."""
    d = X.shape[1]
    k = round(6 * max(d, math.log(4 * STEPS / (FAILURE * delta))))
    gamma, z = mixing_noise(k, epsilon, delta)
    least = float(np.linalg.eigvalsh(X.T @ X)[0]) + z * rng.normal()
    least = max(0.0, least - z * math.sqrt(2.0 * math.log(2.0 / delta)))
    fill = math.sqrt(max(0.0, gamma - least))
    root, w = np.linalg.cholesky(X.T @ X + (fill**2 + 1e-9) * np.eye(d)), np.zeros(d)
    for _ in range(STEPS):
        sketch = rng.normal(size=(k, d)) @ root.T / math.sqrt(k)  # the law of S X + s N
        gradient = X.T @ np.clip(y - X @ w, -1.0, 1.0) + z * rng.normal(size=d)
        w = w + np.linalg.solve(sketch.T @ sketch, gradient)
    return np.asarray(w)
