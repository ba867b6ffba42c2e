"""Exact Gaussian differential privacy: mu-GDP, the price of every full-batch Gaussian composition.

A release with noise multiplier z is exactly (1/z)-GDP; adaptive composition adds mu^2; and mu-GDP is
the same as (epsilon, delta)-DP for every epsilon >= 0 with

    delta(epsilon; mu) = Phi(a) - e^epsilon Phi(b),   a = mu/2 - epsilon/mu,   b = -mu/2 - epsilon/mu

(Balle and Wang 2018; Dong, Roth and Su 2022). As b^2 - a^2 = 2 epsilon, e^epsilon phi(b) = phi(a), so
that with the Mills ratio m(x) = Phi(x)/phi(x) = sqrt(pi/2) erfcx(-x/sqrt 2)

    delta = phi(a) [m(a) - m(b)],

which neither overflows nor loses digits to e^epsilon. Every function rounds to the private side: inverses are found as
a bracket, of which callers take the end that is safe.
"""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

from scipy.special import erfcx, log_ndtr

from discreet.errors import AccountingError

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_ULP = 2.0**-52


def _mills(x: float) -> float:
    return _SQRT_HALF_PI * float(erfcx(-x / math.sqrt(2)))


def log_delta_of(epsilon: float, mu: float) -> float:
    """An upper bound on log delta(epsilon; mu), above the truth by the rounding errors only.

    The margin bounds first-order errors: ``a`` carries a relative error of a few ulps *of its terms*,
    which moves log phi(a) by |a| times that and each Mills ratio by less; subtraction magnifies the
    ratios' relative error by m(a)/(m(a) - m(b)). The constants are generous, and tested with mpmath.
    """
    if not (mu >= 0 and epsilon >= 0):
        raise AccountingError("epsilon and mu must not be negative")
    if mu == 0 or math.isinf(epsilon):
        return -math.inf
    if math.isinf(mu):
        return 0.0
    ratio = epsilon / mu
    if math.isinf(ratio):
        return -math.inf
    a, b = 0.5 * mu - ratio, -0.5 * mu - ratio
    a_error = 2 * _ULP * (0.5 * mu + ratio)
    log_phi = -0.5 * a * a - _LOG_SQRT_2PI
    if a <= 0:
        upper, lower = _mills(a), _mills(b)
        relative = (8 * _ULP * upper + a_error * (upper - lower)) / max(upper - lower, 5e-324)
        if upper <= lower or relative > 0.5:
            # The difference is lost in rounding: m' <= 1 for x <= 0, hence m(a) - m(b) <= a - b = mu.
            return min(0.0, log_phi + math.log(mu) + abs(a) * a_error + 16 * _ULP * (1 + abs(log_phi)))
        value = log_phi + math.log(upper - lower)
    else:
        first = float(log_ndtr(a))
        second = log_phi + math.log(_mills(b))
        gap = -math.expm1(second - first) if second < first else 0.0
        if gap < 1e-9:
            return min(0.0, log_phi + math.log(mu) + 1e-6) if a < 1e-3 else 0.0
        relative = 8 * _ULP * (1 + abs(first) + abs(second) + (1 + a) * a_error / _ULP) / gap
        value = first + math.log(gap)
    return min(0.0, value + abs(a) * a_error + 2 * relative + 8 * _ULP * (1 + abs(log_phi)))


def delta_of(epsilon: float, mu: float) -> float:
    """The delta of mu-GDP at epsilon, rounded up."""
    log_delta = log_delta_of(epsilon, mu)
    if log_delta == -math.inf:
        return 0.0
    return min(1.0, math.nextafter(math.exp(log_delta) * (1 + 4 * _ULP), math.inf))


def _log_of(delta: float) -> float:
    if not 0 < delta < 1:
        raise AccountingError("Gaussian noise needs a delta in (0, 1): for delta=0 use Laplace noise")
    # A little down, for the rounding of log and for what ``delta_of`` adds when it returns from logs.
    return math.log(delta) - 8 * _ULP * (1 - math.log(delta))


def epsilon_of(mu: float, delta: float) -> float:
    """The smallest epsilon at which mu-GDP has this delta, rounded up: delta_of(answer, mu) <= delta."""
    target = _log_of(delta)
    if mu == 0 or log_delta_of(0.0, mu) <= target:
        return 0.0
    if math.isinf(mu):
        return math.inf
    low, high = 0.0, 0.5 * mu * mu + mu * math.sqrt(-2 * target)  # the zCDP bound
    high = bracketed(lambda epsilon: log_delta_of(epsilon, mu) <= target, high)
    return find_root(lambda epsilon: log_delta_of(epsilon, mu) > target, low, high, width=2 * _ULP)[1]


@lru_cache(maxsize=256)
def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu that is (epsilon, delta)-DP, rounded down: delta_of(epsilon, answer) <= delta."""
    target = _log_of(delta)
    if math.isinf(epsilon):
        return math.inf
    start = math.sqrt(max(epsilon, delta))
    low = bracketed(lambda mu: log_delta_of(epsilon, mu) <= target, start, 0.5)
    high = bracketed(lambda mu: log_delta_of(epsilon, mu) > target, start)
    return find_root(lambda mu: log_delta_of(epsilon, mu) <= target, low, high, width=2 * _ULP)[0]


def mu_of_noise(counts_and_multipliers: Iterable[tuple[int, float]]) -> float:
    """The mu of a composition of ``count`` releases at each noise multiplier, rounded up."""
    square = math.fsum(count / (multiplier * multiplier) for count, multiplier in counts_and_multipliers)
    return math.sqrt(square) * (1 + 4 * _ULP)


def find_root(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    *,
    steps: int = 200,
    width: float = 0.0,
    ratio: bool = False,
) -> tuple[float, float]:
    """Bisect between a point at which a condition holds and a higher one at which it fails.

    Returns the last point at which it was found to hold and the first at which it was found to fail: the caller takes
    the end that is safe. Ends at a relative ``width``, at two neighboring doubles, or after so many ``steps``; halves
    the logarithm of the bracket where ``ratio``.
    """
    for _ in range(steps):
        middle = math.sqrt(low * high) if ratio else 0.5 * (low + high)
        if not low < middle < high or high - low <= width * high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def bracketed(reached: Callable[[float], bool], start: float, factor: float = 2.0) -> float:
    """Multiply ``start`` by ``factor`` until a condition holds; an OverflowError where no double meets it."""
    point = start
    while not reached(point):
        point *= factor
        if not 0 < point < math.inf:
            raise OverflowError("no double meets the condition")
    return point
