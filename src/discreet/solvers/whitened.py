"""Run a solver in whitened coordinates, where every direction looks alike: few clipped, noisy steps travel far.

    1. center and scale the features, append a constant, shrink rows to a common length (``standardized``)
    2. M = noisy second moment of these rows = U diag(e) U^T, noise edge s sqrt(2 p); A = U diag((e + floor)^{-1/2}) U^T
    3. v = what the inner solver finds on rows A z;   w = A v, and back to the features as they were

``Whitened(GradientDescent(momentum=0.7, ...))`` is the default for classes, ``Whitened(NewtonDescent(...))`` for
numbers: Newton's method takes M as its Hessian, on rows that stay standardized or are whitened too. Cost: n p^2 for M
and for the recoding. Utility: how badly the declared ranges fit hardly matters. Numbers and their reasons:
``whitened_defaults``.

Privacy
-------
Relation and sensitivity: those of ``standardized``, and ``noisy_second_moment`` (B, sqrt(2) B under ``replace_one``),
proven at the curator; ``noisy_share_within`` and ``noisy_coordinate_gradient`` (B, 2 B) in place of a target's moments
where it is searched for. Mechanism: Gaussian noise (discrete Laplace for pure budgets). Event: one ``Gaussian`` each,
with their shares of mu^2; the inner solver's events with the rest; ``calibrate_probabilities`` and
``calibrate_predictions`` add one more of the inner solver's noisy gradients, on records recoded by released values.
Conditions: those of ``stage``; A is made of the released second moment, so that ``whiten_rows`` maps each record by
released values and asks for nothing more. Public moments are constants, as in ``standardized``; with a public
covariance the second moment is not released either, for classes (``knows_covariance``).
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain, Typical
from discreet.budget import Budget
from discreet.curator import Recoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import CountOrZero, NonNegative, Positive, Share, Weight, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.base import Solution, Solver, planned
from discreet.solvers.center_and_scale import (
    LEAST_SCALE,
    feature_releases,
    knows_covariance,
    longer_in_l1,
    noise_of,
    public_second_moment,
    share_of_target,
    shares_to_noise,
    standard_rows,
    target_releases,
)
from discreet.solvers.declared import Declared
from discreet.solvers.gd import GradientDescent
from discreet.solvers.prediction_calibration import calibrate_numbers
from discreet.solvers.probability_calibration import Calibrated, calibrate, usual
from discreet.solvers.registry import SHORT_STEP, AuditCase, register
from discreet.solvers.stage import Estimate, SecondMoment, Stage, check_shares, quadratic
from discreet.solvers.target_search import search_releases, search_target
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
LENGTHS = 1.1
"""Rows that stay standardized are shrunk to this times their typical length, once that is estimated, or less."""
PUBLIC_REACH = 2.0
"""The same as ``REACH`` where the covariance is public, and so may be wrong: it bounds the curvature then."""
LEAST_LENGTH = 0.2
"""The mean squared entry of a standardized row is at least this."""


@register("whitened")
@dataclass(frozen=True)
class Whitened(Stage):
    """Run ``solver`` in privately whitened coordinates.

    Parameters
    ----------
    solver : Solver
        Any iterative solver with a fixed plan, such as ``GradientDescent()``.
    constant : float or None, default=0.5
        The intercept's constant feature in units of the features' length; None: that of one standardized feature.
        Steps are as short without an intercept.
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
    calibrate_probabilities : bool or "usual", default=True
        Release one gradient more, which brings probabilities back to scale (``probability_calibration``): for the
        logistic loss of two classes with an intercept, where the inner solver releases gradients. ``"usual"``: by what
        clipping usually does to them, without a release.
    lengths : float, default=1.1
        Rows that stay standardized are shrunk to this times their typical length.
    least_scale : float, default=0.1
        The smallest scale of a feature, in units of its declared range.
    target_rounds : int, default=0
        Look so often for a numeric target's center and scale (``target_search``); 0: take its two moments over the
        declared range.
    calibrate_predictions : float, default=0.0
        Release one gradient more after Newton steps, clipped at so many deviations of the target, which brings
        predictions back to its mean (``prediction_calibration``): with an intercept, and no penalty or L2. 0: none.
    whiten_rows : bool, default=False
        Take Newton steps on whitened rows too, not on standardized ones: no penalty or L2. Other solvers do anyhow.

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
    calibrate_probabilities: bool | Literal["usual"] = True
    lengths: Positive = LENGTHS
    least_scale: Positive = LEAST_SCALE
    target_rounds: CountOrZero = 0
    calibrate_predictions: NonNegative = 0.0
    whiten_rows: bool = False
    name: ClassVar[str] = "whitened"
    takes_public_moments: ClassVar[bool] = True
    gives_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        if self.target_rounds and not self._stays_standardized:
            raise Unsupported("a target is searched for before Newton steps only: use Whitened(NewtonDescent(...))")
        if self.target_rounds % 4:
            raise Unsupported("target_rounds must be 0 or a multiple of 4")
        check_shares(self.mean_share, self.scale_share, self.moment_share, target=self.target_share)

    @property
    def _stays_standardized(self) -> bool:
        """Whether the inner solver takes the second moment itself, as a Hessian."""
        return bool(getattr(self.solver, "takes_moments", False))

    def _check(self, domain: Domain, loss: Loss, penalty: Penalty) -> None:
        super()._check(domain, loss, penalty)
        if domain.sparse:
            raise Unsupported("whitening would fill sparse records: use Standardized(...) instead of Whitened(...)")

    def releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List a target's moments for numbers, a mean where features can be centered, mean squares, a second moment."""
        features = feature_releases(domain, mean=self.mean_share, scale=self.scale_share)
        moment = Release("noisy_second_moment", 1, relative_noise=shares_to_noise(self.moment_share))
        return (
            *self._target_releases(domain, loss),
            *features,
            *(() if knows_covariance(domain, loss) else (moment,)),
        )

    def _target_releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List looks for a numeric target, where an intercept can follow it, or its two moments."""
        share = share_of_target(loss, self.target_share)
        if self._searches(domain, loss):
            return search_releases(share, self.target_rounds)
        return target_releases(loss, share)

    def _searches(self, domain: Domain, loss: Loss) -> bool:
        return self.target_rounds > 0 and domain.intercept and share_of_target(loss, self.target_share) > 0

    def _inner_plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        try:
            return super()._inner_plan(domain, loss, penalty)
        except Unsupported as refusal:
            if (penalty.ridge and penalty.strong_convexity == 0) or self._stays_standardized:
                raise
            raise Unsupported(
                f"{refusal}. In whitened coordinates no penalty is separable: use Standardized(...) instead of "
                "Whitened(...), or no penalty"
            ) from None

    def _inner(self, domain: Domain, loss: Loss, penalty: Penalty) -> list[Release]:
        """Return the inner solver's releases, with one gradient more where probabilities are calibrated."""
        asked = super()._inner(domain, loss, penalty)
        more = self.calibrate_probabilities is True and self._calibrates(domain, loss, asked)
        more = more or self._calibrates_numbers(domain, penalty)
        return [replace(r, count=r.count + (more and r.query == "noisy_gradient")) for r in asked]

    def _calibrates(self, domain: Domain, loss: Loss, asked: list[Release] | tuple[Release, ...]) -> bool:
        """Say whether probabilities are brought back to scale: those of clipped gradients of two classes."""
        steps = any(r.query == "noisy_gradient" and r.count for r in asked)
        return bool(self.calibrate_probabilities) and domain.intercept and loss.sigmoid_link and steps

    def _calibrates_numbers(self, domain: Domain, penalty: Penalty) -> bool:
        """Say whether predictions are brought back to the target's mean: those of Newton steps, without corners."""
        return self.calibrate_predictions > 0 and self._stays_standardized and domain.intercept and penalty.ridge

    def estimate(self, curator: "Curator", n: float) -> Estimate:
        """Estimate centers, scales and the second moment."""
        admitted, quiet = curator.domain, curator.noise_multiplier == 0
        searches = self._searches(admitted, curator.loss)
        rows = standard_rows(
            curator, n, constant=self.constant, relative_row_norm=self.relative_row_norm,
            target_share=self.target_share, least_scale=self.least_scale,
            target=search_target(curator, n, self.target_rounds) if searches else None,
        )  # fmt: skip
        recoding, public = rows.recoding, knows_covariance(admitted, curator.loss)
        curator.recode(recoding, once=True)
        second, edge = self._second_moment(curator, admitted, recoding, n)
        if self._stays_standardized:
            if not quiet:
                typical = min(1.0, max(LEAST_LENGTH * len(second) / rows.longest**2, float(np.trace(second))))
                recoding = replace(recoding, row_norm=min(1.0, self.lengths * math.sqrt(typical)))
            known = Typical(None if quiet else recoding.row_norm, 1.0, np.diag(second))
            standard = Estimate(recoding, known, moment=SecondMoment(second, edge), target=rows.target)
            return self._on_whitened_rows(standard) if self.whiten_rows and not quiet else standard
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

    def _on_whitened_rows(self, standard: Estimate) -> Estimate:
        """Return the same for rows A z, shrunk to a typical length there: an eigenvalue e of M becomes e / (e + floor).

        Noise is the same in every direction of the rows. On standardized ones a direction in which they hardly vary has
        the noise of the others, and 1 / e times as much of it in its coefficient; here 1 / sqrt(e) times.
        """
        assert standard.moment is not None
        second = standard.moment.matrix
        matrix, length, *_ = whitening(second, standard.moment.edge, self.floor)
        white, reach = matrix @ second @ matrix, self.lengths * length
        return replace(
            standard,
            recoding=replace(standard.recoding, row_norm=1.0, matrix=matrix, reach=reach),
            typical=Typical(reach, 1.0, np.ones(len(second))),
            whitened_moment=SecondMoment((white + white.T) / 2.0, 1.0 / (1.0 + self.floor)),
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
        """Return an L2 penalty in whitened coordinates; any separable one where rows stay standardized."""
        if penalty.ridge and penalty.strong_convexity > 0:
            return quadratic(penalty, recoding, admitted)
        if not penalty.ridge and (self.whiten_rows or not self._stays_standardized):
            raise Unsupported(
                "whitened coordinates know no penalty but l2: use Standardized(...) for a separable one, or solver='gd'"
            )
        return super()._penalty(penalty, recoding, admitted)

    def _finished(
        self, curator: "Curator", penalty: Penalty, estimate: Estimate, found: Solution, n: float, admitted: Domain
    ) -> Solution:
        """Map the solution back; with one more gradient, bring its margins back to scale."""
        done = super()._finished(curator, penalty, estimate, found, n, admitted)
        quiet = curator.noise_multiplier == 0
        if not quiet and estimate.moment is not None and self._calibrates_numbers(admitted, penalty):
            noise = Noise.of(curator, "noisy_gradient").deviation()
            recoding, v, clip = estimate.recoding, found.coefficients, self.calibrate_predictions
            if recoding.matrix is not None:
                v, recoding = recoding.matrix @ v, replace(recoding, matrix=None, reach=None)
            moved = calibrate_numbers(curator, recoding, v, estimate.moment, penalty, n, clip, noise)
            return self._calibrated(moved, done, estimate)
        if quiet or estimate.spectrum is None or not self._calibrates(admitted, curator.loss, curator.plan.releases):
            return done
        margins = margins_of(estimate.spectrum, found.coefficients)
        if self.calibrate_probabilities == "usual":
            return replace(done, coefficients=usual(estimate.recoding, found.coefficients, *margins))
        noise = Noise.of(curator, "noisy_gradient").deviation()
        fraction = planned(curator, "noisy_gradient").sampling_numerator / SAMPLING_DENOMINATOR
        calibrated = calibrate(curator, estimate.recoding, found.coefficients, *margins, penalty, n, noise, fraction)
        return self._calibrated(calibrated, done, estimate)

    @staticmethod
    def _calibrated(moved: Calibrated, before: Solution, estimate: Estimate) -> Solution:
        assert before.trace is not None
        return Solution(moved.coefficients, CalibratedTrace(before.trace, moved.share, moved.deviations), estimate)

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return descent for classes, Newton steps for numbers, unless there is too little signal for these."""
        from discreet.solvers.whitened_defaults import whitened_for

        if loss.task == "regression" and not loss.movable_target:
            raise Unsupported(f"whitened coordinates know no {type(loss).__name__} loss: use solver='gd'")
        if budget.is_pure and loss.task != "regression":
            raise Unsupported("whitened classes need a delta above 0: leave delta out, or use solver='gd'")
        made = whitened_for(domain, loss, budget, corners=not penalty.ridge)
        steps = isinstance(made, Declared) and isinstance(made.solver, GradientDescent)
        followed = penalty.l1_l2 is not None and steps
        takes_moments = getattr(getattr(made, "solver", None), "takes_moments", False)
        if not penalty.ridge and not followed and not takes_moments:
            raise Unsupported("whitened coordinates know no penalty but l2: use solver='gd' for this one")
        return made

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
