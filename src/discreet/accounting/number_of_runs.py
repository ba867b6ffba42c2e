"""How often a selection runs its candidates: the law of the number K of runs, and exact draws from it.

*Poisson* with a mean m: P(K = k) = e^-m m^k / k!, which may be 0. *Truncated negative binomial* with a shape
eta > -1 and 0 < gamma < 1, at least 1 (Papernot and Steinke 2022): P(K = k) is in proportion to
(1 - gamma)^k (eta)(eta + 1)...(eta + k - 1) / k!, with eta = 1 geometric and the limit eta -> 0 logarithmic.
gamma is the double that ``gamma`` returns for the declared mean, and what is priced and drawn is this double's law.
"""

import decimal
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from discreet.accounting.root_finding import find_root
from discreet.errors import AccountingError
from discreet.typing import Floats

SHAPES: dict[str, float | None] = {"poisson": None, "geometric": 1.0, "logarithmic": 0.0}
"""The laws by name, with the shape of each; None for Poisson."""

MOST_RUNS = 1000.0
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
            found = self._quantile(drawn, bits)
            if found is not None:
                return found

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
