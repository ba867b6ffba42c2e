"""Coordinates from declared facts or private estimates, and ``Preconditioned``, which runs any solver in them.

    declared    z = (x / (half the declared range), in units in which a typical row has length 1 / constant; 1)
    diagonal    r = how far rows are from the declared center, by noisy counts; ranges that are far too wide become r
                m = noisy mean of rows of length 1, the center;  s2 = noisy mean squares about it, the scales
                z = shrink_1( ((x - m) / s, constant) / length ),   length: a typical row's
    full        M = noisy second moment of these rows = U diag(e) U^T, noise edge s sqrt(2 p)
                y = A z,   A = U diag((e + floor edge)^{-1/2}) U^T
    then        v = what the solver finds on recoded records;   w = Q v + c, the same predictor of admitted features

Where all features look alike, few clipped, noisy steps travel far, and how badly declared ranges fit hardly matters.
Declared coordinates are for little signal: the intercept is learned first, so that a model without signal falls back on
the trivial one. Ranges do not say how long a sparse or a very wide row is: that is estimated from the constant's mean
1 / sqrt(1 + length^2) once rows are shrunk to 1. Public moments (``Domain.moments``) take the place of estimates.
The library's own default takes its steps in the same coordinates (``default/rows``). Cost: n p^2 for M and for y.

Privacy
-------
Relation and sensitivity: ``noisy_mean`` (B, 2 B under ``replace_one``), ``noisy_magnitudes``, ``noisy_mean_squares``
and ``noisy_second_moment`` (B, sqrt(2) B), for numbers ``noisy_target_moments`` (B, 2 B), for a start of classes and
counts ``noisy_coordinate_gradient`` or ``noisy_gradient`` (``calibration``), each proven at the curator;
the recoding maps neighboring tables to neighboring tables under every relation (``Curator.recode``), so that each
answer that the inner solver asks for has the sensitivity that its own docstring proves, on the recoded records.
Mechanism: Gaussian noise (discrete Laplace for pure budgets); the same curator answers both, adaptively; the map back
is post-processing.
Event: the plan lists all releases, with ``*_share`` of mu^2 for estimates, and is priced as their composition. A
release's event is one of its noise multiplier and its sampling alone, never of its clip, so that clips may follow
released lengths. Calibration adds one more of the inner solver's noisy gradients.
Conditions: the map is made of public and released values only; the inner solver asks nothing that the plan does not
list (the curator refuses it). Public moments are constants of the fit, which no record enters.

Adaptive plans. Around a solver whose answers follow one another under a zCDP filter the estimates are charged to the
same filter, with the noise that their share of the total rho fixes: a Gaussian of multiplier z is 1/(2 z^2)-zCDP. A
filter bounds any sequence of answers, so it covers these too; the inner solver divides what they leave.

Shares are parts of mu^2, under a filter of the total rho, which is the same (rho = mu^2 / 2). The inner solver's
releases are scaled by one factor so that they get the rest: exactly where all are Gaussian; where some are sampled or
choices, by what they cost about (q^2 and 1/4 of a Gaussian's), while the price is exact all the same.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from scipy.optimize import isotonic_regression

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import AdaptivePlan, Plan, Release
from discreet.bounds import Domain, Moments, Typical
from discreet.budget import Budget
from discreet.curator import Magnitudes, Recoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import OneOf, Positive, Share, Weight, check_fields
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty
from discreet.penalties.recoded import Quadratic, Rescaled
from discreet.solvers.base import (
    SHORT_STEP,
    UNWATCHED,
    AuditCase,
    Progress,
    Solution,
    Solver,
    count_release,
    filled,
    on_one_thread,
    planned,
    public_count,
)
from discreet.solvers.calibration import (
    CLASSES,
    NUMBERS,
    Calibration,
    constant_query,
    constant_release,
    predictor_coordinates,
    released_constant,
)
from discreet.solvers.decrease import Decrease, best_constant_along, share_of_way
from discreet.solvers.propagation import affine, left_of_start
from discreet.solvers.shrinkage import bend_of, curved, garrote, kept, mean_squares, noise_in, shrunk
from discreet.solvers.signal import PRIVATE_N, Signal
from discreet.solvers.traces import CalibratedTrace, DescentTrace, Noise, Spectrum, StageTrace, margins_of
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


SQUARES = 0.35
"""Clip of a record's squares in units of sqrt(p): features within +-1 have a root mean fourth power of about this."""
NOISE_IN_SCALE = 0.3
"""A square's noise that is added to it: a feature that does not stand out from noise must not be blown up by it."""
NARROW_NOISE = 2.0
"""Rows far out are taken for noise up to this many of its standard deviations."""
NARROW_SHARE = 0.001
"""The share of rows that a narrowed range may leave out."""
RARE = 0.15
"""A column differs from a rare category by so many rows, beyond what noise may hide, at other distances than most."""
LEAST_SCALE = 0.1
"""The smallest scale in units of the declared range: below, it is either ten times too wide or a rare category."""
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
MOST_CORNERED = 12
"""Of more columns the corners are too many to look at."""

LEAST_ROW = 0.1
"""Sparse rows are taken to be at least this long in declared coordinates."""
TYPICAL_ROW = 0.6
"""A row's typical length in units of the longest that ranges and a declared row norm allow."""
LOOKS = 2
"""How many noisy means tell how long rows are."""
WIDEST = 2048
"""Beyond this many columns p^2 numbers are too many, and .6 sqrt(p) says little of how long rows are."""
REACH = 16.0
"""Whitened rows longer than this many typical ones are shrunk: it bounds the lattice, and hardly happens."""
PUBLIC_REACH = 2.0
"""The same where the covariance is public, and so may be wrong: it bounds the curvature then."""
LEAST_RANGE = 2.0**-28
"""Over narrower ranges the rounding of records alone would lead beyond what the lattice holds."""
LEAST_DIRECTION = 1e-7
"""Eigenvalues are kept above this part of the largest: below is the rounding of the records."""
TINY = float(np.finfo(np.float64).tiny)
"""Divides, where all else may be 0."""
WEAK = 1e-3
"""The strength from which on an L2 penalty shrinks what is noise itself."""
TYPICAL_SLOPE_ENTRY = 0.45
"""A typical entry of a record's gradient in calibration: what a sample of records adds to the noise."""
COUNT_SHARE = 0.02
"""What a count gets of mu^2, where n is private: one number with sensitivity 1 needs no more."""
ASKED = (
    *("noisy_gradient", "noisy_gradient_change", "noisy_coordinate_gradient", "noisy_share_within"),
    *("noisy_squared_norms", "select_coordinate", "noisy_count", "noisy_weight"),
)
"""What an inner solver may ask of recoded records."""
ONE_SHOT = ("noisy_minimizer", "perturb_objective", "perturbed_minimizer")
"""What it may ask in addition of standardized rows: the price needs a bound on rows before they are recoded, here 1."""


@dataclass(frozen=True)
class Estimate:
    """What was released of the shape of the records, and the map that it makes.

    ``noise`` computes the covariance of what noise did to the coefficients of mapped records, of one output, where that
    is known; ``count`` is the number of records, public or noisy.
    """

    recoding: Recoding
    typical: Typical
    spectrum: Spectrum | None = None
    target: "Target" = field(default_factory=lambda: Target())
    noise: Callable[[], Floats] | None = None
    count: float = 0.0


@dataclass(frozen=True)
class Standardization:
    """What was estimated: a map to centered, scaled features, and its rows' expected squared length.

    ``squares`` are the mean squares of the scaled features, two standard deviations of their noise up; ``likely`` one
    down, where they are estimated.
    """

    recoding: Recoding
    square_length: float
    squares: Floats
    likely: Floats | None = None


def largest_curvature(loss: Loss) -> float:
    """Return the loss's largest curvature where a numeric target is standardized."""
    return 1.0 if loss.task == "regression" else float(loss.smoothness)


def stiffened(features: Standardization, penalty: Penalty | None, loss: Loss) -> Standardization:
    """Return scales in which an L2 penalty's curvature is part of a column's mean square."""
    if penalty is None or not penalty.ridge or penalty.strong_convexity == 0:
        return features
    scale = features.recoding.scale
    added = penalty.strong_convexity / largest_curvature(loss)
    part = np.square(scale) / (np.square(scale) + added)
    return Standardization(
        replace(features.recoding, scale=scale / np.sqrt(part)),
        features.square_length * float(part.mean()) if part.size else features.square_length,
        features.squares * part,
        None if features.likely is None else features.likely * part,
    )


def shares_to_noise(share: float, count: int = 1) -> float:
    """Return the relative noise of ``count`` answers that get this share of mu^2 (noise multiplier 1: all of it)."""
    if share <= 0:
        raise Unsupported("a share is 0 of what is released all the same: give each release a share above 0")
    return math.sqrt(count / share)


def noises(curator: "Curator", query: str, *, nonnegative: bool = False) -> list[float]:
    """Return the deviation of the noise in each answer to a query, per unit of its clip, in the order of the plan.

    Gaussian noise, or Laplace in L1. ``nonnegative``: of sums of squares and of positive semidefinite matrices, which
    an exchange moves by less in L2.
    """
    factor = float(curator.budget.neighbors.sum_factor)
    if curator.budget.is_pure:
        factor *= math.sqrt(2.0)
    elif nonnegative:
        factor = math.sqrt(factor)
    unit = factor * curator.noise_multiplier
    entries = (release for release in curator.plan.releases if release.query == query)
    return [unit * release.relative_noise for release in entries for _ in range(release.count)]


def longer_in_l1(curator: "Curator", columns: int) -> float:
    """Return how many times longer than in L2 a row may be in the norm that its clip has: sqrt(p) in L1."""
    return math.sqrt(columns) if curator.budget.is_pure else 1.0


def declared_coordinates(domain: Domain) -> Recoding:
    """Return the public map: features as admitted where 0 is in range, else from the middle, over half the range.

    A range that is narrower than what the lattice resolves is taken to be as wide as that.
    """
    features = domain.n_features - domain.intercept
    extent = domain.feature_bounds[:features]
    center, scale = np.zeros(features), np.where(extent > 0, extent, 1.0)
    if domain.places is not None and domain.intercept and not domain.sparse:
        low, high = domain.places.T
        away = (low > 0) | (high < 0)
        center = np.where(away, (low + high) / 2.0, 0.0)
        scale = np.where(away & (high > low), (high - low) / 2.0, scale)
    return Recoding(center, np.maximum(scale, LEAST_RANGE))


def feature_releases(domain: Domain, *, mean: float, scale: float, width: float = 0.0) -> tuple[Release, ...]:
    """List the releases, in shares of mu^2: a mean where features can be centered, and squares; none if public.

    With a share for the width of ranges also magnitudes, about the declared center and about the mean.
    """
    if domain.moments is not None:
        return ()
    clip = SQUARES * math.sqrt(domain.n_features)
    squares = Release("noisy_mean_squares", 1, relative_noise=shares_to_noise(scale), clip=clip)
    looks = 1 + can_center(domain)
    widths = [Release("noisy_magnitudes", looks, relative_noise=shares_to_noise(width, looks))] if width else []
    if not can_center(domain):
        return (*widths, squares)
    return (*widths, Release("noisy_mean", 1, relative_noise=shares_to_noise(mean), clip=1.0), squares)


def can_center(domain: Domain) -> bool:
    """Say whether features can be centered: it needs an intercept to take it back, and would fill sparse records."""
    return domain.intercept and not domain.sparse


def estimate_features(curator: "Curator", n: float, least_scale: float = LEAST_SCALE) -> Standardization:
    """Estimate the center and the scales, by the releases of ``feature_releases``; take them where public."""
    domain = curator.domain
    if domain.moments is not None:
        return public_features(domain, domain.moments, least_scale)
    start, found = declared_coordinates(domain), None
    clip, room = SQUARES * math.sqrt(domain.n_features), longer_in_l1(curator, domain.n_features)
    looks = any(release.query == "noisy_magnitudes" for release in curator.plan.releases)
    start = narrowed(start, curator.noisy_magnitudes(start.center), n, start.center) if looks else start
    center, scale = start.center, start.scale
    if can_center(domain):
        is_admitted = not center.any() and (scale == 1.0).all()
        with nullcontext() if is_admitted else curator.recoded(start):
            mean = curator.noisy_mean(clip=1.0, n=n)
            middle = np.clip(mean[:-1] / max(mean[-1], LEAST_CONSTANT / math.sqrt(mean.size)), -1.0, 1.0)
            center = start.center + scale * middle
            scale = narrowed(start, curator.noisy_magnitudes(center), n, center).scale if looks else scale
            if room == 1.0 and (scale == start.scale).all():
                found = curator.noisy_mean_squares(clip=clip, n=n, center=np.append(middle, 1.0))
    if found is None:
        with curator.recoded(Recoding(center, scale * math.sqrt(room), 0.0)):  # squares over room: below the clip
            found = room * curator.noisy_mean_squares(clip=clip, n=n)
    noise = room * noises(curator, "noisy_mean_squares", nonnegative=True)[0] * clip / n
    found = found[: len(center)]
    kept = np.clip(np.maximum(found, 0.0) + NOISE_IN_SCALE * noise, least_scale**2, 1.0)
    visible = np.maximum(kept - NOISE_IN_SCALE * noise, 0.5 * noise) / kept
    upper = np.minimum(np.maximum(found, 0.0) + 2.0 * noise, 1.0) / kept
    scaled = Recoding(center, scale * np.sqrt(kept))
    likely = np.maximum(found - noise, 0.0) / kept
    return Standardization(scaled, float(np.minimum(visible, 1.0).sum()), np.maximum(upper, 1.0), likely)


def width_share(signal: Signal, most: float) -> float:
    """Return the share of mu^2 for counts by magnitude, at most ``most``.

    None where even that leaves the noise of all columns' counts together above a quarter of the share of rows that
    sets a column apart from a rare category. From where it is so for each column the share falls as the noise does.
    """
    least = 2.0 * NARROW_NOISE / (RARE * math.sqrt(most / 2.0))
    return most * min(1.0, least / signal.per_row) * (signal.total >= least)


def narrowed(start: Recoding, seen: Magnitudes, n: float, center: Floats) -> Recoding:
    """Return the map with the scale of each feature brought down to where rows are, by counts about a center.

    Rows beyond the last edge that stands out of the noise are at most those that it hides, and of a column with a
    variance the share beyond r times as far falls as 1 / r^2: the scale becomes the distance beyond which at most
    one in a thousand rows is. A column stays as declared if it may be a rare category, whose other rows noise hides:
    where too many are equally far from the center, or as far as that is from the declared one. Columns whose rows
    differ in their distances, and that all end within their ranges, are counted together too: ranges are mostly too
    wide alike, and in the sum of such counts ends stand out of the noise that are hidden in each. So are all columns
    where noise hides which these are.
    """
    beyond = np.cumsum(seen.counts[:, ::-1], axis=1)[:, ::-1]  # rows at this size or a larger one
    hidden = NARROW_NOISE * seen.noise * np.sqrt(np.arange(len(seen.edges), 0, -1))
    outermost = len(seen.edges) - 1 - np.argmax((beyond > hidden)[:, ::-1], axis=1)
    width = seen.edges[outermost] * np.sqrt(np.maximum(1.0, hidden[outermost] / (NARROW_SHARE * n)))
    away = beyond[:, 1] - hidden[1]  # at least; without an intercept, rows of zeros are null records and not counted
    others = np.minimum(n - seen.counts.max(axis=1), away)  # rows that are not at the most common distance
    moved, varies = np.abs(center - start.center), others > hidden[outermost] + RARE * n
    is_narrow = varies & ((moved == 0) | (width < moved / 2.0))
    scale = np.where(is_narrow, np.minimum(start.scale, width), start.scale)
    alike = varies & (width < start.scale)
    if alike.sum() <= 1 and hidden[0] > RARE * n:  # noise hides what sets a column apart
        alike = np.ones_like(alike)
    if (count := int(alike.sum())) > 1:
        whole = Recoding(np.zeros(1), start.scale[alike].max(keepdims=True))
        pooled = Magnitudes(seen.counts[alike].sum(axis=0)[None], seen.edges, seen.noise * math.sqrt(count))
        scale = np.where(alike, np.minimum(scale, narrowed(whole, pooled, n * count, np.zeros(1)).scale), scale)
    return replace(start, scale=scale)


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
    """Say whether a public covariance is relied on: for classes, whose slopes are bounded, if by it all columns vary.

    Steps for numbers are as long as the curvature allows, and a wrong covariance would say that they may be longer.
    Their second moment stays private.
    """
    if domain.moments is None or domain.moments.covariance is None or loss.task != "classification":
        return False
    return bool((np.diag(domain.moments.covariance) > 0).all())


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


def moment_releases(domain: Domain, loss: Loss, share: float) -> tuple[Release, ...]:
    """List the release of a second moment, in a share of mu^2; none where it is public."""
    noise = shares_to_noise(share)
    return () if knows_covariance(domain, loss) else (Release("noisy_second_moment", 1, relative_noise=noise),)


def second_moment(curator: "Curator", admitted: Domain, standard: Recoding, n: float) -> tuple[Floats, float]:
    """Return the second moment of standardized rows and the edge of its noise, or the public one, which has none."""
    if knows_covariance(admitted, curator.loss):
        assert admitted.moments is not None
        return public_second_moment(admitted.moments, standard, intercept=admitted.intercept), 0.0
    room = longer_in_l1(curator, admitted.n_features) ** 2
    with curator.recoded(standard):
        clip = room if curator.noise_multiplier else curator.domain.row_norm**2
        second = curator.noisy_second_moment(clip=clip, n=n)
    noise = noises(curator, "noisy_second_moment", nonnegative=True)[0] * clip / n
    return second, noise * math.sqrt(2.0 * len(second))


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


def estimate_target(curator: "Curator", n: float, *, denoise: bool = False) -> Target:
    """Estimate a numeric target's center and scale. A mean within its noise is drawn to the middle (``denoise``: onto).

    Without an intercept predictions begin at 0: a target that could move stays where it is, its scale is its size. The
    mean of counts is at least its noise.
    """
    low, high = curator.domain.target_range or (-1.0, 1.0)
    middle, half = (low + high) / 2.0, (high - low) / 2.0 or 1.0
    noise = noises(curator, "noisy_target_moments")[0] * math.sqrt(2.0) / n
    mean, square = curator.noisy_target_moments(n=n)
    if denoise:
        mean = float(garrote(np.array(mean), noise))
    else:
        mean = mean * mean**2 / (mean**2 + noise**2) if mean else 0.0
    variance = max(square - mean**2, 0.0) + TARGET_NOISE * noise
    center = middle + half * min(1.0, max(-1.0, mean))
    scale = half * math.sqrt(min(1.0, max(variance, LEAST_TARGET_SCALE**2)))
    if curator.loss.log_link:
        return Target(max(center, half * noise, LEAST_TARGET_SCALE * half), scale, half * noise)
    if not curator.domain.intercept:
        return Target(0.0, math.hypot(center, scale), half * noise)
    return Target(center, scale, half * noise)


def is_wide(domain: Domain) -> bool:
    """Say whether the ranges do not tell how long rows are, and p^2 numbers are too many: sparse or very wide."""
    return domain.sparse or domain.n_features > WIDEST


def declared_length(domain: Domain, start: Recoding) -> float:
    """Return a row's typical length from public facts: ranges, and a declared row norm where it is in these units."""
    longest = math.sqrt(max(1, len(start.center)))
    if not start.center.any() and (start.scale == 1.0).all():
        longest = min(longest, math.sqrt(max(domain.row_norm**2 - domain.intercept, LEAST_ROW**2)))
    return TYPICAL_ROW * longest


def standard_rows(
    features: Standardization, target: Target, *, constant: float, longest: float, noiseless: bool
) -> Recoding:
    """Return the map to rows of length 1: standardized features over ``longest``, with this constant next to them."""
    return replace(
        features.recoding,
        scale=features.recoding.scale * longest,
        constant=constant / longest,
        row_norm=math.inf if noiseless else 1.0,
        target_center=target.center,
        target_scale=target.scale,
    )


@dataclass(frozen=True)
class Whitening:
    """A map to whitened rows, and what is known of rows there.

    ``length`` is a typical row's; ``moment`` the rows' second moment as far as it stands out of noise, ``widest`` the
    largest that noise may hide, ``mean`` their mean; ``spectrum`` is for the trace of the noise.
    """

    recoding: Recoding
    length: float
    moment: Floats
    widest: Floats
    mean: Floats
    spectrum: Spectrum


def whiten(
    second: Floats,
    added: Floats,
    edge: float,
    floor: float,
    standard: Recoding,
    domain: Domain,
    loss: Loss,
    likely: Floats | None = None,
) -> Whitening:
    """Return rows A z with A = (M + added + floor edge)^{-1/2}, M being the cleaned second moment of standardized rows.

    Eigenvalues below the edge of the noise do not stand out of it: what they are in all is known, and for the moment of
    whitened rows each is nothing; for the trace of the noise, its part of that.
    """
    noisy, vectors = np.linalg.eigh(second)
    values, clear = cleaned(noisy, edge), noisy > edge
    most = values + np.where(clear, 0.0, math.sqrt(2.0) * edge / max(1, int((~clear).sum())))  # two deviations of all
    bent, axes = np.linalg.eigh((vectors * values) @ vectors.T + added)
    kept = np.maximum(bent, 0.0) + max(floor * edge, LEAST_DIRECTION * max(float(bent[-1]), TINY))
    matrix = (axes / np.sqrt(kept)) @ axes.T
    inside = matrix @ vectors
    moment, widest = ((inside * kind) @ inside.T for kind in (np.where(clear, values, 0.0), most))
    length = math.sqrt(max(1.0, float(np.square(inside).sum(axis=0) @ values)))
    entry = edge / (2.0 * math.sqrt(len(second)))  # the noise of an entry off the diagonal, of the mean of two
    mean = matrix @ filtered_mean(second, entry) / standard.constant if domain.intercept else np.zeros(len(second))
    farther = PUBLIC_REACH if knows_covariance(domain, loss) else REACH
    recoding = replace(standard, matrix=matrix, reach=farther * length if math.isfinite(standard.row_norm) else None)
    ends = np.square(matrix).sum(axis=0) * np.square(standard.domain(domain).feature_bounds)
    farthest = np.sqrt(np.maximum(1.0, 1.0 + (ends - 1.0) / length**2))
    shares, directions = np.linalg.eigh((inside * values) @ inside.T)
    spectrum = Spectrum(np.maximum(shares, 0.0), directions, mean, farthest, kept, entry, length, second, likely)
    return Whitening(recoding, length, moment, widest, mean, spectrum)


def cleaned(values: Floats, edge: float) -> Floats:
    """Return what the rows' second moment C is along the eigenvectors u_i of M = C + noise, from its eigenvalues alone.

    The eigenvalues of a symmetric matrix of Gaussian noise fill [-edge, edge], edge = 2 s, and push those of C apart:
    along the smallest eigenvector of M rows vary more than it says, along the largest less. For many columns
    (Bun, Allez, Bouchaud & Potters 2016, *Rotational invariant estimator for general noisy matrices*)

        u_i^T C u_i = e_i - 2 s^2 h(e_i),     h(e) = (1 / p) sum_j (e - e_j) / ((e - e_j)^2 + s^2 / p)

    whatever C is: of a C whose eigenvalues are all c it makes c, and it keeps the trace. Eigenvalues keep their order
    and are at least 0. Post-processing; without noise nothing changes.
    """
    deviation = edge / 2.0
    apart = np.subtract.outer(values, values)
    pushed = (apart / (np.square(apart) + deviation**2 / len(values) + TINY)).mean(axis=1)
    return np.asarray(np.maximum(isotonic_regression(values - 2.0 * deviation**2 * pushed).x, 0.0))


def filtered_mean(second: Floats, noise: float) -> Floats:
    """Return the mean of rows times their constant, the last column of M: the features' part shrunk by what is noise.

    Features were centered, so that it is small; by James and Stein's rule, of entries with this noise.
    """
    features = second[:-1, -1]
    square = float(features @ features)
    kept = max(0.0, 1.0 - len(features) * noise**2 / square) if square > 0 else 0.0
    return np.append(kept * features, second[-1, -1])


def ridge_in(penalty: Penalty, recoding: Recoding, admitted: Domain) -> Quadratic | None:
    """Return an L2 penalty in recoded coordinates, exactly; None where there is none."""
    if not penalty.ridge or penalty.strong_convexity == 0:
        return None
    return Quadratic(*affine(recoding, admitted), penalty.strong_convexity / recoding.target_scale**2)


def release_weight(release: Release) -> float:
    """Return what a release costs about, in units of a Gaussian one of noise multiplier 1."""
    sampled = (release.sampling_numerator / SAMPLING_DENOMINATOR) ** 2
    return sampled * (0.25 if release.mechanism == "exponential" else 1.0) * release.count / release.relative_noise**2


def left_of(trace: object, curator: "Curator") -> float:
    """Return what steps leave of noise in the intercept that they start from: at most all of it."""
    if not isinstance(trace, DescentTrace):
        return 1.0
    domain, loss = curator.domain, curator.loss
    pull = trace.step * bend_of(loss, domain) * curved(trace, loss, domain) * float(mean_squares(domain)[-1])
    return min(1.0, abs(float(left_of_start(trace.momenta, trace.averages, np.array([min(1.0, pull)]))[0])))


@dataclass(frozen=True)
class Preconditioned:
    """Run ``solver`` in declared coordinates, on standardized features, or in whitened coordinates.

    Parameters
    ----------
    solver : Solver
        Any iterative solver with a fixed plan, such as ``GradientDescent()``, or ``AdaptiveDescent()``; on standardized
        features ``ObjectivePerturbation`` or ``OutputPerturbation`` too.
    coordinates : {"full", "diagonal", "declared", "training"}, default="full"
        Whether centers, scales and the second moment of the rows are estimated, centers and scales only, or nothing;
        ``"training"``: records stay as they are, so that any solver runs, and is shrunk.
    constant : float or None, default=0.5
        The intercept's constant feature in units of the features' length; None: that of one standardized feature.
    relative_row_norm : float or None, default=None
        Rows longer than this many standard deviations per column are shrunk; None: than their typical length.
    lengths : float, default=1.0
        Without a ``relative_row_norm``, rows are shrunk to this times their typical length.
    least_scale : float, default=0.1
        The smallest scale of a feature in units of half its declared range.
    floor : float, default=0.5
        What is added to every eigenvalue of the second moment, in units of its noise's edge.
    mean_share, scale_share, moment_share : float, default=0.04, 0.08 and 0.2
        Shares of mu^2 for means, scales and the second moment; the steps get the rest.
    target_share : float or None, default=None
        The share for a numeric target's mean and scale; None: 0.05; 0: the target stays as declared.
    measure : bool or None, default=None
        Whether the length of rows is estimated in declared coordinates. None: of sparse or very wide ones.
    calibrate : bool, default=True
        Release one gradient more, which brings probabilities back to scale (``calibration``): for the logistic loss of
        two classes in whitened coordinates, where the solver releases gradients.
    shift_clip : float or None, default=None
        Release one mean of residuals more, clipped at this many deviations of a numeric target, and move the intercept
        by it: steps' clips leave that of a skewed target too low. None: do not; nor do solvers with an adaptive plan.
    shift_share : float, default=0.05
        Its share of mu^2.
    start_share : float, default=0.0
        The share of mu^2 of one more answer, from which the constant follows that a class or a count is best predicted
        by (``calibration``): steps start there, not at 0. None is asked where the fit was given a start.
    denoise : bool, default=False
        Shrink what the solver found by what is noise in it (``shrinkage``). Free.
    weigh : bool, default=False
        Keep of the way of gradient descent to its last point what its gradients say that it gained (``decrease``), in
        place of ``denoise``; where n is private, steps are as much shorter as fewer records were counted than planned
        for. Free.

    Examples
    --------
    >>> from discreet.solvers import GradientDescent, Preconditioned
    >>> Preconditioned(GradientDescent(n_steps=12, momentum=0.7, radius=100.0)).coordinates
    'full'
    """

    solver: Solver
    coordinates: Annotated[str, OneOf("full", "diagonal", "declared", "training")] = "full"
    constant: Positive | None = 0.5
    relative_row_norm: Positive | None = None
    lengths: Positive = 1.0
    least_scale: Positive = LEAST_SCALE
    floor: Positive = 0.5
    mean_share: Share = 0.04
    scale_share: Share = 0.08
    moment_share: Share = 0.20
    target_share: Weight | None = None
    measure: bool | None = None
    calibrate: bool = True
    shift_clip: Positive | None = None
    shift_share: Share = 0.05
    start_share: Weight = 0.0
    denoise: bool = False
    weigh: bool = False
    name: ClassVar[str] = "preconditioned"

    def __post_init__(self) -> None:
        check_fields(self)
        shares = [self.mean_share, TARGET_SHARE if self.target_share is None else self.target_share, self.start_share]
        if self.coordinates != "declared":
            shares += [self.scale_share, self.moment_share * self.gives_shape]
        if not sum(shares) < 1:
            raise Unsupported("the shares must leave some of the budget to the steps: their sum must be below 1")

    @property
    def gives_shape(self) -> bool:
        """Whether what it estimates is the shape that inference starts from."""
        return self.coordinates == "full"

    @property
    def takes_public_moments(self) -> bool:
        """Whether public moments take the place of estimates."""
        return self.coordinates != "training"

    def releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List what coordinates are made of, the count left out."""
        start = self._start_releases(domain, loss)
        if self.coordinates == "training":
            return start
        if self.coordinates == "declared":
            noise = shares_to_noise(self.mean_share, LOOKS)
            length = Release("noisy_mean", LOOKS, relative_noise=noise, clip=1.0)
            return (*start, length) if self._measures(domain) else start
        features = feature_releases(domain, mean=self.mean_share, scale=self.scale_share)
        shape = moment_releases(domain, loss, self.moment_share) if self.gives_shape else ()
        return (*start, *target_releases(loss, self.target_share), *features, *shape)

    def _measures(self, domain: Domain) -> bool:
        """Say whether the length of rows is estimated in declared coordinates."""
        wanted = is_wide(domain) if self.measure is None else self.measure
        return wanted and domain.intercept and domain.moments is None

    def _start_releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List what the constant that steps start from is read from: of classes, counts and amounts."""
        moves = loss.task == "classification" or loss.log_link
        if not (self.start_share and moves and domain.intercept and domain.start is None):
            return ()
        if domain.sparse and domain.n_outputs > 1:  # a column of ones would fill them
            return ()
        return (constant_release(domain, shares_to_noise(self.start_share)),)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the estimates, the inner solver's releases with the rest of mu^2, and a count where n is private."""
        estimates = self.releases(domain, loss)
        if self.coordinates == "training":
            inner = self.solver.plan(domain, loss, penalty)
            if not estimates:
                return inner
        else:
            self._check(domain, loss)
            inner = self._inner_plan(domain, loss, penalty)
        asked = [*inner.releases]
        if self.coordinates != "training":
            asked = [replace(release, clip=None) for release in asked]  # rows' lengths are not known yet
        if isinstance(inner, AdaptivePlan):
            return AdaptivePlan((*estimates, *asked), papers_total=inner.papers_total)
        if inner.least_noise is not None or inner.total_variation:
            raise Unsupported(
                "in other coordinates a solver runs with a fixed plan of its own: use gd, sgd, svrg, cd or gcd"
            )
        known = (*ASKED, *(ONE_SHOT if self.coordinates == "diagonal" else ()))
        if self.coordinates != "training" and any(release.query not in known for release in asked):
            raise Unsupported("in other coordinates iterative solvers run: use gd, sgd, svrg, cd or gcd")
        more = self._calibrates(loss, asked)
        asked = [replace(r, count=r.count + (more and r.query == "noisy_gradient")) for r in asked]
        asked = [release for release in asked if release.query not in ("noisy_count", "noisy_weight")]
        shift = self._shift_releases(domain, loss, penalty)
        rest = 1.0 - sum(release.count / release.relative_noise**2 for release in (*estimates, *shift))
        scale = math.sqrt(sum(map(release_weight, asked)) / rest)
        scaled = (replace(release, relative_noise=release.relative_noise * scale) for release in asked)
        return Plan((*estimates, *scaled, *shift, *count_release(domain, shares_to_noise(COUNT_SHARE))))

    def _shift_releases(self, domain: Domain, loss: Loss, penalty: Penalty) -> tuple[Release, ...]:
        """List the mean of residuals that moves the intercept, of numbers whose penalty has no corners.

        None of sparse records, which a map to predictions would fill.
        """
        if self.shift_clip is None or domain.sparse or not (domain.intercept and loss.movable_target and penalty.ridge):
            return ()
        return (Release("noisy_coordinate_gradient", 1, relative_noise=shares_to_noise(self.shift_share)),)

    def _check(self, domain: Domain, loss: Loss) -> None:
        """Refuse losses whose targets cannot follow a row that is shrunk, and records that coordinates do not serve."""
        if isinstance(self.solver, Preconditioned):
            raise Unsupported("coordinates are estimated once: use gd, sgd, svrg, cd or gcd in Preconditioned(...)")
        if loss.task == "regression" and not loss.movable_target:
            raise Unsupported(f"recoded coordinates know no {type(loss).__name__} loss: use solver='gd'")
        if self.gives_shape and domain.sparse:
            raise Unsupported("whitening would fill sparse records: use coordinates='diagonal'")
        if self.coordinates == "declared" and domain.moments is not None and is_wide(domain):
            raise Unsupported(
                "sparse or very wide records have scales that are too rare to rely on here: leave public_moments out, "
                "or use coordinates='diagonal'"
            )

    def _inner_plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """Return the inner solver's plan for recoded records, of which little is known yet."""
        p = domain.n_features
        facts = replace(
            domain, feature_bounds=np.ones(p), row_norm=1.0, intercept=False, ranges=None, target_range=None,
            typical=Typical(1.0, 1.0, np.ones(p)), moments=None,
        )  # fmt: skip
        same = Recoding(np.zeros(p - domain.intercept), np.ones(p - domain.intercept))
        recoded = self._penalty(penalty, same, domain)
        try:
            return self.solver.plan(facts, loss, recoded)
        except Unsupported as refusal:
            if recoded.hessian is None:
                raise
            raise Unsupported(
                f"{refusal}. In whitened coordinates no penalty is separable: use coordinates='diagonal', or no penalty"
            ) from None

    def _penalty(self, penalty: Penalty, recoding: Recoding, admitted: Domain) -> Penalty:
        """Return the penalty in recoded coordinates: each on its own scale, the intercept at the center."""
        if penalty.ridge and penalty.strong_convexity == 0:
            return NoPenalty()
        if self.gives_shape:
            quadratic = ridge_in(penalty, recoding, admitted)
            if quadratic is None:
                raise Unsupported(
                    "whitened coordinates know no penalty but l2: use coordinates='diagonal' for a separable one, or "
                    "solver='gd'"
                )
            return quadratic
        if not penalty.separable:
            raise Unsupported(
                "only separable penalties (none, L1, L2, elastic net, a box) can be followed in other coordinates: use "
                "solver='gd' for this one"
            )
        units = np.append(1.0 / recoding.scale, recoding.constant)[: admitted.n_features] * recoding.target_scale
        return Rescaled(penalty, units, recoding.target_scale**2)

    def _calibrates(self, loss: Loss, asked: list[Release] | tuple[Release, ...]) -> bool:
        """Say whether probabilities are brought back to scale: those of clipped gradients of two classes."""
        steps = any(r.query == "noisy_gradient" and r.count for r in asked)
        return self.calibrate and self.gives_shape and loss.sigmoid_link and steps

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Estimate the map, recode the records, solve, and map the coefficients back."""
        if self.coordinates == "training":
            constant, constant_noise = self._constant(curator, penalty)
            if constant is not None:
                curator.start_at(constant)
            found = self.solver.solve(curator, penalty, progress)
            found, _ = self._shrunk(found, curator, curator.domain, penalty, penalty, constant=constant)
            if constant is not None and found.trace is not None:
                added = np.zeros_like(constant)
                added[-1] = constant_noise * left_of(found.trace, curator)
                found = replace(found, trace=CalibratedTrace(found.trace, 1.0, added))
            return found if penalty.ridge else replace(found, coefficients=penalty.prox(found.coefficients, 0.0))
        with on_one_thread(curator.domain.n_features):
            n, admitted, loss = public_count(curator), curator.domain, curator.loss
            constant, constant_noise = self._constant(curator, penalty)
            estimate = self.estimate(curator, n, penalty)
            recoding = estimate.recoding
            rescaled = loss.with_target_scale(recoding.target_scale) if loss.movable_target else None
            curator.recode(recoding, loss=rescaled, typical=estimate.typical)
            start = None if constant is None else recoding.recoded(constant)
            if start is not None:
                curator.start_at(start)
            pulled, smooth = self._penalty(penalty, recoding, admitted), penalty.ridge
            inner = self._for_count(n, admitted).solve(curator, pulled, progress)
            inner, doubt = self._shrunk(inner, curator, admitted, penalty, pulled, estimate, constant)
            extra: Floats | float = constant_noise * left_of(inner.trace, curator)
            if not smooth and admitted.intercept:  # corners may keep a wrong center
                extra = np.hypot(extra, estimate.target.noise)
            trace = StageTrace(inner, recoding, admitted, curator.loss, estimate.spectrum, extra)
            w = recoding.coefficients(inner.coefficients)
            w = w if smooth else penalty.prox(w, 0.0)  # into a box; moves nothing else
            if self._moves_intercept(curator, admitted, penalty):
                return self._shifted(curator, penalty, estimate, inner.coefficients, trace, n, doubt)
            if curator.noise_multiplier == 0 or not self._calibrates(curator.loss, curator.plan.releases):
                return Solution(w, trace, estimate)
            margin = 0.0 if constant is None else float(constant[-1])
            moved = inner.coefficients if start is None else inner.coefficients - start
            assert estimate.spectrum is not None
            mean, deviation = margins_of(estimate.spectrum, moved)
            law = (margin + mean, deviation, margin)
            return self._calibrated(curator, penalty, estimate, inner.coefficients, trace, n, doubt, law)

    def _constant(self, curator: "Curator", penalty: Penalty) -> tuple[Floats | None, Floats | float]:
        """Return the coefficients of the constant that is asked for, if one is, and the noise in it."""
        domain = curator.domain
        if not self._start_releases(domain, curator.loss):
            return None, 0.0
        noise = noises(curator, constant_query(domain))[0]
        constant = released_constant(curator, public_count(curator), noise, penalty.strong_convexity)
        w = np.zeros(domain.shape)
        w[-1] = constant.margin
        return w, constant.noise

    def _shrunk(
        self,
        found: Solution,
        curator: "Curator",
        admitted: Domain,
        penalty: Penalty,
        pulled: Penalty,
        estimate: Estimate | None = None,
        constant: Floats | None = None,
    ) -> tuple[Solution, float | None]:
        """Take out what is noise; an intercept that is moved later keeps its own, which is returned.

        ``pulled`` is the penalty in the solver's coordinates.
        """
        trace = found.trace
        if self.weigh and isinstance(trace, DescentTrace) and trace.decrease is not None:
            return self._weighed(found, trace, trace.decrease, curator, admitted, penalty, pulled), None
        if not self.denoise:
            return found, None
        middle, spectrum = None, None if estimate is None else estimate.spectrum
        if admitted.ranges is not None and (self.coordinates in ("declared", "training") or not admitted.intercept):
            middle = admitted.ranges.mean(axis=1)
            middle = middle if estimate is None else (middle - estimate.recoding.center) / estimate.recoding.scale
        margin = None if constant is None or constant.ndim > 1 else float(constant[-1])
        seen = noise_in(found, curator, spectrum, middle, pulled, intercept=admitted.intercept, constant=margin)
        if seen is None:
            return found, None
        weak, moves = penalty.strong_convexity < WEAK, self._moves_intercept(curator, admitted, penalty)
        left = shrunk(found, curator, seen, intercept=not (moves and weak))
        return left, seen.intercept if weak else None

    def _for_count(self, n: float, admitted: Domain) -> Solver:
        """Return the solver, its steps as much shorter as fewer records were counted than it was chosen for."""
        fewer = 1.0 if admitted.n is not None else min(1.0, n / PRIVATE_N)
        step = getattr(self.solver, "relative_step", None)
        if not (self.weigh and fewer < 1.0 and step is not None):
            return self.solver
        return replace(self.solver, relative_step=fewer * step)  # type: ignore[type-var]

    @staticmethod
    def _weighed(
        found: Solution,
        trace: DescentTrace,
        decrease: Decrease,
        curator: "Curator",
        admitted: Domain,
        penalty: Penalty,
        pulled: Penalty,
    ) -> Solution:
        """Go back from what steps found to the best constant as far as their gradients say that it is noise."""
        w, is_asked = found.coefficients, admitted.start is None
        intercept = admitted.intercept
        part = share_of_way(w, trace, decrease, curator, pulled, intercept=intercept)
        nothing = curator.domain.starting_point
        if intercept and is_asked:
            nothing[-1] = w[-1]
            constant = best_constant_along(decrease, curator, trace, penalty.strong_convexity)
            nothing[-1] = w[-1] if constant is None else constant
        return replace(found, coefficients=nothing + part * (w - nothing))

    def _moves_intercept(self, curator: "Curator", admitted: Domain, penalty: Penalty) -> bool:
        """Say whether a mean of residuals moves the intercept at last."""
        planned = not isinstance(curator.plan, AdaptivePlan) and self._shift_releases(admitted, curator.loss, penalty)
        return bool(planned) and curator.noise_multiplier > 0

    def estimate(self, curator: "Curator", n: float, penalty: Penalty | None = None) -> Estimate:
        """Ask for the estimates, and make a map of them; records are recoded afterwards.

        An L2 ``penalty`` is as much curvature as a wider column has: along it steps and noise are as short.
        """
        if self.coordinates == "declared":
            return self._declared(curator, n)
        admitted, noiseless = curator.domain, curator.noise_multiplier == 0
        has_target = share_of_target(curator.loss, self.target_share) > 0
        target = estimate_target(curator, n, denoise=self.denoise) if has_target else Target()
        features = estimate_features(curator, n, self.least_scale)
        if not self.gives_shape:
            features = stiffened(features, penalty, curator.loss)
        size, constant = math.sqrt(features.square_length), self.constant
        longest = self.lengths * size * math.hypot(1.0, constant or 1.0 / size)
        if self.relative_row_norm is not None:
            longest = self.relative_row_norm * math.sqrt(len(features.recoding.center) + 1.0)
        fixed = 1.0 if constant is None else constant * size
        standard = standard_rows(features, target, constant=fixed, longest=longest, noiseless=noiseless)
        if self.gives_shape:
            likely = None if features.likely is None else features.likely / longest**2
            return self._whitened(curator, admitted, standard, target, n, penalty, likely)
        squares = np.append(features.squares / longest**2, standard.constant**2)[: admitted.n_features]
        if noiseless:  # nothing is shrunk; 4: a feature's square from its center, SQUARES: what shrinking squares left
            return Estimate(standard, Typical(None, 4.0 / SQUARES, squares), target=target)
        squares = np.minimum(squares, 1.0)
        likely = squares if features.likely is None else np.append(features.likely / longest**2, squares[-1:])
        return Estimate(standard, Typical(1.0, 1.0, squares, likely[: len(squares)]), target=target)

    def _whitened(
        self,
        curator: "Curator",
        admitted: Domain,
        standard: Recoding,
        target: "Target",
        n: float,
        penalty: Penalty | None,
        likely: Floats | None,
    ) -> Estimate:
        """Estimate the second moment of standardized rows, or take a public one, and whiten rows by it."""
        second, edge = second_moment(curator, admitted, standard, n)
        pull = None if penalty is None else ridge_in(penalty, standard, admitted)
        added = np.zeros_like(second) if pull is None else pull.hessian / largest_curvature(curator.loss)
        white = whiten(second, added, edge, self.floor, standard, admitted, curator.loss, likely)
        typical = Typical(white.length if curator.noise_multiplier else None, 1.0, np.ones(len(second)))
        return Estimate(white.recoding, typical, white.spectrum, target)

    def _declared(self, curator: "Curator", n: float) -> Estimate:
        """Return the declared map; a numeric target is taken from the middle of its range.

        Rows are shrunk onto their typical length, so that the curvature that steps rely on is a bound.
        """
        domain, start, length = curator.domain, declared_coordinates(curator.domain), 1.0 / (self.constant or 1.0)
        typical = declared_length(domain, start)
        if domain.moments is not None:
            public = public_features(domain, domain.moments)
            start, typical = public.recoding, math.sqrt(public.square_length)
        if self._measures(domain):
            typical = self._measured_length(curator, start, typical, n)
        ends, norm = domain.target_range, math.hypot(1.0, length)
        recoding = Recoding(
            start.center,
            start.scale * (typical / length),
            row_norm=norm,
            target_center=sum(ends) / 2.0 if ends is not None and domain.intercept else 0.0,
            target_scale=(ends[1] - ends[0]) / 2.0 or 1.0 if ends is not None and domain.intercept else 1.0,
        )
        squares = np.square(recoding.domain(domain).feature_bounds)  # bounds, as norm^2 is: nothing is assumed
        alike = np.append(np.full(len(start.center), length**2 / max(1, len(start.center))), 1.0)[: domain.n_features]
        typical_norm = None if curator.noise_multiplier == 0 else norm
        return Estimate(recoding, Typical(typical_norm, norm**2, squares, np.minimum(alike, squares)))

    def _measured_length(self, curator: "Curator", start: Recoding, longest: float, n: float) -> float:
        """Return what the constant's noisy mean says: from a rough guess first, then from what that showed.

        1 / sqrt(1 + r^2) tells best what r is near r = 1, so features are divided by the last guess. It is read one
        standard deviation of the noise toward long rows, which make the constant heavier: the safe side.
        """
        noise = noises(curator, "noisy_mean")[0] / n
        length = math.sqrt(longest)
        for _ in range(LOOKS):
            with curator.recoded(replace(start, scale=start.scale * length, row_norm=1.0)):
                mean = float(curator.noisy_mean(clip=1.0, n=n)[-1]) - noise
            mean = min(1.0, max(1.0 / math.hypot(1.0, longest / length), mean))
            length = max(LEAST_ROW, length * math.sqrt(1.0 / mean**2 - 1.0))
        return length

    def _calibrated(
        self,
        curator: "Curator",
        penalty: Penalty,
        estimate: Estimate,
        v: Floats,
        trace: StageTrace,
        n: float,
        doubt: float | None,
        law: tuple[float, float, float],
    ) -> Solution:
        """Bring the margins of coefficients v back to scale, by one more gradient.

        ``law`` has their mean and deviation, and the constant that steps started from.
        """
        mean, deviation, start = law
        fraction = planned(curator, "noisy_gradient").sampling_numerator / SAMPLING_DENOMINATOR
        sampled = TYPICAL_SLOPE_ENTRY * math.sqrt((1.0 - fraction) * fraction * n) / CLASSES.length
        noise = math.hypot(Noise.of(curator, "noisy_gradient").deviation(), sampled) / (fraction * n)
        unknowns = Calibration(
            curator.loss, estimate.recoding, v, mean=mean, deviation=deviation,
            clip=CLASSES.length, noises=[noise], penalty=penalty, step_noise=doubt, start=start,
        )  # fmt: skip
        with curator.recoded(unknowns.recoding):
            unknowns.add(curator.noisy_gradient(unknowns.theta, clip=unknowns.clip) / (fraction * n))
        moved = unknowns.result()
        return Solution(moved.coefficients, CalibratedTrace(trace, moved.share, moved.deviations), estimate)

    def _shifted(
        self,
        curator: "Curator",
        penalty: Penalty,
        estimate: Estimate,
        v: Floats,
        trace: StageTrace,
        n: float,
        doubt: float | None,
    ) -> Solution:
        """Move the intercept of coefficients v by a noisy mean of residuals, weighed against that clips move it little.

        With its noise, ``doubt``, what is noise in both is taken out of what is predicted at the center of the rows,
        from the middle of the target's range.
        Rows are recoded to their prediction and a constant 1, whose entry of the gradient that mean is.
        """
        assert self.shift_clip is not None
        recoding = estimate.recoding
        w, unit = recoding.coefficients(v), recoding.target_scale
        two = predictor_coordinates(recoding, v, 0.0, 1.0, NUMBERS, intercept=True)
        with curator.recoded(two):
            answer = curator.noisy_coordinate_gradient(np.array([1.0, 0.0]), 1, clips=self.shift_clip)
        noise = noises(curator, "noisy_coordinate_gradient")[-1] * self.shift_clip / n
        strength = penalty.strong_convexity
        doubt = None if doubt is None else doubt * math.sqrt(estimate.typical.squares[-1])
        before, doubted = NUMBERS.shift**2 + (doubt or 0.0) ** 2, math.hypot(noise, math.exp(-1.0 - self.shift_clip))
        weight = before / (before + noise**2) / (1.0 + strength)
        w[-1] -= weight * (float(answer[0]) / n * unit + strength * w[-1])
        if doubt is not None:
            left = math.sqrt(weight) * doubted
            middle = sum(trace.admitted.target_range or (0.0, 0.0)) / 2.0
            at_center = (recoding.center @ w[:-1] + w[-1] - middle) / unit
            w[-1] += unit * (float(kept(np.array([at_center / left]))[0]) * left - at_center)
        added = np.zeros_like(w)
        added[-1] = weight * noise * unit
        return Solution(w, CalibratedTrace(trace, 1.0, added), estimate)

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> "Preconditioned":
        """Fill what the solver leaves open, where records stay as they are."""
        if self.coordinates != "training":
            return self
        return replace(self, solver=filled(self.solver, domain, loss, penalty, budget))

    def settings(self) -> dict[str, object]:
        """Return its public settings and the inner solver's, for the certificate."""
        outer = {name: value for name, value in asdict(self).items() if name != "solver"}
        return {"name": self.name, **outer, "solver": self.solver.settings()}

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Take four short steps."""
        from discreet.solvers.gd import GradientDescent

        return AuditCase(cls(GradientDescent(n_steps=4, momentum=0.7, relative_step=SHORT_STEP)))
