"""Seeing the shape of the data privately: where the features lie, and how far they spread.

    m  = noisy mean of rows of length 1;   center = m / (the constant's mean), so a weighted mean of the features
    s2 = noisy mean of squares about the center;   scale = sqrt(s2 + its noise)

Each record is then recoded by what was released: free, record by record. Coordinates in which all features look alike
are what makes few, clipped, noisy steps travel far.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.plan import Release
from discreet.bounds import Domain
from discreet.curator import Recoding
from discreet.errors import Unsupported

if TYPE_CHECKING:
    from discreet.curator import Curator

Vector = NDArray[np.float64]

SQUARES = 0.35
"""Clip of a record's squares in units of sqrt(p): features within +-1 have a root mean fourth power of about this."""
NOISE_IN_SCALE = 0.3
"""A square's noise that is added to it: a feature that cannot be told from noise must not be blown up by it."""
LEAST_SCALE = 0.1
"""The smallest scale in units of the declared range: below, it is either ten times too wide or a rare category.

Blowing up rare categories costs more than narrow features gain (census income at epsilon 1: gap .15 at 0.02)."""
LEAST_CONSTANT = 0.2
"""The constant's share of a unit row is at least this over sqrt(p), whatever the noise says."""


@dataclass(frozen=True)
class Shape:
    """What was seen: a map to centered, scaled features, and the expected squared length of its rows."""

    recoding: Recoding
    square_length: float


def shares_to_noise(share: float, count: int = 1) -> float:
    """The relative noise of ``count`` answers that get this share of mu^2 (noise multiplier 1: all of it)."""
    return math.sqrt(count / share)


def step_release(seeing: tuple[Release, ...], n_steps: int) -> Release:
    """``n_steps`` noisy gradients for what seeing leaves of mu^2."""
    spent = sum(1.0 / release.relative_noise**2 for release in seeing)
    return Release("noisy_gradient", n_steps, relative_noise=shares_to_noise(1.0 - spent, n_steps))


def check_settings(n_steps: int, positive: dict[str, float], shares: tuple[float, ...]) -> None:
    """What both solvers ask of their settings."""
    if isinstance(n_steps, bool) or int(n_steps) != n_steps or n_steps < 1:
        raise Unsupported("n_steps must be a positive whole number")
    for name, value in positive.items():
        if not 0 < value < math.inf:
            raise Unsupported(f"{name} must be positive and finite")
    if not sum(shares) < 1:
        raise Unsupported("the shares must leave some of the budget to the steps: their sum must be below 1")


def noise_of(curator: "Curator", release: Release, clip: float, factor: float) -> float:
    """The standard deviation of a release's noise, in units of its sum."""
    return factor * clip * curator.noise_multiplier * release.relative_noise


def declared_shape(domain: Domain) -> Recoding:
    """The public map: features as admitted where 0 is in their range, else from the middle, over half the range."""
    features = domain.n_features - domain.intercept
    extent = domain.feature_bounds[:features]
    center, scale = np.zeros(features), np.where(extent > 0, extent, 1.0)
    if domain.ranges is not None and domain.intercept and not domain.sparse:
        low, high = domain.ranges.T
        away = (low > 0) | (high < 0)
        center = np.where(away, (low + high) / 2.0, 0.0)
        scale = np.where(away & (high > low), (high - low) / 2.0, scale)
    return Recoding(center, scale)


def shape_releases(domain: Domain, *, mean: float, scale: float) -> tuple[Release, ...]:
    """What seeing costs, in shares of mu^2: a mean where features can be centered, and squares."""
    clip = SQUARES * math.sqrt(domain.n_features)
    squares = Release("noisy_mean_squares", 1, relative_noise=shares_to_noise(scale), clip=clip)
    if not can_center(domain):
        return (squares,)
    return (Release("noisy_mean", 1, relative_noise=shares_to_noise(mean), clip=1.0), squares)


def can_center(domain: Domain) -> bool:
    """Centering needs an intercept to take it back, and would fill sparse records."""
    return domain.intercept and not domain.sparse


def seen_shape(curator: "Curator", releases: tuple[Release, ...], n: float) -> Shape:
    """Buy the center and the scales."""
    start = declared_shape(curator.domain)
    center, squares = start.center, releases[-1]
    if len(releases) == 2:
        curator.recode(Recoding(start.center, start.scale, 1.0, 1.0))
        mean = curator.noisy_mean(clip=1.0, n=n)
        middle = mean[:-1] / max(mean[-1], LEAST_CONSTANT / math.sqrt(mean.size))
        center = start.center + start.scale * np.clip(middle, -1.0, 1.0)
    clip = squares.clip or 0.0
    factor = curator.budget.neighbors.sum_factor**0.5
    noise = noise_of(curator, squares, clip, factor) / n
    curator.recode(Recoding(center, start.scale, 0.0))
    found = curator.noisy_mean_squares(clip=clip, n=n)[: len(center)]
    kept = np.clip(np.maximum(found, 0.0) + NOISE_IN_SCALE * noise, LEAST_SCALE**2, 1.0)
    visible = np.maximum(kept - NOISE_IN_SCALE * noise, 0.5 * noise) / kept
    return Shape(Recoding(center, start.scale * np.sqrt(kept)), float(np.minimum(visible, 1.0).sum()))
