"""Run a solver in the declared coordinates, its features small against a constant: for little signal.

    x -> (x / (half the declared range), in units in which a typical row has length 1 / constant; 1)

The intercept is learned first, so that a model without signal falls back on the trivial one. Ranges do not say how
long a sparse or a very wide row is: that is estimated from the constant's mean 1 / sqrt(1 + length^2) once rows are
shrunk to 1. Rows are shrunk onto their typical length, so that the curvature that steps rely on is a bound.

Privacy
-------
Relation and sensitivity: nothing is released, or, for sparse or very wide records with an intercept, two
``noisy_mean`` (B, 2 B under ``replace_one``), proven at the curator. Mechanism: Gaussian noise (discrete Laplace for
pure budgets). Event: two ``Gaussian`` with ``mean_share`` of mu^2; the inner solver's events with the rest. Conditions:
those of ``stage``. Public moments, constants of the fit, take the place of declared ranges where they are given.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.plan import Release
from discreet.bounds import Domain, Typical
from discreet.curator import Recoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Positive, Share, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.center_and_scale import declared_coordinates, noise_of, public_features, shares_to_noise
from discreet.solvers.registry import register_part
from discreet.solvers.stage import Estimate, Stage, check_shares

if TYPE_CHECKING:
    from discreet.curator import Curator

LEAST_ROW = 0.1
"""Sparse rows are taken to be at least this long in declared coordinates."""
TYPICAL_ROW = 0.6
"""A row's typical length in units of the longest that ranges and a declared row norm allow."""
LOOKS = 2
"""How many noisy means tell how long rows are."""
WIDEST = 2048
"""Beyond this many columns p^2 numbers are too many, and .6 sqrt(p) says little of how long rows are."""


@register_part("Declared")
@dataclass(frozen=True)
class Declared(Stage):
    """Run ``solver`` in declared coordinates with a constant feature.

    Parameters
    ----------
    solver : Solver
        Any iterative solver with a fixed plan, such as ``GradientDescent()``.
    constant : float, default=0.5
        The intercept's constant feature in units of the features' length.
    mean_share : float, default=0.06
        Share of mu^2 for the length of rows, where it is measured.
    measure : bool or None, default=None
        Whether the length of rows is estimated. None: of sparse or very wide ones.

    Examples
    --------
    >>> from discreet.solvers import Declared, GradientDescent
    >>> Declared(GradientDescent(n_steps=8), constant=2.0).name
    'declared'
    """

    constant: Positive = 0.5
    mean_share: Share = 0.06
    measure: bool | None = None
    name: ClassVar[str] = "declared"
    takes_public_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        check_shares(self.mean_share, target=0.0)

    def _check(self, domain: Domain, loss: Loss, penalty: Penalty) -> None:
        super()._check(domain, loss, penalty)
        if domain.moments is not None and is_wide(domain):
            raise Unsupported(
                "sparse or very wide records have scales that are too rare to rely on here: leave public_moments out, "
                "or use solver=Standardized(...)"
            )

    def releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List noisy means where the length of rows is measured, with a constant to compare with; else nothing."""
        length = Release("noisy_mean", LOOKS, relative_noise=shares_to_noise(self.mean_share, LOOKS), clip=1.0)
        measured = is_wide(domain) if self.measure is None else self.measure
        return (length,) if domain.intercept and measured and domain.moments is None else ()

    def estimate(self, curator: "Curator", n: float) -> Estimate:
        """Return the declared map; a numeric target is taken from the middle of its range."""
        domain, start, length = curator.domain, declared_coordinates(curator.domain), 1.0 / self.constant
        typical = declared_length(domain, start)
        if domain.moments is not None:
            known = public_features(domain, domain.moments)
            start, typical = known.recoding, math.sqrt(known.square_length)
        if self.releases(domain, curator.loss):
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
        noise = noise_of(curator, "noisy_mean", 1.0, float(curator.budget.neighbors.sum_factor)) / n
        length = math.sqrt(longest)
        for _ in range(LOOKS):
            curator.recode(replace(start, scale=start.scale * length, row_norm=1.0), once=True)
            mean = float(curator.noisy_mean(clip=1.0, n=n)[-1]) - noise
            mean = min(1.0, max(1.0 / math.hypot(1.0, longest / length), mean))
            length = max(LEAST_ROW, length * math.sqrt(1.0 / mean**2 - 1.0))
        return length


def is_wide(domain: Domain) -> bool:
    """Say whether the ranges do not tell how long rows are, and p^2 numbers are too many: sparse or very wide."""
    return domain.sparse or domain.n_features > WIDEST


def declared_length(domain: Domain, start: Recoding) -> float:
    """Return a row's typical length from public facts: ranges, and a declared row norm where it is in these units."""
    longest = math.sqrt(max(1, len(start.center)))
    if not start.center.any() and (start.scale == 1.0).all():
        longest = min(longest, math.sqrt(max(domain.row_norm**2 - domain.intercept, LEAST_ROW**2)))
    return TYPICAL_ROW * longest
