"""Shrink noisy numbers by what they show of themselves: empirical Bayes, on released numbers alone.

    q_j = l_j w_j + N(0, noise^2),     w_j ~ N(0, x / l_j),     x ~ a mixture over a grid of variances with 0 in it
    E[w_j | q_j] = d_j q_j,            d_j = E[ x / (l_j x + noise^2) | q_j ]

The weights of the mixture are those under which all q together are likeliest (Stephens 2017, *False discovery rates: a
new deal*, found by EM). A mixture keeps few large entries whole among many that are noise, which one common variance
cannot; where all is noise, the weight is at x = 0 and nothing is left. Post-processing: it costs no budget.
"""

import math

import numpy as np

from discreet.typing import Booleans, Floats

VARIANCES = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 28)])
"""Candidates for x, in units of noise^2 over the mean of l."""
ROUNDS = 60
"""Of EM: weights move by less than a hundredth from here on."""


def posterior_weights(
    q: Floats, values: Floats, noise: float, clear: Booleans | None = None, most: float = math.inf
) -> Floats:
    """Return d with E[w | q] = d q; ``values`` are l, and the mixture is learned where ``clear`` holds.

    Where nothing is clear, nothing can be distinguished from noise: d is 0. Without noise it is 1 / l. The mixture's
    mean is at most ``most``, which the mean of x is known not to exceed: what is learned beyond it is noise.
    """
    if noise == 0:
        return np.asarray(1.0 / values)
    known = np.ones(len(q), dtype=np.bool_) if clear is None else clear
    if not known.any():
        return np.zeros(len(q))
    x = VARIANCES * (noise**2 / float(values[known].mean()))
    variances = np.multiply.outer(x, values) + noise**2
    logs = -0.5 * (np.log(variances) + q**2 / variances)
    likelihood = np.exp(logs - logs.max(axis=0))
    weights = np.full(len(x), 1.0 / len(x))
    for _ in range(ROUNDS):
        weights = _posterior(weights, likelihood[:, known]).mean(axis=1)
    mean = float(weights @ x)
    if mean > most:
        weights *= most / mean
        weights[0] += 1.0 - float(weights.sum())
    return np.asarray((_posterior(weights, likelihood) * (x[:, None] / variances)).sum(axis=0))


def _posterior(weights: Floats, likelihood: Floats) -> Floats:
    joint = weights[:, None] * likelihood
    return np.asarray(joint / joint.sum(axis=0))
