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

``LossBound``: a random variable that is stochastically above a privacy loss, and every price that follows.

Let W = log(P/Q) under P be the privacy loss between neighbors, in either direction. All that is asked of a
mechanism here is a *survival bound* S(t) >= P(W > t). Let U >= 0 have the survival function S. Then

* delta(epsilon) = E(1 - e^{epsilon-W})_+ <= E(1 - e^{epsilon-U})_+ for every real epsilon, since
  w -> (1 - e^{epsilon-w})_+ does not decrease;
* E e^{-U} <= E e^{-W} <= 1, so that U is the privacy loss of a pair of laws: P' is the law of U, and Q' has the
  density e^{-U} next to it and the missing mass where P' has none. By the line above this pair dominates both
  directions, and dominating pairs compose, adaptively (Zhu, Dong and Wang 2022).

Write f for a function of the loss that does not decrease, such as (1 - e^{epsilon-t})_+. Then, for any x,

    E f(U) <= f(x) + integral over t > x of f'(t) S(t) dt.                                                  (1)

S is built of pieces on which it is P(Z > z(t)), Z standard normal and z linear in t, or a sum of such terms. On
each piece log S is concave, and so is log f' for each f used here. The tangent of log(f' S) in the middle of a
cell lies above it, so that the integral of its exponential, which has a closed form, is an upper bound; it is
above the truth by about (width of the cell in z)^2/24, relatively. All terms are positive: there is no
cancellation, and rounding errors are relative ones of at most (1 + |log S| + epsilon) times a few ulps, below 1e-11
for all S above 1e-300 and epsilon below 1e4. The final factor ``_MARGIN`` covers them; the one difference of numbers
of equal size, t - shift in ``Tail.scores``, is lowered by its own rounding error.
"""

from __future__ import annotations  # a loss brings the compiler, which its constants do not need

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.gaussian import find_root
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.errors import Unsupported
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.losses.base import Loss
from scipy.special import erfcx, log_ndtr, ndtr

from discreet.accounting import gaussian

UP = 1 + 2.0**-50
"""Above an exact quotient, whose few roundings are less than that."""
SLOPES = ("logistic", "one_signed", "two_signed", "softmax")
"""What is known of a record's slope f' in objective perturbation."""
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
    from discreet.losses.base import gradient_bound  # here: a loss brings the compiler, which prices do not need

    if clip is None:
        return gradient_bound(loss, domain) * UP
    return min(clip, loss.lipschitz_for(domain.target_bound) * domain.row_norm) * UP


def perturbation_of(loss: Loss, domain: Domain, clip: float | None, regularization: float) -> Perturbation:
    """The curvature beta/lambda and the slopes at ``regularization`` lambda > 0, in the form of the sum."""
    from discreet.losses.base import gradient_bound

    bound, slopes = record_bound(loss, domain, clip), loss.perturbation_slopes
    if loss.n_outputs > 1:
        if slopes != "softmax":
            raise Unsupported("objective perturbation is proven for one output and for softmax: use solver='gd'")
        if clip is not None and clip < gradient_bound(loss, domain):
            raise Unsupported(
                "clipped softmax gradients are no gradients of a convex loss, which objective perturbation needs: "
                "leave out the clip, or declare a smaller row_norm"
            )
    curvature = (loss.perturbed_curvature(domain.row_norm, bound) / regularization) * UP
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


def _kappa(perturbation: Perturbation) -> float:
    """Return k C^2 / lambda of the logistic loss."""
    curvature, reach = perturbation.curvature, perturbation.reach
    return 4 * curvature / reach**2 if reach <= 2 else curvature / (reach - 1)


def determinant_term(perturbation: Perturbation) -> float:
    """Return T, rounded up: the least epsilon that any amount of noise can reach."""
    if perturbation.slopes == "softmax":
        outputs = perturbation.outputs
        return (outputs - 1) * math.log1p(2 * perturbation.curvature / outputs) * UP
    return math.log1p(perturbation.curvature) * UP


@lru_cache(maxsize=64)
def loss_bound(perturbation: Perturbation, noise_multiplier: float, neighbors: Neighbors) -> LossBound:
    """Return what bounds the privacy loss with Gaussian noise, in both directions."""
    mu, shift = 1 / noise_multiplier * UP, determinant_term(perturbation)
    replaced, others = neighbors is Neighbors.REPLACE_ONE, perturbation.outputs - 1
    if perturbation.slopes == "logistic" and not replaced:
        return _logistic_bound(mu, perturbation)
    if perturbation.slopes == "two_signed":
        weights = (4.0, 0.0) if replaced else (2.0, 0.0)
    elif perturbation.slopes == "softmax":
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


def _logistic_bound(mu: float, perturbation: Perturbation) -> LossBound:
    curvature, reach, kappa = perturbation.curvature, perturbation.reach, _kappa(perturbation) * UP
    at_clip = math.log1p(kappa * (reach - 1)) * UP
    if reach == 1:
        last = max(0.0, kappa - 0.5 * mu * mu) * UP
    else:
        last = (at_clip + max(0.0, kappa * (2 - reach) / (1 + kappa * (reach - 1)))) * UP
    # Rounded down, which keeps W* below ``last``.
    highest, shift = (last - at_clip - 2.0**-50 * (last + at_clip)) / mu - 0.5 * mu, at_clip
    if highest > _HIGHEST:  # beyond, with probability below 1e-280: the bound of a one-signed slope
        highest, last, shift = _HIGHEST, math.inf, math.log1p(curvature) * UP
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


_MARGIN = 1 + 1e-11
_ULP = 2.0**-52
_LOG_2 = math.log(2)
_FAR = 38.0  # P(Z > 38) < 1e-315
_CELL = 0.1  # in standard deviations: 4e-4 of relative error


@dataclass(frozen=True)
class Tail:
    """weight P(G > t - shift), G ~ N(mu^2/2, mu^2) the privacy loss of a Gaussian mechanism."""

    weight: float
    mu: float
    shift: float

    def scores(self, losses: Floats) -> Floats:
        """The z(t) with P(G > t - shift) = P(Z > z(t)), rounded down."""
        beyond = losses - self.shift - 4 * _ULP * (losses + self.shift)
        answer: Floats = beyond / self.mu - 0.5 * self.mu
        return answer


@dataclass(frozen=True, eq=False)
class LossBound:
    """S(t) = 1 below the first knot, P(Z > z(t)) between knots, a sum of tails from the last knot on.

    Knots are increasing losses, the last not below the shift of any tail; ``scores`` are z there, non-decreasing and
    linear in between.
    """

    knots: Floats
    scores: Floats
    tails: tuple[Tail, ...]

    def survival(self, losses: Floats) -> Floats:
        """S at the given losses, made monotone."""
        inner = ndtr(-np.interp(losses, self.knots, self.scores))
        outer = np.zeros_like(losses)
        for tail in self.tails:
            outer += tail.weight * ndtr(-tail.scores(losses))
        bound = np.where(losses < self.knots[0], 1.0, np.where(losses < self.knots[-1], inner, outer))
        answer: Floats = np.minimum.accumulate(np.minimum(bound * _MARGIN, 1.0))
        return answer

    def delta_of(self, epsilon: float) -> float:
        """The delta at epsilon >= 0, an upper bound; beyond the last knot exact, by Gaussian DP."""
        first, last = float(self.knots[0]), float(self.knots[-1])
        total = -math.expm1(epsilon - first) if epsilon < first else 0.0
        if epsilon < last:
            nodes = np.concatenate([[max(epsilon, first)], self.knots[self.knots > max(epsilon, first)]])
            middles = 0.5 * (nodes[1:] + nodes[:-1])
            scores, rates = self._between(nodes)
            total += _integral(nodes, scores, rates, epsilon - middles, np.full_like(middles, -1.0))
        x = max(epsilon, last)
        for tail in self.tails:
            beyond = max(0.0, x - tail.shift - 4 * _ULP * (x + tail.shift))
            total += math.exp(epsilon - x) * tail.weight * gaussian.delta_of(beyond, tail.mu)
        return min(1.0, total * _MARGIN)

    def delta_with_gaussian(self, epsilon: float, mu: float) -> float:
        """The delta of the composition with mu-GDP: E f(U), f(t) = delta_GDP(epsilon - t; mu), by (1).

        The integral over the other releases' answers of (p1 p2 - e^epsilon q1 q2)_+ is
        E delta_2(epsilon - W1), at any real argument. With x = epsilon - t, f'(t) = e^x Phi(-x/mu - mu/2),
        whose logarithm is concave.
        """
        if mu == 0:
            return self.delta_of(epsilon)
        last = float(self.knots[-1])
        # In units of mu, f' turns from nothing into e^x between these two; outside it is smooth.
        low, high = -0.5 * mu - _FAR, 0.5 * mu + 6.0
        turn = epsilon + mu * np.linspace(low, high, math.ceil(min((high - low) / _CELL, 2e4)))
        x = max(float(self.knots[0]), float(turn[0]))
        total = _gaussian_delta(epsilon - x, mu)
        if x < last:
            nodes = np.unique(np.concatenate([[x], self.knots[self.knots > x], turn[(turn > x) & (turn < last)]]))
            scores, rates = self._between(nodes)
            total += _integral(nodes, scores, rates, *_gaussian_slope(epsilon, nodes, mu))
        x = max(x, last)
        for tail in self.tails:
            low = float(tail.scores(np.array([x]))[0])
            steps = np.arange(low, max(_FAR, low) + _CELL, max(_CELL, (_FAR - low) / 2e4))
            ladder = (steps + 0.5 * tail.mu) * tail.mu + tail.shift
            inside = turn[(turn > x) & (turn < ladder[-1])]
            nodes = np.unique(np.concatenate([[x], ladder[ladder > x], inside]))
            middles = 0.5 * (nodes[1:] + nodes[:-1])
            rates = np.full_like(middles, 1 / tail.mu)
            values = _integral(nodes, tail.scores(middles), rates, *_gaussian_slope(epsilon, nodes, mu))
            total += tail.weight * (values + float(ndtr(-tail.scores(nodes[-1:])[0])))  # f <= 1 beyond the ladder
        return min(1.0, total * _MARGIN)

    def epsilon_of(self, delta: float, mu: float = 0.0) -> float:
        """The smallest epsilon with this delta, with mu-GDP in addition; rounded up, infinite beyond 1e6."""

        def over(epsilon: float) -> float:
            return math.log(max(self.delta_with_gaussian(epsilon, mu), 1e-320) / delta)

        low, high = 0.0, 1.0
        before, here = (low, over(low)), (high, over(high))
        if before[1] <= 0:
            return 0.0
        while here[1] > 0:
            low, high, before = high, 2 * high, here
            if high > 1e6:
                return math.inf
            here = (high, over(high))
        for step in range(100):
            if -1e-11 <= here[1] <= 0 or high - low <= 4 * _ULP * high:
                break
            # The secant of the last two points, aimed just inside; the middle where it leaves the bracket.
            slope = (here[1] - before[1]) / (here[0] - before[0])
            guess = here[0] - (here[1] + 5e-12) / slope if slope < 0 else low
            if not low < guess < high or step % 8 == 7:
                guess = 0.5 * (low + high)
            before, here = here, (guess, over(guess))
            low, high = (guess, high) if here[1] > 0 else (low, guess)
        return high

    def log_moments(self, powers: Floats) -> Floats:
        """Upper bounds on log E e^{theta U} for each power theta > 0: the Renyi route. By (1), f(t) = e^{theta t}."""
        first, last = float(self.knots[0]), float(self.knots[-1])
        parts = [powers * first]
        if len(self.knots) > 1:
            scores, rates = self._between(self.knots)
            width, middles = np.diff(self.knots), 0.5 * (self.knots[1:] + self.knots[:-1])
            slopes = powers[:, None] - rates * _hazard(scores)
            terms = log_ndtr(-scores) + np.log(width) + powers[:, None] * middles + _log_sinhc(0.5 * slopes * width)
            top = terms.max(axis=1)
            parts.append(np.log(powers) + top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
        for tail in self.tails:
            parts.append(math.log(tail.weight) + _log_tail_moments(powers, tail, last))
        answer: Floats = np.logaddexp.reduce(np.array(parts), axis=0)
        return np.maximum(answer, 0.0) * _MARGIN + 1e-12

    def masses(self, interval: float, smallest: float = 1e-18) -> tuple[dict[int, float], float]:
        """Probabilities on multiples of the interval, each loss rounded up; and that of an infinite loss.

        The law on the grid is stochastically above U, hence still dominates.
        """
        reach = max(tail.shift + tail.mu * (9.0 + 0.5 * tail.mu) for tail in self.tails)
        count = math.ceil(max(reach, float(self.knots[-1])) / interval)
        survivals = self.survival(np.arange(count + 1, dtype=np.float64) * interval)
        lost = np.concatenate([[1.0], survivals[:-1]]) - survivals
        masses = {index: float(mass) for index, mass in enumerate(lost) if mass > smallest}
        # What is too small to keep is moved to infinity, with what lies beyond the grid.
        return masses, float(survivals[-1] + lost[lost <= smallest].sum()) * _MARGIN

    def _between(self, nodes: Floats) -> tuple[Floats, Floats]:
        """The scores in the middle of cells that no knot divides, and their slopes."""
        at = np.interp(nodes, self.knots, self.scores)
        return 0.5 * (at[1:] + at[:-1]), np.diff(at) / np.diff(nodes)


def _hazard(scores: Floats) -> Floats:
    """phi(z)/P(Z > z)."""
    answer: Floats = math.sqrt(2 / math.pi) / erfcx(scores / math.sqrt(2))
    return answer


def _log_sinhc(x: Floats) -> Floats:
    """log(sinh(x)/x), at most x^2/6."""
    size = np.maximum(np.abs(x), 1e-3)
    answer: Floats = np.where(np.abs(x) < 1e-3, x * x / 6, size + np.log(-np.expm1(-2 * size) / (2 * size)))
    return answer


def _integral(nodes: Floats, scores: Floats, rates: Floats, log_f: Floats, slope_f: Floats) -> float:
    """The sum over cells of the integrals of exp(tangent) of f' S; scores, rates, f in the middles."""
    width = np.diff(nodes)
    slopes = slope_f - rates * _hazard(scores)
    return float(np.exp(log_f + log_ndtr(-scores) + _log_sinhc(0.5 * slopes * width)) @ width)


def _gaussian_slope(epsilon: float, nodes: Floats, mu: float) -> tuple[Floats, Floats]:
    """log f' and its derivative in t in the middles of cells, f(t) = delta_GDP(epsilon - t; mu)."""
    x = epsilon - 0.5 * (nodes[1:] + nodes[:-1])
    scores = x / mu + 0.5 * mu
    return x + log_ndtr(-scores), _hazard(scores) / mu - 1


def _gaussian_delta(epsilon: float, mu: float) -> float:
    """The delta of mu-GDP at any real epsilon: H_{1/a} = 1 - 1/a + H_a/a for a symmetric pair; rounded up."""
    if epsilon >= 0:
        return gaussian.delta_of(epsilon, mu)
    return min(1.0, -math.expm1(epsilon) + math.exp(epsilon) * gaussian.delta_of(-epsilon, mu))


def _log_tail_moments(powers: Floats, tail: Tail, x: float) -> Floats:
    """log of theta times the integral over t > x of e^{theta t} P(G > t - shift), by parts.

    With z = z(x) and m(u) = Phi(u)/phi(u) it is e^{theta x} phi(z) [m(theta mu - z) - m(-z)]; where m would
    overflow, its second term is nothing next to the first and is left out, which is the safe side.
    """
    z = float(tail.scores(np.array([x]))[0])
    there = powers * tail.mu - z
    near = np.minimum(there, 20.0)
    log_mills = np.where(there < 20, np.log(erfcx(-near / math.sqrt(2))), _LOG_2 + log_ndtr(there) + 0.5 * there**2)
    less = -np.inf if z < -20 else math.log(erfcx(z / math.sqrt(2)))
    share = -np.expm1(np.minimum(less - log_mills, 0.0)) + 1e-14
    answer: Floats = powers * x - 0.5 * z * z - _LOG_2 + log_mills + np.log(share)
    return answer
