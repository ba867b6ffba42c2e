"""Coordinates for a recipe's steps: the declared ones, or those of an estimated center, scale and second moment.

What steps added up to is shrunk by what is noise in it, by empirical Bayes (``solvers/propagation``).
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet.bounds import Domain, Typical
from discreet.curator import Recoding
from discreet.losses.base import Loss, slope_at_zero
from discreet.solvers.base import Solution
from discreet.solvers.coordinates import (
    TINY,
    Estimate,
    Standardization,
    Target,
    declared_coordinates,
    declared_length,
    public_features,
)
from discreet.solvers.propagation import posterior_weights
from discreet.solvers.traces import (
    DescentTrace,
    DirectionsTrace,
    Spectrum,
    StageTrace,
    curvature_of_margins,
    moved_by_moment,
    steps_of,
)
from discreet.typing import Floats

PREDICTED = {"classification": 4.0, "regression": 0.05}
"""How large the square of a predictor mostly is at most: log odds of 2; a fifth of half a target's declared range."""
NOTHING = 1.0
"""Slopes without signal that a fit is taken to have next to its own."""
SPREAD_OF_COUNTS = 2.0
"""How much more counts and amounts vary than their family's law: their curvature, and at most their deviation."""


@dataclass(frozen=True)
class Units:
    """The size of a loss's slopes and curvatures at the start of the steps, for records that are nothing special.

    With a log link they follow from the target's mean and deviation and the loss's variance function: a count's are
    those of a Poisson loss. Steps divide by ``largest_curvature``.
    """

    slope: float
    curvature: float
    largest_curvature: float

    @classmethod
    def of(cls, loss: Loss, target: Target) -> "Units":
        """Return those of a loss whose target was standardized, or has this center and scale."""
        if loss.log_link:
            variance = loss.variance(target.center)
            ratio = variance / target.center
            deviation = min(target.scale, SPREAD_OF_COUNTS * math.sqrt(variance))
            return cls(deviation / ratio, target.center / ratio, SPREAD_OF_COUNTS * target.center / ratio)
        return cls(slope_at_zero(loss), loss.normal_curvature or loss.smoothness, loss.smoothness)


@dataclass(frozen=True)
class Rows:
    """The coordinates in which steps are taken, and what is known of rows there.

    ``length`` is a typical row's; ``moment`` the rows' second moment as far as it stands out of noise, ``widest`` the
    largest that noise may hide, ``mean`` their mean; ``spectrum`` is for the trace of the noise, None where nothing was
    estimated; steps start at ``start``, coefficients of these rows that predict the constant ``margin`` (None: 0), off
    the best one by about ``doubt``.
    """

    target: Target
    recoding: Recoding
    length: float
    moment: Floats
    widest: Floats
    mean: Floats
    spectrum: Spectrum | None = None
    start: Floats | None = None
    margin: float = 0.0
    doubt: Floats | float = math.inf

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
        noise = self._forgetting(steps, loss, self.widest)
        along = (noise.vectors * (self.widest @ noise.vectors)).sum(axis=0)
        return max(0.0, 1.0 - float(noise.variances @ along) / deviation**2)

    def shrunk(self, v: Floats, steps: DescentTrace, loss: Loss) -> Floats:
        """Shrink what steps added up to by what is noise in it.

        A predictor's variance, and the square of its constant, are not likely to be beyond ``PREDICTED``; a constant
        that steps started from is known up to its doubt, so that they count as far as they know it better.
        """
        features, likely = len(self.recoding.center), PREDICTED[loss.task]
        if loss.movable_target:  # in units of the target's deviation, which is known where rows' second moment is
            likely = 1.0 if self.spectrum is not None else min(1.0, likely / self.target.scale**2)
        noise = math.sqrt(float(self._forgetting(steps, loss, self.moment).variances.mean()))
        slopes, constants = v[:features].ravel(), v[features:]
        variance = max(float(np.trace(self.moment[:features, :features])), TINY)
        slopes = posterior_weights(slopes, np.ones(slopes.size), noise, most=likely / variance, prior=NOTHING) * slopes
        if len(constants):
            square = np.minimum(likely, np.square(self.doubt))
            constants = constants * (square / (square + float(self.moment[-1, -1]) * noise**2))
        return np.concatenate([slopes.reshape(v[:features].shape), constants])

    def solution(self, v: Floats, steps: DescentTrace, admitted: Domain, loss: Loss) -> Solution:
        """Return coefficients v of these rows in training coordinates, with what the noise of the steps did to them."""
        inner = Solution(v, steps if loss.task == "classification" else self._noise(v, steps, loss))
        trace = StageTrace(inner, self.recoding, admitted, loss, self.spectrum)
        typical = Typical(self.length, 1.0, np.diag(self.moment).copy())
        noise = (lambda: self._noise(v, steps, loss).covariance) if v.ndim == 1 else None
        estimate = Estimate(self.recoding, typical, self.spectrum, self.target, noise, steps.count)
        return Solution(self.recoding.coefficients(v), trace, estimate)

    def _noise(self, v: Floats, steps: DescentTrace, loss: Loss) -> DirectionsTrace:
        """Return what noise in the steps and in the released moment did to v, of one output."""
        if self.spectrum is None:
            return self._forgetting(steps, loss, self.moment)
        shares, vectors = self.spectrum.shares, self.spectrum.vectors
        return self._forgetting(steps, loss, (vectors * shares) @ vectors.T, v)

    def _forgetting(self, steps: DescentTrace, loss: Loss, moment: Floats, v: Floats | None = None) -> DirectionsTrace:
        """Return the noise along a moment's directions: each forgets by its curvature, as far as clips leave it.

        Residuals are taken for Gaussian and as wide as the target. With v, of whose rows the moment is the spectrum's,
        noise in the released moment counts too.
        """
        values, vectors = np.linalg.eigh(moment)
        taken = steps_of(steps, self.length)
        units = Units.of(loss, self.target)
        left = units.curvature * math.erf(min(taken.slope, loss.lipschitz) / (math.sqrt(2.0) * units.slope))
        if v is None or self.spectrum is None:
            return DirectionsTrace(vectors, taken.deviation**2 * taken.gain(left * np.maximum(values, 0.0)))
        if loss.sigmoid_link:
            left = curvature_of_margins(self.spectrum, loss, v, taken)
        moved = moved_by_moment(self.spectrum, v[:, np.newaxis], taken, left)[:, 0]
        return DirectionsTrace(vectors, taken.deviation**2 * taken.gain(left * np.maximum(values, 0.0)) + moved)


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
    return Rows(target, standard, 1.0 / radius, np.diag(moment), np.diag(moment), mean)
