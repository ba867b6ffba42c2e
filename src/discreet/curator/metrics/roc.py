"""The area under the ROC curve, in three releases.

1. A rough histogram of the margins, classes together: its quantiles become the bins.
2. The histogram of both classes in these bins: g+ = h+ + e+ and g- = h- + e-, with noises e.
3. Two sums. With M(b, c) = 1 for c < b, 1/2 for c = b, 0 else, the concordant pairs (ties in a bin count half) are

       h+' M h-  =  h+' (M g-)  +  (M' g+)' h-  -  g+' M g-  +  e+' M e-,

   and the first two terms are sums over rows of released numbers (M g-)_b and (M' g+)_c: asked for together, they cost
   the noise of four cells instead of that of all bins. What remains is a product of two noises, whose law is public.

The same holds with M - A J for M, J all ones: at the true area A it is 0, and A is kept unless the noise refutes it.
In a bin any order is possible, so that half of the pairs in equal bins, h+' h-, is added on both sides.

The curve itself comes from the second release, at no further cost: shares of both classes above some edges, each with
an interval, so that between two edges the curve lies between their corners.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet.curator.metrics.intervals import Measured, Metric, Noise, Part, Spectrum, half_width, interval_end
from discreet.curator.metrics.noisy_sums import ROUNDING, NoisySums, Values
from discreet.curator.metrics.row_values import MarginCells, RankCells, Released, ends
from discreet.typing import Floats

SHARES = (0.1, 0.5, 0.4)
"""Of the rough histogram, of that of both classes, of the two sums: measured, and flat around here."""
ROUGH = 64
REACH = 3.0
"""Half the width of the rough histogram, in standard deviations of margins of uniform features."""
LEAST_BINS, MOST_BINS = 8, 128
NODES = 16
"""Areas between which the bound on the product of noises is drawn as a line, which lies above it."""
ROC_RATES: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""False positive rates at which the curve is given."""
EDGES, GRID = 24, 2001
"""Edges that the curve goes through, and shares that are tried at each."""
_UNIFORM = 0.05
_PARTS = 0.8, 0.12, 0.08
"""Of alpha: the two sums' noise, the product of noises, the pairs in equal bins."""


def rate_name(rate: float) -> str:
    """Return what a point of the curve is called."""
    return f"true positive rate at a false positive rate of {rate:g}"


def measure(model: Released, rows: Values, noisy: NoisySums, level: float, names: tuple[str, ...] = ()) -> Measured:
    """The area, with ties counted half."""
    edges = _bins(model, rows, noisy)
    cells = MarginCells(edges, by_class=True)
    counts, noise = noisy.release(rows, cells)
    rough = _Histogram(counts[cells.bins :], counts[: cells.bins], noise)
    sums, noise = noisy.release(rows, RankCells(edges, rough.below, rough.above))
    return replace(_Area(rough, sums, noise).measured(level), parts=rough.curve(level))


def _bins(model: Released, rows: Values, noisy: NoisySums) -> Floats:
    """Inner edges of bins of about equal mass, as many as the noise to come makes worth having."""
    spans = (model.high - model.low) * np.abs(model.coef[0])
    center = float(model.intercept[0] + ((model.low + model.high) / 2) @ model.coef[0])
    reach = min(REACH * float(np.linalg.norm(spans)) / math.sqrt(12.0), float(spans.sum()) / 2) or 1.0
    grid = np.linspace(center - reach, center + reach, ROUGH + 1)
    counts, noise = noisy.release(rows, MarginCells(grid[1:-1], by_class=False))
    mass = np.maximum(counts - 0.5 * noise.deviation, 0.0)
    mass = (1 - _UNIFORM) * mass / (float(mass.sum()) or 1.0) + _UNIFORM / ROUGH
    size = _worth_having(max(float(counts.sum()), 1.0), noise.deviation * _later(noisy))
    heights = np.concatenate([[0.0], np.cumsum(mass)]) / float(mass.sum())
    edges: Floats = np.unique(np.interp(np.arange(1, size) / size, heights, grid))
    return edges


def _later(noisy: NoisySums) -> float:
    """Return the second release's noise over the first's."""
    first, second = (release.relative_noise for release in noisy.plan.releases[:2])
    return second / first


def _worth_having(count: float, deviation: float) -> int:
    """Few bins leave pairs in equal bins, 1/(2 q) of all; many make the product of noises grow, as q (noise/count)^2.

    Both are alike at a multiple of count/deviation; which one, was measured.
    """
    best = 0.15 * count / deviation if deviation > 0 else MOST_BINS
    return int(min(max(best, LEAST_BINS), MOST_BINS))


@dataclass(frozen=True)
class _Histogram:
    """Noisy counts of both classes, from the lowest margins to the highest."""

    positive: Floats
    negative: Floats
    noise: Noise

    @property
    def below(self) -> Floats:
        """M g-: for a row of the positive class in each bin, the negatives below it."""
        return np.asarray(np.cumsum(self.negative) - self.negative / 2)

    @property
    def above(self) -> Floats:
        """M' g+: for a row of the negative class in each bin, the positives above it."""
        return np.asarray(np.cumsum(self.positive[::-1])[::-1] - self.positive / 2)

    def curve(self, level: float) -> tuple[Part, ...]:
        """Return the true positive rate at each false positive rate, with a band that holds for all of them at once."""
        hits, alarms = (_shares(counts, self.noise, 1 - level) for counts in (self.positive, self.negative))
        parts = []
        for rate in ROC_RATES:
            value = float(np.interp(rate, alarms.value, hits.value))
            low = float(hits.low[alarms.high <= rate].max(initial=0.0))
            high = float(hits.high[alarms.low >= rate].min(initial=1.0))
            spread = math.sqrt(value * (1 - value) / max(float(self.positive.sum()), 1.0))
            parts.append(Part(rate_name(rate), value, low, max(low, high), half_width(level) * spread))
        return tuple(parts)

    def ties(self, alpha: float) -> float:
        """What the pairs in equal bins, h+' h-, do not exceed: g+' g- less three noises, each bounded."""
        both = np.concatenate([self.positive, self.negative])
        longest = float(np.linalg.norm(both)) + self.noise.length(both.size, alpha / 3)
        linear = self.noise.within(longest, alpha / 3)
        product = self.noise.product(_equal(self.positive.size), alpha / 3)
        return max(0.0, float(self.positive @ self.negative) + linear + product)


@dataclass(frozen=True)
class _Area:
    """The two sums, each as two cells, and the histogram that they refine."""

    rough: _Histogram
    sums: Floats
    noise: Noise

    def measured(self, level: float) -> Measured:
        """The area and what the noise does not refute."""
        weights, steps, constant, total = self._test()
        pairs = float(weights @ self.sums) - constant
        product = float(steps @ self.sums) - total
        positives, negatives = float(self.sums[:2].sum()), float(self.sums[2:].sum())
        if not (product > 0 and positives > 0 and negatives > 0):
            return Measured(math.nan, 0.0, 1.0, 1.0)
        value = min(max(pairs / product, 0.0), 1.0)
        noise, remainder, equal = (part * (1 - level) for part in _PARTS)
        ties = self.rough.ties(equal) / 2
        rounding = ROUNDING * (float(np.abs(self.sums).sum()) + 8 * self.noise.deviation)

        def refuted(area: float) -> bool:
            combined = weights - area * steps
            allowed = self.noise.combined(combined, noise) + self._remainder(area, remainder)
            return abs(pairs - area * product) > allowed + ties + rounding * float(np.abs(combined).sum())

        low, high = (
            (0.0, 1.0) if refuted(value) else (interval_end(refuted, value, 0.0), interval_end(refuted, value, 1.0))
        )
        return Measured(value, low, high, half_width(level) * _spread(value, positives, negatives))

    def _test(self) -> tuple[Floats, Floats, float, float]:
        """Weights of the cells in concordant pairs and in all pairs, and the released constants to be taken off."""
        rough = self.rough
        (least, most), (bottom, top) = ends(rough.below), ends(rough.above)
        positives, negatives = float(rough.positive.sum()), float(rough.negative.sum())
        weights = np.array([most, least, top, bottom])
        steps = np.array([negatives, negatives, positives, positives])
        return weights, steps, float(rough.positive @ rough.below), positives * negatives

    def _remainder(self, area: float, alpha: float) -> float:
        at = min(int(area * NODES), NODES - 1)
        below, above = (_minus_area(self.rough.positive.size, node) for node in (at, at + 1))
        return self.rough.noise.product(below, alpha, above, area * NODES - at)


class _Shares(NamedTuple):
    """Shares of a class above some edges, from none to all, and what they lie between."""

    value: Floats
    low: Floats
    high: Floats


def _shares(counts: Floats, noise: Noise, alpha: float) -> _Shares:
    """Return a class's shares above up to ``EDGES`` edges; all of both classes lie within with all but alpha.

    With k of q bins above an edge, the noisy sum less s times the noisy total has, at the true share s, the noise of
    weights 1 - s (k times) and -s (q - k times): a share is kept unless that refutes it.
    """
    size, total = counts.size, float(counts.sum())
    edges = np.unique(np.linspace(0, size, min(size, EDGES) + 1).round().astype(int))
    sums = np.concatenate([[0.0], np.cumsum(counts[::-1])])[edges]
    grid = np.linspace(0.0, 1.0, GRID)
    value, low, high = (np.where(edges == size, 1.0, 0.0) for _ in range(3))
    for at, (k, noisy) in enumerate(zip(edges[1:-1].tolist(), sums[1:-1].tolist(), strict=True), start=1):
        norms = np.sqrt(k * np.square(1 - grid) + (size - k) * np.square(grid))
        possible = grid[np.abs(noisy - grid * total) <= norms * noise.within(1.0, alpha / (2 * (len(edges) - 2)))]
        value[at] = min(max(noisy / max(total, 1.0), 0.0), 1.0)
        low[at], high[at] = (possible.min() - 1 / GRID, possible.max() + 1 / GRID) if possible.size else (0.0, 1.0)
    return _Shares(np.maximum.accumulate(value), np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))


@lru_cache(maxsize=8 * NODES)
def _minus_area(size: int, node: int) -> Spectrum:
    """M - A J at A = node / NODES."""
    return Spectrum.of(np.tri(size, k=-1) + 0.5 * np.eye(size) - node / NODES)


@lru_cache(maxsize=16)
def _equal(size: int) -> Spectrum:
    return Spectrum.of(np.eye(size))


def _spread(area: float, positives: float, negatives: float) -> float:
    """The standard error of the area on fresh rows (Hanley and McNeil 1982)."""
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    square = area**2
    top = area * (1 - area) + (positives - 1) * (first - square) + (negatives - 1) * (second - square)
    return math.sqrt(max(top, area * (1 - area)) / (max(positives, 1.0) * max(negatives, 1.0)))


METRIC: Metric = Metric("area under the ROC curve", measure, "Hanley and McNeil", shares=SHARES, two_classes=True)
