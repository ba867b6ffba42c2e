"""Averaged chord steps in whitened coordinates, and the covariance of what they find: post-processing of answers.

See ``sandwich`` for the algorithm. The last k steps have the lengths 1, 1/2, ..., 1/k: on a quadratic
this is the mean of k whole steps from one point, so that the noise is averaged, and each gradient is asked for at a
point that is less noisy than a whole step's end. With E = I - H^{-1} H_true, what is left of the start is about
E (start - end) / k: the Hessian's noise enters by that term, whose size is known, and through the covariance's own
H^{-1}, which ``wobble`` counts.

Counts have an exponential mean, classes a sigmoid one. Where a gradient is asked for at a point with an error of
variance s^2 in a margin, the root of its expectation is up to s^2 / 2 away (a slope's curvature is at most the slope);
over the k steps s^2 is .41 k times the last variance in the mean. ``skewness`` adds the square of what that makes of
each coefficient, for a record at the end of its range; it hides effects whose single steps are so noisy that they
overshoot.
"""

import math
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from discreet.bounds import Domain
from discreet.curator import Recoding
from discreet.solvers.base import Effects
from discreet.solvers.center_and_scale import Target, noise_of
from discreet.solvers.sandwich_rules import COUNT_CURVATURE, LEAST_REACH, SLACK
from discreet.solvers.stage import Estimate
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.solvers.sandwich import Sandwich

MOST_CORNERED = 12
"""Of more columns the corners are too many to look at."""
FARTHEST = 1000.0
"""Whitened rows longer than this do not count, so that 16 bits hold the others in steps of 1/32, whose rounding adds
1e-4 to a variance. A column of two values has such rows only if it is rarer than about 1 in 40,000."""
VISIBLE = 1.5
"""A direction is visible where the Hessian's eigenvalue is above this many edges of its noise. With 3, a rare cell of
10,000 rows was hidden in 91 to 100 % of fits of numbers at epsilon 1; with 2 in none, and 96 % of intervals covered.
On bank marketing (epsilon 1, ``replace_one``, a reach of 2.5) 2 hid 23 % of effects and 1.5, with .2 of mu^2 for the
Hessian in place of .15, 11 %; 93 and 94 % of the others were covered."""
STEADY = 0.2
"""The scores' covariance is clipped as wide as keeps its noise below this part of a typical variance."""
LEAST_SCORE = 3.0
"""But not below this many deviations of a typical row's score."""
SPREAD = 4.0
"""The size of slopes is estimated with slopes of at most this many deviations of the target."""
STEEPEST, STEEPEST_LOGISTIC = 0.3, 1.25
"""Where one step's noise moves a margin by more than this, chords overshoot, and the effect is not shown: for counts,
and for classes (beyond 1.5 only 87 % of intervals for rare cells covered their effects, 20,000 rows, 11 columns; one
logistic slope, 500 rows at epsilon 3 under ``replace_one``: 89 % with 1.5, 93 % with 1.25). Over columns as far as rows
count in full."""
STEEPEST_RANGE = 3.0
"""The same for classes over a column's whole declared range, which all rows of a rare cell are at the end of. Such a
cell's deviation may come out far too small, and rows seem to count in full only near 0: a cell of 2 % in 10,000 rows at
epsilon 0.5 was shown in 19 of 200 fits, up to 7 off, and covered in 14."""
LARGEST_STEP = 1.0
"""The first chord step moves a logarithm of rates by at most this along an eigenvector (of odds: ``STEEPEST_RANGE``)
over declared ranges: where the curvature at the start is far below that at the root, chords would overshoot farther
each time."""
EVALUATED = 0.41
"""The mean variance of the points at which the last steps ask, in units of k times the mean's: their lengths fall."""
LONG = 1.5
"""Short steps divide by this many mean curvatures."""
ALLOWED = 2.5
"""Sampling deviations that are allowed for the bias of a column whose declared range goes far beyond the reach; less
where it goes not so far. On bank marketing (epsilon 1, ``replace_one``) a call's duration is 2.3 of them off."""
LOGISTIC_SLOPE = 0.4
"""About the deviation of a logistic slope."""


def whole_rows(estimate: Estimate, target: Target | None) -> tuple[Recoding, float]:
    """Return the map to whitened rows, none of which is shrunk, and a typical length there.

    A shrunk row has other features, and a rare value's effect is estimated from rows that are all far out. Here a row
    keeps its features, or does not count at all: beyond ``FARTHEST``, where declared ranges have room for such rows.
    """
    recoding, spectrum = estimate.recoding, estimate.spectrum
    assert spectrum is not None
    matrix, length = recoding.matrix, spectrum.length
    if target is not None:
        recoding = replace(recoding, target_center=target.center, target_scale=target.scale)
    return replace(recoding, matrix=matrix, row_norm=math.inf, reach=FARTHEST, drop_longer=True), length


def longest_row(linear: Floats, domain: Domain) -> float:
    """Return a bound on the length of whitened rows that declared ranges have room for.

    No row can be longer, so a larger radius would only add noise. Of few columns it is the farthest corner of the
    ranges. Of more: a row is m + G u with m the middle of the ranges and |u_j| <= 1, and ||G u||^2 is at most the
    largest eigenvalue of G^T G times the number of columns.
    """
    if domain.ranges is None:
        return math.inf
    ranges = domain.ranges
    if len(ranges) <= MOST_CORNERED:
        corners = np.array(list(product(*ranges)))
        rows = np.column_stack([corners, np.ones(len(corners))]) if domain.intercept else corners
        return float(np.linalg.norm(rows @ linear, axis=1).max())
    middle = np.append(ranges.mean(axis=1), 1.0)[: domain.n_features]
    half = (ranges[:, 1] - ranges[:, 0]) / 2.0
    spread = linear[: len(half)] * half[:, None]
    return float(np.linalg.norm(middle @ linear) + math.sqrt(len(half)) * np.linalg.norm(spread, 2))


class LimitedSteps:
    """Chord steps, each limited along each eigenvector; a limit doubles while steps go on, and halves where they turn.

    ``noise`` is the deviation of one step along each: a step that it explains changes no limit. ``unsettled`` are the
    directions along which steps were still cut when they should have settled.
    """

    def __init__(self, vectors: Floats, inverse: Floats, most: Floats, noise: Floats) -> None:
        self._vectors, self._inverse, self._most, self._noise = vectors, inverse, most, noise
        self._last = np.zeros(len(most))
        self.unsettled = np.zeros(len(most), dtype=bool)

    def along(self, gradient: Floats, *, settled: bool = False) -> Floats:
        """Return the step for a gradient."""
        whole = self._vectors.T @ (self._inverse @ gradient)
        cut, turned = np.abs(whole) > self._most + 3.0 * self._noise, whole * self._last < 0
        step = np.clip(whole, -self._most, self._most)
        self._most = np.where(cut, np.where(turned, self._most / 2.0, self._most * 2.0), self._most)
        self._last = step
        self.unsettled |= cut & settled
        return np.asarray(self._vectors @ step)


@dataclass(frozen=True)
class Refinement:
    """One run: what was planned, who answers, a typical row's length and the longest; ``counts``: a count's law."""

    plan: "Sandwich"
    curator: "Curator"
    n: float
    length: float
    longest: float = math.inf
    counts: Target | None = None
    bounds: Floats = field(default_factory=lambda: np.ones(1))

    @property
    def reach(self) -> float:
        """The length up to which rows count in full."""
        assert self.plan.limits is not None
        return min(self.plan.limits.reach * self.length, self.longest, self.curator.domain.row_norm)

    def _noise(self, query: str, clip: float, *, positive: bool = False) -> float:
        """Return the deviation of an answer's noise; sums of positive semidefinite matrices move by less."""
        factor = float(self.curator.budget.neighbors.sum_factor)
        return noise_of(self.curator, query, clip, math.sqrt(factor) if positive else factor)

    def _typical(self) -> float:
        """Return a slope's deviation before it is estimated, in the units that slopes have here."""
        if self.counts is not None:
            return max(self.counts.scale, math.sqrt(max(self.counts.center, 0.0)), 1e-3)
        return 1.0

    def _lead(self, v: Floats, clip: float) -> Floats:
        """Take the short steps that come before the Hessian: rows count less beyond ``LEAST_REACH`` there.

        A direction's curvature is then about the mean one or less, however far out its few rows are.
        """
        near = replace(self, longest=min(self.longest, LEAST_REACH * self.length))
        last, clip = v, clip * near.reach / self.reach
        for _ in range(self.plan.n_leading or 0):
            v, last = near._leading_step(v, last, near._gradient(v, clip) / self.n), v
        return v

    def _leading_step(self, v: Floats, last: Floats, gradient: Floats) -> Floats:
        """Return where a short step from ``v`` ends, after one from ``last``."""
        assert self.counts is not None, "only counts have a typical curvature"
        return v - gradient / (LONG * max(self.counts.center, 1e-3))

    def _slopes(self, v: Floats) -> float:
        """Estimate a slope's deviation at ``v``."""
        loss, typical = self.curator.loss, self._typical()
        clip = min(SPREAD * typical, loss.lipschitz) ** 2
        noise = noise_of(self.curator, "noisy_squared_slopes", clip, 1.0)
        found = self.curator.noisy_squared_slopes(v, clip=clip) / self.n
        return math.sqrt(min(clip, max(found, noise / self.n, 1e-4 * typical**2)))

    def _curvature(self, v: Floats) -> tuple[Floats, float]:
        """Return the noisy Hessian at ``v`` and the deviation of its noise."""
        top = self.curator.loss.smoothness if self.counts is None else COUNT_CURVATURE * max(self.counts.center, 1e-3)
        clip = top * self.reach**2
        found = self.curator.noisy_curvature(v, clip=clip, reach=self.reach, slack=SLACK)
        return found, self._noise("noisy_curvature", clip, positive=True)

    @property
    def _directions(self) -> int:
        """Return into how many directions of its own a record's slope is spread."""
        return 1

    def _score_covariance(self, v: Floats, clip: float) -> Floats:
        return self.curator.noisy_score_covariance(v, clip=clip, reach=self.reach, slack=SLACK)

    def _gradient(self, v: Floats, clip: float) -> Floats:
        return self.curator.noisy_weighted_gradient(v, clip=clip, reach=self.reach, slack=SLACK)

    def effects(self, v: Floats, linear: Floats) -> tuple[Floats, Effects]:
        """Take the steps from ``v``; return their mean, and its covariance after the map ``linear``."""
        assert self.plan.limits is not None
        loss = self.curator.loss
        deviation = LOGISTIC_SLOPE if loss.task == "classification" else self._slopes(v)
        clip = min(self.plan.limits.slope * deviation, loss.lipschitz) * self.reach
        v = self._lead(v, clip)
        hessian, spread = self._curvature(v)
        edge = spread * math.sqrt(2.0 * len(v))
        values, vectors = np.linalg.eigh(hessian)
        floored = np.maximum(values, max(edge, 1e-9 * float(values[-1]), 1e-12))
        inverse = (
            vectors * np.where(values > edge, 1.0 / floored, 0.0)
        ) @ vectors.T  # skip directions below the noise level
        one_step = self._noise("noisy_weighted_gradient", clip)
        kept, most = self.plan.n_kept, self._largest_steps(linear @ vectors)
        steps = LimitedSteps(vectors, inverse, most, one_step / floored)
        for _ in range(self.plan.n_steps - kept - (self.plan.n_leading or 0)):
            v = v - steps.along(self._gradient(v, clip))
        found = v
        for j in range(kept):
            found = found - steps.along(self._gradient(found, clip), settled=True) / (j + 1.0)
        drift = (v - found) / kept
        deviation = self._slopes(found)
        variance = deviation**2 / self._directions
        scores, rough = self._scores(found, (vectors * floored) @ vectors.T, deviation)
        noise = one_step**2 / kept
        extra = spread**2 / 2.0 * (float(drift @ drift) * np.eye(len(v)) + np.outer(drift, drift))
        through = linear @ inverse
        hidden = linear @ vectors[:, (values < VISIBLE * edge) | steps.unsettled]
        seen = float(min(values[values >= VISIBLE * edge], default=math.inf))
        privacy = through @ (noise * np.eye(len(v)) + extra) @ through.T
        spread_of_mean = math.sqrt(float(np.trace(inverse @ (scores + noise * np.eye(len(v))) @ inverse)))
        return found, Effects(
            covariance=through @ scores @ through.T + privacy,
            privacy=privacy,
            metric=linear @ linear.T,
            blind=hidden @ hidden.T,
            design=self.n * through @ linear.T,
            wobble=math.hypot(rough / noise, 2.0 * variance * spread / noise, 2.0 * spread / seen) if noise else 0.0,
            mean_curvature=deviation**2 if loss.sigmoid_link else 1.0,
            steps=float(np.linalg.norm(drift)) / max(spread_of_mean, 1e-300),
            deviation=deviation,
            count=self.n,
            reach=self.reach / self.length if self.reach < self.longest else 0.0,
        )

    def _largest_steps(self, directions: Floats) -> Floats:
        """Return the longest first step along each direction, a column of coefficients; infinite for straight ones."""
        if self.curator.loss.movable_target:
            return np.full(directions.shape[1], math.inf)
        bounds = np.tile(self.bounds, len(directions) // len(self.bounds))
        most = STEEPEST_RANGE if self.counts is None else LARGEST_STEP
        return np.asarray(most / np.maximum((np.abs(directions).T * bounds).max(axis=1), 1e-300))

    def _scores(self, v: Floats, hessian: Floats, deviation: float) -> tuple[Floats, float]:
        """Return the covariance of the sum of scores at ``v``, and the deviation of its noise."""
        assert self.plan.limits is not None
        loss = self.curator.loss
        likelihood = loss.task == "classification" or self.counts is not None
        model = hessian if likelihood else deviation**2 * hessian
        if self.plan.cov_type == "model":
            return model, 0.0
        unit = self._noise("noisy_score_covariance", 1.0, positive=True)
        widest = (min(self.plan.limits.slope * deviation, loss.lipschitz) * self.reach) ** 2
        steady = STEADY * self.n * deviation**2 / (self._directions * unit) if unit else math.inf
        clip = min(widest, max(steady, (LEAST_SCORE * deviation * self.length) ** 2))
        found = self._score_covariance(v, clip)
        values, vectors = np.linalg.eigh(model)
        root = (vectors * np.sqrt(values)) @ vectors.T
        back = (vectors / np.sqrt(values)) @ vectors.T
        ratios, axes = np.linalg.eigh(back @ found @ back)
        return root @ (axes * np.maximum(ratios, 0.1)) @ axes.T @ root, unit * clip


def within_reach(effects: Effects, domain: Domain, reach: float) -> Floats:
    """Return how far columns go in rows that count in full: to the ends of their ranges, or to ``reach`` deviations.

    A whitened row is at least as long as each of its columns in deviations. The metric's inverse is the second moment.
    """
    second, bounds = np.linalg.pinv(effects.metric), domain.feature_bounds
    if not domain.intercept:
        return np.minimum(bounds, reach * np.sqrt(np.maximum(np.diag(second), 0.0)))
    variance = np.diag(second) - np.square(second[-1]) / max(float(second[-1, -1]), 1e-300)
    return np.append(np.minimum(bounds, reach * np.sqrt(np.maximum(variance, 0.0)))[:-1], bounds[-1])


def allowance(effects: Effects, bounds: Floats, ends: Floats) -> Effects:
    """Return effects with a deviation for what weights may do to columns that go farther than rows count in full."""
    beyond = ALLOWED * (1.0 - np.minimum(1.0, ends / np.maximum(bounds, 1e-300)))
    bias = np.diag(np.square(beyond) * np.maximum(np.diag(effects.covariance - effects.privacy), 0.0))
    return replace(effects, covariance=effects.covariance + bias, bias=bias)


def skewness(effects: Effects, bounds: Floats, far: Floats, kept: int, counts: bool) -> Effects:
    """Return effects with the bias that noise leaves in a curved slope counted as a deviation; hide what overshoots.

    ``far`` is how far columns go in rows that count, at most to their ``bounds``.
    """
    noise = np.diag(effects.privacy)
    left, step = 0.5 * EVALUATED * kept * noise * far, np.sqrt(kept * noise)
    lost = step * far > (STEEPEST if counts else STEEPEST_LOGISTIC)
    lost |= step * bounds > STEEPEST_RANGE
    return replace(
        effects,
        covariance=effects.covariance + np.diag(np.square(left)),
        blind=effects.blind + np.diag(np.where(lost, np.diag(effects.metric), 0.0)),
    )
