"""How well a model predicts: each metric's exact values of rows, and what of them is released with noise.

**Means of numbers between 0 and 1** (accuracy, balanced accuracy, Brier score, log loss, absolute and squared errors):
of all rows, and of the rows of each declared group. A row brings v in [0, 1] and becomes two cells in its group's
place, 1 - v and v. At the true mean a of a group, (1 - a) sum v - a sum (1 - v) = 0, so what was released of it is
noise with the weights 1 - a and a.

Privacy
-------
Relation and sensitivity: a row's two cells are not negative and add up to 1, so their length is at most 1, as for one
count; they stand in the place of one group, so that groups cost nothing. Mechanism and event: those of
``noisy_sums``. Conditions: a row's number and its group follow from that row and from released or declared values.

**Balanced accuracy** is the mean over the classes of the share of right rows among those of the class. The interval is
the mean of the classes' intervals, each at a level that makes all of them hold at once. **The Brier score** is half the
squared distance between the predicted probabilities and what happened, in [0, 1]: (p - y)^2 for two classes. **The
logarithmic loss** holds probabilities at 1 % or more, so that a row costs between 0 and -log(0.01): without that limit
one row could cost anything, and no noise would hide it.

**Calibration**: rows are counted with noise by the tenth that the predicted probability of the second class lies in,
and by what happened. A part is a tenth's observed share. The score is the expected calibration error of predictions
that are rounded to the middle m_b of their tenth: sum_b |(1 - m_b) positives_b - m_b negatives_b| / all rows.

**The confusion matrix**: noisy counts of rows by their class and by the predicted one; its score is the accuracy. Each
row is a 1 in one of K^2 cells, so the matrix costs no more than one count.

**R2**: noisy sums of the squared error and of the target's moments. Targets and predictions are clipped into the
declared range and mapped to u and v in [-1, 1]. A row contributes

    e = (u - v)^2 / 4,    p = (1 + u)^2 / 4,    q = (1 - u)^2 / 4,    s = (1 - u^2) / 2,    p + s + q = 1,

none negative, so that u = p - q, u^2 = p + q - s and 1 all come from three cells whose length is at most 1. With m the
mean of u, 1 - R2 = k = 4 sum e / sum (u - m)^2: at the true k and m the combinations

    4 sum e - k sum (u - m)^2 = 0,    sum u - m sum 1 = 0

are linear in the sums, so what was released of them is noise with known weights. The second gives a range of m, and sum
(u - m)^2 barely moves within it, for it is near its minimum. The root mean squared error comes from the same release:
at the true mean a of e, sum e - a sum 1 = 0.

**Errors in the target's own unit.** Targets and predictions are clipped into the declared range, of width D, as for R2.
A row's share of the largest possible error is a = |target - prediction| / D in [0, 1]. The mean absolute error is D
times the mean of a, the root mean squared error D times the root of the mean of a^2. Unlike R2, neither divides by the
target's variance, so their intervals stay within [0, D] however few rows there are. With v = a, or v = a^2, in [0, 1]
they are means as above; the square root and the factor D are taken of what was released.

**The area under the ROC curve** takes three releases.

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
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from discreet.accounting.pricing import PricedPlan
from discreet.budget import Budget
from discreet.curator.metrics.noisy_sums import (
    ROUNDING,
    SLACK,
    Measured,
    Metric,
    Noise,
    NoisySums,
    Part,
    Spectrum,
    Values,
    half_width,
    interval_end,
    noise_of,
)
from discreet.curator.metrics.row_values import (
    MOMENTS,
    MOST_LOG_LOSS,
    ROW_VALUES,
    TENTHS,
    Cells,
    Groups,
    MarginCells,
    MomentCells,
    PairCells,
    RankCells,
    Released,
    Scoring,
    ShareCells,
    ends,
)
from discreet.curator.private_data import Sketcher, fingerprint_from
from discreet.curator.records import admission
from discreet.curator.records.row_sketches import row_secrets
from discreet.curator.records.stream import CHANGED, Elsewhere, ValuesElsewhere, is_stream
from discreet.errors import Unsupported
from discreet.ledger.ledger import Reservation
from discreet.typing import Floats, Integers

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


def measure_area(
    model: Released, rows: Values, noisy: NoisySums, level: float, names: tuple[str, ...] = ()
) -> Measured:
    """The area under the ROC curve, with ties counted half."""
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
        product = self.noise.product(Spectrum.of(np.eye(self.positive.size)), alpha / 3)
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


def _spread(area: float, positives: float, negatives: float) -> float:
    """The standard error of the area on fresh rows (Hanley and McNeil 1982)."""
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    square = area**2
    top = area * (1 - area) + (positives - 1) * (first - square) + (negatives - 1) * (second - square)
    return math.sqrt(max(top, area * (1 - area)) / (max(positives, 1.0) * max(negatives, 1.0)))


SAMPLING = "at most that of a share"


def measure_shares(
    rows: Values, names: Sequence[str], noisy: NoisySums, level: float, *, scale: float = 1.0, counted: bool = False
) -> Measured:
    """Return ``scale`` times the mean of the first column, also by the group that a second one names.

    ``counted`` says that the numbers are 0 or 1, which lose nothing on the lattice.
    """
    sums, noise = noisy.release(rows, ShareCells(max(1, len(names))))
    rounding = 0.0 if counted else ROUNDING
    means = [_mean(sums[at : at + 2], noise, level, rounding) for at in range(0, len(sums), 2)]
    whole = _mean(sums, noise, level, rounding) if len(means) > 1 else means[0]
    parts = [Part(name, *_scaled(part, scale)) for name, part in zip(names, means, strict=False)]
    return Measured(*_scaled(whole, scale), parts=tuple(parts))


def _mean(sums: Floats, noise: Noise, level: float, rounding: float) -> tuple[float, float, float, float]:
    """The mean of v over these groups, its interval, and the half width that sampling adds."""
    rest, whole = float(sums[0::2].sum()), float(sums[1::2].sum())
    lost = rounding * (abs(rest) + abs(whole) + 8 * noise.deviation)
    value, low, high = share(whole, rest, noise, 1 - level, count=len(sums) // 2, lost=lost)
    spread = 0.5 if math.isnan(value) else math.sqrt(value * (1 - value))
    return value, low, high, half_width(level) * spread / math.sqrt(max(rest + whole, 1.0))


def _scaled(measured: tuple[float, float, float, float], scale: float) -> tuple[float, float, float, float]:
    value, low, high, sampling = (scale * number for number in measured)
    return value, low, high, sampling


def share(
    whole: float, rest: float, noise: Noise, alpha: float, *, count: int = 1, lost: float = 0.0
) -> tuple[float, float, float]:
    """The share of ``whole``, and all shares that the noise in ``count`` cells of either kind does not refute."""
    if not whole + rest > 0:
        return math.nan, 0.0, 1.0
    value = min(max(whole / (whole + rest), 0.0), 1.0)

    def refuted(a: float) -> bool:
        return abs((1 - a) * whole - a * rest) > noise.combined([1 - a] * count + [a] * count, alpha) + lost

    if refuted(value) and noise.scale > 0:  # a count far below 0
        return value, 0.0, 1.0
    return value, interval_end(refuted, value, 0.0), interval_end(refuted, value, 1.0)


def mean_of_rows(
    scale: Callable[[Released], float] = lambda model: 1.0, *, counted: bool = False
) -> Callable[..., Measured]:
    """Return the measure of a metric that is the mean of its rows' values, times ``scale``; see ``measure_shares``."""

    def measure(model: Released, rows: Values, noisy: NoisySums, level: float, names: tuple[str, ...] = ()) -> Measured:
        return measure_shares(rows, names, noisy, level, scale=scale(model), counted=counted)

    return measure


def measure_balanced_accuracy(
    model: Released, rows: Values, noisy: NoisySums, level: float, names: tuple[str, ...] = ()
) -> Measured:
    """The mean of the classes' shares; a class without rows leaves it open."""
    classes = model.class_names
    parts = measure_shares(rows, classes, noisy, 1 - (1 - level) / len(classes), counted=True).parts
    value, low, high = (float(np.mean([getattr(part, end) for part in parts])) for end in ("value", "low", "high"))
    sampling = float(np.linalg.norm([part.sampling for part in parts])) / len(classes)
    return Measured(value, low, high, sampling, parts)


_ROUNDED = 1e-12
_TENTH_NAMES = tuple(f"{low / TENTHS:g} to {(low + 1) / TENTHS:g}" for low in range(TENTHS))


def measure_calibration(
    model: Released, rows: Values, noisy: NoisySums, level: float, names: tuple[str, ...] = ()
) -> Measured:
    """The observed share in each tenth, each with an interval of its own, and the mean distance."""
    counts, noise = noisy.release(rows, PairCells(2, 2 * TENTHS))
    negative, positive = counts.reshape(TENTHS, 2).T
    parts = tuple(_tenth(*both, noise, level) for both in zip(_TENTH_NAMES, positive, negative, strict=True))
    return Measured(
        *_calibration_error(positive, negative, noise, 1 - level), _calibration_sampling(counts, level), parts
    )


def _tenth(name: str, positive: float, negative: float, noise: Noise, level: float) -> Part:
    value, low, high = share(float(positive), float(negative), noise, 1 - level)
    spread = 0.5 if math.isnan(value) else math.sqrt(value * (1 - value))
    return Part(name, value, low, high, half_width(level) * spread / math.sqrt(max(float(positive + negative), 1.0)))


def _calibration_error(positive: Floats, negative: Floats, noise: Noise, alpha: float) -> tuple[float, float, float]:
    """The mean distance, and its range while every tenth's noise and that of the number of rows is in bounds."""
    total = float((positive + negative).sum())
    if not total > 0:
        return math.nan, 0.0, 1.0
    middle = (np.arange(TENTHS) + 0.5) / TENTHS
    away = np.abs((1 - middle) * positive - middle * negative)
    off = np.array([noise.combined([1 - m, m], alpha / (TENTHS + 1)) for m in middle.tolist()])
    rows = noise.combined([1.0] * (2 * TENTHS), alpha / (TENTHS + 1))
    low = (1 - _ROUNDED) * float(np.maximum(away - off, 0.0).sum()) / (total + rows)
    high = (1 + _ROUNDED) * float((away + off).sum()) / (total - rows) if total > rows else 1.0
    return min(float(away.sum()) / total, 1.0), min(low, 1.0), min(high, 1.0)


def _calibration_sampling(counts: Floats, level: float) -> float:
    """At most: the tenths' deviations, each half of its rows' root, added up."""
    total = max(float(counts.sum()), 1.0)
    per_tenth = np.maximum(counts.reshape(TENTHS, 2).sum(axis=1), 0.0)
    return half_width(level) * 0.5 * float(np.sqrt(per_tenth).sum()) / total


def measure_confusion(
    model: Released, rows: Values, noisy: NoisySums, level: float, names: tuple[str, ...] = ()
) -> Measured:
    """The counts, each with an interval of its own, and the accuracy."""
    classes = model.class_names
    size = len(classes)
    counts, noise = noisy.release(rows, PairCells(size, size * size))
    off = noise.combined([1.0], 1 - level)
    parts = tuple(
        Part(f"{label} predicted as {other}", count, max(0.0, count - off), max(0.0, count + off), 0.0)
        for (label, other), count in zip(((a, b) for a in classes for b in classes), counts.tolist(), strict=True)
    )
    right = float(np.trace(counts.reshape(size, size)))
    wrong = float(counts.sum()) - right
    value, low, high = share(right, wrong, noise, 1 - level, count=size * size - size)
    spread = 0.5 if np.isnan(value) else float(np.sqrt(value * (1 - value)))
    return Measured(value, low, high, half_width(level) * spread / max(right + wrong, 1.0) ** 0.5, parts)


ROOT_ERROR = "root mean squared error"
EIGHTH = 0.25
"""A deviation of u, in [-1, 1], that is an eighth of the declared range."""
_MEAN = 0.1
"""The part of alpha that the range of the mean takes."""


def measure_r_squared(
    model: Released, rows: Values, noisy: NoisySums, level: float, names: tuple[str, ...] = ()
) -> Measured:
    """1 less the ratio of two noisy sums of squares."""
    cells, noise = noisy.release(rows, MomentCells(), length=_moments_length(noisy.budget))
    p, q, s = (float(cell) / MOMENTS for cell in cells[:3])
    sums = _Sums(p, q, s, 4 * float(cells[3]), noise)
    value, low, high = sums.score(1 - level)
    deviation = 2 * (1 - min(value, 1.0)) / math.sqrt(max(sums.count, 1.0))
    sampling = half_width(level) * (math.inf if math.isnan(deviation) else deviation)
    bottom, top = model.bounds.target or (0.0, 1.0)
    return Measured(value, low, high, sampling, parts=(sums.root_error(top - bottom, level),))


def expected_interval(priced: PricedPlan, n: int, level: float) -> tuple[float, float]:
    """Return the interval of R2 = 0.5 on n rows with noise of 0, where the declared range is eight deviations wide."""
    clip = _moments_length(priced.budget) * SLACK
    square = n * EIGHTH**2
    cells = (n + square) / 4, (n + square) / 4, (n - square) / 2
    _, low, high = _Sums(*cells, square / 2, noise_of(priced.only(0, clip), clip)).score(1 - level)
    return low, high


def _moments_length(budget: Budget) -> float:
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
        high = interval_end(lambda x: beyond(x, most) > allowed(x), x, 0.0)
        low = interval_end(lambda x: -beyond(x, least) > allowed(x), x, 1.0)
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
        ends = (0.0, 1.0) if refuted(a) else (interval_end(refuted, a, 0.0), interval_end(refuted, a, 1.0))
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

        return interval_end(refuted, mean, -1.0), interval_end(refuted, mean, 1.0)


def _largest_weights(low: float, high: float) -> tuple[float, ...]:
    """Of the cells in the sum of (u - m)^2, the largest over a range of m."""
    across = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    ends = (1 - low) ** 2, (1 + high) ** 2, 1 - across**2
    return tuple(weight / MOMENTS for weight in ends)


def _score(x: float) -> float:
    return 1 - x / (1 - x) if x < 1 else -math.inf


def measure_root(
    model: Released, rows: Values, noisy: NoisySums, level: float, names: tuple[str, ...] = ()
) -> Measured:
    """The root of the mean square: of each end of an interval, as the root rises."""
    squared = measure_shares(rows, names, noisy, level)
    parts = tuple(Part(part.name, *root(width(model), part)) for part in squared.parts)
    return replace(Measured(*root(width(model), squared)), parts=parts)


def root(scale: float, square: Measured | Part) -> tuple[float, float, float, float]:
    """Return ``scale`` times the root of a mean square and of its interval, and the wider of what sampling adds."""
    value, low, high = (scale * math.sqrt(max(end, 0.0)) for end in (square.value, square.low, square.high))
    below = low - scale * math.sqrt(max(square.low - square.sampling, 0.0))
    above = scale * math.sqrt(max(square.high, 0.0) + square.sampling) - high
    return value if not math.isnan(square.value) else math.nan, low, high, max(below, above)


def width(model: Released) -> float:
    """Return the width of the declared range of targets."""
    low, high = model.bounds.target or (0.0, 1.0)
    return high - low


METRICS: dict[str, Metric] = {
    "accuracy": Metric("accuracy", mean_of_rows(counted=True), "binomial", by_group=True),
    "auc": Metric("area under the ROC curve", measure_area, "Hanley and McNeil", shares=SHARES, two_classes=True),
    "balanced_accuracy": Metric("balanced accuracy", measure_balanced_accuracy, "binomial"),
    "brier": Metric("Brier score", mean_of_rows(), SAMPLING, by_group=True, probabilities=True),
    "calibration": Metric("calibration error", measure_calibration, SAMPLING, probabilities=True, two_classes=True),
    "confusion": Metric("accuracy", measure_confusion, "binomial"),
    "log_loss": Metric(
        "log loss",
        mean_of_rows(lambda model: MOST_LOG_LOSS),
        SAMPLING,
        most=MOST_LOG_LOSS,
        by_group=True,
        probabilities=True,
    ),
    "mae": Metric(
        "mean absolute error", mean_of_rows(width), SAMPLING, most=math.inf, by_group=True, is_regression=True
    ),
    "r2": Metric("R2", measure_r_squared, "as for normal errors", least=-math.inf, is_regression=True),
    "rmse": Metric(ROOT_ERROR, measure_root, SAMPLING, most=math.inf, by_group=True, is_regression=True),
}


def check_measurable(
    metric: str, model: Released, priced: PricedPlan, *, level: float, groups: Groups | None = None
) -> None:
    """Score a table of one null row, to refuse before the charge what public facts alone make impossible.

    Nothing of the rows is in it. It runs in a context of its own, so that no observer and no seeded noise notices.
    """
    kind = METRICS[metric]

    def rehearse() -> None:
        with np.errstate(all="ignore"):
            null = ROW_VALUES[metric](model, np.full((1, len(model.coef)), np.nan), np.full(1, np.nan))
            names = () if groups is None else groups.names
            null = null if groups is None else np.column_stack([null, np.full(1, np.nan)])
            kind.measure(model, null, NoisySums(priced, None), level, names)

    Context().run(rehearse)


def measure_private(
    metric: str,
    model: Released,
    X: object,
    y: object,
    noisy: NoisySums,
    *,
    level: float,
    reservation: Reservation | None,
    groups: Groups | None = None,
    n: int | None = None,
) -> Measured:
    """Read the rows once, keep what the metric needs of each, and release the score from noisy sums of that.

    A stream names its own persons; ``reservation`` is what its features are shown to the ledger under. ``n`` is the
    number of rows (persons) where it is public.
    """
    kind = METRICS[metric]
    with np.errstate(all="ignore"):  # a product that overflows would warn, and a warning is an answer
        rows, persons = read(Scoring(metric, model, groups), X, y, reservation, n)
        noisy.groups = noisy.groups if persons is None else persons
        return kind.measure(model, rows, noisy, level, () if groups is None else groups.names)


def read(
    scoring: Scoring, X: object, y: object, reservation: Reservation | None = None, n: int | None = None
) -> tuple[Any, Integers | None]:
    """Return what is kept of each row, in one pass over blocks; and the persons behind the rows of a stream.

    The features of a stream are shown to the ledger's owner on the way, as a fit would show them. On a cluster, what is
    kept of rows stays on its workers; other rows than were counted are refused where their number ``n`` is public.
    """
    if not is_stream(X):
        return np.concatenate([scoring.nothing, *(scoring.values(*b) for b in _blocks(scoring.model, X, y))]), None
    if X.elsewhere is not None:
        return _read_elsewhere(scoring, X.elsewhere, reservation, n), None
    sketcher = None if reservation is None else Sketcher(reservation.ledger.key(), X.shape[0])
    values, persons = scoring.over(X, None if sketcher is None else sketcher.see)
    if sketcher is not None and reservation is not None:
        reservation.ledger.recognize(reservation.dataset, sketcher.result())
    return values, persons


def _read_elsewhere(
    scoring: Scoring, rows: Elsewhere, reservation: Reservation | None, n: int | None
) -> ValuesElsewhere:
    key = None if reservation is None else reservation.ledger.key()
    values = rows.scored(scoring, None if key is None else row_secrets(key))
    if n is not None and values.n_units != n:
        raise Unsupported(CHANGED)
    if reservation is not None and key is not None:
        reservation.ledger.recognize(reservation.dataset, fingerprint_from(values.sketch, key))
    return values


def _blocks(model: Released, X: object, y: object) -> Iterator[tuple[Floats, Floats, Any]]:
    table = admission.two_dimensional(X)
    if model.is_classifier:
        targets = admission.class_indices(y, model.bounds.classes or ())
    else:
        targets = admission.numbers(admission.one_dimensional(y))
    if len(targets) != table.shape[0]:
        raise Unsupported("y must hold one target for each row of X")
    if admission.is_sparse(table):
        rows = admission.canonical(table)
        yield model.sparse_margins(rows), targets, rows
        return
    for first, last, block in admission.blocks(table, *table.shape):
        yield model.margins(block), targets[first:last], block


class ExactScore(NamedTuple):
    """A score, the number of rows, the interval's name, and its ends where they are not value -+ sampling."""

    measured: Measured
    n: int
    sampling: str
    ends: tuple[float, float] | None = None


class ExactSums:
    """Sums without noise, where a metric asks for noisy ones: for rows that are declared public."""

    def release(self, values: Floats, cells: Cells) -> tuple[Floats, Noise]:
        """Return the sum of the rows' squared cells."""
        return np.asarray(cells(values).power(2).sum(axis=0), dtype=np.float64).ravel(), Noise(0.0)


def measure_public(
    metric: str, model: Released, X: object, y: object, level: float, groups: Groups | None = None
) -> ExactScore:
    """Return the exact score: Wilson's interval for accuracy, DeLong's for the area, the delta method's for R2."""
    kind = METRICS[metric]
    rows, _ = read(Scoring(metric, model, groups), X, y)
    if metric not in ("auc", "r2") and (metric != "accuracy" or groups is not None):
        measured = kind.measure(model, rows, ExactSums(), level, () if groups is None else groups.names)
        exact = tuple(replace(part, low=part.value, high=part.value) for part in measured.parts)
        return ExactScore(
            replace(measured, low=measured.value, high=measured.value, parts=exact), len(rows), kind.sampling
        )
    complete = rows[~np.isnan(rows).any(axis=1)]
    if metric == "accuracy":
        value, low, high = _wilson(complete[:, 0], level)
        return ExactScore(Measured(value, value, value, 0.0), len(rows), "Wilson", (low, high))
    value, deviation = area(*complete.T) if metric == "auc" else r_squared_of(*complete.T)
    parts = _exact_curve(*complete.T) if metric == "auc" else (_exact_root(width(model), *complete.T),)
    measured = Measured(value, value, value, half_width(level) * deviation, parts)
    return ExactScore(measured, len(rows), "DeLong" if metric == "auc" else "delta method")


def _exact_curve(margins: Floats, classes: Floats) -> tuple[Part, ...]:
    """Return the true positive rate at some false positive rates, by the empirical curve."""
    positive, negative = margins[classes > 0], np.sort(margins[classes <= 0])[::-1]
    if not len(positive) or not len(negative):
        return ()
    parts = []
    for rate in ROC_RATES:
        above = negative[min(len(negative) - 1, math.floor(rate * len(negative)))]
        share = float(np.mean(positive > above))
        parts.append(Part(rate_name(rate), share, share, share, math.sqrt(share * (1 - share) / len(positive))))
    return tuple(parts)


def _exact_root(scale: float, u: Floats, v: Floats) -> Part:
    value = scale * math.sqrt(float(((u - v) ** 2).mean()) / 4) if len(u) else math.nan
    return Part(ROOT_ERROR, value, value, value, 0.0, most=scale)


def _wilson(right: Floats, level: float) -> tuple[float, float, float]:
    n, z = len(right), half_width(level)
    if n == 0:
        return math.nan, 0.0, 1.0
    share = float(right.mean())
    center, spread = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return share, max(0.0, (center - spread) / (1 + z * z / n)), min(1.0, (center + spread) / (1 + z * z / n))


def area(margins: Floats, classes: Floats) -> tuple[float, float]:
    """The area under the ROC curve, ties counted half, and DeLong's standard error."""
    positive, negative = np.sort(margins[classes > 0]), np.sort(margins[classes <= 0])
    if not (len(positive) and len(negative)):
        return math.nan, math.inf
    below = _ranks(negative, positive) / len(negative)
    above = 1 - _ranks(positive, negative) / len(positive)
    value = float(below.mean())
    variance = sum(float(np.var(part, ddof=1)) / len(part) if len(part) > 1 else 0.25 for part in (below, above))
    return value, math.sqrt(variance)


def _ranks(ordered: Floats, values: Floats) -> Floats:
    """How many of ``ordered`` lie below each value, those equal to it half."""
    ends = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return np.asarray(sum(ends) / 2.0)


def r_squared_of(u: Floats, v: Floats) -> tuple[float, float]:
    """R2 and its standard error: each row's influence on the ratio of the two sums of squares."""
    around, error = (u - u.mean()) ** 2 if len(u) else u, (u - v) ** 2
    if not (len(u) and around.sum() > 0):
        return math.nan, math.inf
    ratio = float(error.sum() / around.sum())
    influence = (error - ratio * around) / float(around.mean())
    return 1 - ratio, float(influence.std()) / math.sqrt(len(u))
