"""Where a recipe's steps begin: coordinates of rows, and where a target lies in them.

Coordinates are the declared ones, or those of an estimated center, scale and second moment. What steps added up to is
shrunk by what is noise in it, by empirical Bayes (``solvers/propagation``).

The shares of classes, or a count's mean, say which constant steps start from. A number's center and scale are found by
few noisy looks, however wide the range that was declared for it:

    m = the middle of the range, c = a quarter of the range; for t = 1, ..., T:
        share = noisy share of the targets within c of m
        g     = noisy mean of y - m, each record's clipped at c
        c <- c exp( -rate (share - quantile) );   m <- m + g
    center = the mean of m over the second half;   scale = c / (that quantile of |N(0, 1)|)

The mean and the mean square over the whole range have the noise of the range: where it is ten times too wide, so is the
scale that they show. Here the noise of a look is that of the window, which shrinks by what was seen before. Eight in
ten targets are to be in it first, which tells a window that is too wide fastest; more later, as far as the noise of a
share allows, because the tails of a skewed target carry its mean.

Released by looks: T shares, T clipped means. Privacy: those of ``noisy_share_within`` and
``noisy_coordinate_gradient``, at the constant's coordinate; the windows follow released numbers only.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.plan import Release
from discreet.bounds import Domain, Typical
from discreet.curator import Recoding
from discreet.losses.base import Loss, slope_at_zero
from discreet.penalties.recoded import Quadratic
from discreet.solvers.base import Solution
from discreet.solvers.calibration import CLASSES, NUMBERS
from discreet.solvers.coordinates import (
    TINY,
    Estimate,
    Standardization,
    Target,
    declared_coordinates,
    declared_length,
    noises,
    public_features,
    shares_to_noise,
)
from discreet.solvers.propagation import evidence_of_signal, left_of_start, posterior_weights
from discreet.solvers.shrinkage import ODDS
from discreet.solvers.traces import (
    DescentTrace,
    DirectionsTrace,
    Spectrum,
    StageTrace,
    Steps,
    curvature_of_margins,
    moved_by_moment,
    steps_of,
)
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

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
    estimated; steps start at ``start``, coefficients of these rows that predict the constant ``margin`` (None: 0), and
    noise puts that ``unsure`` off the best one. ``pull`` is an L2 penalty, as clipped steps weigh it.
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
    unsure: Floats | float = math.inf
    pull: Quadratic | None = None

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

    def expected(self, steps: DescentTrace, loss: Loss) -> tuple[float, float]:
        """Return what is to be kept of slopes of coordinates that are all alike, and their variance's part of signal.

        Steps go a part f of the way to slopes w whose predictor's variance is taken for ``PREDICTED``, t^2, and their
        noise adds s^2 to it: E[w | v] = f t^2 / (f^2 t^2 + s^2) v. Of so little signal the slopes themselves do not
        tell how large they are, and which of them are.
        """
        features, taken = len(self.recoding.center), steps_of(steps, self.length)
        if not features or not taken.deviation:
            return 1.0, 1.0
        values = np.diag(self._hessian(self._left(taken, loss), self.moment))[:features]
        left = left_of_start(taken.momenta, taken.averages, np.minimum(taken.size * values, 1.0))
        noise = float(np.diag(self.moment)[:features] @ taken.gain(values)) * taken.deviation**2
        way = max(TINY, 1.0 - float(left.mean()))
        signal = way**2 * self._likely(loss)
        share = signal / (signal + noise)
        return share / way, share

    def _likely(self, loss: Loss) -> float:
        """Return how large a predictor's variance mostly is at most, in these rows' units."""
        if not loss.movable_target:
            return PREDICTED[loss.task]
        # in units of the target's deviation, which is known where rows' second moment is
        return 1.0 if self.spectrum is not None else min(1.0, PREDICTED[loss.task] / self.target.scale**2)

    def shrunk(self, v: Floats, steps: DescentTrace, loss: Loss, *, constant: bool = False) -> Floats:
        """Shrink what steps added up to by what is noise in it, along the directions of an estimated second moment.

        ``constant``: the constants alone.

        A predictor's variance, and the square of its constant, are not likely to be beyond ``PREDICTED``; a constant
        that steps started from is known up to a doubt, so that they count as far as they know it better.
        """
        features, likely = len(self.recoding.center), self._likely(loss)
        noise = math.sqrt(float(self._forgetting(steps, loss, self.moment).variances.mean()))
        slopes, constants = v[:features], v[features:]
        shift = (NUMBERS if loss.movable_target else CLASSES).shift
        if not constant:
            variance = max(float(np.trace(self.moment[:features, :features])), TINY)
            axes, deviations = np.eye(features), np.full(features, noise)
            if self.spectrum is not None and v.ndim == 1:
                each = self._forgetting(steps, loss, self.moment, features=features)
                axes, deviations = each.vectors, np.sqrt(each.variances)
            along, deviations = (axes.T @ slopes).ravel(), np.repeat(deviations, v[0].size)
            weights = posterior_weights(along, np.ones(along.size), deviations, most=likely / variance, prior=NOTHING)
            slopes = axes @ (weights * along).reshape(slopes.shape)
        if len(constants):
            doubt = np.square(np.hypot(shift, self.unsure))
            most = float(np.mean(np.minimum(likely, doubt))) / max(float(self.moment[-1, -1]), TINY)
            odds = ODDS if np.all(np.isfinite(doubt)) else 0.0
            flat, ones = constants.ravel(), np.ones(constants.size)
            constants = constants * posterior_weights(flat, ones, noise, most=most, odds=odds).reshape(constants.shape)
        return np.concatenate([slopes, constants])

    def evidence(self, v: Floats, steps: DescentTrace, loss: Loss) -> float:
        """Return the logarithm of how much likelier slopes v are if they tell anything but noise."""
        features = len(self.recoding.center)
        noise = self._forgetting(steps, loss, self.moment, features=features)
        return evidence_of_signal(noise.vectors.T @ v[:features], np.sqrt(noise.variances), NOTHING)

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

    def _forgetting(
        self, steps: DescentTrace, loss: Loss, moment: Floats, v: Floats | None = None, features: int | None = None
    ) -> DirectionsTrace:
        """Return the noise along a moment's directions: each forgets by its curvature, as far as clips leave it.

        Residuals are taken for Gaussian and as wide as the target. With v, of whose rows the moment is the spectrum's,
        noise in the released moment counts too.
        """
        taken = steps_of(steps, self.length)
        left, moved = self._left(taken, loss), np.zeros(1)
        if v is not None and self.spectrum is not None:
            left = curvature_of_margins(self.spectrum, loss, v, taken) if loss.sigmoid_link else left
            moved = moved_by_moment(self.spectrum, v[:, np.newaxis], taken, left)[:, 0]
        values, vectors = np.linalg.eigh(self._hessian(left, moment)[:features, :features])
        variances = taken.deviation**2 * taken.gain(np.maximum(values, 0.0))
        if self.spectrum is None or not moved.any():
            return DirectionsTrace(vectors, variances)
        return DirectionsTrace(np.hstack([vectors, self.spectrum.vectors]), np.append(variances, moved))

    def _left(self, taken: Steps, loss: Loss) -> float:
        """Return what clips leave of a loss's curvature."""
        units = Units.of(loss, self.target)
        return units.curvature * math.erf(min(taken.slope, loss.lipschitz) / (math.sqrt(2.0) * units.slope))

    def _hessian(self, left: float, moment: Floats) -> Floats:
        """Return the Hessian that steps see where rows have this second moment: with the penalty's."""
        return left * moment + (0.0 if self.pull is None else self.pull.hessian)


def slope_left(loss: Loss, clip: float) -> float:
    """Return what a clip, in typical slopes, leaves of the mean slope where steps start.

    Steps weigh a penalty as much: else it would hold coefficients back by more than what is minimized does.
    """
    return min(1.0, clip) if loss.task == "classification" else math.erf(clip / math.sqrt(2.0))


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


FIRST_QUANTILE, FEWEST_OUTSIDE = 0.8, 0.03
"""What the window is to hold first, and the least that it may leave out in the end."""
OUTSIDE = 0.65
"""What the window leaves out in the end, in deviations of the noise of a look: less is not distinguished from it."""
FIRST_RATE, LAST_RATE, LARGEST_CHANGE = 3.0, 0.3, 0.7
"""Steps of log c: first; in the end, where shares of 1 - quantile must move it; and their bound."""
LEAST_WINDOW = 0.002
"""In units of half the declared range."""


def search_releases(share: float, rounds: int) -> tuple[Release, ...]:
    """List the looks: half of this share of mu^2 for the shares, half for the means."""
    noise = shares_to_noise(share / 2.0, rounds)
    return (
        Release("noisy_share_within", rounds, relative_noise=noise, dimension=1),
        Release("noisy_coordinate_gradient", rounds, relative_noise=noise, dimension=1),
    )


def search_target(curator: "Curator", n: float, rounds: int) -> Target:
    """Take the looks, and return what they found."""
    low, high = curator.domain.target_range or (-1.0, 1.0)
    half = (high - low) / 2.0 or 1.0
    noise = noises(curator, "noisy_coordinate_gradient")[0] / n
    outside = min(1.0 - FIRST_QUANTILE, max(FEWEST_OUTSIDE, OUTSIDE * noise))
    center, window, centers, windows = (low + high) / 2.0, half / 2.0, [], []
    for t in range(rounds):
        share, mean = _look(curator, n, center, window)
        center = min(high, max(low, center - mean))
        part = min(1.0, max(0.0, (t + 1 - rounds / 2) / (rounds / 4)))
        beyond = (1.0 - FIRST_QUANTILE) * (1.0 - part) + outside * part
        step = (FIRST_RATE if part == 0 else LAST_RATE / beyond) * (1.0 - beyond - share)
        window *= math.exp(min(LARGEST_CHANGE, max(-LARGEST_CHANGE, step)))
        window = min(half, max(LEAST_WINDOW * half, window))
        centers.append(center)
        windows.append(window)
    center = float(np.mean(centers[rounds // 2 :]))
    window = float(np.exp(np.mean(np.log(windows[-(rounds // 4) or -1 :]))))
    scale = window / NormalDist().inv_cdf(1.0 - outside / 2.0)
    return Target(center, scale, noise * window / math.sqrt(rounds - rounds // 2))


def _look(curator: "Curator", n: float, center: float, window: float) -> tuple[float, float]:
    """Return the noisy share of targets in the window, and the noisy mean of what they miss its middle by, clipped."""
    columns = curator.domain.n_features
    place = np.append(np.zeros(columns - 1), center)
    share = curator.noisy_share_within(place, columns - 1, clip=window) / n + 0.5
    mean = float(curator.noisy_coordinate_gradient(place, columns - 1, clips=window)[0]) / n
    return min(1.0, max(0.0, share)), mean
