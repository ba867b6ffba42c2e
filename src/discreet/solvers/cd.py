"""Private coordinate descent, DP-CD: randomized proximal steps on noisy entries of the gradient.

Sources: Mangold, Bellet, Salmon & Tommasi, ICML 2022 (and CAp 2021). With M_j-smooth coordinates:

    for t < T:  theta = w_bar
        for k < K:  pick j;  g = [ sum_i clip_{C_j}(grad_j l_i(theta)) + noise ] / n
                    theta_j <- prox_{gamma_j psi_j}( theta_j - gamma_j g ),   gamma_j = gamma / M_j
        w_bar <- the mean of the K inner iterates

Released: T K noisy sums of one gradient entry, each (1/z)-Gaussian-DP whatever j is drawn, since the noise
is in proportion to C_j. Privacy: sqrt(T K)/z-Gaussian-DP exactly; the law of j is irrelevant, being public.
A quadratic penalty that is not separable, as L2 in whitened coordinates, is followed by parabolas above it, one per
coordinate, which touch it where a pass begins: post-processing.
Cost: one pass over one column (a block of them) per step. Wins where coordinates differ in scale: its noise is in the
coordinates' own units, so no feature pays for another.
Utility (convex, T = 1): E F - F* <= p V / K + ||sigma||^2_{M^-1}, V = ||w0 - w*||_M^2 / 2 + F(w0) - F*; with the best K
4 ||L||_{M^-1} sqrt(p V) / (n mu) under replace_one.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Count, Finite, Fraction, OneOf, Positive, check_fields
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty, prox_coordinate
from discreet.penalties.recoded import parabolas_above
from discreet.solvers import settings
from discreet.solvers.base import (
    CANARY_CLIP,
    SHORT_STEP,
    UNWATCHED,
    AuditCase,
    Configured,
    Progress,
    Solution,
    Solver,
    count_release,
    public_count,
)
from discreet.solvers.coordinate_geometry import Coordinates, Geometry, lower_order, randomized_bound
from discreet.solvers.risk_bounds import RiskBound, excess_of_zeros
from discreet.solvers.traces import CoordinateTrace, Noise
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator import Curator

Picks = list[Integers]
SCHEDULES = ("uniform", "importance", "cyclic")
CALIBRATIONS = ("tight", "paper", "slides")


@dataclass(frozen=True)
class _Problem:
    """What every step of a run needs: C_j, M_j, psi, n. Adaptive clips are changed in place."""

    curator: "Curator"
    clips: Floats
    smoothness: Floats
    penalty: Penalty
    n: float


@dataclass(frozen=True)
class AdaptiveClip:
    """Adapt clips: C_j <- C_j exp(-rate (b - quantile)), b the noisy share of entries within C_j.

    Source: Andrew et al. 2021.

    Parameters
    ----------
    quantile : float, default=0.9
        The share of gradient entries that are to lie within the clip.
    rate : float, default=0.5
        How fast the clip follows.
    relative_noise : float, default=3.0
        The shares' noise multiplier in units of the gradients'; they cost 1/relative_noise^2 as much.

    Examples
    --------
    >>> from discreet.solvers import AdaptiveClip, CoordinateDescent
    >>> CoordinateDescent(adaptive=AdaptiveClip(quantile=0.5)).adaptive.rate
    0.5
    """

    quantile: Fraction = 0.9
    rate: Positive = 0.5
    relative_noise: Positive = 3.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class CoordinateDescent(Configured):
    """Randomized private coordinate descent.

    Parameters
    ----------
    n_outer, n_inner : int, default=1 and None
        T and K. ``n_inner=None``: four passes over all coordinates, 4 p steps or 4 p / ``block_size``.
    geometry : Geometry
        Clips and smoothness, declared or estimated privately.
    relative_step : float, default=1.0
        gamma: steps are gamma / M_j.
    schedule : {"uniform", "importance", "cyclic"}, default="uniform"
        Which coordinates: all alike, in proportion to M_j^``importance``, or over a fresh public permutation each pass.
    importance : float, default=1.0
        The exponent of ``schedule="importance"``.
    block_size : int, default=1
        Coordinates per step; blocks of more than one are answered by one vector release. On a cluster, a step is a pass
        over the records: p / ``block_size`` of them visit every coordinate once.
    average : {"uniform", "last"}, default="uniform"
        Whether an outer iteration ends at the mean of its inner iterates (the papers') or at the last one (which keeps
        exact zeros).
    calibration : {"tight", "paper", "slides"}, default="tight"
        Exact Gaussian DP, or the larger noise of the paper (ICML 2022) or the slides.
    adaptive : AdaptiveClip or None, default=None
        Follow a quantile of each coordinate's gradient entries with its clip; one more release per step.
    probabilities : sequence of float or None, default=None
        With which probabilities coordinates are drawn, up to a factor, in place of a ``schedule``.

    Examples
    --------
    >>> from discreet import DPLasso
    >>> from discreet.solvers import CoordinateDescent
    >>> DPLasso(bounds=1.0, target=(0, 1), solver=CoordinateDescent(average="last")).solver.name
    'cd'
    """

    n_outer: Count = 1
    n_inner: Count | None = None
    geometry: Geometry = field(default_factory=Geometry)
    relative_step: Positive = 1.0
    schedule: Annotated[str, OneOf(*SCHEDULES)] = "uniform"
    importance: Finite = 1.0
    block_size: Count = 1
    average: Annotated[str, OneOf("uniform", "last")] = "uniform"
    calibration: Annotated[str, OneOf(*CALIBRATIONS)] = "tight"
    adaptive: AdaptiveClip | None = None
    probabilities: tuple[Positive, ...] | None = None
    name: ClassVar[str] = "cd"

    def inner(self, domain: Domain) -> int:
        """Return K."""
        return self.n_inner or 4 * math.ceil(domain.n_features / self.block_size)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List T K coordinate sums, squared norms where the smoothness is estimated, a count where n is private."""
        if not penalty.separable and penalty.hessian is None:
            raise Unsupported(
                "coordinate methods need a separable penalty (none, L1, L2, elastic net or a box): use solver='gd'"
            )
        if domain.n_outputs > 1:
            raise Unsupported("coordinate methods know one output: use solver='gd' for softmax")
        if self.probabilities is not None and len(self.probabilities) != domain.n_features:
            raise Unsupported(f"give one probability for each of {domain.n_features} columns, the intercept's last")
        count = self.n_outer * self.inner(domain)
        releases = [Release("noisy_coordinate_gradient", count, dimension=self.block_size)]
        if self.adaptive is not None:
            if self.block_size > 1:
                raise Unsupported("adaptive clips are for blocks of one coordinate")
            shares = Release("noisy_share_within", count, relative_noise=self.adaptive.relative_noise, dimension=1)
            releases.append(shares)
        least = None if self.calibration == "tight" else self._published_noise(count)
        return Plan((*releases, *self.geometry.releases(domain, count), *count_release(domain)), least)

    def _published_noise(self, count: int) -> Callable[[Budget], float]:
        """Return z of the theorems, in units of the sensitivity: sqrt(c T K ln(1/delta)) / epsilon, c = 3 or 8."""
        constant = 3.0 if self.calibration == "paper" else 8.0

        def multiplier(budget: Budget) -> float:
            if budget.is_pure or (self.calibration == "paper" and budget.epsilon > 1):
                raise Unsupported("the paper's constants hold for epsilon <= 1 and delta > 0: use calibration='tight'")
            return math.sqrt(constant * count * math.log(1 / budget.delta)) / budget.epsilon

        return multiplier

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Run the algorithm from the starting point. No trace with adaptive clips: noise follows noisy shares."""
        n, T, K = public_count(curator), self.n_outer, self.inner(curator.domain)
        M = self.geometry.measure(curator, n)
        problem = _Problem(curator, self.geometry.clips(curator.domain, curator.loss, M), M, penalty, n)
        w_bar, picks = curator.domain.starting_point, []
        for t in range(T):
            picks.append(self._picks(curator, M, K))  # j of each inner step
            theta, mean = w_bar, np.zeros_like(w_bar)
            for part in progress.parts(range(t * K, (t + 1) * K), T * K):  # of the inner loop, k < K
                for first, last in _cut(part.start - t * K, part.stop - t * K, K if penalty.separable else M.size):
                    if not penalty.separable and first % M.size == 0:
                        problem = replace(problem, penalty=parabolas_above(penalty, theta))
                    # for each k in it: g = noisy entry j at theta, over n;  theta_j <- prox(theta_j - gamma_j g)
                    theta, average = self._run(problem, theta, picks[t][first:last])
                    mean += average * ((last - first) / K)
            w_bar = mean if self.average == "uniform" else theta
        inside = penalty.prox(w_bar, 0.0)  # a box's ends need not lie on the weights' grid; moves nothing else
        if self.adaptive is not None:
            return Solution(inside)
        noise = Noise.of(curator, "noisy_coordinate_gradient")
        return Solution(inside, CoordinateTrace(picks, problem.clips, M, self.relative_step, n, noise, self.average))

    def _run(self, at: _Problem, theta: Floats, picks: Picks) -> tuple[Floats, Floats]:
        """Take some of the inner steps; return the last iterate and their mean."""
        if self.block_size > 1:
            return self._blocks(at, theta, picks)
        return self._steps(at, theta, picks) if self.adaptive is None else self._adaptive_steps(at, theta, picks)

    def _steps(self, at: _Problem, w: Floats, picks: Picks) -> tuple[Floats, Floats]:
        """Take single steps, all of them in one compiled call."""
        coordinates = np.concatenate(picks)
        run = at.curator.noisy_coordinate_steps(
            w, coordinates, clips=at.clips, steps=self.relative_step / at.smoothness, penalty=at.penalty, n=at.n
        )
        return run.last, run.mean

    def _blocks(self, at: _Problem, w: Floats, picks: Picks) -> tuple[Floats, Floats]:
        """Take steps on blocks, shortened by the block's size, which is safe for any correlation inside it."""
        w, mean = w.copy(), np.zeros_like(w)
        for block in picks:
            steps = self.relative_step / (block.size * at.smoothness[block])
            gradient = at.curator.noisy_coordinate_gradient(w, block, clips=at.clips[block]) / at.n
            for j, moved, step in zip(block.tolist(), w[block] - steps * gradient, steps, strict=True):
                w[j] = prox_one(at.penalty, moved, step, j)
            mean += w / len(picks)
        return w, mean

    def _adaptive_steps(self, at: _Problem, w: Floats, picks: Picks) -> tuple[Floats, Floats]:
        """Take single steps, each followed by an update of its coordinate's clip, in place."""
        assert self.adaptive is not None
        mean = np.zeros_like(w)
        for block in picks:
            j = int(block[0])
            run = at.curator.noisy_coordinate_steps(
                w, block, clips=at.clips, steps=self.relative_step / at.smoothness, penalty=at.penalty, n=at.n
            )
            share = at.curator.noisy_share_within(w, j, clip=at.clips[j]) / at.n + 0.5
            at.clips[j] *= math.exp(-self.adaptive.rate * (min(max(share, 0.0), 1.0) - self.adaptive.quantile))
            w = run.last
            mean += w / len(picks)
        return w, mean

    def _picks(self, curator: "Curator", smoothness: Floats, count: int) -> Picks:
        """Pick ``count`` blocks of coordinates, by public random numbers alone."""
        p, size = smoothness.size, min(self.block_size, smoothness.size)
        given = self.probabilities is not None
        if size == 1 and (given or self.schedule != "cyclic"):
            return [np.array([j]) for j in self._single(curator, smoothness, count).tolist()]
        if self.schedule == "cyclic" and not given:
            blocks: Picks = []
            while len(blocks) < count:
                order = np.argsort(curator.public_integers(1 << 62, p), kind="stable")  # a uniform permutation
                blocks += [order[first : first + size] for first in range(0, p, size)]
            return blocks[:count]
        weights = self._weights(smoothness)
        return [_weighted_order(curator, weights)[:size] for _ in range(count)]

    def _single(self, curator: "Curator", smoothness: Floats, count: int) -> Integers:
        if self.schedule == "uniform" and self.probabilities is None:
            return curator.public_integers(smoothness.size, count)
        weights = np.cumsum(self._weights(smoothness))
        points = curator.public_integers(1 << 53, count) / 2.0**53 * weights[-1]
        return np.asarray(np.minimum(np.searchsorted(weights, points, side="right"), smoothness.size - 1))

    def _weights(self, smoothness: Floats) -> Floats:
        """Return in proportion to what coordinates are drawn."""
        if self.probabilities is not None:
            return np.array(self.probabilities)
        return np.ones(smoothness.size) if self.schedule == "uniform" else smoothness**self.importance

    def bound(
        self,
        domain: Domain,
        loss: Loss,
        budget: Budget,
        *,
        radius: float,
        penalty: Penalty | None = None,
        modulus: float | None = None,
    ) -> RiskBound:
        """Bound the excess risk of this run in expectation for declared constants, ||w* - w0||_inf <= ``radius``.

        Upper: ``randomized_bound``, for independent draws of single coordinates, steps of at most 1/M_j and clips
        C_j >= L_j; with an L2 penalty (part of F), or a ``modulus`` mu_M of F that is publicly known, in the norm
        sqrt(sum_j M_j v_j^2), the problem is strongly convex. Other runs, such as the
        estimators' defaults, which clip lower, are refused: no bound is proven for them.
        Lower: the order (L_min / L_max) sqrt(p) ||L||_2 ||w*||_2 / (n epsilon), or its square without ||w*||_2 over
        the penalty's strength.
        """
        cyclic = self.schedule == "cyclic" and self.probabilities is None
        if cyclic or self.block_size > 1 or self.adaptive is not None:
            raise Unsupported("the bound is for coordinates drawn one by one with fixed clips: set schedule='uniform'")
        penalty = NoPenalty() if penalty is None else penalty
        p = domain.n_features
        moduli = None if modulus is None else (modulus / p, modulus)
        at = Coordinates.of(self.geometry, self.relative_step, domain, loss, penalty, budget, moduli)
        weights, longest = self._weights(at.smoothness), radius + float(np.abs(at.start).max())
        trivial = min(longest * float(at.slopes.sum()), excess_of_zeros(loss, domain, longest * math.sqrt(p)))
        upper = randomized_bound(
            at,
            price_plan(self.plan(domain, loss, penalty), budget).noise_multiplier,
            weights / weights.sum(),
            rounds=self.n_outer,
            steps=self.inner(domain),
            averaged=self.average == "uniform",
            radius=radius,
            initial=at.initial(radius * float(at.slopes.sum()), trivial),
        )
        width = float(at.slopes.min() / at.slopes.max() * np.linalg.norm(at.slopes)) * math.sqrt(p)
        return RiskBound(upper, min(lower_order(at, width, longest * math.sqrt(p)), trivial), trivial)

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return what ``cd`` stands for (``settings``)."""
        return settings.cd(settings.Facts(domain, loss, penalty, budget))

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Choose the clips, where they are left open, as ``defaults`` does."""
        if self.geometry.has_clips:
            return self
        plain = settings.plain_cd(settings.Facts(domain, loss, NoPenalty(), budget)).geometry
        return replace(self, geometry=replace(self.geometry, clip=plain.clip, relative_clip=plain.relative_clip))

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Take five short steps."""
        return AuditCase(cls(n_outer=1, n_inner=5, geometry=Geometry(clip=CANARY_CLIP), relative_step=SHORT_STEP))


def _cut(first: int, last: int, every: int) -> Iterator[tuple[int, int]]:
    """Cut a part of the inner loop at the multiples of ``every``."""
    return pairwise([first, *range((first // every + 1) * every, last, every), last])


def prox_one(penalty: Penalty, x: float, step: float, j: int) -> float:
    """Apply the proximal operator of one coordinate."""
    return float(prox_coordinate(penalty, x, step, j))


def _weighted_order(curator: "Curator", weights: Floats) -> Integers:
    """Draw coordinates one after the other in proportion to their weights: by exponential arrival times."""
    points = (curator.public_integers(1 << 53, weights.size) + 0.5) / 2.0**53
    return np.argsort(-np.log(points) / weights, kind="stable")
