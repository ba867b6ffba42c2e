"""The best of a random number of private runs: the law of that number, exact draws from it, and the price.

**The number K of runs** (``Stopping``). *Poisson* with a mean m: P(K = k) = e^-m m^k / k!, which may be 0. *Truncated
negative binomial* with a shape eta > -1 and 0 < gamma < 1, at least 1 (Papernot and Steinke 2022): P(K = k) is in
proportion to (1 - gamma)^k (eta)(eta + 1)...(eta + k - 1) / k!, with eta = 1 geometric and the limit eta -> 0
logarithmic. gamma is the double that ``gamma`` returns for the declared mean, and what is priced and drawn is this
double's law.

**The price** of running a private mechanism K times and releasing the best outcome only. K is secret; each run
releases an outcome with a score in it, and neighbors obey the same Renyi-DP curve D_a and privacy profile in every
run, in both directions. Papernot and Steinke (2022) bound the selected outcome's Renyi divergence of order a:

*Truncated negative binomial* (Theorem 2), for any order b >= 1:
    D_a + (1 + eta) [(1 - 1/b) D_b + log(1/gamma) / b] + log E[K] / (a - 1).
    For pure epsilon, a and b -> infinity: (2 + eta) epsilon.
*Poisson* with mean m (Theorem 6), where the runs are (e, d)-DP at e^e = a / (a - 1):
    log[e^-m + m exp((a - 1)(D_a + m d))] / (a - 1).
    *Proof.* Let the outcomes be ordered by score (ties by a uniform tag, which is data-independent), p and q the
    probabilities of at most y under neighbors P and Q. The best of the runs has the density P(y) m e^{-m (1 - p)}.
    In the moment of order a the exponents are -a m (1 - p) + (a - 1) m (1 - q), and 1 - q <= e^e (1 - p) + d makes
    them at most m (1 - p) ((a - 1) e^e - a) + (a - 1) m d = (a - 1) m d. So the moment over y is at most
    m e^{(a - 1)(D_a + m d)}; and no run at all, which has no data in it, adds e^-m. QED
    (The paper leaves out e^-m, which matters below a mean of 1 only.)

Several kinds of runs (candidates; parts of the records of which a neighbor changes one) cost the largest of their
curves, order by order. Every order gives a valid price, so that grids need not be fine to be safe.
"""

import decimal
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.accounting import gaussian, rdp
from discreet.accounting.gaussian import bracketed, find_root
from discreet.errors import AccountingError, Unsupported
from discreet.typing import Floats

SHAPES: dict[str, float | None] = {"poisson": None, "geometric": 1.0, "logarithmic": 0.0}
"""The laws by name, with the shape of each; None for Poisson."""

ORDERS: Floats = 1 + np.exp(np.linspace(math.log(1e-3), math.log(1e5), 1600))
"""Real orders, in steps of about 1 %."""

MOST_RUNS = 1000.0
_MARGIN = 1 + 1e-10
_UP = 1 + 2.0**-45
_WORD = 64


@dataclass(frozen=True)
class Stopping:
    """The law of the number of runs: its mean, and its shape eta; None for Poisson."""

    mean: float
    shape: float | None = 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.mean, (int, float)) and not isinstance(self.mean, bool)):
            raise AccountingError("the mean number of runs must be a number, such as 10")
        if self.shape is None:
            if not 0 < self.mean <= MOST_RUNS:
                raise AccountingError(f"a Poisson number of runs has a mean in (0, {MOST_RUNS:g}], such as 10")
        elif isinstance(self.shape, bool) or not isinstance(self.shape, (int, float)) or not -1 < self.shape <= 100:
            raise AccountingError("the shape of a number of runs lies in (-1, 100]: 1 is geometric, 0 logarithmic")
        elif not 1 < self.mean <= MOST_RUNS:
            raise AccountingError(f"a number of runs that is at least 1 has a mean in (1, {MOST_RUNS:g}], such as 10")

    @property
    def name(self) -> str:
        """The law in words."""
        names = {shape: name for name, shape in SHAPES.items()}
        return names.get(self.shape, f"truncated negative binomial of shape {self.shape!r}")

    @property
    def gamma(self) -> float:
        """The parameter with (about) the declared mean; ``log_mean`` is that of this double."""
        if self.shape == 1:
            return 1 / self.mean
        wanted = math.log(self.mean)  # the mean falls with log gamma
        return math.exp(find_root(lambda log: _log_mean(log, self._eta) > wanted, -750.0, 0.0, steps=100)[1])

    @property
    def _eta(self) -> float:
        assert self.shape is not None
        return float(self.shape)

    @property
    def log_mean(self) -> float:
        """log E[K] of the law that is drawn, rounded up."""
        if self.shape is None:
            return _up(math.log(self.mean))
        return _up(_log_mean(math.log(self.gamma), self._eta))

    @property
    def log_reciprocal(self) -> float:
        """log(1/gamma), rounded up."""
        return _up(-math.log(self.gamma))

    def best_beyond(self, share: Floats) -> Floats:
        """The probability that any of the runs is among the best ``share``: 1 - E[(1 - share)^K]."""
        if self.shape is None:
            return -np.expm1(-self.mean * share)
        gamma = self.gamma
        grown = np.log1p((1 - gamma) * share / gamma)
        if self._eta == 0:
            return np.asarray(grown / -math.log(gamma))
        return np.asarray(np.expm1(-self._eta * grown) / math.expm1(self._eta * math.log(gamma)))

    def selected_moments(
        self, orders: Floats, divergences: Callable[[Floats], Floats], profile: Callable[[Floats], Floats]
    ) -> Floats:
        """Return the log-moments (a - 1) D_a of the selected outcome.

        ``divergences`` are those of a run at real orders above 1, ``profile`` its delta at each epsilon.
        """
        curve = divergences(orders)
        if self.shape is None:
            epsilons = -np.log1p(-1 / orders) * (1 - 2.0**-45)
            grown = curve + self.mean * profile(epsilons)
            return np.asarray(np.logaddexp(-self.mean, self.log_mean + (orders - 1) * grown))
        least = float(np.min((1 - 1 / ORDERS) * divergences(ORDERS) + self.log_reciprocal / ORDERS))
        return np.asarray((orders - 1) * (curve + (1 + self.shape) * least * _MARGIN) + self.log_mean)

    def probabilities(self, digits: int) -> Iterator[tuple[int, Decimal]]:
        """Each k with its probability, to a relative error below (k + 9) 10^(2 - digits), by ratios of decimals."""
        with decimal.localcontext() as context:
            context.prec = digits + 20  # to spare where gamma^-eta - 1 loses leading digits
            first, start = self._first()
            steps = Decimal(self.mean) if self.shape is None else 1 - Decimal(self.gamma)
            eta = None if self.shape is None else Decimal(self._eta)
            context.prec = digits
            k, probability = start, +first
        while True:
            yield k, probability
            with decimal.localcontext() as context:
                context.prec = digits
                probability = probability * steps / (k + 1)
                if eta is not None:
                    probability = probability * (k + eta)
            k += 1

    def _first(self) -> tuple[Decimal, int]:
        """The probability of the least K, and that K."""
        if self.shape is None:
            return (-Decimal(self.mean)).exp(), 0
        gamma, eta = Decimal(self.gamma), Decimal(self._eta)
        if eta == 0:
            return (1 - gamma) / -gamma.ln(), 1
        return eta * (1 - gamma) / ((-eta * gamma.ln()).exp() - 1), 1

    def draw(self, word: Callable[[], int]) -> int:
        """K by its exact law, from uniform 64-bit words: the quantile of a number of as many bits as decide it.

        K = k where the distribution function at k - 1 is at most U and at k above it. U is read 64 bits at a time until
        its interval lies within one such step by more than the decimals' rounding, so that no rounding decides.
        """
        drawn, bits = word(), _WORD
        while True:
            drawn, bits = (drawn << _WORD) | word(), bits + _WORD
            runs = self._quantile(drawn, bits)
            if runs is not None:
                return runs

    def _quantile(self, drawn: int, bits: int) -> int | None:
        """K where [drawn, drawn + 1) / 2^bits lies within one step of the distribution function, else None."""
        digits = bits // 3 + 20
        with decimal.localcontext() as context:
            context.prec = digits
            low, high, slack = Decimal(drawn) / 2**bits, Decimal(drawn + 1) / 2**bits, Decimal(10) ** (12 - digits)
            before = total = Decimal(0)
            for k, probability in self.probabilities(digits):
                before, total = total, total + probability
                if high + slack <= total:
                    return k if before + slack <= low or before == 0 else None
                if total + slack >= 1 or k > 10**7:
                    return None
        raise AssertionError("unreachable: the probabilities have no end")


def _log_mean(log_gamma: float, eta: float) -> float:
    """log E[K]: eta (1 - gamma) / (gamma (1 - gamma^eta)), or (1/gamma - 1) / log(1/gamma) for eta = 0."""
    share = -math.expm1(log_gamma)
    if share == 0:
        return 0.0
    if eta == 0:
        return math.log(share) - log_gamma - math.log(-log_gamma)
    exponent = eta * log_gamma
    # eta < 0: |1 - gamma^eta| = e^exponent (1 - e^-exponent), which does not overflow
    size = max(exponent, 0.0) + math.log(-math.expm1(-abs(exponent)))
    return math.log(abs(eta)) + math.log(share) - log_gamma - size


def _up(value: float) -> float:
    return value + abs(value) * (_UP - 1) + 2.0**-45


def epsilon_of_curve(curve: Floats, delta: float) -> float:
    """Return the best conversion of a curve of divergences at ``ORDERS``."""
    tail = np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    best = float(np.min(curve + tail)) * _MARGIN
    if math.isnan(best):  # max(0, nan) would be 0
        raise AccountingError("the price of a selection is not a number: please report this plan")
    return max(0.0, best)


def profile_of_curve(curve: Floats, epsilons: Floats) -> Floats:
    """Return the least delta over ``ORDERS``: exp((a - 1)(D - epsilon)) (1 - 1/a)^(a - 1) / a (Canonne et al. 2020)."""
    fixed = (ORDERS - 1) * (curve + np.log1p(-1 / ORDERS)) - np.log(ORDERS)
    least = [float(np.min(fixed - (ORDERS - 1) * epsilon)) for epsilon in epsilons.tolist()]
    return np.minimum(np.exp(np.minimum(least, 0.0)) * _MARGIN, 1.0)


def refuted_below(law: Stopping, mu: float, delta: float) -> float:
    """Return a lower bound on epsilon: runs that are mu-GDP release a number, ordered by a malicious score.

    The best outcomes are those above t, which the neighbor's law favors; then the smaller the better. A release below
    s < t says that no run was above t: under N(0, 1) it has the probability E[(1 - a)^K] - E[(1 - a - c)^K] with
    a = P(above t), c = P(below s). Explicit tests for many t and s.
    """
    if mu == 0:
        return 0.0
    below = ndtri(np.exp(np.linspace(math.log(1e-15), math.log(0.5), 120)))[:, None]
    above = -ndtri(np.exp(np.linspace(math.log(1e-15), math.log(0.9), 80)))[None, :]
    p, q = (_no_better(law, ndtr(move - above), ndtr(below - move)) for move in (0.0, mu))
    keep = (p * (1 - 1e-6) > delta) & (q > 1e-12) & (below <= above)
    if not keep.any():
        return 0.0
    # A millionth off, for the rounding of differences of probabilities.
    return max(0.0, float(np.log((p[keep] * (1 - 1e-6) - delta) / q[keep]).max()) - 1e-3)


def _no_better(law: Stopping, better: Floats, chosen: Floats) -> Floats:
    """The probability that no run is among the ``better`` and at least one among the ``chosen`` outcomes."""
    return law.best_beyond(better + chosen) - law.best_beyond(better)


def run_mu(stopping: Stopping, epsilon: float, delta: float) -> float:
    """Return the largest mu at which selecting among mu-GDP runs costs (epsilon, delta), rounded down."""

    def cost(mu: float) -> float:
        noise_multiplier = 1 / mu
        rho, run_mu = rdp.zcdp_of_gaussian(noise_multiplier), gaussian.mu_of_noise([(1, noise_multiplier)])

        def profile(epsilons: Floats) -> Floats:
            return np.array([gaussian.delta_of(epsilon, run_mu) for epsilon in epsilons.tolist()])

        moments = stopping.selected_moments(ORDERS, lambda orders: rho * orders, profile)
        return epsilon_of_curve(moments / (ORDERS - 1), delta)

    # a mean below 1 may cost less than one run
    high = bracketed(lambda mu: cost(mu) > epsilon, gaussian.mu_of(epsilon, delta))
    low = high
    while cost(low) > epsilon:
        low /= 2
        if low < 1e-6 * high:
            raise Unsupported("this budget is too small for a selection: raise epsilon or delta, or lower mean_runs")
    return find_root(lambda mu: cost(mu) <= epsilon, low, high, steps=40)[0]
