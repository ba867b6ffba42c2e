"""Run a solver in the declared coordinates, its features small against a constant: for little signal.

    x -> (x / (half the declared range), in units in which a typical row has length 1 / constant; 1)

The intercept is learned first, so that a model without signal falls back on the trivial one. How long a sparse row is
cannot be told from ranges: it is estimated from the constant's mean 1 / sqrt(1 + length^2) once rows are shrunk to 1.

Privacy
-------
Relation and sensitivity: nothing is released, or, for sparse records with an intercept, ``noisy_mean`` (B, 2 B under
``replace_one``), proven at the curator. Mechanism: Gaussian noise (discrete Laplace for pure budgets). Event: one
``Gaussian`` with ``mean_share`` of mu^2; the inner solver's events with the rest. Conditions: those of ``stage``.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.plan import Release
from discreet.bounds import Domain, Typical
from discreet.curator import Recoding
from discreet.losses.base import Loss
from discreet.solvers.base import check_positive
from discreet.solvers.center_and_scale import declared_coordinates, shares_to_noise
from discreet.solvers.registry import register_part
from discreet.solvers.stage import Estimate, Stage, check_shares

if TYPE_CHECKING:
    from discreet.curator import Curator

LEAST_ROW = 0.1
"""Sparse rows are taken to be at least this long in declared coordinates."""
TYPICAL_ROW = 0.6
"""A row's typical length in units of sqrt(p) in declared coordinates."""


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
    mean_share : float, default=0.04
        Share of mu^2 for the length of sparse rows.

    Examples
    --------
    >>> from discreet.solvers import Declared, GradientDescent
    >>> Declared(GradientDescent(n_steps=8), constant=2.0).name
    'declared'
    """

    constant: float = 0.5
    mean_share: float = 0.04
    name: ClassVar[str] = "declared"

    def __post_init__(self) -> None:
        check_positive(self, "constant")
        check_shares(self.mean_share, target=0.0)

    def releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List a mean for sparse records with a constant to compare with; nothing for others."""
        length = Release("noisy_mean", 1, relative_noise=shares_to_noise(self.mean_share), clip=1.0)
        return (length,) if domain.sparse and domain.intercept else ()

    def estimate(self, curator: "Curator", n: float) -> Estimate:
        """Return the declared map; a numeric target is taken from the middle of its range."""
        domain, start, length = curator.domain, declared_coordinates(curator.domain), 1.0 / self.constant
        features = max(1, len(start.center))
        typical = TYPICAL_ROW * math.sqrt(features)
        if self.releases(domain, curator.loss):
            curator.recode(replace(start, row_norm=1.0), once=True)
            mean = min(1.0, max(1.0 / math.hypot(1.0, typical), float(curator.noisy_mean(clip=1.0, n=n)[-1])))
            typical = max(LEAST_ROW, math.sqrt(1.0 / mean**2 - 1.0))
        ends, norm = domain.target_range, math.hypot(1.0, length)
        recoding = Recoding(
            start.center,
            start.scale * (typical / length),
            row_norm=norm,
            target_center=sum(ends) / 2.0 if ends is not None and domain.intercept else 0.0,
            target_scale=(ends[1] - ends[0]) / 2.0 or 1.0 if ends is not None and domain.intercept else 1.0,
        )
        squares = np.append(np.full(len(start.center), length**2 / features), 1.0)[: domain.n_features]
        return Estimate(recoding, Typical(None if curator.noise_multiplier == 0 else norm, norm**2, squares))
