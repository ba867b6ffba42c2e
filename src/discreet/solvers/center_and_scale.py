"""Estimate the center and the scale of each feature privately, and those of a numeric target.

    m  = noisy mean of rows of length 1;   center = m / (the constant's mean), so a weighted mean of the features
    s2 = noisy mean of squares about the center;   scale = sqrt(s2 + its noise)

Each record is then recoded by what was released: free, record by record. Coordinates in which all features look alike
are what makes few, clipped, noisy steps travel far.

Where a user hands in public moments (``Domain.moments``), these are the center and the scales, and nothing is released.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.plan import Release
from discreet.bounds import Domain, Moments
from discreet.curator import Recoding
from discreet.losses.base import Loss
from discreet.solvers.base import planned
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


SQUARES = 0.35
"""Clip of a record's squares in units of sqrt(p): features within +-1 have a root mean fourth power of about this."""
NOISE_IN_SCALE = 0.3
"""A square's noise that is added to it: a feature that does not stand out from noise must not be blown up by it."""
LEAST_SCALE = 0.1
"""The smallest scale in units of the declared range: below, it is either ten times too wide or a rare category.

Blowing up rare categories costs more than narrow features gain (census income at epsilon 1: gap .15 at 0.02)."""
PUBLIC_FLOOR = 0.02
"""What is added to the eigenvalues of a public second moment of standardized rows, in units of their mean."""
LEAST_CONSTANT = 0.2
"""The constant's share of a unit row is at least this over sqrt(p), whatever the noise says."""
TARGET_SHARE = 0.05
"""What a numeric target's mean and scale get of mu^2."""
LEAST_TARGET_SCALE = 2e-4
"""In units of half the target's declared range; the noise of its variance, which is added to it, keeps it above."""
TARGET_NOISE = 1.5
"""The noise of the target's variance that is added to it."""


@dataclass(frozen=True)
class Standardization:
    """What was estimated: a map to centered, scaled features, and its rows' expected squared length.

    ``squares`` are the mean squares of the scaled features, two standard deviations of their noise up.
    """

    recoding: Recoding
    square_length: float
    squares: Floats


def shares_to_noise(share: float, count: int = 1) -> float:
    """Return the relative noise of ``count`` answers that get this share of mu^2 (noise multiplier 1: all of it)."""
    return math.sqrt(count / share)


def noise_of(curator: "Curator", query: str, clip: float, factor: float) -> float:
    """Return the standard deviation of an answer's noise, in units of its sum: Gaussian, or Laplace in L1."""
    if curator.budget.is_pure:
        factor = math.sqrt(2.0) * curator.budget.neighbors.sum_factor
    return factor * clip * curator.noise_multiplier * planned(curator, query).relative_noise


def noises(curator: "Curator", query: str) -> list[float]:
    """Return the deviation of the noise in each answer to a query, per unit of its clip, in the order of the plan."""
    unit = float(curator.budget.neighbors.sum_factor) * curator.noise_multiplier
    entries = (release for release in curator.plan.releases if release.query == query)
    return [unit * release.relative_noise for release in entries for _ in range(release.count)]


def longer_in_l1(curator: "Curator", columns: int) -> float:
    """Return how many times longer than in L2 a row may be in the norm that its clip has: sqrt(p) in L1."""
    return math.sqrt(columns) if curator.budget.is_pure else 1.0


def declared_coordinates(domain: Domain) -> Recoding:
    """Return the public map: features as admitted where 0 is in range, else from the middle, over half the range."""
    features = domain.n_features - domain.intercept
    extent = domain.feature_bounds[:features]
    center, scale = np.zeros(features), np.where(extent > 0, extent, 1.0)
    if domain.ranges is not None and domain.intercept and not domain.sparse:
        low, high = domain.ranges.T
        away = (low > 0) | (high < 0)
        center = np.where(away, (low + high) / 2.0, 0.0)
        scale = np.where(away & (high > low), (high - low) / 2.0, scale)
    return Recoding(center, scale)


def feature_releases(domain: Domain, *, mean: float, scale: float) -> tuple[Release, ...]:
    """List the releases, in shares of mu^2: a mean where features can be centered, and squares; none if public."""
    if domain.moments is not None:
        return ()
    clip = SQUARES * math.sqrt(domain.n_features)
    squares = Release("noisy_mean_squares", 1, relative_noise=shares_to_noise(scale), clip=clip)
    if not can_center(domain):
        return (squares,)
    return (Release("noisy_mean", 1, relative_noise=shares_to_noise(mean), clip=1.0), squares)


def can_center(domain: Domain) -> bool:
    """Say whether features can be centered: it needs an intercept to take it back, and would fill sparse records."""
    return domain.intercept and not domain.sparse


def estimate_features(curator: "Curator", n: float, least_scale: float = LEAST_SCALE) -> Standardization:
    """Estimate the center and the scales, by the releases of ``feature_releases``; take them where public."""
    if curator.domain.moments is not None:
        return public_features(curator.domain, curator.domain.moments, least_scale)
    start, squares = declared_coordinates(curator.domain), planned(curator, "noisy_mean_squares")
    columns = curator.domain.n_features
    center, clip, room = start.center, SQUARES * math.sqrt(columns), longer_in_l1(curator, columns)
    if can_center(curator.domain):
        curator.recode(Recoding(start.center, start.scale, 1.0, 1.0), once=True)
        mean = curator.noisy_mean(clip=1.0, n=n)
        middle = mean[:-1] / max(mean[-1], LEAST_CONSTANT / math.sqrt(mean.size))
        center = start.center + start.scale * np.clip(middle, -1.0, 1.0)
    noise = room * noise_of(curator, squares.query, clip, curator.budget.neighbors.sum_factor**0.5) / n
    curator.recode(Recoding(center, start.scale * math.sqrt(room), 0.0), once=True)  # squares over room: below the clip
    found = room * curator.noisy_mean_squares(clip=clip, n=n)[: len(center)]
    kept = np.clip(np.maximum(found, 0.0) + NOISE_IN_SCALE * noise, least_scale**2, 1.0)
    visible = np.maximum(kept - NOISE_IN_SCALE * noise, 0.5 * noise) / kept
    upper = np.minimum(np.maximum(found, 0.0) + 2.0 * noise, 1.0) / kept
    scaled = Recoding(center, start.scale * np.sqrt(kept))
    return Standardization(scaled, float(np.minimum(visible, 1.0).sum()), np.maximum(upper, 1.0))


def public_features(domain: Domain, moments: Moments, least_scale: float = LEAST_SCALE) -> Standardization:
    """Return the center and the scales that public moments make, within the declared ranges.

    Privacy: constants of the fit, which no record enters. Wrong ones cost accuracy alone: rows are shrunk and
    contributions clipped in whichever coordinates these make.
    """
    start = declared_coordinates(domain)
    center = start.center
    if can_center(domain):
        center = np.clip(moments.mean, start.center - start.scale, start.center + start.scale)
    square = (np.square(moments.scale) + np.square(moments.mean - center)) / np.square(start.scale)
    kept = np.clip(square, least_scale**2, 1.0)
    length = float(np.minimum(square / kept, 1.0).sum())
    return Standardization(Recoding(center, start.scale * np.sqrt(kept)), max(length, least_scale), np.ones(kept.size))


def knows_covariance(domain: Domain, loss: Loss) -> bool:
    """Say whether a public covariance is relied on: for classes, whose slopes are bounded.

    Steps for numbers are as long as the curvature allows, and a wrong covariance would say that they may be longer: on
    20 correlated columns a covariance of the wrong directions ended at R^2 -40. Their second moment stays private.
    """
    return domain.moments is not None and domain.moments.covariance is not None and loss.task == "classification"


def public_second_moment(moments: Moments, recoding: Recoding, *, intercept: bool) -> Floats:
    """Return the second moment of standardized rows by a public covariance.

    Rows are shrunk to length 1, which bounds the trace of their second moment: a larger one is brought down to it.
    A part of the mean eigenvalue is added to all, so that no direction that the public covariance lacks is blown up.
    """
    assert moments.covariance is not None
    away = moments.mean - recoding.center
    rows = (moments.covariance + np.outer(away, away)) / np.outer(recoding.scale, recoding.scale)
    if intercept:
        cross = recoding.constant * away / recoding.scale
        rows = np.block([[rows, cross[:, None]], [cross[None, :], np.full((1, 1), recoding.constant**2)]])
    rows = rows + PUBLIC_FLOOR * (np.trace(rows) / len(rows)) * np.eye(len(rows))
    return np.asarray(rows / max(1.0, float(np.trace(rows))))


def affine(recoding: Recoding, domain: Domain) -> tuple[Floats, Floats]:
    """Return Q and c with coefficients(v) = Q v + c."""
    offset = recoding.coefficients(np.zeros(domain.n_features))
    return (recoding.coefficients(np.eye(domain.n_features)).T - offset).T, offset


@dataclass(frozen=True)
class Target:
    """A numeric target's center and scale in training coordinates, and the noise in the center."""

    center: float = 0.0
    scale: float = 1.0
    noise: float = 0.0


def target_releases(loss: Loss, share: float | None) -> tuple[Release, ...]:
    """Plan a numeric target's two moments, where the loss lets it move; None: a share of 0.05."""
    part = share_of_target(loss, share)
    return (Release("noisy_target_moments", 1, relative_noise=shares_to_noise(part)),) if part else ()


def share_of_target(loss: Loss, share: float | None) -> float:
    if not loss.movable_target:
        return 0.0
    return TARGET_SHARE if share is None else share


def estimate_target(curator: "Curator", n: float) -> Target:
    """Estimate a numeric target's center and scale. A mean within its noise is drawn to the middle.

    Without an intercept predictions begin at 0: a target that could move stays where it is, its scale is its size. The
    mean of counts is at least its noise.
    """
    low, high = curator.domain.target_range or (-1.0, 1.0)
    middle, half = (low + high) / 2.0, (high - low) / 2.0 or 1.0
    factor = float(curator.budget.neighbors.sum_factor)
    noise = noise_of(curator, "noisy_target_moments", math.sqrt(2.0), factor) / n
    mean, square = curator.noisy_target_moments(n=n)
    mean = mean * mean**2 / (mean**2 + noise**2) if mean else 0.0
    variance = max(square - mean**2, 0.0) + TARGET_NOISE * noise
    center = middle + half * min(1.0, max(-1.0, mean))
    scale = half * math.sqrt(min(1.0, max(variance, LEAST_TARGET_SCALE**2)))
    if curator.loss.log_link:
        return Target(max(center, half * noise, LEAST_TARGET_SCALE * half), scale, half * noise)
    if not curator.domain.intercept:
        return Target(0.0, math.hypot(center, scale), half * noise)
    return Target(center, scale, half * noise)


@dataclass(frozen=True)
class StandardRows:
    """The map to standardized rows of length 1, how long they are in standard deviations, mean squares, the target."""

    recoding: Recoding
    longest: float
    squares: Floats
    target: Target


def standard_rows(
    curator: "Curator",
    n: float,
    *,
    constant: float | None,
    relative_row_norm: float | None,
    target_share: float | None,
    lengths: float = 1.0,
    least_scale: float = LEAST_SCALE,
    target: Target | None = None,
) -> StandardRows:
    """Estimate target (unless given), centers and scales; rows are shrunk to a norm, or to typical ``lengths``."""
    quiet = curator.noise_multiplier == 0
    if target is None:
        target = estimate_target(curator, n) if share_of_target(curator.loss, target_share) else Target()
    found = estimate_features(curator, n, least_scale)
    features = math.sqrt(found.square_length)
    if relative_row_norm is not None:
        longest = relative_row_norm * math.sqrt(len(found.recoding.center) + 1.0)
    else:
        longest = lengths * features * math.hypot(1.0, constant or 1.0 / features)
    recoding = replace(
        found.recoding,
        scale=found.recoding.scale * longest,
        constant=(1.0 if constant is None else constant * features) / longest,
        row_norm=math.inf if quiet else 1.0,
        target_center=target.center,
        target_scale=target.scale,
    )
    return StandardRows(recoding, longest, found.squares / longest**2, target)
