"""Our own Renyi-DP and zCDP accountant: the second, independent opinion on every price.

Renyi-DP of order alpha > 1 bounds the Renyi divergence D_alpha(P||Q) for all neighbors; it adds under
adaptive composition. rho-zCDP means D_alpha <= rho alpha for all alpha. Any order gives a valid
epsilon, so the search over orders may be coarse without being unsafe. Nothing here uses dp_accounting.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from discreet.accounting.gaussian import bracketed, find_root
from discreet.typing import Floats


@lru_cache(maxsize=1)
def orders() -> Floats:
    """Whole orders, dense where they are small: 2..48, then in steps of 8 % up to about 2^13."""
    ladder = list(range(2, 49))
    while ladder[-1] < 2**13:
        ladder.append(math.ceil(1.08 * ladder[-1]))
    return np.array(ladder, dtype=np.float64)


# --- zCDP of single mechanisms -------------------------------------------------------------------


def zcdp_of_gaussian(noise_multiplier: float) -> float:
    """Rho of the Gaussian mechanism: exactly 1/(2 z^2)."""
    return 0.5 / (noise_multiplier * noise_multiplier)


def zcdp_of_laplace(epsilon: float) -> float:
    """Rho of the scalar Laplace mechanism: epsilon + e^-epsilon - 1, its KL divergence."""
    return epsilon + math.expm1(-epsilon)


def zcdp_of_pure(epsilon: float) -> float:
    """Rho of any epsilon-DP mechanism: epsilon tanh(epsilon/2), the KL of randomized response."""
    return epsilon * math.tanh(0.5 * epsilon)


def zcdp_of_bounded_range(epsilon: float) -> float:
    """Rho of a mechanism of bounded range: epsilon^2/8 (Hoeffding's lemma applied to the loss)."""
    return epsilon * epsilon / 8


# --- conversions ---------------------------------------------------------------------------------


def epsilon_of_order(divergence: float, order: float, delta: float) -> float:
    """The epsilon of one order: D + ln(1 - 1/a) - (ln delta + ln a)/(a - 1) (Canonne, Kamath, Steinke 2020)."""
    return divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """The tight conversion of rho-zCDP: the best of all real orders, by golden section on ln(order - 1)."""
    if rho == 0:
        return 0.0
    center = 0.5 * math.log(max(-math.log(delta), 1e-300) / rho)
    low, high = center - 6.0, center + 6.0
    golden = 0.5 * (math.sqrt(5) - 1)

    def at(point: float) -> float:
        order = 1 + math.exp(point)
        return epsilon_of_order(rho * order, order, delta)

    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = at(left), at(right)
    for _ in range(60):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = at(right)
    return max(0.0, min(at_left, at_right))


def loose_zcdp_of_budget(epsilon: float, delta: float) -> float:
    """The rho with rho + 2 sqrt(rho ln(1/delta)) = epsilon: the papers' total."""
    root = math.sqrt(-math.log(delta))
    return (epsilon / (root + math.sqrt(root * root + epsilon))) ** 2


def zcdp_of_budget(epsilon: float, delta: float) -> float:
    """The largest rho whose tight conversion is at most epsilon, rounded down."""
    low = loose_zcdp_of_budget(epsilon, delta)  # less, since the textbook's conversion is looser
    high = bracketed(lambda rho: epsilon_of_zcdp(rho, delta) > epsilon, low)
    low, _ = find_root(lambda rho: epsilon_of_zcdp(rho, delta) <= epsilon, low, high, steps=100)
    return low * (1 - 2.0**-32)  # as far below the budget as any price (``noise_for``)


def epsilon_of_curve(moments: Floats, delta: float) -> float:
    """The best epsilon of a curve given as log-moments K(a) = (a - 1) D_a at ``orders()``.

    K is the cumulant function of the privacy loss, convex in the order with K(1) = 0, so that a chord
    bounds it from above: orders between two whole ones are read off the chord.
    """
    whole = np.concatenate([[1.0], orders()])
    values = np.concatenate([[0.0], moments])
    weights = np.linspace(0, 1, 16, endpoint=False)[:, None]
    tried = ((1 - weights) * whole[:-1] + weights * whole[1:]).ravel()
    bounds = ((1 - weights) * values[:-1] + weights * values[1:]).ravel()
    keep = (tried > 1) & np.isfinite(bounds)
    tried, bounds = tried[keep], bounds[keep]
    if not len(tried):
        return math.inf
    epsilons = bounds / (tried - 1) + np.log1p(-1 / tried) - (math.log(delta) + np.log(tried)) / (tried - 1)
    return max(0.0, float(epsilons.min()) * (1 + 1e-12))


# --- log-moments (a - 1) D_a of single mechanisms ------------------------------------------------


_ULPS = 1 + 8 * 2.0**-52


def moments_of_pure(epsilon: float, alphas: Floats) -> Floats:
    """Randomized response, the worst epsilon-DP mechanism: log[p e^r + (1-p) e^-r], p = e^e/(1+e^e), r = (a-1) e.

    Written as log1p((1-p) (1 - e^-r) (e^(r+e) - 1)), in which nothing cancels, and capped by r.
    """
    reach = (alphas - 1) * epsilon
    log_p, log_rest = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    near = np.minimum(reach, 30.0)
    small = np.log1p(math.exp(log_rest) * -np.expm1(-near) * np.expm1(np.minimum(near + epsilon, 60.0)))
    large = np.logaddexp(log_p + reach, log_rest - reach)
    return np.minimum(np.where(reach + epsilon < 30, small, large) * _ULPS, reach)


def moments_of_laplace(epsilon: float, alphas: Floats) -> Floats:
    """The scalar Laplace mechanism, exactly (Mironov 2017): log[a e^x + (a-1) e^-y] - log(2a-1), x = (a-1) e, y = a e.

    For small epsilon log1p of (a g(x) + (a-1) g(-y)) / (2a-1) with g(u) = e^u - 1 - u: the linear terms cancel exactly.
    """
    x, y = (alphas - 1) * epsilon, alphas * epsilon
    large = np.logaddexp(np.log(alphas / (2 * alphas - 1)) + x, np.log((alphas - 1) / (2 * alphas - 1)) - y)
    small = np.log1p((alphas * _beyond_linear(x) + (alphas - 1) * _beyond_linear(-y)) / (2 * alphas - 1))
    return np.where(y < 30, small, large) * _ULPS


def _beyond_linear(u: Floats) -> Floats:
    """e^u - 1 - u without cancellation, for u up to 30."""
    near, far = np.clip(u, -0.1, 0.1), np.clip(u, -1e300, 30.0)
    series = np.ones_like(u)
    for k in range(12, 2, -1):  # 1 + u/3 (1 + u/4 (1 + ...))
        series = 1 + near / k * series
    return np.where(np.abs(u) <= 0.1, near * near / 2 * series, np.expm1(far) - far)


@lru_cache(maxsize=512)
def _log_binomials(n: int) -> Floats:
    """Log C(n, k) for k = 0..n."""
    factorials = gammaln(np.arange(1.0, n + 2))
    answer: Floats = factorials[-1] - factorials - factorials[::-1]
    return answer


def moments_of_sampled_gaussian(probability: float, noise_multiplier: float, alphas: Floats) -> Floats:
    """The Poisson-sampled Gaussian under add/remove at whole orders (Mironov, Talwar, Zhang 2019).

    (a - 1) D_a = log sum_k C(a, k) (1-q)^(a-k) q^k exp(k(k-1)/(2 z^2)), which bounds both directions.
    """
    if probability >= 1:
        return (alphas - 1) * alphas * zcdp_of_gaussian(noise_multiplier)
    answer = np.empty_like(alphas)
    log_q, log_rest = math.log(probability), math.log1p(-probability)
    for index, alpha in enumerate(alphas):
        k = np.arange(alpha + 1)
        terms = _log_binomials(int(alpha)) + (alpha - k) * log_rest + k * log_q
        terms += k * (k - 1) * zcdp_of_gaussian(noise_multiplier)
        top = terms.max()
        answer[index] = top + math.log(float(np.exp(terms - top).sum()))
    # gammaln's rounding: a relative 1e-15 of terms of size a ln a.
    return np.maximum(answer, 0.0) + 1e-14 * (1 + alphas * np.log(alphas))


def replace_moments_of_sampled_gaussian(probability: float, noise_multiplier: float, alphas: Floats) -> Floats:
    """The Poisson-sampled Gaussian under replace-one, by the weak triangle inequality (Mironov 2017, Cor. 4).

    Replacing is removing, then adding, each of which moves the sum by half the sensitivity: add/remove
    at multiplier 2z. With R the answer without the record, Cauchy-Schwarz gives
    (a-1) D_a(P||Q) <= (a - 1/2) D_{2a}(P||R) + (a - 1) D_{2a-1}(R||Q).
    """
    if probability >= 1:
        return (alphas - 1) * alphas * zcdp_of_gaussian(noise_multiplier)
    first = moments_of_sampled_gaussian(probability, 2 * noise_multiplier, 2 * alphas) / (2 * alphas - 1)
    second = moments_of_sampled_gaussian(probability, 2 * noise_multiplier, 2 * alphas - 1) / (2 * alphas - 2)
    return (alphas - 0.5) * first + (alphas - 1) * second


def amplified_pure(epsilon: float, probability: float) -> float:
    """The pure epsilon of a Poisson-sampled epsilon-DP release, log(1 + q (e^epsilon - 1)), rounded up.

    *Proof for replace_one.* Let P1, P1' be the laws when the record (its replacement) is drawn and P0 when
    it is not, P = (1-q) P0 + q P1, Q = (1-q) P0 + q P1', and m = min(P1', P0) <= Q. As P1 <= e^epsilon P1'
    and P1 <= e^epsilon P0: P - Q = q (P1 - P1') <= q (P1 - m) <= q (e^epsilon - 1) m <= q (e^epsilon - 1) Q.
    For add_remove and zero_out, Q = P0 (or P = P0) and the same two lines hold. The law of the other
    records' sample is mixed over on both sides. P1 <= e^epsilon P0 needs that leaving a record out moves
    the query by at most the sensitivity.
    """
    if probability >= 1:
        return epsilon
    if epsilon > 700:
        return epsilon
    return math.log1p(probability * math.expm1(epsilon)) * (1 + 2.0**-49)
