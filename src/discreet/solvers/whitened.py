"""Run a solver in whitened coordinates, where every direction looks alike: few clipped, noisy steps travel far.

    1. center and scale the features, append a constant, shrink rows to a common length (``standardized``)
    2. M = noisy second moment of these rows = U diag(e) U^T, noise edge s sqrt(2 p); A = U diag((e + floor)^{-1/2}) U^T
    3. v = what the inner solver finds on rows A z;   w = A v, and back to the features as they were

The library's own default estimates the same coordinates for its own steps (``default/recipe``); this stage runs the
solvers of the papers in them. Cost: n p^2 for M and for the recoding. Utility: how badly the declared ranges fit hardly
matters.

Privacy
-------
Relation and sensitivity: those of ``standardized``, and ``noisy_second_moment`` (B, sqrt(2) B under ``replace_one``),
proven at the curator. Mechanism: Gaussian noise (discrete Laplace for pure budgets). Event: one ``Gaussian`` each, with
their shares of mu^2; the inner solver's events with the rest; ``calibrate_probabilities`` adds one more of the inner
solver's noisy gradients, on records recoded by released values. Conditions: those of ``stage``. Public moments are
constants, as in ``standardized``; with a public covariance the second moment is not released either, for classes
(``knows_covariance``).
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain, Typical
from discreet.curator import Recoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Positive, Share, Weight, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.base import Solution, planned
from discreet.solvers.calibration import CLASSES, calibrate
from discreet.solvers.center_and_scale import (
    LEAST_SCALE,
    feature_releases,
    knows_covariance,
    longer_in_l1,
    noise_of,
    public_second_moment,
    shares_to_noise,
    standard_rows,
    target_releases,
)
from discreet.solvers.gd import GradientDescent
from discreet.solvers.registry import SHORT_STEP, AuditCase, register_part
from discreet.solvers.stage import Estimate, Stage, check_shares, quadratic
from discreet.solvers.uncertainty.stage_noise import CalibratedTrace
from discreet.solvers.uncertainty.traces import Noise
from discreet.solvers.uncertainty.whitened_noise import Spectrum, margins_of
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


REACH = 16.0
"""Whitened rows longer than this many typical ones are shrunk: it bounds the lattice, and hardly happens."""
LEAST_DIRECTION = 1e-7
"""Eigenvalues are kept above this part of the largest: below is the rounding of the records."""
PUBLIC_REACH = 2.0
"""The same as ``REACH`` where the covariance is public, and so may be wrong: it bounds the curvature then."""
TYPICAL_SLOPE_ENTRY = 0.45
"""A typical entry of a record's gradient in calibration: what a sample of records adds to the noise."""


@register_part("Whitened")
@dataclass(frozen=True)
class Whitened(Stage):
    """Run ``solver`` in privately whitened coordinates.

    Parameters
    ----------
    solver : Solver
        Any iterative solver with a fixed plan, such as ``GradientDescent()``.
    constant : float or None, default=0.5
        The intercept's constant feature in units of the features' length; None: that of one standardized feature.
    relative_row_norm : float or None, default=None
        Rows longer than this many standard deviations per column are shrunk; None: than their typical length.
    mean_share, scale_share : float, default=0.04 and 0.08
        Shares of mu^2 for means and scales; the steps get the rest.
    target_share : float or None, default=None
        The share for a numeric target's mean and scale; None: 0.05; 0: the target stays as declared.
    moment_share : float, default=0.2
        Share of mu^2 for the second moment.
    floor : float, default=0.35
        What is added to every eigenvalue, in units of the noise's edge.
    calibrate_probabilities : bool, default=True
        Release one gradient more, which brings probabilities back to scale (``calibration``): for the logistic loss of
        two classes, where the inner solver releases gradients.
    least_scale : float, default=0.1
        The smallest scale of a feature, in units of its declared range.

    Examples
    --------
    >>> from discreet.solvers import GradientDescent, Whitened
    >>> Whitened(GradientDescent(n_steps=12, momentum=0.7, radius=100.0)).name
    'whitened'
    """

    constant: Positive | None = 0.5
    relative_row_norm: Positive | None = None
    mean_share: Share = 0.04
    scale_share: Share = 0.08
    target_share: Weight | None = None
    moment_share: Share = 0.20
    floor: Positive = 0.35
    calibrate_probabilities: bool = True
    least_scale: Positive = LEAST_SCALE
    name: ClassVar[str] = "whitened"
    takes_public_moments: ClassVar[bool] = True
    gives_shape: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        check_shares(self.mean_share, self.scale_share, self.moment_share, target=self.target_share)

    def _check(self, domain: Domain, loss: Loss, penalty: Penalty) -> None:
        super()._check(domain, loss, penalty)
        if domain.sparse:
            raise Unsupported("whitening would fill sparse records: use Standardized(...) instead of Whitened(...)")

    def releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List a target's moments for numbers, a mean where features can be centered, mean squares, a second moment."""
        features = feature_releases(domain, mean=self.mean_share, scale=self.scale_share)
        moment = Release("noisy_second_moment", 1, relative_noise=shares_to_noise(self.moment_share))
        seen = () if knows_covariance(domain, loss) else (moment,)
        return (*target_releases(loss, self.target_share), *features, *seen)

    def _inner_plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        try:
            return super()._inner_plan(domain, loss, penalty)
        except Unsupported as refusal:
            if penalty.ridge and penalty.strong_convexity == 0:
                raise
            raise Unsupported(
                f"{refusal}. In whitened coordinates no penalty is separable: use Standardized(...) instead of "
                "Whitened(...), or no penalty"
            ) from None

    def _inner(self, domain: Domain, loss: Loss, penalty: Penalty) -> list[Release]:
        """Return the inner solver's releases, with one gradient more where probabilities are calibrated."""
        asked = super()._inner(domain, loss, penalty)
        more = self._calibrates(loss, asked)
        return [replace(r, count=r.count + (more and r.query == "noisy_gradient")) for r in asked]

    def _calibrates(self, loss: Loss, asked: list[Release] | tuple[Release, ...]) -> bool:
        """Say whether probabilities are brought back to scale: those of clipped gradients of two classes."""
        steps = any(r.query == "noisy_gradient" and r.count for r in asked)
        return self.calibrate_probabilities and loss.sigmoid_link and steps

    def estimate(self, curator: "Curator", n: float) -> Estimate:
        """Estimate centers, scales and the second moment."""
        admitted, quiet = curator.domain, curator.noise_multiplier == 0
        rows = standard_rows(
            curator, n, constant=self.constant, relative_row_norm=self.relative_row_norm,
            target_share=self.target_share, least_scale=self.least_scale,
        )  # fmt: skip
        recoding, public = rows.recoding, knows_covariance(admitted, curator.loss)
        curator.recode(recoding, once=True)
        second, edge = self._second_moment(curator, admitted, recoding, n)
        matrix, length, shares, vectors, kept = whitening(second, edge, self.floor)
        mean = matrix @ second[:, -1] / recoding.constant if admitted.intercept else np.zeros(len(second))
        leverage = np.square(matrix).sum(axis=0) * np.square(curator.domain.feature_bounds)
        farthest = np.sqrt(np.maximum(1.0, 1.0 + (leverage - 1.0) / length**2))
        entry = edge / (2.0 * math.sqrt(len(second)))  # off the diagonal, of the mean of two
        return Estimate(
            replace(recoding, matrix=matrix, reach=None if quiet else (PUBLIC_REACH if public else REACH) * length),
            Typical(None if quiet else length, 1.0, np.ones(len(second))),
            Spectrum(shares, vectors, mean, farthest, kept, entry, length),
            target=rows.target,
        )

    def _second_moment(
        self, curator: "Curator", admitted: Domain, recoding: Recoding, n: float
    ) -> tuple[Floats, float]:
        """Return the second moment of recoded rows and the edge of its noise: released, or public and without noise."""
        if admitted.moments is not None and knows_covariance(admitted, curator.loss):
            return public_second_moment(admitted.moments, recoding, intercept=admitted.intercept), 0.0
        quiet = curator.noise_multiplier == 0
        clip = curator.domain.row_norm**2 if quiet else longer_in_l1(curator, admitted.n_features) ** 2
        second = curator.noisy_second_moment(clip=clip, n=n)
        noise = noise_of(curator, "noisy_second_moment", clip, curator.budget.neighbors.sum_factor**0.5)
        return second, noise / n * math.sqrt(2.0 * len(second))

    def _penalty(self, penalty: Penalty, recoding: Recoding, admitted: Domain) -> Penalty:
        """Return an L2 penalty in whitened coordinates."""
        if penalty.ridge and penalty.strong_convexity > 0:
            return quadratic(penalty, recoding, admitted)
        if not penalty.ridge:
            raise Unsupported(
                "whitened coordinates know no penalty but l2: use Standardized(...) for a separable one, or solver='gd'"
            )
        return super()._penalty(penalty, recoding, admitted)

    def _finished(
        self, curator: "Curator", penalty: Penalty, estimate: Estimate, found: Solution, n: float, admitted: Domain
    ) -> Solution:
        """Map the solution back; with one more gradient, bring its margins back to scale."""
        done = super()._finished(curator, penalty, estimate, found, n, admitted)
        if curator.noise_multiplier == 0 or not self._calibrates(curator.loss, curator.plan.releases):
            return done
        assert estimate.spectrum is not None
        assert done.trace is not None
        mean, deviation = margins_of(estimate.spectrum, found.coefficients)
        fraction = planned(curator, "noisy_gradient").sampling_numerator / SAMPLING_DENOMINATOR
        sampled = TYPICAL_SLOPE_ENTRY * math.sqrt((1.0 - fraction) * fraction * n) / CLASSES.length
        noise = math.hypot(Noise.of(curator, "noisy_gradient").deviation(), sampled) / (fraction * n)
        moved = calibrate(
            curator, curator.loss, estimate.recoding, found.coefficients, mean=mean, deviation=deviation,
            clip=CLASSES.length, noises=[noise], penalty=penalty, n=fraction * n,
        )  # fmt: skip
        return Solution(moved.coefficients, CalibratedTrace(done.trace, moved.share, moved.deviations), estimate)

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Take four short steps."""
        return AuditCase(cls(GradientDescent(n_steps=4, momentum=0.7, relative_step=SHORT_STEP)))


def whitening(second: Floats, edge: float, floor: float) -> tuple[Floats, float, Floats, Floats, Floats]:
    """Return A = (M + floor edge)^{-1/2}, a whitened row's length, the whitened moment's spectrum, M's + floor.

    The length is the root of the directions above the noise. Eigenvalues below the noise's edge are taken for their
    mean, which follows from the trace.
    """
    values, vectors = np.linalg.eigh(second)
    kept = np.maximum(values, 0.0) + max(floor * edge, LEAST_DIRECTION * max(float(values[-1]), 1e-300))
    clear = values > edge
    rest = max(float(np.trace(second)) - float(values[clear].sum()), 0.0) / max(1, int((~clear).sum()))
    likely = np.where(clear, values, min(edge, rest))
    length = math.sqrt(max(1.0, float((np.maximum(likely, 0.0) / kept).sum())))
    return (vectors / np.sqrt(kept)) @ vectors.T, length, np.where(clear, values / kept, 0.0), vectors, kept
