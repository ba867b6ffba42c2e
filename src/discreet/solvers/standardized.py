"""Run a solver on standardized features: centered and scaled by a private estimate of their means and spreads.

    1. m = noisy mean of rows of length 1, the center; s2 = noisy mean squares about it, the scales
    2. z = shrink_1( ((x - m) / s, constant) / length ),  length: a typical row's; v = what the inner solver finds
    3. w = the same predictor of the features as they were

Wins where declared ranges fit badly, for sparse and for very wide records: no p^2 numbers.

Privacy
-------
Relation and sensitivity: ``noisy_mean`` (B, 2 B under ``replace_one``), ``noisy_mean_squares`` (B, sqrt(2) B), for
numbers ``noisy_target_moments`` (B, 2 B), proven at the curator. Mechanism: Gaussian noise (discrete Laplace for pure
budgets). Event: one ``Gaussian`` each, with ``mean_share``, ``scale_share`` and ``target_share`` of mu^2; the inner
solver's events with the rest. Conditions: those of ``stage``. Public moments (``Domain.moments``) are constants, which
no record enters: means and squares are not released then, and the inner solver's events have their shares.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.plan import Release
from discreet.bounds import Domain, Typical
from discreet.losses.base import Loss
from discreet.parameters import Positive, Share, Weight, check_fields
from discreet.solvers.center_and_scale import LEAST_SCALE, SQUARES, feature_releases, standard_rows, target_releases
from discreet.solvers.registry import register_part
from discreet.solvers.stage import ASKED, Estimate, Stage, check_shares

ONE_SHOT = ("noisy_minimizer", "perturb_objective", "perturbed_minimizer")
"""What may be asked in addition: the price needs a bound on rows before they are recoded, and here it is 1."""

if TYPE_CHECKING:
    from discreet.curator import Curator


@register_part("Standardized")
@dataclass(frozen=True)
class Standardized(Stage):
    """Run ``solver`` on privately standardized features.

    Parameters
    ----------
    solver : Solver
        Any iterative solver with a fixed plan, such as ``CoordinateDescent()``; or ``ObjectivePerturbation`` or
        ``OutputPerturbation`` for rows of length 1.
    constant : float or None, default=0.5
        The intercept's constant feature in units of the features' length; None: that of one standardized feature.
    relative_row_norm : float or None, default=None
        Rows longer than this many standard deviations per column are shrunk; None: than their typical length.
    mean_share, scale_share : float, default=0.04 and 0.08
        Shares of mu^2 for means and scales; the steps get the rest.
    target_share : float or None, default=None
        The share for a numeric target's mean and scale; None: 0.05; 0: the target stays as declared.
    lengths : float, default=1.0
        Without a ``relative_row_norm``, rows are shrunk to this times their typical length.
    least_scale : float, default=0.1
        The smallest scale of a feature in units of half its declared range.

    Examples
    --------
    >>> from discreet.solvers import CoordinateDescent, Standardized
    >>> Standardized(CoordinateDescent(n_inner=50)).name
    'standardized'
    """

    constant: Positive | None = 0.5
    relative_row_norm: Positive | None = None
    mean_share: Share = 0.04
    scale_share: Share = 0.08
    target_share: Weight | None = None
    lengths: Positive = 1.0
    least_scale: Positive = LEAST_SCALE
    name: ClassVar[str] = "standardized"
    asked: ClassVar[tuple[str, ...]] = (*ASKED, *ONE_SHOT)
    takes_public_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        check_shares(self.mean_share, self.scale_share, target=self.target_share)

    def releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List the target's moments for numbers, a mean where features can be centered, and mean squares."""
        features = feature_releases(domain, mean=self.mean_share, scale=self.scale_share)
        return (*target_releases(loss, self.target_share), *features)

    def estimate(self, curator: "Curator", n: float) -> Estimate:
        """Estimate centers and scales; rows are shrunk to a typical length of 1, which bounds their curvature."""
        rows = standard_rows(
            curator, n, constant=self.constant, relative_row_norm=self.relative_row_norm,
            target_share=self.target_share, lengths=self.lengths, least_scale=self.least_scale,
        )  # fmt: skip
        quiet, recoding = curator.noise_multiplier == 0, rows.recoding
        squares = np.append(rows.squares, recoding.constant**2)[: curator.domain.n_features]
        if quiet:  # nothing is shrunk; 4: a feature's square from its center, SQUARES: what shrinking squares left
            return Estimate(recoding, Typical(None, 4.0 / SQUARES, squares), target=rows.target)
        return Estimate(recoding, Typical(1.0, 1.0, np.minimum(squares, 1.0)), target=rows.target)
