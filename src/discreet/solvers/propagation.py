"""How far the privacy noise alone moved the released coefficients: standard deviations, to first order.

The noise of every release is public, and what a solver makes of an answer is known: two runs of the same steps, one
with noise and one without, differ by a linear recursion in the noise, as long as the difference is small. With H the
curvature of the mean (clipped) loss, eta the step, b_t the momentum and r <= 1 what an L2 penalty's prox shrinks by:

    d_{t+1} = r (1 - eta H) (d_t + b_t (d_t - d_{t-1})) - r eta xi_t,      released: the average sum_t a_t d_t

``responses`` solves it for one eigenvalue of H, backward: how much of each step's noise is in the result. A
coefficient's variance is an average, over H's spectrum, of the sum of their squares. H is private, but what is public
of it bounds that average.

*Flat is worst.* With constant momentum b the response after k steps is (b c)^{k/2} U_k((1 + b) sqrt(c) / (2 sqrt(b))),
c = r (1 - eta h), U_k Chebyshev's polynomial of the second kind. |U_k(x)| <= k + 1 <= U_k(y) for |x| <= 1 <= y, and U_k
increases beyond 1; at c = r the argument is at least 1 where r = 1. So for 0 <= eta h <= 1 no response is larger than
at h = 0: directions in which the loss is flat keep all the noise, others forget it. The same for b = 0, for averages
with weights that are not negative, and for the sums of responses that one answer causes if it is used several times.

What is not in these figures: sampling of batches, the sampling error of the records, the effect of clips and early
stopping (the run without noise has them too), and what noise in estimated scales and counts did to the steps' lengths.

What is noise in a result can be taken out of it by empirical Bayes (``posterior_weights``):

    q_j = l_j w_j + N(0, noise^2),     w_j ~ N(0, x / l_j),     x ~ a mixture over a grid of variances with 0 in it
    E[w_j | q_j] = d_j q_j,            d_j = E[ x / (l_j x + noise^2) | q_j ]

The weights of the mixture are those under which all q together are likeliest (Stephens 2017, *False discovery rates: a
new deal*, found by EM). A mixture keeps few large entries whole among many that are noise, which one common variance
cannot; where all is noise, the weight is at x = 0 and nothing is left.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from discreet.bounds import Domain
from discreet.typing import Booleans, Floats

if TYPE_CHECKING:
    from discreet.curator import Recoding


VARIANCES = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 28)])
"""Candidates for x, in units of noise^2 over the mean of l."""
ROUNDS = 60
"""Of EM: weights move by less than a hundredth from here on."""


def responses(momenta: Floats, averages: Floats, pull: Floats | float = 0.0, shrink: Floats | float = 1.0) -> Floats:
    """How much of the noise of step t, times -eta, is in the result: shape (T, number of curvatures).

    ``momenta`` holds b_0, ..., b_{T-1}, ``averages`` the weights a_0, ..., a_T of the iterates, ``pull`` eta h for each
    curvature, ``shrink`` r, one for all or one for each curvature.
    """
    keep = shrink * (1.0 - np.atleast_1d(np.asarray(pull, dtype=np.float64)))
    count = len(momenta)
    response = np.zeros((count + 2, keep.size))  # row t: what the result makes of d_t; the last row is of no step
    response[count] = averages[count]
    later = np.append(momenta, 0.0)
    for t in range(count - 1, 0, -1):
        response[t] = averages[t] + keep * ((1.0 + later[t]) * response[t + 1] - later[t + 1] * response[t + 2])
    return np.asarray(shrink * response[1 : count + 1])


def gain(momenta: Floats, averages: Floats, pull: Floats | float = 0.0, shrink: Floats | float = 1.0) -> Floats:
    """The result's variance over (eta times one answer's deviation) squared, for each curvature."""
    return np.asarray(np.square(responses(momenta, averages, pull, shrink)).sum(axis=0))


def left_of_start(momenta: Floats, averages: Floats, pull: Floats) -> Floats:
    """What is left of a distance at the start, for each curvature: 1 where it is flat, 0 where steps came to rest."""
    now = before = np.ones_like(np.asarray(pull, dtype=np.float64))
    left = averages[0] * now
    for momentum, weight in zip(momenta, averages[1:], strict=True):
        before, now = now, (1.0 - pull) * (now + momentum * (now - before))
        left = left + weight * now
    return np.asarray(left)


def average_weights(average: str, n_steps: int) -> Floats:
    """Return how much of each iterate w_0, ..., w_T is in the average.

    ``uniform`` is the lecture's (1/(T+1)) sum of all iterates; ``suffix`` averages those from T/2 on, ``tail`` those
    after T/2; ``polynomial`` weighs iterate t in proportion to (t+1)(t+2)(t+3) (Shamir & Zhang 2013, eta = 3).
    """
    t, half = np.arange(n_steps + 1), n_steps // 2
    first = {"last": n_steps, "tail": half + 1, "suffix": half}.get(average, 0)
    weights = (t + 1.0) * (t + 2.0) * (t + 3.0) if average == "polynomial" else np.where(t >= first, 1.0, 0.0)
    return np.asarray(weights / weights.sum())


def taken_back(recoding: Recoding, variances: Floats) -> Floats:
    """Deviations of ``recoding.coefficients`` for independent coordinates with these variances, without a matrix."""
    features = len(recoding.center)
    scale = (recoding.target_scale / recoding.scale) ** 2
    slopes = (variances[:features].T * scale).T
    if len(variances) == features:
        return np.sqrt(slopes)
    last = (recoding.constant * recoding.target_scale) ** 2 * variances[features] + np.square(recoding.center) @ slopes
    return np.asarray(np.sqrt(np.concatenate([slopes, last[None] if variances.ndim == 2 else [last]])))


def affine(recoding: Recoding, domain: Domain) -> tuple[Floats, Floats]:
    """Return Q and c with coefficients(v) = Q v + c."""
    size = domain.n_features if recoding.matrix is None else recoding.matrix.shape[-1]
    offset = recoding.coefficients(np.zeros(size))
    return (recoding.coefficients(np.eye(size)).T - offset).T, offset


def posterior_weights(
    q: Floats,
    values: Floats,
    noise: Floats | float,
    clear: Booleans | None = None,
    most: float = math.inf,
    least: float = 0.0,
    prior: float = 0.0,
    odds: float = 0.0,
) -> Floats:
    """Return d with E[w | q] = d q; ``values`` are l, and the mixture is learned where ``clear`` holds.

    ``noise`` is the deviation of all, or of each.

    Where nothing is clear, nothing can be distinguished from noise: d is 0. Without noise it is 1 / l. The mixture's
    mean is at most ``most``, which the mean of x is known not to exceed: what is learned beyond it is noise. No x is
    below ``least``: 1 / n, the sampling error, by which an optimum differs from any guess. ``prior`` entries without
    signal are counted in addition: few entries alone would find a variance in their noise. ``odds`` are those against
    that x is anything but ``least``, before q was seen.
    """
    if not np.any(noise):
        return np.asarray(1.0 / values)
    is_known = np.ones(len(q), dtype=np.bool_) if clear is None else clear
    if not is_known.any():
        return np.zeros(len(q))
    mixture = _learned(q, values, noise, is_known, least, prior)
    x, variances, weights = mixture.x, mixture.variances, mixture.weights.copy()
    mean = float(weights @ x)
    if mean > most:
        weights *= most / mean
        weights[0] += 1.0 - float(weights.sum())
    joint = weights[:, None] * mixture.likelihood
    left = np.asarray((joint / joint.sum(axis=0) * (x[:, None] / variances)).sum(axis=0))
    if odds:
        something = expit(float(_likelier(mixture, weights)[is_known].sum()) - math.log(odds))
        left = something * left + (1.0 - something) * x[0] / variances[0]
    return left


def evidence_of_signal(q: Floats, noise: Floats, prior: float) -> float:
    """Return the logarithm of how much likelier numbers with such noise are if they are more, by the same mixture."""
    if not np.any(noise):
        return math.inf
    mixture = _learned(q, np.ones(len(q)), noise, np.ones(len(q), dtype=np.bool_), 0.0, prior)
    return float(_likelier(mixture, mixture.weights).sum())


class _Mixture(NamedTuple):
    """Candidates for x, the variances of q that they make, how likely each q is by each, and the weights found."""

    x: Floats
    variances: Floats
    logs: Floats
    likelihood: Floats
    weights: Floats


def _learned(
    q: Floats, values: Floats, noise: Floats | float, is_known: Booleans, least: float, prior: float
) -> _Mixture:
    """Return the mixture of x under which the known q are likeliest."""
    x = np.maximum(VARIANCES * (float(np.square(noise).mean()) / float(values[is_known].mean())), least)
    variances = np.multiply.outer(x, values) + np.square(noise)
    logs = -0.5 * (np.log(variances) + q**2 / variances)
    likelihood = np.exp(logs - logs.max(axis=0))
    weights, known = np.full(len(x), 1.0 / len(x)), likelihood[:, is_known]
    for _ in range(ROUNDS):
        joint = weights[:, None] * known
        weights = (joint / joint.sum(axis=0)).sum(axis=1)
        weights[0] += prior
        weights /= weights.sum()
    return _Mixture(x, variances, logs, likelihood, weights)


def _likelier(mixture: _Mixture, weights: Floats) -> Floats:
    """Return the logarithm of how much likelier each q is by these weights than by the least x."""
    return np.asarray(np.log(weights @ mixture.likelihood) + mixture.logs.max(axis=0) - mixture.logs[0])
