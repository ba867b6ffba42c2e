"""Refine a solver's coefficients for a population, and estimate their covariance: inference, as a stage after a solver.

    v0 = what the inner solver found, in whitened coordinates z of whole rows;     r = ||z_i||
    weight_i = min(1, R / r, 1.5 (R / r)^2)
    H  = sum_i weight_i f''_i z_i z_i^T + noise                                                   at v0, floored
    for t < T:  v <- v - step_t H^{-1} [ sum_i clip(weight_i f'_i z_i) + noise ];    the last k steps: 1, 1/2, ..., 1/k
    S  = sum_i s_i s_i^T + noise, s_i = weight_i f'_i z_i at v, a person's rows added up first  ("robust", "cluster")
    cov(v) = H^{-1} [ S + (sigma^2 / k) I + (s_H^2 / 2) (||d||^2 I + d d^T) ] H^{-1} + what weights may bias

Weights depend on the features alone, so that for losses with a bounded slope (logistic, Huber) the equation is centered
at the coefficients of the model (Mallows), and no gradient is clipped. Averaged chord steps tend to the root whatever H
is, so that its noise enters through d = (the last k steps' start - their end) / k only. The penalty is left out: the
target is unpenalized. Steps and covariance: ``refinement``. Numbers and their reasons: ``sandwich_rules``.

Privacy
-------
Relation and sensitivity: ``noisy_weighted_gradient`` (B, 2 B under ``replace_one``), ``noisy_curvature`` and
``noisy_score_covariance`` (B, sqrt(2) B), ``noisy_squared_slopes`` (B under every relation), proven at the curator; the
inner solver's releases as its own docstring says. Mechanism: Gaussian noise. Event: one ``Gaussian`` each, with their
shares of mu^2; the inner solver's events with the rest. Conditions: those of ``stage``; all else is post-processing.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

import numpy as np

from discreet.accounting.plan import AdaptivePlan, Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Count, CountOrZero, OneOf, Share, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.base import COV_TYPES, UNWATCHED, Effects, Progress, Solution, Solver, count_release, public_count
from discreet.solvers.center_and_scale import Target, affine, estimate_target, shares_to_noise
from discreet.solvers.class_refinement import START, ClassRefinement
from discreet.solvers.gd import GradientDescent
from discreet.solvers.refinement import (
    Refinement,
    allowance,
    longest_row,
    skewness,
    whole_rows,
    within_reach,
)
from discreet.solvers.registry import filled, register_part
from discreet.solvers.sandwich_rules import (
    LEAST_SETTLING,
    SLACK,
    Limits,
    leading_for,
    limits_for,
    refusal,
    settling_for,
)
from discreet.solvers.stage import ASKED, COUNT_SHARE, Counted, Stage, release_weight
from discreet.solvers.whitened import Whitened
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

MEAN_SHARE, SCALE_SHARE, MOMENT_SHARE, TARGET_SHARE = 0.015, 0.03, 0.08, 0.02
"""What the shape gets of mu^2 where the inner solver does not release it."""


@register_part("Sandwich")
@dataclass(frozen=True)
class Sandwich:
    """Refine what ``solver`` finds by averaged Newton steps, and estimate the covariance of its coefficients.

    Parameters
    ----------
    solver : Solver
        Where to start: a solver with a fixed plan, such as the default one.
    cov_type : {"robust", "model", "cluster"}, default="robust"
        ``"model"`` trusts the loss as a likelihood (least squares: equal variances), ``"robust"`` estimates the
        covariance of scores, per person where persons have several rows; ``"cluster"`` insists on persons.
    start_share, curvature_share, covariance_share, slope_share : float
        Shares of mu^2 for the inner solver, the Hessian, the scores' covariance and the size of slopes; the steps get
        the rest.
    n_leading : int or None, default=None
        Short steps before the Hessian is estimated; None: 4 for counts, whose curvature changes with the margin.
    n_kept : int, default=9
        The last steps, of lengths 1, 1/2, ..., which average their noise.
    n_settling : int or None, default=None
        Steps before these; None: 2 to 5, by n.
    limits : Limits or None, default=None
        How far rows and slopes count in full; None: by public signal.

    Examples
    --------
    >>> from discreet.solvers import GradientDescent, Sandwich, Whitened
    >>> Sandwich(Whitened(GradientDescent(n_steps=8))).name
    'sandwich'
    """

    solver: Solver
    cov_type: Annotated[str, OneOf(*COV_TYPES)] = "robust"
    start_share: Share = 0.12
    curvature_share: Share = 0.18
    covariance_share: Share = 0.06
    slope_share: Share = 0.03
    n_leading: CountOrZero | None = None
    n_kept: Count = 9
    n_settling: Count | None = None
    limits: Limits | None = None
    name: ClassVar[str] = "sandwich"
    takes_public_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        shares = (self.start_share, self.curvature_share, self.covariance_share, self.slope_share)
        if sum(shares) >= 0.8:
            raise Unsupported("the shares must leave a part to the steps: their sum must be below 0.8")

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> "Sandwich":
        """Choose how far rows and slopes count in full, from public facts; refuse what cannot be answered for."""
        reason = refusal(domain, loss, penalty, budget, self.cov_type)
        if reason is not None:
            raise Unsupported(reason)
        if self.n_leading and not loss.log_link:
            raise Unsupported("short steps come first for counts only: leave n_leading out")
        return replace(
            self,
            solver=filled(self.solver, domain, loss, penalty, budget),
            limits=limits_for(domain, loss, budget) if self.limits is None else self.limits,
            n_leading=leading_for(loss) if self.n_leading is None else self.n_leading,
            n_settling=settling_for(domain) if self.n_settling is None else self.n_settling,
        )

    @property
    def n_steps(self) -> int:
        """How many gradients are released for steps."""
        return (self.n_leading or 0) + self.n_kept + (self.n_settling or LEAST_SETTLING)

    @property
    def _shape(self) -> Whitened | None:
        """The stage that estimates the shape, where the inner solver is none that does."""
        if getattr(self.solver, "gives_shape", False):
            return None
        return Whitened(
            GradientDescent(1),
            constant=None,
            mean_share=MEAN_SHARE,
            scale_share=SCALE_SHARE,
            target_share=0.0,
            moment_share=MOMENT_SHARE,
        )

    def _own(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List the stage's own releases but the steps."""
        own = [Release("noisy_curvature", 1, relative_noise=shares_to_noise(self.curvature_share))]
        if self.cov_type != "model":
            own.append(Release("noisy_score_covariance", 1, relative_noise=shares_to_noise(self.covariance_share)))
        count = 1 if loss.task == "classification" else 2  # slopes of classes are known well enough before the steps
        noise = shares_to_noise(self.slope_share / 2)
        own.append(Release("noisy_squared_slopes", count, relative_noise=noise, dimension=1))
        shape = self._shape
        if shape is not None:
            own += shape.releases(domain, loss)
            if loss.task == "regression":
                own.append(Release("noisy_target_moments", 1, relative_noise=shares_to_noise(TARGET_SHARE)))
        return tuple(own)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the inner solver's releases with its share, the stage's own, and the steps with the rest."""
        if isinstance(self.solver, Stage) and not self.solver.gives_shape:
            raise Unsupported("inference starts from Whitened(...), or from a solver in declared coordinates")
        inner = self.solver.plan(domain, loss, penalty)
        own = self._own(domain, loss)
        asked = [release for release in inner.releases if release.query != "noisy_count"]
        known = {*ASKED, "noisy_second_moment", "noisy_mean", "noisy_mean_squares", "noisy_target_moments"}
        names = {release.query for release in asked}
        if isinstance(inner, AdaptivePlan) or inner.least_noise is not None or inner.total_variation:
            raise Unsupported("inference starts from a solver with a fixed plan: use solver='auto' or 'gd'")
        if names & {release.query for release in own} or not names <= known or "select_coordinate" in names:
            raise Unsupported("inference refines gradient steps, not choices or one-shot answers: use solver='auto'")
        scale = math.sqrt(sum(map(release_weight, asked)) / self.start_share)
        scaled = (replace(release, relative_noise=release.relative_noise * scale) for release in asked)
        rest = 1.0 - self.start_share - sum(r.count / r.relative_noise**2 for r in own)
        steps = Release("noisy_weighted_gradient", self.n_steps, relative_noise=shares_to_noise(rest, self.n_steps))
        return Plan((*own, *scaled, steps, *count_release(domain, shares_to_noise(COUNT_SHARE))))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Run the inner solver, refine its coefficients, and estimate their covariance."""
        n, admitted, loss = public_count(curator), curator.domain, curator.loss
        counted, shape = cast("Curator", Counted(curator, n)), self._shape
        target = estimate_target(counted, n) if shape is not None and loss.task == "regression" else Target()
        found = self.solver.solve(counted, penalty, progress)
        estimate = found.estimate if shape is None else shape.estimate(counted, n)
        assert estimate is not None
        recoding, length = whole_rows(estimate, target if shape is not None and loss.movable_target else None)
        curator.recode(recoding, loss=loss.with_target_scale(recoding.target_scale) if loss.movable_target else None)
        linear, offset = affine(recoding, admitted)
        counts = target if loss.log_link else None
        unit = recoding.target_scale  # of coefficients
        start = np.asarray(np.linalg.solve(linear, (found.coefficients.T - offset).T))
        facts = (self.settled, curator, n, length, longest_row(linear / unit, admitted))
        if loss.softmax_link:
            classes = ClassRefinement(*facts, bounds=admitted.feature_bounds)
            certain = START if curator.noise_multiplier > 0 else 1.0
            v, effects = classes.effects(certain * classes.flat(start), classes.against_first(linear))
            v, reach = classes.coefficients(v), classes.reach
        else:
            run = Refinement(*facts, counts, admitted.feature_bounds)
            v, effects = run.effects(start, linear)
            effects, reach = replace(effects, deviation=effects.deviation * unit), run.reach * unit
        effects = self._answered_for(effects, loss, admitted, linear, reach)
        return Solution((linear @ v + offset.reshape(-1, *[1] * (v.ndim - 1))), None, estimate, effects)

    def _answered_for(self, effects: Effects, loss: Loss, admitted: Domain, linear: Floats, reach: float) -> Effects:
        """Return effects with allowances for what weights and noisy steps may bias, in each class's block."""
        blocks = len(effects.metric) // len(linear)
        bounds = ends = np.tile(admitted.feature_bounds, blocks)
        if effects.reach > 0 and math.isfinite(loss.lipschitz):
            ends = np.tile(within_reach(replace(effects, metric=linear @ linear.T), admitted, reach), blocks)
        effects = allowance(effects, bounds, ends)
        if not (loss.log_link or loss.sigmoid_link or loss.softmax_link):
            return effects
        far = np.minimum(bounds, SLACK * ends)  # beyond, weights fall with the square
        return skewness(effects, bounds, far, self.n_kept, counts=loss.log_link)

    @property
    def settled(self) -> "Sandwich":
        """The stage with its limits, wide ones where none were chosen."""
        return self if self.limits is not None else replace(self, limits=Limits(3.0, 8.0))

    def settings(self) -> dict[str, object]:
        """Return its public settings and the inner solver's, for the certificate."""
        own = {name: value for name, value in asdict(self).items() if name != "solver"}
        return {"name": self.name, **own, "solver": self.solver.settings()}
