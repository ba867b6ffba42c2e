"""R2: noisy sums of the squared error and of the target's moments.

Targets and predictions are clipped into the declared range and mapped to u and v in [-1, 1]. A row contributes

    e = (u - v)^2 / 4,    p = (1 + u)^2 / 4,    q = (1 - u)^2 / 4,    s = (1 - u^2) / 2,    p + s + q = 1,

none negative, so that u = p - q, u^2 = p + q - s and 1 all come from three cells whose length is at most 1. With m the
mean of u, 1 - R2 = k = 4 sum e / sum (u - m)^2: at the true k and m the combinations

    4 sum e - k sum (u - m)^2 = 0,    sum u - m sum 1 = 0

are linear in the sums, so what was released of them is noise with known weights. The second gives a range of m, and
sum (u - m)^2 barely moves within it, for it is near its minimum. The root mean squared error comes from the same
release: at the true mean a of e, sum e - a sum 1 = 0.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet.accounting.priced_plan import PricedPlan
from discreet.budget import Budget
from discreet.curator.metrics.inverted_tests import kept
from discreet.curator.metrics.measurement import Measured, Metric, Part, half_width
from discreet.curator.metrics.noise_bounds import Noise
from discreet.curator.metrics.noisy_sums import ROUNDING, SLACK, NoisySums, noise_of
from discreet.curator.metrics.predictions import Released
from discreet.typing import Floats

MOMENTS = 0.4
"""The moments' weight next to the error's: within a tenth of the best for R2 between 0.1 and 0.9."""
ROOT_ERROR = "root mean squared error"
EIGHTH = 0.25
"""A deviation of u, in [-1, 1], that is an eighth of the declared range."""
_MEAN = 0.1
"""The part of alpha that the range of the mean takes."""


def row_values(model: Released, margins: Floats, targets: Floats) -> Floats:
    """u and v of each row; NaN for one that cannot be scored."""
    low, high = model.bounds.target or (0.0, 1.0)
    middle, half = (low + high) / 2, (high - low) / 2 or 1.0
    pair = np.column_stack([targets, model.predictions(margins)])
    pair[~np.isfinite(pair).all(axis=1)] = np.nan
    return np.asarray(np.clip((np.clip(pair, low, high) - middle) / half, -1.0, 1.0))


def measure(model: Released, rows: Floats, noisy: NoisySums, level: float, names: tuple[str, ...] = ()) -> Measured:
    """1 less the ratio of two noisy sums of squares."""
    u, v = rows[:, 0], rows[:, 1]
    roots = [(1 + u) / 2, (1 - u) / 2, np.sqrt((1 - u * u) / 2)]
    table = np.column_stack([math.sqrt(MOMENTS) * np.column_stack(roots), np.abs(u - v) / 2])
    cells, noise = noisy.release(table, length=_length(noisy.budget))
    p, q, s = (float(cell) / MOMENTS for cell in cells[:3])
    sums = _Sums(p, q, s, 4 * float(cells[3]), noise)
    value, low, high = sums.score(1 - level)
    deviation = 2 * (1 - min(value, 1.0)) / math.sqrt(max(sums.count, 1.0))
    sampling = half_width(level) * (math.inf if math.isnan(deviation) else deviation)
    bottom, top = model.bounds.target or (0.0, 1.0)
    return Measured(value, low, high, sampling, parts=(sums.root_error(top - bottom, level),))


def expected_interval(priced: PricedPlan, n: int, level: float) -> tuple[float, float]:
    """Return the interval of R2 = 0.5 on n rows with noise of 0, where the declared range is eight deviations wide."""
    clip = _length(priced.budget) * SLACK
    square = n * EIGHTH**2
    cells = (n + square) / 4, (n + square) / 4, (n - square) / 2
    _, low, high = _Sums(*cells, square / 2, noise_of(priced.only(0, clip), clip)).score(1 - level)
    return low, high


def _length(budget: Budget) -> float:
    """Return how long a row of cells is at most: the moments' and the error's, added up as the noise counts them."""
    return 1 + MOMENTS if budget.is_pure else math.hypot(1.0, MOMENTS)


@dataclass(frozen=True)
class _Sums:
    """Sums of p, q and s, and of the squared error (u - v)^2; ``noise`` is that of a cell."""

    p: float
    q: float
    s: float
    error: float
    noise: Noise

    @property
    def count(self) -> float:
        return self.p + self.q + self.s

    def about(self, m: float) -> float:
        """The sum of (u - m)^2: quadratic in m, and least at the mean."""
        return self.p * (1 - m) ** 2 + self.q * (1 + m) ** 2 - self.s * (1 - m * m)

    def score(self, alpha: float) -> tuple[float, float, float]:
        """R2 and what the noise does not refute: of k = x / (1 - x), which has a test at infinity, too."""
        unknown = math.nan, -math.inf, 1.0
        if not self.count > 0:
            return unknown
        mean = min(max((self.p - self.q) / self.count, -1.0), 1.0)
        least = self.about(mean)
        if not least > 0:
            return unknown
        ends = self._means(mean, alpha * _MEAN)
        most = max(map(self.about, ends))
        weights = _largest_weights(*ends)

        def beyond(x: float, total: float) -> float:
            """By how much the error exceeds what x and this sum of squares explain."""
            return (1 - x) * self.error - x * total

        def allowed(x: float) -> float:
            noise = self.noise.combined([4 * (1 - x), *(x * weight for weight in weights)], alpha * (1 - _MEAN))
            rounding = ROUNDING * (self.count + 8 * self.noise.deviation / MOMENTS)
            return noise + rounding * (4 * (1 - x) + x * sum(weights))

        x = max(self.error, 0.0) / (max(self.error, 0.0) + least)
        high = kept(lambda x: beyond(x, most) > allowed(x), x, 0.0)
        low = kept(lambda x: -beyond(x, least) > allowed(x), x, 1.0)
        return _score(x), _score(low), _score(high)

    def root_error(self, width: float, level: float) -> Part:
        """The root mean squared error in the target's unit, of the same release: width^2 / 4 times error over count."""
        per_cell = [1.0, *[1 / MOMENTS] * 3]
        rounding = ROUNDING * (max(self.count, 0.0) + 8 * self.noise.deviation / MOMENTS)

        def refuted(a: float) -> bool:
            weights = [per_cell[0], *(a * weight for weight in per_cell[1:])]
            off = abs(self.error / 4 - a * self.count)
            return off > self.noise.combined(weights, 1 - level) + rounding * sum(weights)

        if not self.count > 0:
            return Part(ROOT_ERROR, math.nan, 0.0, width, math.inf, most=width)
        a = min(max(self.error / (4 * self.count), 0.0), 1.0)
        ends = (0.0, 1.0) if refuted(a) else (kept(refuted, a, 0.0), kept(refuted, a, 1.0))
        value, low, high = (width * math.sqrt(share) for share in (a, *ends))
        sampling = half_width(level) * math.sqrt(a * (1 - a) / max(self.count, 1.0))
        above = width * math.sqrt(ends[1] + sampling) - high
        below = low - width * math.sqrt(max(ends[0] - sampling, 0.0))
        return Part(ROOT_ERROR, value, low, high, max(above, below), most=width)

    def _means(self, mean: float, alpha: float) -> tuple[float, float]:
        def refuted(m: float) -> bool:
            weights = (np.array([1 - m, 1 + m, m]) / MOMENTS).tolist()
            off = abs(self.p * (1 - m) - self.q * (1 + m) - self.s * m)
            return off > self.noise.combined(weights, alpha) + ROUNDING / MOMENTS * 4 * self.count

        return kept(refuted, mean, -1.0), kept(refuted, mean, 1.0)


def _largest_weights(low: float, high: float) -> tuple[float, ...]:
    """Of the cells in the sum of (u - m)^2, the largest over a range of m."""
    across = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    ends = (1 - low) ** 2, (1 + high) ** 2, 1 - across**2
    return tuple(weight / MOMENTS for weight in ends)


def _score(x: float) -> float:
    return 1 - x / (1 - x) if x < 1 else -math.inf


METRIC: Metric = Metric("R2", row_values, measure, "as for normal errors", least=-math.inf, numbers=True)
