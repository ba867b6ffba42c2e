"""Coordinates for a recipe's steps: the declared ones, or those of an estimated center, scale and second moment."""

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.bounds import Domain, Typical
from discreet.curator import Recoding
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty
from discreet.penalties.rescaled import Quadratic
from discreet.solvers.base import Solution
from discreet.solvers.center_and_scale import Standardization, Target, affine, declared_coordinates, public_features
from discreet.solvers.declared import declared_length
from discreet.solvers.gradient_loop import slope_at_zero
from discreet.solvers.shrinkage import posterior_weights
from discreet.solvers.stage import Estimate
from discreet.solvers.uncertainty.stage_noise import DirectionsTrace, StageTrace, steps_of
from discreet.solvers.uncertainty.traces import DescentTrace
from discreet.solvers.uncertainty.whitened_noise import Spectrum
from discreet.typing import Floats

LEAST_DIRECTION = 1e-7
"""Eigenvalues are kept above this part of the largest: below is the rounding of the records."""
PREDICTED = {"classification": 4.0, "regression": 0.05}
"""How large the square of a predictor mostly is at most: log odds of 2; a fifth of half a target's declared range."""
SPREAD_OF_COUNTS = 2.0
"""How much more counts vary than a Poisson law of their mean: their curvature, and at most their deviation."""
REACH = 16.0
"""Rows longer than this many typical ones are shrunk also after whitening: it bounds the lattice."""


@dataclass(frozen=True)
class Units:
    """The size of a loss's slopes and curvatures at the start of the steps, for records that are nothing special.

    A count's deviation and mean are those of its loss's slope and curvature. Steps divide by ``largest_curvature``.
    """

    slope: float
    curvature: float
    largest_curvature: float

    @classmethod
    def of(cls, loss: Loss, target: Target) -> "Units":
        """Return those of a loss whose target was standardized, or has this center and scale."""
        if loss.log_link:
            deviation = min(target.scale, SPREAD_OF_COUNTS * math.sqrt(target.center))
            return cls(deviation, target.center, SPREAD_OF_COUNTS * target.center)
        return cls(slope_at_zero(loss), loss.smoothness, loss.smoothness)


@dataclass(frozen=True)
class Rows:
    """The coordinates in which steps are taken, and what is known of rows there.

    ``length`` is a typical row's; ``moment`` the rows' second moment as far as it stands out of noise, ``widest`` the
    largest that noise may hide, ``mean`` their mean; ``spectrum`` is for the trace of the noise, None where nothing was
    estimated; steps start at ``start``, coefficients of these rows that predict the constant ``margin`` (None: 0).
    """

    recoding: Recoding
    length: float
    moment: Floats
    widest: Floats
    mean: Floats
    target: Target
    spectrum: Spectrum | None = None
    start: Floats | None = None
    margin: float = 0.0

    def predictor(self, v: Floats) -> tuple[float, float]:
        """Return the mean of the predictor v and the largest deviation that it may have, at least a hundredth.

        A predictor along a hidden direction varies all the same: steps that take it for a constant would overshoot.
        What it started with is known exactly.
        """
        moved = v if self.start is None else v - self.start
        mean = float(self.mean @ moved)
        return self.margin + mean, math.sqrt(max(float(moved @ self.widest @ moved) - mean**2, 1e-4))

    def signal_share(self, deviation: float, steps: DescentTrace, loss: Loss) -> float:
        """Return which part of a predictor's variance is not the noise of its steps, by what both are known to be."""
        noise = self._forgetting(steps, loss)
        along = np.einsum("ij,ik,kj->j", noise.vectors, self.widest, noise.vectors)
        return max(0.0, 1.0 - float(noise.variances @ along) / deviation**2)

    def shrunk(self, v: Floats, steps: DescentTrace, loss: Loss) -> Floats:
        """Shrink what steps added up to by what is noise in it.

        A predictor's variance, and the square of its constant, are not likely to be beyond ``PREDICTED``.
        """
        features, likely = len(self.recoding.center), PREDICTED[loss.task]
        noise = math.sqrt(float(self._forgetting(steps, loss).variances.mean()))
        slopes, constants = v[:features].ravel(), v[features:]
        variance = max(float(np.trace(self.moment[:features, :features])), 1e-300)
        slopes = posterior_weights(slopes, np.ones(slopes.size), noise, most=likely / variance) * slopes
        if len(constants):
            constants = constants * (likely / (likely + float(self.moment[-1, -1]) * noise**2))
        return np.concatenate([slopes.reshape(v[:features].shape), constants])

    def solution(self, v: Floats, steps: DescentTrace, admitted: Domain, loss: Loss) -> Solution:
        """Return coefficients v of these rows in training coordinates, with what the noise of the steps did to them."""
        inner = Solution(v, steps if loss.task == "classification" else self._forgetting(steps, loss))
        trace = StageTrace(inner, self.recoding, admitted, loss, self.spectrum)
        typical = Typical(self.length, 1.0, np.diag(self.moment).copy())
        estimate = Estimate(self.recoding, typical, self.spectrum, target=self.target)
        return Solution(self.recoding.coefficients(v), trace, estimate)

    def _forgetting(self, steps: DescentTrace, loss: Loss) -> DirectionsTrace:
        """Return the noise along the moment's directions: each forgets by its curvature, as far as clips leave it.

        Residuals are taken for Gaussian and as wide as the target.
        """
        values, vectors = np.linalg.eigh(self.moment)
        taken = steps_of(steps, self.length)
        units = Units.of(loss, self.target)
        left = units.curvature * math.erf(min(taken.slope, loss.lipschitz) / (math.sqrt(2.0) * units.slope))
        return DirectionsTrace(vectors, taken.deviation**2 * taken.gain(left * np.maximum(values, 0.0)))


def pulled(penalty: Penalty, recoding: Recoding, admitted: Domain) -> Quadratic | None:
    """Return an L2 penalty in recoded coordinates, exactly; None where there is none."""
    if not penalty.ridge or penalty.strong_convexity == 0:
        return None
    return Quadratic(*affine(recoding, admitted), penalty.strong_convexity / recoding.target_scale**2)


def whitened(
    second: Floats, added: Floats, edge: float, floor: float, standard: Recoding, domain: Domain, target: Target
) -> Rows:
    """Return rows A z with A = (M + added + floor edge)^{-1/2}, M being the noisy second moment of standardized rows.

    Eigenvalues of M below the edge of its noise do not stand out of it: for the length of rows each is taken for its
    part of what the trace leaves to them, and for nothing where a second moment is asked for.
    """
    values, vectors = np.linalg.eigh(second)
    clear = values > edge
    hidden = max(1, int((~clear).sum()))
    rest = max(float(np.trace(second)) - float(values[clear].sum()), 0.0) / hidden
    likely = np.where(clear, values, min(edge, rest))
    most = np.where(clear, values, min(edge, rest + math.sqrt(2.0) * edge / hidden))  # and two deviations of the trace
    bent, axes = np.linalg.eigh((vectors * np.maximum(values, 0.0)) @ vectors.T + added)
    kept = np.maximum(bent, 0.0) + max(floor * edge, LEAST_DIRECTION * max(float(bent[-1]), 1e-300))
    matrix = (axes / np.sqrt(kept)) @ axes.T
    inside = matrix @ vectors
    moment, widest = ((inside * kind) @ inside.T for kind in (np.where(clear, values, 0.0), most))
    length = math.sqrt(max(1.0, float(np.square(inside).sum(axis=0) @ np.maximum(likely, 0.0))))
    entry = edge / (2.0 * math.sqrt(len(second)))  # the noise of an entry off the diagonal, of the mean of two
    mean = matrix @ filtered_mean(second, entry) / standard.constant if domain.intercept else np.zeros(len(second))
    recoding = replace(standard, matrix=matrix, reach=REACH * length if math.isfinite(standard.row_norm) else None)
    ends = np.square(matrix).sum(axis=0) * np.square(standard.domain(domain).feature_bounds)
    farthest = np.sqrt(np.maximum(1.0, 1.0 + (ends - 1.0) / length**2))
    shares, directions = np.linalg.eigh(moment)
    spectrum = Spectrum(np.maximum(shares, 0.0), directions, mean, farthest, kept, entry, length)
    return Rows(recoding, length, moment, widest, mean, target, spectrum)


def filtered_mean(second: Floats, noise: float) -> Floats:
    """Return the mean of rows times their constant, the last column of M: the features' part shrunk by what is noise.

    Features were centered, so that it is small; by James and Stein's rule, of entries with this noise.
    """
    features = second[:-1, -1]
    square = float(features @ features)
    kept = max(0.0, 1.0 - len(features) * noise**2 / square) if square > 0 else 0.0
    return np.append(kept * features, second[-1, -1])


def declared_features(domain: Domain) -> Standardization:
    """Return the declared ranges (or public moments) as coordinates, with a typical row's length."""
    if domain.moments is not None:
        return public_features(domain, domain.moments)
    start = declared_coordinates(domain)
    return Standardization(start, declared_length(domain, start) ** 2, np.ones(len(start.center)))


def declared_rows(domain: Domain, standard: Recoding, radius: float, target: Target) -> Rows:
    """Return rows in declared coordinates: of one length, their mean at the center, all columns alike."""
    features, constant = len(standard.center), standard.constant * domain.intercept
    each = max(1.0 / radius**2 - constant**2, 0.0) / max(1, features)
    moment = np.append(np.full(features, each), constant**2)[: domain.n_features]
    mean = np.append(np.zeros(features), constant)[: domain.n_features]
    return Rows(standard, 1.0 / radius, np.diag(moment), np.diag(moment), mean, target)
