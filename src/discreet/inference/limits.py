"""How far rows, slopes and curvatures count in full where effects are estimated, and when they are not estimated.

**From public facts.** ``breadth`` q = sqrt(n / p) mu / a is a sampling error in units of the noise that steps with the
whole budget would have, for rows of length sqrt(p) and slopes of one deviation. Limits widen with signal:

``reach`` R times a typical row's length r: rows beyond it count less, with the weight min(R / r, slack (R / r)^2)
    Bounded slopes (logistic, Huber): in proportion to q, and of classes to the slopes' deviation in units of half the
    largest slope, as soon as it is released: slopes of rare classes vary less, and noise is as large. Weights do not
    bias these estimates where the model holds. Where it does not, with far-out features, they move the target; but
    noise is in proportion to the reach. What is left is allowed for (``estimate.ALLOWED``). Other slopes (least
    squares, Poisson): gradients have limits of their own, chosen from noisy counts. The Hessian's noise is in
    proportion to the square of the reach, so the reach is held
    below the root of a part of the sharpness.
``slack`` 1.5
    A weight of R / r, the largest whose gradients are no longer than R, biases less than (R / r)^2 at the same noise.
    Beyond 1.5 R weights fall with the square, so that a record's Hessian is at most 1.5 times what its clip of
    sup f'' R^2 leaves: steps contract.
``leading`` short steps before the Hessian, for counts and for three classes or more
    At a start that is too low the curvature of a rare cell is far below what it should be, and chords overshoot.
``scale_share`` (220 a / (n mu))^2, between .002 and .05
    Noise in the shares of rows that tell how narrow a column is: about .02 each.
``covariance_share`` c, the last steps have s:  argmin 1 / (mu s) + 1 / sqrt(c)
    Of rows of length r and slopes of deviation d, cut at k of them, noise adds k^2 r^2 a^2 / (n mu^2 s) of itself to a
    coefficient's variance, and is k^2 r^2 a_M / (n mu sqrt(c)) of the score's, whatever k is: both widen intervals.
``settling`` steps, and ``hessians`` among them
    Each step brings the distance to the root down to about a third where the start is poor, if the Hessian is that of
    the start. Where outcomes are rare or margins steep it may be so much smaller there that steps only turn around the
    root. Steps from the next Hessian shrink with the square of the distance, and as many Hessians are asked for as
    stand out of their noise, each as much as all of them at the least signal.
``sharpness`` n mu / (a_M p^1.5), a_M = sqrt(2) under ``replace_one``
    How far a Hessian in whitened coordinates stands out of its noise, with all of the budget. Below a least one there
    is too little signal for standard errors: nothing is released.
``steadiness`` n mu / (a p), for classes
    How little one step's noise moves a typical row's margin. Below a least one single steps overshoot the sigmoid, and
    so many effects are hidden that the rest cover too seldom: nothing is released.

**From noisy counts.** A limit adds noise in proportion to itself, and cuts what lies beyond it. With T(u) the number of
records beyond u:

    cut gradients     their sum loses at most the integral of T over norms of gradients beyond B; rows of rare values,
                      which counts do not see, lose what slopes of usual rows would lose at their length (``Excess``)
    down-weighted     it loses at most (1 - weight) r slopes of rows beyond R (``lost_by_weights``)
    limits            argmin (limit noise)^2 + lost^2

so that the bias is below the noise, and both fall as records or budget grow: with much signal, nothing is cut. Counts
that do not stand out of their noise are taken for none; counts that tell single rows are taken at their word, and
nothing is added to them for rows that they might miss.

**Far-out columns.** A few dozen rows far out in one column may carry most of what least squares or a Poisson model say
of it, and be too few to stand out of the noise of any count by size. How many rows are far out in which column is
counted by itself. Where some are, and limits may have cut as many, the column's effect is unknown by what these rows
may have lost: as much each as it may count for. It is hidden where that is not small, and others allow for it.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from discreet.accounting.gaussian import mu_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import Edges
from discreet.losses.base import Loss
from discreet.parameters import Positive, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.settings import count_of
from discreet.typing import Floats

LEAST_SHARPNESS, LEAST_STEADINESS = 30.0, 125.0
LEAST_SETTLING, MOST_SETTLING, LEADING = 2, 24, 4
PLENTY = 2.0**8
FEWEST_HESSIANS, MOST_HESSIANS = 3, 6
LEAST_OF_REST, MOST_OF_REST = 0.11, 0.4
LEAST_SCALE_SHARE, MOST_SCALE_SHARE, SCALES = 0.002, 0.05, 220.0
WIDEST = 256
LEAST_REACH, BOUNDED, SLACK = 1.5, 0.4, 1.5
SEEN, SEEN_BOUNDED = 0.035, 0.02
UNLIMITED = 1e3
ANYWAY = "even_if_empty=True (--even-if-empty) fits anyway"
FORECAST = (
    "rare outcomes and categories need more: discreet forecast --effects with --mean and --cell, or forecast_effects() "
    "with mean and cells, says how much"
)
"""What refusals of effects advise."""


@dataclass(frozen=True)
class Limits:
    """How far rows (in typical lengths) and slopes (in deviations) count in full.

    Parameters
    ----------
    reach, slope : float
        Beyond these a row's weight falls, and a slope is clipped.

    Examples
    --------
    >>> from discreet.solvers import Limits
    >>> Limits(reach=3.0, slope=8.0).reach
    3.0
    """

    reach: Positive
    slope: Positive

    def __post_init__(self) -> None:
        check_fields(self)


def breadth(domain: Domain, budget: Budget) -> float:
    """Return q, infinite without privacy."""
    if not budget.is_private:
        return math.inf
    mu = mu_of(budget.epsilon, budget.delta)
    return math.sqrt(count_of(domain) / columns_of(domain)) * mu / budget.neighbors.sum_factor


def columns_of(domain: Domain) -> float:
    """Return p, for K outputs p K / 2: as with two classes, where entries of slopes are about sqrt(1 / K) each."""
    return domain.n_features * max(1.0, domain.n_outputs / 2.0)


def sharpness(domain: Domain, budget: Budget) -> float:
    """Return how far a Hessian stands out of its noise, infinite without privacy."""
    if not budget.is_private:
        return math.inf
    mu, factor = mu_of(budget.epsilon, budget.delta), math.sqrt(budget.neighbors.sum_factor)
    return float(count_of(domain) * mu / (factor * columns_of(domain) ** 1.5))


def steadiness(domain: Domain, budget: Budget) -> float:
    """Return how little one step's noise moves a typical row's margin, infinite without privacy."""
    if not budget.is_private:
        return math.inf
    mu = mu_of(budget.epsilon, budget.delta)
    return count_of(domain) * mu / (budget.neighbors.sum_factor * columns_of(domain))


def scale_share_for(domain: Domain, budget: Budget) -> float:
    """Return the share for columns in ranges that are far too wide: as much as shares of rows need to be clear."""
    if not budget.is_private:
        return LEAST_SCALE_SHARE
    signal = steadiness(domain, budget) * columns_of(domain)
    return min(MOST_SCALE_SHARE, max(LEAST_SCALE_SHARE, (SCALES / signal) ** 2))


def covariance_share_for(budget: Budget, rest: float) -> float:
    """Return what the scores' covariance gets of the ``rest``, which it shares with the last steps."""
    if not budget.is_private:
        return LEAST_OF_REST * rest
    clear = mu_of(budget.epsilon, budget.delta) / budget.neighbors.sum_factor**1.5
    shares = rest * np.linspace(LEAST_OF_REST, MOST_OF_REST, 32)
    return float(shares[np.argmin(1.0 / (clear * (rest - shares)) + 1.0 / np.sqrt(shares))])


def settling_for(domain: Domain, budget: Budget, hessians: int) -> int:
    """Return how many steps follow a Hessian before the next: the more signal, the nearer the root they must come."""
    q = breadth(domain, budget)
    steps = MOST_SETTLING if q >= 2.0**MOST_SETTLING else round(math.log2(q) / (1.5 if q < PLENTY else 1.0)) + 1
    return max(LEAST_SETTLING, steps // max(1, hessians - 2))


def leading_for(loss: Loss) -> int:
    """Return how many short steps come before the Hessian: an exponential curvature at a poor start misleads."""
    return LEADING if loss.log_link or loss.softmax_link else 0


def hessians_for(domain: Domain, loss: Loss, budget: Budget, share: float) -> int:
    """Return how often the Hessian is estimated: once where it is the same everywhere.

    ``share`` of mu^2 is that of all but the last, each of which has to stand out as at the least signal.
    """
    if loss.quadratic:
        return 1
    clear = share * (sharpness(domain, budget) / LEAST_SHARPNESS) ** 2
    return 1 + int(max(FEWEST_HESSIANS - 1, min(clear, MOST_HESSIANS - 1)))


def limits_for(domain: Domain, loss: Loss, budget: Budget) -> Limits:
    """Return the limits that public signal allows."""
    if not budget.is_private:
        return Limits(UNLIMITED, UNLIMITED)
    q = breadth(domain, budget)
    if math.isfinite(loss.lipschitz):
        return Limits(
            max(LEAST_REACH, min(BOUNDED * q, math.sqrt(SEEN_BOUNDED * sharpness(domain, budget)))), UNLIMITED
        )
    return Limits(max(LEAST_REACH, math.sqrt(SEEN * sharpness(domain, budget))), UNLIMITED)


def refusal(domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, cov_type: str) -> str | None:
    """Return why effects are not estimated, and what would help; None where they are. Public facts only."""
    if not penalty.ridge:
        return "a penalty with corners (L1) moves effects to 0 and has no sandwich: use no penalty, or L2"
    if not loss.has_standard_errors:
        name = type(loss).__name__
        return f"standard errors are not proven for the {name} loss: leave inference out, or use another loss"
    if not (loss.sigmoid_link or loss.softmax_link or loss.movable_target or loss.log_link):
        return "effects are estimated for logistic, softmax, squared, Huber and Poisson losses: use one of these"
    if budget.is_pure:
        return "effects are estimated with Gaussian noise, which needs a delta above 0: leave delta out"
    if domain.sparse:
        return "effects are estimated in whitened coordinates, which fill sparse records: pass a dense array"
    if domain.n_features * domain.n_outputs > WIDEST:
        most = WIDEST // domain.n_outputs - 1
        return f"effects are estimated of at most {most} features{_of_classes(domain)}: use fewer columns"
    if cov_type == "model" and loss.movable_target and math.isfinite(loss.lipschitz):
        return "cov_type='model' trusts a likelihood, which Huber's loss has not: use cov_type='robust'"
    if cov_type == "cluster" and not domain.grouped:
        return "cov_type='cluster' needs persons: pass groups, or name the person in the schema"
    return None


def shortage(domain: Domain, loss: Loss, budget: Budget) -> float:
    """Return how many times the signal is short of what standard errors need; at most 1 where it suffices."""
    steady = LEAST_STEADINESS / steadiness(domain, budget) if loss.task == "classification" else 0.0
    return max(LEAST_SHARPNESS / sharpness(domain, budget), steady)


def _of_classes(domain: Domain) -> str:
    return f" and {domain.n_outputs} classes" if domain.n_outputs > 1 else ""


FINE, MOST_EDGES = 1.25, 48
"""Edges of shells grow by this factor, over four orders of magnitude."""
CLEAR, LEAST_ROWS = 3.5, 0.5
"""A count is believed from so many deviations of its noise on: dozens of shells are looked at."""
FAR_OUT, SOME = 5.0, 1.0
"""Entries beyond so many deviations are far out (of a normal column none is), and so many deviations of a count's noise
say that a column has some: to hide an effect for nothing costs less than to show a wrong one."""
FALL, SLOWEST = 2, 2.0
"""Over how many shells the fall of a tail is taken, and its least power: a mean has to exist."""
MEAN_POWER, MEAN_POWER_OF_HESSIANS, MARKOV = 2.5, 1.9, 4.0
"""Powers of sizes that have a mean: of lengths, slopes and gradients, and of Hessians; how many times the mean of the
whole power below may be larger than its estimate."""
MISFIT = 0.25
"""By how many deviations the mean outcome of far-out rows may be off the model's, if it is wrong."""


@dataclass(frozen=True)
class Influence:
    """What limits a record's influence, and what the limits change.

    ``reach`` is the length up to which rows count in full; ``score``, ``hessian`` and ``square`` are the largest norms
    of a record's weighted gradient, Hessian and squared score, ``slope`` is about the largest slope. ``far`` and
    ``cut`` are noisy numbers of rows beyond the first two, ``most_far`` bounds the first. ``lost`` is what the sum of
    gradients may lose by weights, ``lost_by_cuts`` what it may lose along each column where gradients are cut, and
    ``astray`` what it may lose there by rows that are far out.
    """

    reach: float
    score: float
    slope: float
    hessian: float
    square: float = 0.0
    far: float = 0.0
    most_far: float = 0.0
    cut: float = 0.0
    lost: float = 0.0
    lost_by_cuts: Floats | float = 0.0
    astray: Floats = field(default_factory=lambda: np.zeros(1))


def grid(start: float, end: float) -> Floats:
    """Return edges from ``start`` on, up to the first that is not below ``end``."""
    count = math.ceil(math.log(max(end / start, 1.0)) / math.log(FINE)) if math.isfinite(end) else MOST_EDGES
    return np.asarray(start * FINE ** np.arange(min(count, MOST_EDGES) + 1))


def beyond(counts: Floats, noise: float, edges: Floats, power: float = MEAN_POWER) -> Floats:
    """Return how many records are beyond each edge, never increasing.

    Where that does not stand out of noise any more, the tail is continued as it bent last, a parabola in logarithms (a
    lognormal law's tail is one), but never above what noise may hide, nor above the tail of sizes whose ``power`` has a
    mean, in units of the first edge: what noise could hide far out would otherwise set every limit. The first edge is a
    mean size of the whole power below, so that Markov's inequality bounds clear counts, too.
    """
    tail = np.cumsum(counts[::-1])[::-1][1:]
    hidden = CLEAR * noise * np.sqrt(np.arange(len(tail), 0, -1))
    clear = np.flatnonzero(tail > np.maximum(hidden, LEAST_ROWS))
    last = int(clear[-1]) if len(clear) else -1
    hidden = np.where(hidden < LEAST_ROWS, 0.0, hidden)  # there is no part of a row
    believed = np.minimum(np.maximum(tail, 0.0), hidden)
    if last >= 0:
        believed[: last + 1] = np.maximum.accumulate(tail[last::-1])[::-1]
        falls = -np.diff(np.log(believed[: last + 1]))[-2 * FALL :] / math.log(FINE)
        fall = float(falls[-FALL:].mean()) if len(falls) else 0.0
        bend = max(0.0, fall - float(falls[:FALL].mean())) / FALL if len(falls) == 2 * FALL else 0.0
        later = np.arange(1, len(tail) - last)
        powers = np.cumsum(np.maximum(fall, SLOWEST) + bend * (later + (FALL - 1) / 2))
        believed[last + 1 :] = np.minimum(believed[last] * FINE**-powers, hidden[last + 1 :])
    most, sizes = max(float(counts.sum()), 0.0), edges / edges[0]
    likely = np.where(np.arange(len(tail)) > last, most * sizes**-power, np.inf)
    bounded = np.minimum(np.minimum(believed, likely), MARKOV * most * sizes ** -math.floor(power))
    return np.asarray(np.where(hidden > 0, bounded, believed))  # counts that tell single rows need no other word


def tells_rows(noise: float, edges: Floats) -> bool:
    """Whether counts between edges have so little noise that each single row is seen, wherever it is."""
    return CLEAR * noise * math.sqrt(len(edges)) < LEAST_ROWS


def excess(tail: Floats, edges: Floats) -> Floats:
    """Return what is beyond each edge, the integral of the tail from there on."""
    widths = np.append(np.diff(edges), edges[-1] - edges[-2] if len(edges) > 1 else 0.0)
    return np.asarray(np.cumsum((tail * widths)[::-1])[::-1])


def lost_by_weights(tail: Floats, edges: Floats, reach: float, slack: float) -> float:
    """Return what rows beyond the reach may lose of the sum of gradients, a shell's rows at its outer edge.

    In deviations of slopes: all of them are off by ``MISFIT``.
    """
    rows, outer = tail - np.append(tail[1:], 0.0), FINE * edges
    part = np.minimum(1.0, reach / outer)
    less = np.where(edges >= reach * (1 - 1e-9), (1.0 - part * np.minimum(1.0, slack * part)) * outer, 0.0)
    return MISFIT * float(rows @ less)


def edges_of(
    *, length: float, longest: float, deviation: float, steepest: float, bend: float, sharpest: float
) -> Edges:
    """Return shells from typical sizes to the largest that declared ranges and the loss allow.

    ``length`` and ``deviation`` are typical ones of rows and slopes, ``bend`` is a mean curvature.
    """
    length, deviation, bend = min(length, longest), min(deviation, steepest), min(bend, sharpest)
    return Edges(
        lengths=grid(length, longest),
        hessians=grid(bend * length**2, sharpest * longest**2),
        scores=grid(deviation * length, steepest * longest),
        columns=np.empty(0),
    )


class Rare(NamedTuple):
    """Rows of rare values, column by column: their share of all, how many times longer they are, their column's part.

    The share is 0 for columns without rare values.
    """

    shares: Floats
    times: Floats
    parts: Floats


NONE_RARE = Rare(np.zeros(1), np.ones(1), np.zeros(1))


@dataclass(frozen=True)
class Excess:
    """What a sum loses of summands whose norms are beyond a limit, by noisy counts of them.

    Too few gradients of a rare value's rows are beyond a limit to stand out of the noise of counts. But those of usual
    rows tell which slopes there are, and in rows that are so many times longer these slopes are cut: if slopes have one
    law, T(u) = T_0(u) + sum_j share_j T_0(u / times_j) / (the share of usual rows), which is solved from small u on.
    """

    norms: Floats
    tail: Floats
    rare: Rare = NONE_RARE

    @classmethod
    def of(
        cls, counts: Floats, norms: Floats, hidden: float, power: float = MEAN_POWER, rare: Rare = NONE_RARE
    ) -> "Excess":
        """Return it for counts between edges with the noise ``hidden``; ``power`` is that of ``beyond``."""
        seen = tells_rows(hidden, norms)
        return cls(norms, beyond(counts, hidden, norms, power), NONE_RARE if seen else rare)

    @property
    def lost(self) -> Floats:
        """What is lost of all summands at each edge."""
        return excess(self.tail, self.norms)

    @cached_property
    def _usual(self) -> Floats:
        """How many gradients of usual rows are beyond each edge."""
        odds = self.rare.shares / max(1.0 - float(self.rare.shares.sum()), 0.5)
        usual = self.tail.copy()
        for place, norm in enumerate(self.norms):
            if place:
                shorter = np.interp(norm / self.rare.times, self.norms[:place], usual[:place])
                usual[place] = min(max(self.tail[place] - float(odds @ shorter), 0.0), usual[place - 1])
        return usual

    def in_rare(self, limits: Floats | float) -> Floats:
        """Return what is lost along the column of each rare value, the last axis of the answer, in its rows alone."""
        shares, times, parts = self.rare
        short = np.multiply.outer(limits, 1.0 / times)
        below = self._usual[0] * np.maximum(self.norms[0] - short, 0.0)
        lost = np.interp(short, self.norms, excess(self._usual, self.norms), right=0.0) + below
        return np.asarray(shares * times * parts * lost)

    def at(self, limit: float) -> float:
        """Return what is lost of all summands beyond a limit."""
        return float(np.interp(limit, self.norms, self.lost, right=0.0))

    def least(self, noise: float) -> float:
        """Return the limit with the least noise and loss together; ``noise`` is that of a direction per its unit."""
        squares = np.square(self.lost) + np.square(self.in_rare(self.norms)).sum(axis=-1)
        return float(self.norms[np.argmin(np.square(self.norms * noise) + squares)])


def chosen_norm(counts: Floats, norms: Floats, *, noise: float, hidden: float, power: float = MEAN_POWER) -> float:
    """Return the limit on summands of such norms with the least noise and loss together, if all is in one direction.

    ``noise`` is that of a direction per unit of the limit, ``hidden`` that of the counts; ``power`` is of ``beyond``.
    """
    return Excess.of(counts, norms, hidden, power).least(noise)


def number_beyond(counts: Floats, edges: Floats, limit: float, noise: float) -> float:
    """Return how many records are beyond a limit; 0 where that does not stand out of noise."""
    first = int(np.searchsorted(edges, limit * (1 - 1e-9))) + 1
    shells = counts[first:]
    number = float(shells.sum())
    return number if number > max(CLEAR * noise * math.sqrt(len(shells)), LEAST_ROWS) else 0.0


def most_beyond(counts: Floats, edges: Floats, limit: float, noise: float) -> float:
    """Return how many records may be beyond a limit, by a deviation of the noise; 0 where that is no whole one."""
    shells = counts[int(np.searchsorted(edges, limit * (1 - 1e-9))) + 1 :]
    number = max(float(shells.sum()), 0.0) + noise * math.sqrt(len(shells))
    return number if number > LEAST_ROWS else 0.0


def most_lost(counts: Floats, edges: Floats, limit: float, noise: float) -> float:
    """Return what records beyond a limit may lose of the sum, by a deviation of the noise; infinite past all edges."""
    rows = np.maximum(counts, 0.0) + noise
    rows = np.where(rows > LEAST_ROWS, rows, 0.0)[1:]
    outer = np.append(edges[1:], math.inf)
    beyond_limit = (outer > limit * (1 + 1e-9)) & (rows > 0)
    return float(rows[beyond_limit] @ (outer[beyond_limit] - limit))


def far_out(counts: Floats, noise: float) -> Floats:
    """Return how many rows are far out in each column; 0 where that does not stand out."""
    return np.asarray(np.where(counts[1:] > max(SOME * noise, LEAST_ROWS), counts[1:], 0.0))
