"""Chord steps in whitened coordinates, the root by their gradients, and its covariance: post-processing of answers.

See ``sandwich`` for the algorithm. The last k steps have the lengths 1, 1/2, ..., 1/k, so that a gradient is asked for
at a point that is less noisy than a whole step's end. With H at the estimate, the mean of k points minus H^{-1} times
their mean gradient is the root, up to the mean noise, to H's noise times how far the points were (``extra``), and to
how H changes over that way (``_left``). H's noise also enters the covariance's own H^{-1}: ``doubt`` counts it, and
what it leaves in doubt is not shown.

Counts have an exponential mean, classes a sigmoid one. Where a gradient is asked for at a point with an error of
variance s^2 in a margin, the root of its expectation is up to s^2 / 2 away (a slope's curvature is at most the slope);
over the k steps s^2 is .41 k times the last variance in the mean. ``skewness`` adds the square of what that makes of
each coefficient, for a record at the end of its range; it hides effects whose single steps are so noisy that they
overshoot.

**Several classes.** A common shift of all classes' margins changes no probability: coefficients are determined up to
one vector. With E an orthonormal basis of contrasts, (K, K - 1), steps are taken in theta = v E, one column of p
coefficients after another; the noise of gradients and scores stays isotropic there. Effects are differences to the
first class. The Hessian is the sum over pairs k < l of (E_k - E_l) (E_k - E_l)^T (x) A_kl
(``queries.effects.noisy_curvature``). Of noise with deviation s in an entry of A_kl it makes N with
E N^2 = s^2 K (p + 1) I, since the pairs' (E_k - E_l) have squared length 2 and add up to K I: its spectrum ends at
about 2 s sqrt(K (p + 1)), and N d has the mean square s^2 K (p + 1) ||d||^2. Both are those of symmetric noise of
``Metric.spread``.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.bounds import Domain
from discreet.curator import Edges, Recoding, Shells
from discreet.inference.limits import (
    CLEAR,
    FAR_OUT,
    LEAST_REACH,
    LEAST_ROWS,
    LEAST_SETTLING,
    MEAN_POWER,
    MEAN_POWER_OF_HESSIANS,
    NONE_RARE,
    SLACK,
    Excess,
    Influence,
    Rare,
    beyond,
    chosen_norm,
    edges_of,
    far_out,
    lost_by_weights,
    most_beyond,
    most_lost,
    number_beyond,
    tells_rows,
)
from discreet.inference.scales import Narrow
from discreet.losses.classification import contrasts
from discreet.solvers.base import Effects
from discreet.solvers.coordinates import Estimate, Target, noises
from discreet.typing import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.curator import Curator
    from discreet.inference.sandwich import Sandwich

FARTHEST = 250.0
"""Whitened rows longer than this do not count, so that 16 bits hold the others in steps of 1/128. A column of two
values has such rows only if it is rarer than about 1 in 60,000."""
VISIBLE = 1.5
"""A direction is visible where the Hessian's eigenvalue is above this many edges of its noise, in part from one on: of
an effect that lies mostly in other directions little is lost."""
DOUBTFUL = 0.25
"""An effect is not shown where the noise of the Hessian is this part of its information: it would mostly be shown when
noise happens to make it look certain."""
ROOM = 2.0
"""How many times farther than far-out values a range goes that has room for those which decide an effect."""
USUAL = 2.5
"""Slopes of so many deviations are usual, also in few rows."""
TWO_VALUED = 0.25
"""A column with this part of the variance that its mean and range allow at most is taken for one of two values."""
SHARED = 0.1
"""A column's effect is along another's direction if this part of it is: far-out rows of either decide both."""
UNSETTLED = 0.5
"""An effect is not shown where the Hessian may have changed by this part on the way to the root, so that steps may not
have settled, or where limits may have moved it by this part of a standard error."""
SPREAD = 4.0
"""The size of slopes is estimated with slopes of at most this many deviations of the target."""
STEEPEST, STEEPEST_LOGISTIC = 0.6, 1.25
"""Where one step's noise moves a margin by more than this in rows that count in full, chords overshoot, and the effect
is not shown: for counts, and for classes."""
STEEPEST_RANGE = 3.0
"""The first chord step moves a logarithm of odds by at most this in rows that count in full."""
LARGEST_STEP = 1.0
"""The same for rates: where the curvature at the start is far below that at the root, chords would overshoot farther
each time."""
EVALUATED = 0.41
"""The mean variance of the points at which the last steps ask, in units of k times the mean's: their lengths fall."""
TOLD = 1.02 * LEAST_ROWS
"""What a count is believed for at least where a row is a part of its person's rows."""
CLEARLY = 3.0
"""How many deviations of its noise a point is from the root if steps had not settled there."""
TURNED, CLEAR_TURN = 0.5, 4.0
"""A step led too far if the slope along it turned, to this part of what it was, and by so many deviations of its noise.
"""
OVERCERTAIN = 0.1
"""A start whose mean curvature is below this part of the mean square of its slopes is no start."""
BEARABLE = 0.3
"""Edges of a Hessian's noise in units of its level that slow steps of counts a little."""
LONG = 1.5
"""Short steps divide by this many mean curvatures."""
ALLOWED = 2.5
"""Sampling errors that are allowed at most for the bias of a column whose declared range goes far beyond the reach."""


def whole_rows(estimate: Estimate, target: Target | None, narrow: Narrow) -> tuple[Recoding, float]:
    """Return the map to whitened rows, none of which is shrunk, and a typical length there.

    A shrunk row has other features, and a rare value's effect is estimated from rows that are all far out. Here a row
    keeps its features, or does not count at all: beyond ``FARTHEST``, where declared ranges have room for such rows.
    """
    recoding, spectrum, matrix = estimate.recoding, estimate.spectrum, estimate.recoding.matrix
    assert spectrum is not None
    assert matrix is not None
    if target is not None:
        recoding = replace(recoding, target_center=target.center, target_scale=target.scale)
    second = np.asarray(np.linalg.pinv(matrix @ matrix.T), dtype=np.float64)
    features = len(recoding.center)
    least = float(np.sum(np.diag(second)[features:]) / features)  # together columns are about as long as the constant
    size = max(float(np.median(np.diag(second)[:features])), least)
    recoding = replace(
        recoding,
        center=np.where(narrow.places, narrow.center, recoding.center),
        scale=np.where(narrow.places, narrow.scale / math.sqrt(size), recoding.scale),
    )
    places = np.flatnonzero(narrow.places)
    second[places, :] = second[:, places] = 0.0  # no relation of theirs is known
    second[places, places] = size
    least_squares = np.where(narrow.places, 0.0, np.maximum(size, known_squares(estimate, narrow)))
    recoding = replace(recoding, matrix=root_of_inverse(_unshrunk(second, least_squares)))
    length = math.hypot(spectrum.length, math.sqrt(narrow.places.sum()))
    return replace(recoding, row_norm=math.inf, reach=FARTHEST, drop_longer=True), length


def known_squares(estimate: Estimate, narrow: Narrow) -> Floats:
    """Return the mean squares that standardized columns have at least; 0 where that is not known."""
    assert estimate.spectrum is not None
    likely = estimate.spectrum.likely
    return np.where(narrow.places | (likely is None), 0.0, 0.0 if likely is None else likely)


def _unshrunk(second: Floats, known: Floats) -> Floats:
    """Return a second moment of standardized rows from that of shrunk ones, and the mean squares of whole ones.

    Shrunk rows make the mean squares of rare values small, as if they were rarer than they are; stretched by as much,
    their rows would be too long to count in full. What the column that lost least has lost, rows of all have lost.
    """
    lost = known / np.maximum(np.diag(second)[: len(known)], 1e-300)
    by_all = max(1.0, float(lost[known > 0].min())) if (known > 0).any() else 1.0
    factors = np.append(np.sqrt(np.maximum(1.0, lost / by_all)), np.ones(len(second) - len(known)))
    return np.asarray(second * np.outer(factors, factors))


def root_of_inverse(second: Floats) -> Floats:
    """Return the symmetric map that makes a second moment the identity."""
    values, vectors = np.linalg.eigh(second)
    return np.asarray((vectors / np.sqrt(np.maximum(values, 1e-9 * float(values[-1])))) @ vectors.T)


def whitening(second: Floats, noise: float, recoding: Recoding, known: Floats) -> tuple[Floats, float]:
    """Return the map that makes a noisy second moment the identity, and a typical row's length after it.

    ``second`` is that of rows which ``recoding`` maps, some of which were shrunk. Directions below the edge of the
    noise (of deviation ``noise``) are not stretched further than the edge allows.
    """
    assert recoding.matrix is not None
    values, vectors = np.linalg.eigh(second)
    edge = max(noise * math.sqrt(2.0 * len(values)), 1e-9 * float(values[-1]), 1e-12)
    visible = float(np.sum(np.maximum(values, 0.0) / np.maximum(values, edge)))
    back = np.linalg.inv(recoding.matrix)
    standard = back.T @ ((vectors * np.maximum(values, edge)) @ vectors.T) @ back
    whole = recoding.matrix.T @ _unshrunk(standard, known) @ recoding.matrix
    return root_of_inverse(whole), math.sqrt(max(1.0, visible))


@dataclass(frozen=True)
class Extents:
    """How many deviations each column may go from its mean, as declared, and which are taken for two-valued.

    Mean, variance and declared range tell a column of two values: its variance is about as large as they allow.
    ``alone`` is in deviations of what other columns do not predict of it, at a level of 1.
    """

    ends: Floats
    two_valued: "NDArray[np.bool_]"
    intercept: bool
    distances: Floats
    alone: Floats

    @classmethod
    def of(cls, metric: Floats, domain: Domain) -> "Extents":
        """Return them from the inverse of the second moment of declared rows."""
        second, width = np.linalg.pinv(metric, hermitian=True), domain.n_features - domain.intercept
        level = max(float(second[-1, -1]), 1e-300) if domain.intercept else 1.0
        mean = second[:width, -1] / level if domain.intercept else np.zeros(width)
        variance = np.diag(second)[:width] / level - np.square(mean)
        bounds = domain.feature_bounds[:width]
        low, high = (-bounds, bounds) if domain.ranges is None else domain.ranges.T
        mean = np.clip(mean, low, high)
        two = (variance > TWO_VALUED * (mean - low) * (high - mean)) & (variance > 0)
        distances = np.maximum(high - mean, mean - low)
        ends = distances / np.sqrt(np.maximum(variance, 1e-300))
        two &= domain.intercept & (domain.ranges is not None)
        alone = distances * np.sqrt(np.maximum(np.diag(metric)[:width], 0.0))
        return cls(ends, two, domain.intercept, distances, alone)

    @property
    def sure(self) -> float:
        """The length of whitened rows at the far end of the rarest column of two values; 0 where there is none."""
        return float(np.max(self.ends[self.two_valued], initial=0.0))

    @property
    def far(self) -> "NDArray[np.bool_]":
        """Which columns of whitened rows may have far-out values: their ranges have room, and they are not two-valued.

        In deviations of what other columns do not predict: rows that are far out there decide an effect.
        """
        return np.append(~self.two_valued & (self.alone > ROOM * FAR_OUT), np.zeros(int(self.intercept), dtype=bool))

    def rare(self, sizes: Floats, length: float) -> Rare:
        """Return the rows of rare values, given columns' sizes in whitened rows and a typical length there."""
        lengths = self.distances * sizes[: len(self.ends)]
        rare = self.two_valued & (self.ends > length)
        shares = np.where(rare, 1.0 / (1.0 + np.square(self.ends)), 0.0)
        whole = np.hypot(lengths, length)
        constant = int(self.intercept)
        return Rare(
            np.append(shares, [0.0] * constant),
            np.append(whole / length, [1.0] * constant),
            np.append(lengths / whole, [0.0] * constant),
        )


class LimitedSteps:
    """Chord steps, each limited along each eigenvector; a limit doubles while steps go on, and halves where they turn.

    A chord is as long as the Hessian where it began says. If slopes bend more on the way, it leads too far: the
    gradient at its end points back. The next step begins where the slope along the last one was 0, between both ends,
    and limits fall.
    """

    def __init__(self) -> None:
        self._vectors, self._inverse, self._floored = np.eye(0), np.eye(0), np.empty(0)
        self._first, self._looser = np.empty(0), np.empty(0)
        self._last, self._before = np.empty(0), np.empty(0)

    def follow(self, metric: "Metric", most: Floats) -> None:
        """Take steps by another Hessian from now on, at first of at most ``most`` along each eigenvector.

        Limits stay as many times wider, or narrower, as they have become along its eigenvectors.
        """
        self._looser = (
            np.square(metric.vectors.T @ self._vectors) @ self._looser if len(self._last) else np.ones_like(most)
        )
        self._last = self._last if len(self._last) else np.zeros_like(most)
        self._vectors, self._inverse, self._floored, self._first = metric.vectors, metric.safe, metric.floored, most

    def after(self, v: Floats, gradient: Floats, noise: float, part: float = 1.0) -> Floats:
        """Return where the part of a step leads from v; ``noise`` is the deviation of the gradient there."""
        began, ends = float(self._before @ self._last) if self._last.any() else 0.0, float(gradient @ self._last)
        if ends > max(-TURNED * began, CLEAR_TURN * noise * float(np.linalg.norm(self._last))):
            back = ends / (ends - began)
            v, gradient = v - back * self._last, gradient - back * (gradient - self._before)
            self._looser = self._looser * max(1.0 - back, 0.5)
        most, whole = self._first * self._looser, self._vectors.T @ (self._inverse @ gradient)
        cut = np.abs(whole) > most + 3.0 * noise / self._floored
        turned = whole * (self._vectors.T @ self._last) > 0
        self._looser = np.where(cut, np.where(turned, self._looser / 2.0, self._looser * 2.0), self._looser)
        self._last, self._before = -part * (self._vectors @ np.clip(whole, -most, most)), gradient
        return np.asarray(v + self._last)


@dataclass(frozen=True)
class Metric:
    """A noisy Hessian by its eigenvalues, the deviation of its noise, and the edge of the noise's spectrum."""

    values: Floats
    vectors: Floats
    spread: float

    @property
    def edge(self) -> float:
        """The largest eigenvalue that noise alone has."""
        return self.spread * math.sqrt(2.0 * len(self.values))

    @property
    def floored(self) -> Floats:
        """The eigenvalues, at least the edge."""
        return np.asarray(np.maximum(self.values, max(self.edge, 1e-9 * float(self.values[-1]), 1e-12)))

    @property
    def safe(self) -> Floats:
        """The inverse that steps may take in every direction: of eigenvalues above what noise may have taken off."""
        bent = np.maximum(self.values, 0.0) + max(self.edge, 1e-9 * float(self.values[-1]), 1e-12)
        return np.asarray((self.vectors / bent) @ self.vectors.T)

    @property
    def inverse(self) -> Floats:
        """The inverse, without directions below the noise level."""
        inverses = np.where(self.values > self.edge, 1.0 / self.floored, 0.0)
        return np.asarray((self.vectors * inverses) @ self.vectors.T)


@dataclass(frozen=True)
class Refinement:
    """One run: what was planned, who answers, a typical row's length and the longest; ``counts``: a count's law.

    ``sure`` is a length that rows have for sure (``Extents``): counts may not see so few. ``declared`` is the domain
    of the records themselves, ``unit`` the target's in which slopes are measured.
    """

    plan: "Sandwich"
    curator: "Curator"
    n: float
    length: float
    longest: float = math.inf
    counts: Target | None = None
    bounds: Floats = field(default_factory=lambda: np.ones(1))
    sure: float = 0.0
    declared: Domain | None = None
    unit: float = 1.0
    _asked: dict[str, int] = field(default_factory=dict)

    @property
    def reach(self) -> float:
        """The longest rows that may count in full, whatever is in the records."""
        assert self.plan.limits is not None
        return min(self.plan.limits.reach * self.length, self.longest, self.curator.domain.row_norm)

    def _noise(self, query: str) -> float:
        """Return the deviation of the noise in the last answer to a query, per unit of its clip."""
        every = noises(self.curator, query)
        before = len(every) - self.plan.n_gradients if query == "noisy_weighted_gradient" else 0
        return every[before + self._asked[query]]

    def _ask(self, query: str) -> None:
        """Count an answer, so that its noise is known."""
        self._asked[query] = self._asked.get(query, -1) + 1

    @property
    def _root(self) -> float:
        """What a sum of positive semidefinite matrices moves by less than another, under ``replace_one``."""
        return math.sqrt(self.curator.budget.neighbors.sum_factor)

    def _typical(self) -> float:
        """Return a slope's deviation before it is estimated, in the units that slopes have here."""
        if self.counts is not None:
            return max(self.counts.scale, math.sqrt(max(self.counts.center, 0.0)), 1e-3)
        return 1.0

    @property
    def _steepest(self) -> float:
        """The largest slope that the loss and declared ranges allow."""
        return min(self.curator.loss.lipschitz, 2.0 * self.curator.domain.target_bound)

    @property
    def _sharpest(self) -> float:
        """The largest curvature that they allow."""
        top = self.curator.loss.smoothness
        return top if self.counts is None else min(top, 2.0 * self.curator.domain.target_bound)

    def _bend(self, deviation: float) -> float:
        """Return about the mean curvature, given a slope's deviation: a likelihood's are alike."""
        return 1.0 if self.curator.loss.movable_target else deviation**2

    def _lead(self, v: Floats, limits: Influence) -> Floats:
        """Take the short steps that come before the Hessian: rows count less beyond ``LEAST_REACH`` there.

        A direction's curvature is then about the mean one or less, however far out its few rows are.
        """
        last, near = v, replace(limits, reach=min(limits.reach, LEAST_REACH * self.length))
        for _ in range(self.plan.n_leading or 0):
            v, last = self._leading_step(v, last, self._gradient(v, near) / self.n), v
        return v

    def _leading_step(self, v: Floats, last: Floats, gradient: Floats) -> Floats:
        """Return where a short step from ``v`` ends, after one from ``last``."""
        assert self.counts is not None, "only counts have a typical curvature"
        return v - gradient / (LONG * max(self.counts.center, 1e-3))

    def _slopes(self, v: Floats, steep: float = 0.0) -> float:
        """Estimate a slope's deviation at ``v``, from slopes of at most ``steep``."""
        typical = self._typical()
        clip = min(max(SPREAD * typical, steep), self._steepest) ** 2
        self._ask("noisy_squared_slopes")
        noise = self._noise("noisy_squared_slopes") / self.curator.budget.neighbors.sum_factor * clip
        square = self.curator.noisy_squared_slopes(self._point(v), clip=clip) / self.n
        return math.sqrt(min(clip, max(square, noise / self.n, 1e-4 * typical**2)))

    def _point(self, v: Floats) -> Floats:
        """Return the coefficients that a point of the steps stands for."""
        return v

    def _edges(self, deviation: float, *kinds: str) -> Edges:
        """Return shells of some kinds, from typical sizes to the largest that declared ranges and the loss allow."""
        every = edges_of(
            length=self.length, longest=min(self.longest, FARTHEST), deviation=deviation, steepest=self._steepest,
            bend=self._bend(deviation), sharpest=self._sharpest,
        )  # fmt: skip
        return Edges(*(some if name in kinds else some[:0] for name, some in every._asdict().items()))

    @property
    def _by_counts(self) -> bool:
        """Whether limits on gradients are chosen from counts: slopes are unbounded, and no limit was set."""
        return self.plan.chooses_limits and not math.isfinite(self.curator.loss.lipschitz)

    def _look(self, v: Floats, edges: Edges, reach: float) -> Shells:
        """Count rows by shells at ``v``; a part of a person's rows that stands out counts as seen, too."""
        shells = self.curator.noisy_shells(self._point(v), edges=edges, reach=reach, slack=SLACK)
        if not self.curator.domain.grouped:
            return shells
        counts = {name: getattr(shells, name) for name in Shells._fields[:-1]}
        is_clear = {name: count > CLEAR * shells.noise for name, count in counts.items()}
        return shells._replace(
            **{name: np.where(is_clear[name], np.maximum(count, TOLD), count) for name, count in counts.items()}
        )

    def _reach_for(self, deviation: float) -> float:
        """Return how long rows may be that count in full, given a slope's deviation.

        It was planned in proportion to a sampling error in units of the noise, for slopes that vary as those of common
        classes do. Slopes of rare ones vary less, and noise is as large.
        """
        if not self.plan.chooses_limits or self.curator.loss.task != "classification":
            return self.reach
        assert self.plan.limits is not None
        common = 0.5 * self.curator.loss.lipschitz
        planned = max(LEAST_REACH, self.plan.limits.reach * min(1.0, deviation / common))
        return min(self.reach, planned * self.length)

    def _first_look(self, v: Floats, deviation: float) -> Influence:
        """Choose limits for the steps that settle, about the largest gradients and Hessians, and count long rows."""
        assert self.plan.limits is not None
        reach, steep = self._reach_for(deviation), min(self.plan.limits.slope * deviation, self._steepest)
        edges = self._edges(deviation, "lengths", "hessians", *(("scores",) if self._by_counts else ()))
        shells, score = self._look(v, edges, reach), reach * steep
        if self._by_counts:
            score = self._largest_score(shells, edges, deviation, v.size)
            steep = min(score / self.length, self._steepest)
        hessian = self._largest_hessian(shells, edges, reach, deviation, v.size, at_start=True)
        limits = Influence(reach, score, steep, hessian)
        if reach >= self.longest:
            return limits
        far = beyond(shells.lengths, shells.noise, edges.lengths)
        return replace(
            limits,
            far=number_beyond(shells.lengths, edges.lengths, reach, shells.noise),
            most_far=most_beyond(shells.lengths, edges.lengths, reach, shells.noise),
            lost=deviation * lost_by_weights(far, edges.lengths, reach, SLACK),
        )

    def _usual(self, deviation: float, shells: Shells, norms: Floats) -> float:
        """Return the size of usual gradients in the rarest rows that there are for sure; 0 where counts see them."""
        if tells_rows(shells.noise, norms):
            return 0.0
        return min(USUAL * deviation, self._steepest) * min(self.sure, self.reach)

    def _largest_score(
        self, shells: Shells, edges: Edges, deviation: float, size: int, rare: Rare = NONE_RARE
    ) -> float:
        """Return the limit on a record's gradient.

        Directions share what is cut; but of counts large ones are cut, never small ones, and all may be in one cell.
        """
        each = self._gradient_noise * (math.sqrt(size) if self.counts is None else 1.0)
        chosen = Excess.of(shells.scores, edges.scores, shells.noise, rare=rare).least(each)
        return max(chosen, self._usual(deviation, shells, edges.scores))

    def _last_look(self, v: Floats, deviation: float, limits: Influence, metric: Metric, linear: Floats) -> Influence:
        """Choose limits for the steps that are averaged, with the same reach, and count what they change."""
        score, hessian = limits.score, limits.hessian
        edges = self._edges(deviation, "scores", *(("hessians",) if self.plan.hessians > 1 else ()))
        extents = self._extents(metric, linear) if self._by_counts and self.declared is not None else None
        if extents is not None and extents.far.any():
            seen = (np.square(metric.vectors) * metric.floored).sum(axis=1) / self._level
            edges = edges._replace(columns=FAR_OUT * np.sqrt(np.minimum(1.0, seen)))
        shells, rare = self._look(v, edges, limits.reach), NONE_RARE
        if extents is not None:
            rare = extents.rare(np.linalg.norm(linear, axis=1) / self.unit, self.length)
        if self._by_counts:
            score = self._largest_score(shells, edges, deviation, v.size, rare)
        if len(edges.hessians):
            hessian = self._largest_hessian(shells, edges, limits.reach, deviation, v.size)
        unit = sum(noises(self.curator, "noisy_score_covariance")[-1:]) / self._root
        squares = np.square(edges.scores)
        square = chosen_norm(shells.scores, squares, noise=unit, hidden=shells.noise, power=MEAN_POWER / 2.0)
        unbounded = not math.isfinite(self.curator.loss.lipschitz)
        return replace(
            limits,
            score=score,
            hessian=hessian,
            square=min(max(square, self._usual(deviation, shells, edges.scores) ** 2), score**2),
            cut=number_beyond(shells.scores, edges.scores, score, shells.noise) if unbounded else 0.0,
            lost_by_cuts=self._lost_by_cuts(shells, edges.scores, score, rare) if self._by_counts else 0.0,
            astray=self._astray(shells, edges, score, limits.most_far) * (0.0 if extents is None else extents.far),
        )

    @property
    def _level(self) -> float:
        """About the Hessian along a column whose whitened deviation is 1."""
        return self.n * (1.0 if self.counts is None else max(self.counts.center, 1e-3))

    def _extents(self, metric: Metric, linear: Floats) -> Extents:
        """Return how far columns go by the Hessian.

        It sees columns that vary too little for the second moment of rows, which has room for the longest of them.
        """
        back = linear @ metric.vectors
        assert self.declared is not None
        return Extents.of(self._level * (back / metric.floored) @ back.T / self.unit**2, self.declared)

    def _astray(self, shells: Shells, edges: Edges, score: float, limited: float) -> Floats:
        """Return what rows that are far out in each direction may have lost: as much each as it may count for.

        No more rows than limits may have changed, ``limited`` by their lengths, and by cuts no more than counts say.
        """
        if not len(edges.columns):
            return np.zeros(1)
        far, cut = far_out(shells.columns, shells.noise), most_beyond(shells.scores, edges.scores, score, shells.noise)
        most = most_lost(shells.scores, edges.scores, score, shells.noise)
        return np.minimum(far, limited) * score + np.minimum(np.minimum(far, cut) * score, most)

    def _lost_by_cuts(self, shells: Shells, norms: Floats, score: float, rare: Rare) -> Floats:
        """Return what the sum of gradients may lose along each column beyond their limit.

        Of counts, which are cut on one side, all may be in one direction. Of numbers, what is cut of a typical row is
        spread over its directions; rare values lose what is along them in their rows.
        """
        lost = Excess.of(shells.scores, norms, shells.noise, rare=rare)
        spread = 1.0 if self.counts is not None else self.length
        return np.maximum(lost.at(score) / spread, lost.in_rare(score))

    @property
    def _gradient_noise(self) -> float:
        """The noise of the mean of the last gradients, per unit of their limit."""
        return noises(self.curator, "noisy_weighted_gradient")[-1] / math.sqrt(self.plan.n_kept)

    def _largest_hessian(
        self, shells: Shells, edges: Edges, reach: float, deviation: float, size: int, *, at_start: bool = False
    ) -> float:
        """Return the limit on a record's Hessian: at most what a row at the reach may have.

        Rates may be far larger where steps lead than where they start, and a Hessian that is cut there would make
        them longer each time: as much as noise may add is not cut, if it is a part of the level that only slows steps.
        """
        noise = noises(self.curator, "noisy_curvature")[-1] / self._root * math.sqrt(2.0 * size)  # it hides directions
        chosen = chosen_norm(
            shells.hessians, edges.hessians, noise=noise, hidden=shells.noise, power=MEAN_POWER_OF_HESSIANS
        )
        longest = min(self.longest, FARTHEST)
        if at_start and self.counts is not None:
            first = noises(self.curator, "noisy_curvature")[0] / self._root * math.sqrt(2.0 * size)
            chosen = max(chosen, BEARABLE * self._level / max(first, 1e-300))
        if not tells_rows(shells.noise, edges.hessians):
            chosen = max(chosen, self._bend(deviation) * min(self.sure, SLACK * reach) * min(self.sure, reach))
        return min(chosen, self._sharpest * reach * min(SLACK * reach, max(longest, reach)))

    def _curvature(self, v: Floats, limits: Influence) -> Metric:
        """Return the noisy Hessian at ``v``, with the weights of the gradients."""
        self._ask("noisy_curvature")
        hessian = self.curator.noisy_curvature(v, clip=limits.hessian, reach=limits.reach, slack=SLACK)
        return Metric(*np.linalg.eigh(hessian), self._noise("noisy_curvature") / self._root * limits.hessian)

    def _score_covariance(self, v: Floats, clip: float, reach: float) -> Floats:
        return self.curator.noisy_score_covariance(v, clip=clip, reach=reach, slack=SLACK)

    def _gradient(self, v: Floats, limits: Influence) -> Floats:
        self._ask("noisy_weighted_gradient")
        return self.curator.noisy_weighted_gradient(v, clip=limits.score, reach=limits.reach, slack=SLACK)

    def effects(self, v: Floats, linear: Floats) -> tuple[Floats, Effects, Influence]:
        """Take the steps from ``v``; return the root, its covariance after ``linear``, and the limits.

        With H at the estimate, each gradient estimates the root by x - H^{-1} g; the mean of these is returned.
        """
        plan, deviation = self.plan, self._slopes(v)
        limits = self._first_look(v, deviation)
        v = self._lead(v, limits)
        v, metric = self._begun(v, self._curvature(v, limits), deviation)
        steps = LimitedSteps()
        for _ in range(max(1, plan.hessians - 2)):
            v = self._settled(v, steps, metric, limits, linear)
            metric = self._curvature(v, limits) if plan.hessians > 2 else metric
        limits = self._last_look(v, deviation, limits, metric, linear)
        steps.follow(metric, self._largest_steps(linear @ metric.vectors, limits))
        points, gradients = [], []
        for j in range(plan.n_kept):
            points.append(v)
            gradients.append(self._gradient(v, limits))
            noise = self._noise("noisy_weighted_gradient") * limits.score
            v = steps.after(v, gradients[-1], noise, 1.0 / (j + 1.0))
        metric = self._curvature(v, limits) if plan.hessians > 1 else metric
        kept = self._settled_from(np.array(points), gradients[-1], metric, noise, limits, linear)
        points, gradients = points[-kept:], gradients[-kept:]
        middle, clear = np.mean(points, axis=0), metric.values > metric.edge
        root = middle - metric.inverse @ np.mean(gradients, axis=0)
        hidden = metric.vectors[:, ~clear]  # there the steps' end, which predictions need, is as good
        root = root + hidden @ (hidden.T @ (v - root))
        left = metric.vectors.T @ metric.safe @ np.mean(gradients, axis=0)
        moved = metric.vectors[:, clear] @ (metric.vectors[:, clear].T @ (middle - root))
        return root, self._covariance(root, moved, left, metric, limits, linear, kept), limits

    def _begun(self, v: Floats, metric: Metric, deviation: float) -> tuple[Floats, Metric]:
        """Return where steps begin, and about the Hessian there: at 0 where the start is far too certain of classes.

        Slopes of two classes have the mean curvature as their mean square where chances are as they are said to be.
        Where the curvature is clearly far below, no Hessian on the way to the root says how far it is.
        """
        curvature = (float(metric.values.mean()) + CLEARLY * metric.spread / math.sqrt(len(v))) / self.n
        if not self.curator.loss.sigmoid_link or curvature > OVERCERTAIN * deviation**2:
            return v, metric
        level = np.full(len(v), self.n * self.curator.loss.smoothness)  # whitened rows at even chances
        return np.zeros_like(v), Metric(level, np.eye(len(v)), metric.spread)

    def _settled_from(
        self, points: Floats, last: Floats, metric: Metric, noise: float, limits: Influence, linear: Floats
    ) -> int:
        """Return how many of the last points are as near to the root as their noise brings them.

        Farther ones are where steps had not settled: a chord of a curved slope leads astray there, and in the mean of
        all points that would stay, however little noise there is.
        """
        through = linear @ metric.inverse
        root, doubt = points[-1] - metric.inverse @ last, CLEARLY * noise * np.linalg.norm(through, axis=1)
        settled = [bool((self._left(linear, point - root, limits)[0] <= doubt).all()) for point in points[::-1]]
        return max(1, settled.index(False) if False in settled else len(settled))

    def _settled(self, v: Floats, steps: LimitedSteps, metric: Metric, limits: Influence, linear: Floats) -> Floats:
        """Take whole chord steps."""
        steps.follow(metric, self._largest_steps(linear @ metric.vectors, limits))
        for _ in range(self.plan.n_settling or LEAST_SETTLING):
            gradient = self._gradient(v, limits)
            v = steps.after(v, gradient, self._noise("noisy_weighted_gradient") * limits.score)
        return v

    def _covariance(
        self, v: Floats, moved: Floats, unknown: Floats, metric: Metric, limits: Influence, linear: Floats, kept: int
    ) -> Effects:
        """Return the covariance of v, which the mean of ``kept`` gradients' points was ``moved`` away from.

        Along an eigenvector that noise hides, v is off by about ``unknown``, a step that gradients still ask for, and
        no better known than to be of its size: where margins are steep, gradients hardly tell.
        """
        loss, inverse = self.curator.loss, metric.inverse
        deviation = self._slopes(v, limits.slope)
        scores, plain, rough = self._scores(v, metric, deviation, limits)
        noise, eye = (self._noise("noisy_weighted_gradient") * limits.score) ** 2 / kept, np.eye(len(v))
        extra = metric.spread**2 / 2.0 * (float(moved @ moved) * eye + np.outer(moved, moved))
        through = linear @ inverse
        privacy = through @ (noise * eye + extra) @ through.T
        left, change = self._left(linear, moved, limits)
        dark = metric.values < VISIBLE * metric.edge
        hidden = linear @ metric.vectors[:, dark]
        unseen = np.minimum(1.0, (VISIBLE - metric.values[dark] / max(metric.edge, 1e-300)) / (VISIBLE - 1.0))
        flattest = np.maximum(metric.values[dark] - 2.0 * metric.spread, 1e-300)  # that the Hessian may be there
        still = np.abs(unknown[dark]) * np.maximum(1.0, metric.floored[dark] / flattest)
        absorbed = (hidden * np.square(np.minimum(still, np.abs(metric.vectors[:, dark].T @ v)))) @ hidden.T
        covariance = through @ scores @ through.T + privacy + np.diag(np.square(left)) + absorbed
        bread = np.diag(through @ linear.T)
        errors, lost = np.sqrt(np.diag(covariance)), np.abs(through * limits.astray)
        own = np.diag(lost)
        astray = through * limits.astray * np.minimum(1.0, ALLOWED * errors / np.maximum(own, 1e-300))
        bias = astray @ astray.T
        parts = np.square(linear) / np.square(linear).sum(axis=1, keepdims=True)
        own = np.where(parts > SHARED, lost, 0.0).max(axis=1)
        if self.declared is not None and self.declared.intercept:  # it is an effect at 0 of all columns
            own[-1] = lost[-1].max()
        loose = (change > UNSETTLED) | (own > UNSETTLED * errors)
        loose |= metric.spread * np.diag(through @ through.T) > DOUBTFUL * np.maximum(bread, 1e-300)
        blind = (hidden * unseen) @ hidden.T + np.diag(np.where(loose, np.diag(linear @ linear.T), 0.0))
        return Effects(
            covariance=covariance + bias,
            privacy=privacy,
            sampling=through @ plain @ through.T,
            bias=bias,
            metric=linear @ linear.T,
            blind=blind,
            design=self.n * through @ linear.T,
            doubt=metric.spread * through @ through.T,
            wobble=rough / noise if noise else 0.0,
            mean_curvature=deviation**2 if loss.sigmoid_link else 1.0,
            deviation=deviation,
            count=self.n,
            reach=limits.reach / self.length if limits.reach < self.longest else 0.0,
            slope=limits.score / (self.length * deviation) if limits.cut > 0 else 0.0,
            far=max(0.0, limits.far / self.n),
            cut=max(0.0, limits.cut / self.n),
        )

    def _left(self, linear: Floats, moved: Floats, limits: Influence) -> tuple[Floats, Floats]:
        """Return how far each coefficient may be from the root, and what part of the Hessian changed on the way.

        A curvature changes by at most the part that the margin moves by, which is that of a column over the rows that
        count, and the others' in the mean.
        """
        if self.curator.loss.movable_target:
            return np.zeros(len(linear)), np.zeros(len(linear))
        away = np.abs(linear @ moved)
        bounds = np.tile(self.bounds, len(linear) // len(self.bounds))
        far = np.minimum(bounds, limits.reach / np.maximum(np.linalg.norm(linear, axis=1), 1e-300))
        change = away * far + float(np.linalg.norm(moved))
        return np.asarray(away * np.minimum(1.0, change)), change

    def _largest_steps(self, directions: Floats, limits: Influence) -> Floats:
        """Return the longest first step along each direction, a column of coefficients; infinite for straight ones.

        A margin moves by the step times a row's length there: at most the reach, and what declared ranges have.
        """
        if self.curator.loss.movable_target:
            return np.full(directions.shape[1], math.inf)
        bounds = np.tile(self.bounds, len(directions) // len(self.bounds))
        most = STEEPEST_RANGE if self.counts is None else LARGEST_STEP
        farthest = np.minimum((np.abs(directions).T * bounds).max(axis=1), limits.reach)
        return np.asarray(most / np.maximum(farthest, 1e-300))

    def _scores(self, v: Floats, metric: Metric, deviation: float, limits: Influence) -> tuple[Floats, Floats, float]:
        """Return the covariance of the sum of scores at ``v``, about the one without noise, and the noise's deviation.

        In the Hessian's coordinates it is I where the model is right, variances are equal and a person's rows are all
        alike, and a multiple of I where persons' rows differ. The multiple is the median of all directions', as near to
        1 as its noise leaves open; a direction is taken for as far from the multiple as its noise leaves no doubt of
        (``told_apart``). Without noise it is the multiple, but for what is beyond the spectrum of the noise.
        """
        loss, hessian = self.curator.loss, (metric.vectors * metric.floored) @ metric.vectors.T
        likelihood = loss.task == "classification" or self.counts is not None
        model = hessian if likelihood else deviation**2 * hessian
        if self.plan.cov_type == "model":
            return model, model, 0.0
        if self.counts is not None:  # counts are mostly more dispersed than Poisson's
            model = model * max(1.0, deviation**2 / max(self.counts.center, 1e-3))
        self._ask("noisy_score_covariance")
        unit = self._noise("noisy_score_covariance") / self._root
        clip = limits.square
        scores = self._score_covariance(v, clip, limits.reach)
        values, vectors = np.linalg.eigh(model)
        root = (vectors * np.sqrt(values)) @ vectors.T
        back = (vectors / np.sqrt(values)) @ vectors.T
        ratios, axes = np.linalg.eigh(back @ scores @ back)
        doubt = 2.0 * unit * clip * np.square(back @ axes).sum(axis=0)
        middle, open_to = float(np.median(ratios)), float(np.median(doubt)) * math.sqrt(math.pi / (2.0 * len(ratios)))
        usual = min(max(1.0, middle - open_to), middle + open_to)
        edge = doubt * math.sqrt(max(1.0, len(ratios) / 2.0))
        least = np.minimum(0.1, doubt)
        near, plain = (usual + told_apart(ratios - usual, open_to) for open_to in (doubt, edge))
        return *(root @ (axes * np.maximum(part, least)) @ axes.T @ root for part in (near, plain)), unit * clip


def told_apart(gap: Floats, doubt: Floats) -> Floats:
    """Return what is left of a gap that noise may make up to ``doubt``: nothing within, nearly all far beyond.

    Breiman 1995, *Better subset regression using the nonnegative garrote*.
    """
    return np.asarray(gap * np.maximum(0.0, 1.0 - np.square(doubt / np.maximum(np.abs(gap), 1e-300))))


def within_reach(effects: Effects, domain: Domain, reach: float) -> Floats:
    """Return how far columns go in rows that count in full: to the ends of their ranges, or to ``reach`` deviations.

    A whitened row is at least as long as each of its columns in deviations. The metric's inverse is the second moment.
    """
    second, bounds = np.linalg.pinv(effects.metric), domain.feature_bounds
    if not domain.intercept:
        return np.minimum(bounds, reach * np.sqrt(np.maximum(np.diag(second), 0.0)))
    variance = np.diag(second) - np.square(second[-1]) / max(float(second[-1, -1]), 1e-300)
    return np.append(np.minimum(bounds, reach * np.sqrt(np.maximum(variance, 0.0)))[:-1], bounds[-1])


def allowance(effects: Effects, bounds: Floats, ends: Floats, limits: Influence) -> Effects:
    """Return effects with deviations for what limits may do to them.

    What the sum of gradients may lose moves a coefficient by that over n mean Hessians, and by ``ALLOWED`` sampling
    errors at most: by weights, columns that go farther than rows count in full; by cuts, each as if it lost all.
    """
    beyond = 1.0 - np.minimum(1.0, ends / np.maximum(bounds, 1e-300))
    sampling = np.sqrt(np.maximum(np.diag(effects.covariance - effects.privacy - effects.bias), 0.0))
    sizes = np.sqrt(np.maximum(np.diag(effects.metric), 1e-300))
    moved = np.diag(effects.design) / (effects.count * sizes)
    weighted, cut = (np.minimum(ALLOWED * sampling, lost * moved) for lost in (limits.lost, limits.lost_by_cuts))
    bias = np.diag(np.square(beyond * weighted) + np.square(cut))
    limited = np.diag(np.where(beyond > 0, np.diag(effects.metric), 0.0))
    return replace(effects, covariance=effects.covariance + bias, bias=effects.bias + bias, limited=limited)


def skewness(effects: Effects, bounds: Floats, far: Floats, kept: int, counts: bool) -> Effects:
    """Return effects with the bias that noise leaves in a curved slope counted as a deviation; hide what overshoots.

    ``far`` is how far columns go in rows that count, at most to their ``bounds``.
    """
    noise = np.diag(effects.privacy)
    left, step = 0.5 * EVALUATED * kept * noise * far, np.sqrt(kept * noise)
    lost = step * far > (STEEPEST if counts else STEEPEST_LOGISTIC)
    return replace(
        effects,
        covariance=effects.covariance + np.diag(np.square(left)),
        blind=effects.blind + np.diag(np.where(lost, np.diag(effects.metric), 0.0)),
    )


START = 0.6
"""What is taken of the start: clipped steps make classes too certain, and chords of their Hessian overshoot."""
STEEP, HEAVY_BALL = 0.6, 0.7
"""Curvature of the leading steps in units of the loss's largest, and their momentum."""
COUPLED = 0.25
"""The largest norm of a record's couplings (``Softmax``)."""


@dataclass(frozen=True)
class ClassRefinement(Refinement):
    """One run for several classes; points are theta, flat."""

    @cached_property
    def basis(self) -> Floats:
        """E."""
        return contrasts(self.curator.loss.n_outputs)

    def flat(self, v: Floats) -> Floats:
        """Return theta of coefficients (p, K)."""
        return np.asarray((v @ self.basis).T.ravel())

    def coefficients(self, theta: Floats) -> Floats:
        """Return coefficients (p, K) that add up to 0 over the classes."""
        return np.asarray(theta.reshape(self.basis.shape[1], -1).T @ self.basis.T)

    def against_first(self, linear: Floats) -> Floats:
        """Return the map from theta to differences from the first class, after the map ``linear`` of coefficients."""
        return np.kron(self.basis[1:] - self.basis[0], linear)

    def _leading_step(self, v: Floats, last: Floats, gradient: Floats) -> Floats:
        return v - gradient / (STEEP * self.curator.loss.smoothness) + HEAVY_BALL * (v - last)

    def _point(self, v: Floats) -> Floats:
        return self.coefficients(v)

    @property
    def _steepest(self) -> float:
        return self.curator.loss.lipschitz

    @property
    def _sharpest(self) -> float:
        return COUPLED

    def _gradient(self, v: Floats, limits: Influence) -> Floats:
        return self.flat(super()._gradient(self.coefficients(v), limits))

    def _curvature(self, v: Floats, limits: Influence) -> Metric:
        clip = limits.hessian
        self._ask("noisy_curvature")
        pairs = self.curator.noisy_curvature(self.coefficients(v), clip=clip, reach=limits.reach, slack=SLACK)
        outputs, p = len(self.basis), pairs.shape[1]
        ends = [self.basis[k] - self.basis[other] for k in range(outputs) for other in range(k + 1, outputs)]
        hessian = sum(np.kron(np.outer(end, end), pair) for end, pair in zip(ends, pairs, strict=True))
        edge = 2.0 * self._noise("noisy_curvature") / self._root * clip * math.sqrt(outputs * (p + 1.0))
        return Metric(*np.linalg.eigh(np.asarray(hessian)), edge / math.sqrt(2.0 * len(v)))

    def _score_covariance(self, v: Floats, clip: float, reach: float) -> Floats:
        covariance = super()._score_covariance(self.coefficients(v), clip, reach)
        project = np.kron(self.basis.T, np.eye(len(covariance) // len(self.basis)))
        return np.asarray(project @ covariance @ project.T)
