"""Shrink what was released by what is noise in it. Post-processing: it costs no budget.

Noise is known: its variance follows from the plan and from the steps that were taken (``traces``). What a slope or an
intercept says beyond its noise is kept: E[v_j | v], by empirical Bayes (``posterior_weights``). That there is anything
but noise must be ``FARTHER * ODDS`` times likelier than that there is not: one entry, or a few, must stand out clearly.
Where noise is only bounded, as that inside an objective, nothing is shrunk: the bound would take the signal for noise.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from discreet.bounds import Domain
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty
from discreet.solvers.base import Solution
from discreet.solvers.propagation import posterior_weights
from discreet.solvers.traces import CoordinateTrace, DescentTrace, EpochsTrace, Spectrum
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

HIDDEN = 2.0
"""A mean within this many deviations of its noise is taken for none."""
ODDS = 10.0
"""Against that slopes, or an intercept, are not where steps started."""
FARTHER = 3.0
"""How many times these odds are of names: their noise is known less well, and what is large of it costs most."""
CURVED = 0.25
"""The mean curvature of a loss over its largest, as far as clips and columns in wide ranges leave it."""
USUAL = 0.16
"""The mean square of a feature in a range that fits it, over the square of its bound."""
PREDICTED = {"classification": 4.0, "regression": 1.0}
"""How large the variance of a predictor mostly is at most: log odds of 2, or that of a standardized number."""
TURNED = 1e-12
"""Directions that are closer than this are the same, in squared distance."""
LEAST = 1e-100
"""Divides, where all else may be 0; what it divides has a square."""


@runtime_checkable
class Forgetting(Protocol):
    """A trace that knows the noise of each coordinate from how curved the mean loss is along it."""

    def variances(self, bends: Floats, strengths: Floats | None = None) -> Floats:
        """Return the noise's variance along directions in which the mean loss, and a penalty, have these curvatures."""
        ...


@dataclass(frozen=True)
class Reflected:
    """The identity, or the reflection I - factor away away^T: its own inverse, without p^2 numbers."""

    away: Floats
    factor: float

    @classmethod
    def onto(cls, direction: Floats) -> "Reflected":
        """Return the axes, as columns, of which the first has this direction."""
        away = direction / max(float(np.linalg.norm(direction)), LEAST)
        away[0] -= 1.0
        square = float(away @ away)
        return cls(away, 2.0 / square if square > TURNED else 0.0)

    def __matmul__(self, v: Floats) -> Floats:
        """Return the product with a vector, or with each column."""
        return np.asarray(v - self.factor * np.multiply.outer(self.away, self.away @ v)) if self.factor else v

    @property
    def T(self) -> "Reflected":
        """Itself: it is symmetric."""
        return self

    def diagonal(self, values: Floats) -> Floats:
        """Return the diagonal of A^T diag(values) A, A being this."""
        if not self.factor:
            return values
        squares = np.square(self.away)
        return np.asarray(
            (1.0 - 2.0 * self.factor * squares) * values + self.factor**2 * squares * float(squares @ values)
        )


@dataclass(frozen=True)
class Seen:
    """Directions of slopes in which noise is independent, as columns, its deviation in each, and the intercept's.

    ``squares`` are the mean squares of rows along the directions, and what a penalty adds to them.
    """

    axes: Floats | Reflected
    slopes: Floats
    squares: Floats
    intercept: float


def noise_in(
    solution: Solution,
    curator: "Curator",
    spectrum: Spectrum | None,
    middle: Floats | None,
    penalty: Penalty,
    *,
    intercept: bool,
    constant: float | None = None,
) -> Seen | None:
    """Return the noise of what a solver found, where it is known: along the rows' second moment if that is.

    A direction forgets noise as far as the mean loss, or the ``penalty`` in the solver's coordinates, is curved along
    it. Where rows are not centered, what slopes have of an intercept they have along the ``middle`` of the ranges.
    ``constant`` is what steps started from, where it was released.
    """
    domain, loss, trace = curator.domain, curator.loss, solution.trace
    if not isinstance(trace, Forgetting) or not curator.noise_multiplier:
        return None
    bend, size = bend_of(loss, domain), len(solution.coefficients)
    left, features = bend * curved(trace, loss, domain, constant), size - intercept
    stiff = strengths_of(penalty, size)
    axes: Floats | Reflected = Reflected(np.zeros(features), 0.0)
    if spectrum is None or isinstance(trace, CoordinateTrace):
        if middle is not None and not isinstance(trace, CoordinateTrace):
            axes = Reflected.onto(middle)
        squares = mean_squares(domain)
        variances = trace.variances(left * squares, stiff)
        if not np.isfinite(variances).all():
            return None
        flat = trace.variances(np.zeros_like(squares), stiff)
        squares, variances, flat, stiff = (
            np.append(axes.diagonal(part[:features]), part[features:]) for part in (squares, variances, flat, stiff)
        )
    else:
        moment = (spectrum.vectors * spectrum.shares) @ spectrum.vectors.T
        bent = left * moment + (np.diag(stiff) if penalty.hessian is None else penalty.hessian)
        axes = np.linalg.eigh(bent[:features, :features])[1]
        squares, total = (
            np.append(np.einsum("ji,jk,ki->i", axes, part[:features, :features], axes), np.diag(part)[features:])
            for part in (moment, bent)
        )
        squares = np.maximum(squares, 0.0)
        stiff = np.maximum(total - left * squares, 0.0)
        variances, flat = trace.variances(left * squares, stiff), trace.variances(np.zeros_like(squares), stiff)
    level = np.square(level_zone(trace, loss, domain)) / np.maximum(squares, LEAST)
    if intercept and loss.n_outputs == 1 and solution.coefficients[-1] ** 2 > level[-1]:  # most margins are beyond it
        level[:features] = 0.0
    variances = np.minimum(variances + level, flat)
    if not np.isfinite(variances).all():
        return None
    noise = np.sqrt(variances)
    return Seen(axes, noise[:features], squares[:features] + stiff[:features] / bend, float(noise[-1]))


def strengths_of(penalty: Penalty, size: int) -> Floats:
    """Return how curved a penalty is along each coordinate; corners are none."""
    if penalty.hessian is not None:
        return np.asarray(np.diag(penalty.hessian))
    strength: Floats | float = penalty.strong_convexity if penalty.l1_l2 is None else penalty.l1_l2[1]
    return np.broadcast_to(np.asarray(strength, dtype=np.float64), (size,)).copy()


def mean_squares(domain: Domain) -> Floats:
    """Return the mean squares of columns, as estimated; else usual ones of declared ranges, many of which are wide."""
    if domain.typical is not None:
        return domain.typical.squares if domain.typical.likely is None else domain.typical.likely
    usual = np.full(domain.n_features, USUAL)
    usual[domain.n_features - domain.intercept :] = 1.0
    return np.asarray(usual * np.square(domain.feature_bounds))


def bend_of(loss: Loss, domain: Domain) -> float:
    """Return the largest curvature; of counts, whose declared ranges are wide, a typical one."""
    return float(loss.typical_curvature(domain.target_bound) if loss.log_link else loss.smoothness)


def curved(trace: object, loss: Loss, domain: Domain, constant: float | None = None) -> float:
    """Return the mean curvature over that: of numbers what clips leave of normal errors of deviation 1.

    And what that is at the ``constant`` that steps start from, where it was released.
    """
    length = None if domain.typical is None else domain.typical.norm
    if loss.movable_target and isinstance(trace, DescentTrace | EpochsTrace) and length is not None:
        return math.erf(trace.clip / (math.sqrt(2.0) * length))
    if constant is None:
        return CURVED
    targets = (math.exp(constant),) if loss.log_link else (-1.0, 1.0)
    bends = [float(loss.bends_at(np.array([constant]), target)[0]) for target in targets]
    return CURVED * math.fsum(bends) / len(bends) / bend_of(loss, domain)


def level_zone(trace: object, loss: Loss, domain: Domain) -> float:
    """Return up to which margins both classes have clipped slopes, so that clipped gradients do not tell them apart."""
    length = None if domain.typical is None else domain.typical.norm
    if not loss.sigmoid_link or length is None or not isinstance(trace, DescentTrace | EpochsTrace):
        return 0.0
    slope = trace.clip / length
    return max(0.0, math.log((1.0 - slope) / slope)) if slope < 1 else 0.0


def shrunk(solution: Solution, curator: "Curator", seen: Seen, *, intercept: bool = True) -> Solution:
    """Return a solution without what is noise in its slopes, and its intercept, from where steps started.

    Its trace stays that of the coefficients as they were released. The intercept of losses with a log link that starts
    at 0 ends far from there, and stays.
    """
    loss, start, features = curator.loss, curator.domain.starting_point, len(seen.slopes)
    v = (solution.coefficients - start).reshape(len(start), -1)
    moved = seen.slopes > 0  # greedy steps leave most where they were
    if moved.any():
        along, noise = seen.axes.T @ v[:features], seen.slopes[moved, None]
        most = PREDICTED[loss.task] / max(float(seen.squares @ np.square(seen.slopes)), LEAST)
        along[moved] = noise * kept(along[moved] / noise, most)
        v[:features] = seen.axes @ along
    if (
        intercept
        and len(v) > features
        and seen.intercept > 0
        and (not loss.log_link or curator.domain.start is not None)
    ):
        v[-1] = seen.intercept * kept(v[-1] / seen.intercept)
    return replace(solution, coefficients=start + v.reshape(start.shape))


def kept(v: Floats, most: float = math.inf) -> Floats:
    """Return what is left of entries with noise of deviation 1."""
    flat = v.ravel()
    weights = posterior_weights(flat, np.ones(flat.size), 1.0, most=most, odds=FARTHER * ODDS)
    return np.asarray((weights * flat).reshape(v.shape))


def garrote(v: Floats, noise: float) -> Floats:
    """Return what is left of numbers with this noise: nothing of what is within two deviations of it (Breiman 1995)."""
    return np.asarray(np.maximum(np.square(v) - (HIDDEN * noise) ** 2, 0.0) / np.where(v == 0, 1.0, v))
