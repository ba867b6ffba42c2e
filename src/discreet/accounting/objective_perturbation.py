"""Objective perturbation: bounds on the privacy loss of ``PerturbedMinimum``.

The release is the minimizer w of J(w) = sum_i f_i(x_i.w) + (lambda/2) ||w||^2 + b.w over the whole space, with
noise b on every coordinate. Each f_i is convex with a Lipschitz derivative; lambda > 0 does not depend on the data, nor
under ``add_remove`` on their number; it weighs on the intercept, which is noised and counts in x, like on the rest.
Under ``zero_out`` the null record has gradient zero for every w, so that blanking a record is removing it.

**Density.** Given the data D, b_D(w) = -grad S_D(w) - lambda w is the b that makes w the minimizer. The map is
strongly monotone and bi-Lipschitz, so by the change of variables (almost everywhere) w has the density
phi(b_D(w)) det H_D(w), H_D = hess S_D + lambda I. The loss thus has two parts: of the noise and of the determinant.

**Determinant.** Adding a record: det(H + f'' x x^T)/det H = 1 + f'' x^T H^{-1} x lies in [1, 1 + beta/lambda], by
H >= lambda I and f'' ||x||^2 <= beta. Replacing: with E the common part, the ratio is one such factor over another,
so it too is at most 1 + beta/lambda. Write c = ``curvature`` = beta/lambda and T = log(1 + c). *Softmax* with K
outputs adds A (x) x x^T, A = diag p - p p^T, of rank K - 1 and trace at most 1 - 1/K: the ratio is at most
prod (1 + a_k R^2/lambda) over A's eigenvalues, and by Jensen T = (K-1) log(1 + R^2/(K lambda)); beta = R^2/2 there.

**Noise.** Let sigma be its scale, g the changed record's gradient (replace: the difference of two), v = g/sigma. Under
the P of either direction b ~ N(0, sigma^2 I), and up to its sign the other data set's b is b + g. So this part is
||v||^2/2 + v.N with N = b/sigma standard normal, but v depends on w, hence on N: the sum is not Gaussian. Yet for
fixed N it is *convex in v*, and v lies in a polytope whose vertices are known beforehand; so it is at most its
maximum over the vertices u, at each of which it is G_||u|| ~ N(||u||^2/2, ||u||^2). For t >= 0,
P(G_m > t) = Phi(m/2 - t/m) grows with m; so with mu = 1/z, z = sigma/(a L) (a = 2 for replace_one), the union bound
over the vertices gives a sum of P(G_m > t - T) as a survival bound at t >= T; no claim but 1 is made below T:

=============  ==================================  ========================================================
slopes         add_remove, zero_out                replace_one: v = (g - g')/sigma
=============  ==================================  ========================================================
one_signed     vertices 0, u: G_mu                 0, u, -u', u - u': G_mu + 2 G_{mu/2}
two_signed     -u, u: 2 G_mu                       four of +-u +- u': 4 G_mu
softmax        (e_k - e_y) (x) x, one of them 0:   products of these, one of them 0:
               (K-1) G_mu                          (K-1)^2 G_mu + 2 (K-1) G_{mu/2}
=============  ==================================  ========================================================

**Logistic, add_remove and zero_out.** The gradient is clipped at C = L, the row's norm r is at most R = q C
(``reach`` q; 1 without a clip), f'' <= k |f'| (1 - |f'|). With s = |f'| r/C in [0, 1] below the clip,
f'' r^2 <= k C^2 s (r/C - s), which grows with r, and f'' = 0 at it. The record fixes the direction of g, so that the
noise part is s^2 mu^2/2 + s mu Z, Z standard normal under the P of that direction. Hence, with kappa = k C^2/lambda,

    W <= W*(Z) = max over s in [0, 1] of h(s; Z) = l(s) + s^2 mu^2/2 + s mu Z,   l(s) = log(1 + kappa s (q - s)),

and c = max of kappa s (q - s) gives kappa = 4 c/q^2 for q <= 2, c/(q - 1) beyond. W* is convex and does not decrease
in Z; so P(W > U) <= P(Z > z) for any U >= W*(z), and chords between such points bound it in between.

*Where s = 1 is the worst.* Let t = h(1; Z), that is mu Z = t - l(1) - mu^2/2. Then h(s; Z) <= t if and only if
l(s) - s l(1) <= (1 - s)(t + s mu^2/2). If it holds for all s then W* <= t at this and every smaller Z:
P(W > t) <= P(G_mu > t - l(1)). (i) q = 1: l(1) = 0 and l(s) <= kappa s (1 - s), so kappa s <= t + s mu^2/2 suffices,
which is linear in s: t >= t0 = max(0, kappa - mu^2/2). There is **no overhead** over the Gaussian mechanism from t0 on.
(ii) q > 1: l is the logarithm of a concave function, hence concave: l(s) <= l(1) - (1 - s) l'(1), and
t >= t0 = l(1) + max(0, -l'(1)) suffices, -l'(1) = kappa (2 - q)/(1 + kappa (q - 1)).

*When it is Gaussian DP.* If q = 1 and kappa <= mu^2/2 (lambda >= 2 sigma^2 for k = 1), t0 = 0: both directions are
below the curve of mu-GDP at every epsilon >= 0, and these determine the trade-off function. Otherwise the loss is
larger than a Gaussian's at small t, and the event must never be composed as one.

For replace_one no such theorem is known: logistic is priced as one_signed.

**Slopes and curvature of a loss** (``perturbation_of``). With R the bound on a row's norm, C the clip on a record's
gradient and lambda the regularization of the sum:

* logistic of sharpness k: |f'| = v C/r for a row of norm r <= R with v in [0, 1], and f'' = k |f'| (1 - |f'|), so
  f'' r^2 <= k C^2 v (r/C - v) <= k C^2 v (q - v) with q = max(1, R/C); beyond the clip the curvature is 0.
* the others: f'' r^2 <= sup f'' R^2, whatever the slope; the record fixes the sign of f' where ``one_signed``.
* softmax: the Hessian is (diag(p) - p p^T) (x) x x^T, with eigenvalues at most R^2/2.

**Gamma noise**, density proportional to exp(-||b||/(z a L)): | ||b_D|| - ||b_D'|| | <= a L, so that the loss is at
most T + 1/z, always: pure epsilon.
"""

from __future__ import annotations  # a loss brings the compiler, which its constants do not need

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.events import Event, Gaussian, PerturbedMinimum, PureDP, reciprocal_up
from discreet.accounting.privacy_loss import LossBound, Tail
from discreet.accounting.root_finding import find_root
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.errors import AccountingError, Unsupported
from discreet.losses.constants import gradient_bound
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.losses.base import Loss

_UP = 1 + 2.0**-50  # above an exact quotient, whose few roundings are less than that
_LOWEST, _HIGHEST = -8.0, 36.0  # scores between which the logistic loss is resolved
_NODE = 0.04


@dataclass(frozen=True)
class Perturbation:
    """What the price of noise inside an objective needs in addition to the noise: see ``PerturbedMinimum``.

    Parameters
    ----------
    curvature : float
        The objective's strong convexity over a record's smoothness.
    slopes : str, default="two_signed"
        The kind of the records' slopes.
    reach : float, default=1.0
        The largest slope, in units of the clip.
    outputs : int, default=1
        The number of outputs of the model.

    Examples
    --------
    >>> from discreet.accounting import Perturbation
    >>> Perturbation(curvature=10.0).outputs
    1
    """

    curvature: float
    slopes: str = "two_signed"
    reach: float = 1.0
    outputs: int = 1

    @property
    def rounded_up(self) -> Perturbation:
        """A little more of everything, so that it covers the same numbers computed in another order."""
        return replace(self, curvature=self.curvature * (1 + 2**-40), reach=self.reach * (1 + 2**-42))


def record_bound(loss: Loss, domain: Domain, clip: float | None) -> float:
    """The bound on a record's gradient: the clip, or what the declared bounds imply where that is less."""
    if clip is None:
        return gradient_bound(loss, domain) * _UP
    return min(clip, loss.lipschitz_for(domain.target_bound) * domain.row_norm) * _UP


def perturbation_of(loss: Loss, domain: Domain, clip: float | None, regularization: float) -> Perturbation:
    """The curvature beta/lambda and the slopes at ``regularization`` lambda > 0, in the form of the sum."""
    bound, slopes = record_bound(loss, domain, clip), loss.perturbation_slopes
    if loss.n_outputs > 1:
        if slopes != "softmax":
            raise Unsupported("objective perturbation is proven for one output and for softmax: use solver='gd'")
        if clip is not None and clip < gradient_bound(loss, domain):
            raise Unsupported(
                "clipped softmax gradients are no gradients of a convex loss, which objective perturbation needs: "
                "leave out the clip, or declare a smaller row_norm"
            )
    curvature = (loss.perturbed_curvature(domain.row_norm, bound) / regularization) * _UP
    reach = max(1.0, domain.row_norm / bound) if slopes == "logistic" else 1.0
    return Perturbation(curvature, slopes, reach=reach, outputs=loss.n_outputs)


def covers(planned: Perturbation, needed: Perturbation) -> bool:
    """Say whether what was planned bounds the privacy loss of what is minimized.

    T grows with the curvature. For the logistic loss h(s; Z), and with it W*, grows with kappa and with the reach q, so
    that neither may exceed what was planned.
    """
    if (planned.slopes, planned.outputs) != (needed.slopes, needed.outputs):
        return False
    if needed.slopes == "logistic" and not (_kappa(needed) <= _kappa(planned) and needed.reach <= planned.reach):
        return False
    return needed.curvature <= planned.curvature


def _kappa(known: Perturbation | PerturbedMinimum) -> float:
    """Return k C^2 / lambda of the logistic loss."""
    return 4 * known.curvature / known.reach**2 if known.reach <= 2 else known.curvature / (known.reach - 1)


def determinant_term(event: PerturbedMinimum) -> float:
    """T, rounded up: the least epsilon that any amount of noise can reach."""
    if event.slopes == "softmax":
        return (event.outputs - 1) * math.log1p(2 * event.curvature / event.outputs) * _UP
    return math.log1p(event.curvature) * _UP


def least_epsilon(events: Iterable[Event]) -> float:
    """The sum of the determinants' terms, which no noise lowers."""
    return math.fsum(determinant_term(event) for event in events if isinstance(event, PerturbedMinimum))


def simplified(event: Event, neighbors: Neighbors) -> Event:
    """The same event as a pure or a Gaussian one where it truly is that."""
    if not isinstance(event, PerturbedMinimum):
        return event
    if event.noise == "gamma":
        return PureDP((determinant_term(event) + reciprocal_up(event.noise_multiplier)) * _UP)
    plain = event.slopes == "logistic" and event.reach == 1 and neighbors is not Neighbors.REPLACE_ONE
    # 8 c z^2 <= 1 is kappa <= mu^2/2; a little less, for rounding.
    if plain and 8 * event.curvature * event.noise_multiplier**2 <= 1 - 2.0**-48:
        return Gaussian(event.noise_multiplier)
    return event


@lru_cache(maxsize=64)
def loss_bound(event: PerturbedMinimum, neighbors: Neighbors) -> LossBound:
    """What bounds the privacy loss of an event with Gaussian noise, in both directions."""
    if event.noise != "gaussian":
        raise AccountingError("only Gaussian noise inside an objective has a loss bound: gamma noise is pure")
    mu, shift = 1 / event.noise_multiplier * _UP, determinant_term(event)
    replaced, others = neighbors is Neighbors.REPLACE_ONE, event.outputs - 1
    if event.slopes == "logistic" and not replaced:
        return _logistic_bound(mu, event)
    if event.slopes == "two_signed":
        weights = (4.0, 0.0) if replaced else (2.0, 0.0)
    elif event.slopes == "softmax":
        weights = (float(others**2), 2.0 * others) if replaced else (float(others), 0.0)
    else:
        weights = (1.0, 2.0) if replaced else (1.0, 0.0)
    tails = (Tail(weights[0], mu, shift), Tail(weights[1], 0.5 * mu, shift))
    return _vertex_bound(tuple(tail for tail in tails if tail.weight), shift)


def _vertex_bound(tails: tuple[Tail, ...], shift: float) -> LossBound:
    """A sum of tails from where it falls below 1, by bisection: any point from the shift on is a valid start."""

    def is_vacuous(loss: float) -> bool:
        scores = ((tail.weight, float(tail.scores(np.array([loss]))[0])) for tail in tails)
        return sum(weight * (0.5 * math.erfc(score / math.sqrt(2))) for weight, score in scores) >= 1

    high = shift + max(tail.mu * (6 + math.log(tail.weight + 1) + tail.mu) for tail in tails)
    start, _ = find_root(is_vacuous, shift, high, steps=60)
    return LossBound(np.array([start]), np.array([_LOWEST]), tails)


def _logistic_bound(mu: float, event: PerturbedMinimum) -> LossBound:
    curvature, reach, kappa = event.curvature, event.reach, _kappa(event) * _UP
    at_clip = math.log1p(kappa * (reach - 1)) * _UP
    if reach == 1:
        last = max(0.0, kappa - 0.5 * mu * mu) * _UP
    else:
        last = (at_clip + max(0.0, kappa * (2 - reach) / (1 + kappa * (reach - 1)))) * _UP
    # Rounded down, which keeps W* below ``last``.
    highest, shift = (last - at_clip - 2.0**-50 * (last + at_clip)) / mu - 0.5 * mu, at_clip
    if highest > _HIGHEST:  # beyond, with probability below 1e-280: the bound of a one-signed slope
        highest, last, shift = _HIGHEST, math.inf, math.log1p(curvature) * _UP
    lowest = min(_LOWEST, highest - 1)
    scores = np.linspace(lowest, highest, math.ceil((highest - lowest) / _NODE) + 1)
    losses = np.minimum(_largest_losses(scores, mu, kappa, reach) * (1 + 1e-13), last)
    if math.isinf(last):
        losses, scores = np.append(losses, max(float(losses[-1]), shift)), np.append(scores, highest)
    else:
        losses[-1] = last
    # Where losses agree the last score is the one that counts: S drops there.
    keep = np.append(np.diff(losses) > 0, True)
    return LossBound(losses[keep], scores[keep], (Tail(1.0, mu, shift),))


def _largest_losses(scores: Floats, mu: float, kappa: float, reach: float) -> Floats:
    """Upper bounds on W* at the scores, made monotone.

    In a cell of s, l lies below its tangent in the middle and s^2 below its chord: h is below a line, whose
    maximum is at an end of the cell. The cells are fine where l is steep.
    """
    fine = np.geomspace(1e-3 / (1 + kappa * reach), 0.5, 96)
    s = np.unique(np.concatenate([np.linspace(0, 1, 129), fine, 1 - fine]))
    width, middle = np.diff(s), 0.5 * (s[1:] + s[:-1])
    inner = 1 + kappa * middle * (reach - middle)
    value, slope = np.log(inner), kappa * (reach - 2 * middle) / inner
    ends = np.full(len(s), -np.inf)
    ends[:-1] = value - 0.5 * slope * width
    ends[1:] = np.maximum(ends[1:], value + 0.5 * slope * width)
    lines = (ends + 0.5 * (s * mu) ** 2)[:, None] + (s * mu)[:, None] * scores
    answer: Floats = np.maximum.accumulate(np.maximum(lines.max(axis=0), 0.0))
    return answer
