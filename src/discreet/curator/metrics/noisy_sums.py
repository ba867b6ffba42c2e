"""What a score is, the noisy sums behind it, and its interval.

**Intervals** are bounds on the noise of a release, and tests that are inverted by them. The noise is public, so bounds
on it are exact or proved, never estimated. A release adds to every cell an independent noise of a known law. Thresholds
below hold with probability at least 1 - alpha for every true table: they depend on the law and on released numbers
only.

At the true value a known combination of the exact sums is zero, so what was released of it is noise alone, of a known
law. The values at which it is no larger than that law allows at level alpha contain the true one with probability at
least 1 - alpha, also where a ratio of two noisy numbers has no useful distribution.

**Noisy sums** of what each row contributes: one curator's query, on a table made of released values. A row becomes a
few numbers, none negative, that depend on that row and on what was released before. Neighboring tables so become
neighboring tables, null rows null rows, and ``Curator.noisy_mean_squares`` is asked for the sum. As no two entries have
opposite signs, exchanging a row moves the sum by sqrt(2) times its bound, not twice.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtri, ndtri

from discreet.accounting.certificate import Certificate
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import PricedPlan
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.curator.lattice import ROOT_TWO
from discreet.curator.metrics.row_values import Cells
from discreet.curator.private_data import PrivateData
from discreet.curator.records.stream import ValuesElsewhere
from discreet.errors import Unsupported
from discreet.ledger.ledger import Reservation
from discreet.losses import Logistic
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator.curator import Curator


@dataclass(frozen=True)
class Part:
    """One of several numbers of a score: a group's, a class's, a cell's."""

    name: str
    value: float
    low: float
    high: float
    sampling: float
    most: float | None = None
    """The most that it can be, where that is not the score's."""


@dataclass(frozen=True)
class Measured:
    """A score, its interval over the noise, the half width that the rows' sampling adds, and its parts."""

    value: float
    low: float
    high: float
    sampling: float
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Metric:
    """A metric: how it makes a score of noisy sums of what it needs of each row (``row_values``).

    Parameters
    ----------
    words
        What it is called.
    measure
        Maps the model, these values, the noisy sums, a level and names of groups to a ``Measured``.
    sampling
        How the sampling error is estimated.
    shares
        The part of the budget of each release.
    least, most
        The least and the most that a score can be.
    by_group, probabilities, two_classes, is_regression
        Whether it can be taken by group, needs predicted probabilities, is for two classes, is for numeric targets.
    """

    words: str
    measure: Callable[..., Measured]
    sampling: str
    shares: tuple[float, ...] = (1.0,)
    least: float = 0.0
    most: float = 1.0
    by_group: bool = False
    probabilities: bool = False
    two_classes: bool = False
    is_regression: bool = False


def half_width(level: float) -> float:
    """Of a normal variable's interval, in standard deviations."""
    return float(ndtri((1 + level) / 2))


GUARD = 1 + 2.0**-10
"""Covers that noise and coefficients are rounded to the lattice: both by less than 2^-13 of the noise."""
_APART = 1.01
_EXACT = 4


@dataclass(frozen=True)
class Noise:
    """Independent noise in every cell: Gaussian of standard deviation ``scale``, or Laplace of that scale."""

    scale: float
    is_laplace: bool = False

    @property
    def _moments(self) -> tuple[float, float]:
        """Of order two and four, for a scale of 1."""
        return (2.0, 24.0) if self.is_laplace else (1.0, 3.0)

    @property
    def deviation(self) -> float:
        """The standard deviation in one cell."""
        return self.scale * math.sqrt(self._moments[0])

    def combined(self, weights: object, alpha: float) -> float:
        """What |sum of weights times noise| does not exceed; the weights do not depend on the noise.

        Exactly for Gaussian noise, and for Laplace noise with up to four weights; beyond, by Chernoff's bound, since
        the exact law is a difference of large numbers.
        """
        sizes = np.abs(np.asarray(weights, dtype=np.float64))
        if not self.is_laplace:
            return self.scale * float(np.linalg.norm(sizes)) * float(-ndtri(alpha / 2))
        sizes = np.sort(sizes[sizes > 0])
        if len(sizes) <= _EXACT:
            return self.scale * _laplace_sum(tuple(sizes.tolist()), alpha)
        u = _SPEEDS / sizes[-1]
        logs = -np.log1p(-np.square(np.multiply.outer(u, sizes))).sum(axis=1)
        return float(self.scale * ((math.log(2 / alpha) + logs) / u).min())

    def within(self, norm: float, alpha: float) -> float:
        """The same for any weights of at most this norm. Laplace: the fourth moment is at most 24 norm^4."""
        if not self.is_laplace:
            return self.scale * norm * float(-ndtri(alpha / 2))
        return float(self.scale * norm * (24.0 / alpha) ** 0.25)

    def length(self, cells: int, alpha: float) -> float:
        """What the Euclidean length of the noise in so many cells does not exceed."""
        if not self.is_laplace:
            return self.scale * math.sqrt(float(chdtri(cells, alpha)))
        second, fourth = self._moments
        whole = (cells * second) ** 2 + cells * (fourth - second**2)
        return float(self.scale * (whole / alpha) ** 0.25)

    def product(self, first: "Spectrum", alpha: float, other: "Spectrum | None" = None, share: float = 0.0) -> float:
        """What |e' matrix f| does not exceed, for two independent vectors of noise e and f.

        With ``other`` the matrix is (1 - share) one + share other. Gaussian: with singular values s it is the sum of
        s x y, x and y normal, whose moment generating function is the product of (1 - (u s)^2)^(-1/2); Chernoff's
        bound is taken, and the logarithm of the function is convex in the matrix, hence below the line between two.
        Laplace: the fourth moment's fourth root, which is a norm, hence convex in the matrix, too.
        """
        other = first if other is None else other
        if self.is_laplace:
            return float(self.scale**2 * ((1 - share) * first.root + share * other.root) * alpha**-0.25)
        largest = max(first.largest, other.largest)
        if largest == 0.0:
            return 0.0
        u = _SPEEDS / largest
        logs = (1 - share) * first.logs(u) + share * other.logs(u)
        return float(self.scale**2 * ((math.log(2 / alpha) + logs) / u).min())


_SPEEDS = 1 - np.geomspace(1.0, 2.0**-8, 48)[1:]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """What bounds on e' matrix f need: the matrix's singular values, and the fourth moment's root for Laplace noise."""

    values: Floats
    root: float

    @classmethod
    def of(cls, matrix: Floats) -> "Spectrum":
        """The moment is exact, with the moments 2 and 24 of a Laplace variable of scale 1."""
        gram, squares = matrix.T @ matrix, matrix**2
        quadratic = 4 * (np.trace(gram) ** 2 + 2 * (gram**2).sum()) + 12 * (np.diag(gram) ** 2).sum()
        quartic = 12 * ((squares.sum(axis=1)) ** 2 + (squares**2).sum(axis=1)).sum()
        values = np.asarray(np.linalg.svd(matrix, compute_uv=False), dtype=np.float64)
        return cls(values, float(12 * quadratic + 12 * quartic) ** 0.25)

    @property
    def largest(self) -> float:
        """The largest singular value."""
        return float(self.values.max(initial=0.0))

    def logs(self, u: Floats) -> Floats:
        """The logarithm of the moment generating function at each u, for Gaussian noise of scale 1."""
        return np.asarray(-0.5 * np.log1p(-((u[:, None] * self.values) ** 2)).sum(axis=1))


@lru_cache(maxsize=4096)
def _laplace_sum(sizes: tuple[float, ...], alpha: float) -> float:
    """The quantile of |sum of s L|, L Laplace of scale 1: its tail is a sum of exponentials with distinct rates.

    Sizes that are nearly equal are moved apart, upwards, which only makes the sum more spread out.
    """
    apart: list[float] = []
    for size in sizes:
        apart.append(max(size, apart[-1] * _APART) if apart else size)
    if not apart:
        return 0.0
    pairs = [math.prod(s * s / (s * s - t * t) for t in apart if t != s) for s in apart]
    t = apart[-1] * math.log(1 / alpha)
    for _ in range(12):  # Newton's steps on the logarithm, which is concave: from the first on, each stays beyond
        terms = [weight * math.exp(-t / s) for weight, s in zip(pairs, apart, strict=True)]
        tail = math.fsum(terms)
        step = math.log(tail / alpha) * tail / math.fsum(term / s for term, s in zip(terms, apart, strict=True))
        t += step
        if abs(step) < 1e-9 * t:
            break
    return t * (1 + 1e-9)


def interval_end(refuted: Callable[[float], bool], start: float, end: float, steps: int = 32) -> float:
    """How far from ``start`` toward ``end`` values are kept: the end itself where it is not refuted.

    ``start`` is where the released combination is zero. Bisection ends on the refuted side, which is the safe one.
    """
    if not refuted(end):
        return end
    inside, outside = start, end
    for _ in range(steps):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if refuted(middle) else (middle, outside)
    return outside


QUERY = "noisy_mean_squares"
Values = Floats | ValuesElsewhere
"""What is kept of each row: an array, or parts of it on the workers of a cluster."""
ROUNDING = 2.0**-19
"""What a number between 0 and 1 may lose on the lattice, where squares keep 20 bits; 0 and 1 lose nothing."""
MOST_CELLS = (1 << 20) - 2
"""The most columns of numbers on one common scale, whose rows' squared norms fit 62 bits."""
SLACK = 1 + 2.0**-16


def plan_of(shares: tuple[float, ...], *, pure: bool) -> Plan:
    """One release for each share of the budget: of mu^2 with Gaussian noise, of epsilon with Laplace noise."""
    return Plan(Release(QUERY, 1, relative_noise=1 / share if pure else math.sqrt(1 / share)) for share in shares)


@dataclass
class NoisySums:
    """Releases the sums of a plan one after another, each with the noise that was planned for it."""

    priced: PricedPlan
    groups: Any
    progress: Callable[[int, int], None] | None = None
    released: int = 0
    curator: "Curator | None" = field(default=None, repr=False)

    @property
    def plan(self) -> Plan:
        """The releases, one per sum."""
        return self.priced.plan

    @property
    def budget(self) -> Budget:
        """What they may cost together."""
        return self.priced.budget

    def issued(self, promised: Certificate, reservation: Reservation | None) -> Certificate:
        """Return what was promised of the score, with where the noise of its sums came from, and who looked."""
        assert self.curator is not None
        return self.curator.issued(promised, reservation)

    def release(self, values: Values, cells: Cells, *, length: float = 1.0) -> tuple[Floats, Noise]:
        """Return the noisy sum of the rows' squared cells, and its noise; no row of squares is longer than ``length``.

        ``values`` are what is kept of each row, at hand or on a cluster.
        """
        if cells.size > MOST_CELLS:
            raise Unsupported("the score has more than a million cells: use metric='accuracy', or fewer groups")
        clip = length * SLACK
        part = self.priced.only(self.released, clip)
        bounds = Bounds(1.0, classes=(0, 1), scale="global")
        if isinstance(values, np.ndarray):
            table, targets = cells(values), np.zeros(len(values))
        else:
            table, targets = values.table(cells), None
        data = PrivateData(table, targets, bounds, groups=self.groups, fit_intercept=False, ledger=False)
        self.curator = data.open(part, Logistic())
        sums = self.curator.noisy_mean_squares(clip=clip, n=1.0)
        self.released += 1
        if self.progress is not None:
            self.progress(self.released, len(self.plan.releases))
        return sums, noise_of(part, clip)


def noise_of(priced: PricedPlan, clip: float) -> Noise:
    """Return the noise in each cell of a plan's first release."""
    pure, factor = priced.budget.is_pure, priced.budget.neighbors.sum_factor
    sensitivity = clip * float(factor if pure or factor == 1 else ROOT_TWO)
    multiplier = priced.noise_multiplier * priced.plan.releases[0].relative_noise
    return Noise(sensitivity * multiplier * GUARD, pure)
