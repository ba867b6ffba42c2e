"""Refine a solver's coefficients for a population, and estimate their covariance: inference, as a stage after a solver.

    columns in ranges that are far too wide: their center and scale (``scales``)
    v0 = what the inner solver found, in coordinates z of whole rows whose noisy second moment is I;     r = ||z_i||
    weight_i = min(1, R / r, 1.5 (R / r)^2);           R, B and the limits of matrices: by noisy counts (``limits``)
    H  = sum_i weight_i f''_i z_i z_i^T + noise                         at v0, after every few steps, at the estimate
    for t < T:  g = sum_i clip_B(weight_i f'_i z_i) + noise;    v <- v - step_t H^{-1} g;  the last k steps: 1, 1/2, ...
    root = mean of the last k points - H^{-1} mean of the last k gradients
    S  = sum_i s_i s_i^T + noise, s_i = weight_i f'_i z_i at v, a person's rows added up first  ("robust", "cluster")
    cov(root) = H^{-1} [ S + (sigma^2 / k) I + (s_H^2 / 2) (||d||^2 I + d d^T) ] H^{-1} + what weights may bias

Weights depend on the features alone, so that for losses with a bounded slope (logistic, Huber) the equation is centered
at the coefficients of the model (Mallows), and no gradient is clipped. Each of the last gradients estimates the root
by itself, so that noise in H enters through d = (the mean of their points - root) only; points at which steps had not
settled are left out. A step that led too far is taken back to where the slope along it was 0. Least squares has one H.
The penalty is left out, and so is the limit on the mean of counts: the target is neither penalized nor bounded. Steps
and covariance: ``estimate``. Constants: ``limits``.

Privacy
-------
Relation and sensitivity: ``noisy_weighted_gradient`` and ``noisy_mean`` (B, 2 B under ``replace_one``),
``noisy_mean_squares``, ``noisy_second_moment``, ``noisy_curvature``, ``noisy_score_covariance`` and ``noisy_shells``
(B, sqrt(2) B), ``noisy_squared_slopes`` (B under every relation), proven at the curator; the inner solver's releases
as its own docstring says. Mechanism: Gaussian noise. Event: one ``Gaussian`` each, with their shares of mu^2; the inner
solver's events with the rest. Conditions: those of ``stage``; all else is post-processing.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from discreet.accounting.plan import AdaptivePlan, Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import Recoding
from discreet.errors import Unsupported
from discreet.inference.estimate import (
    FARTHEST,
    START,
    ClassRefinement,
    Extents,
    Refinement,
    allowance,
    known_squares,
    skewness,
    whitening,
    whole_rows,
    within_reach,
)
from discreet.inference.forecast import Law, too_few
from discreet.inference.limits import (
    ANYWAY,
    FORECAST,
    LEAST_SCALE_SHARE,
    LEAST_SETTLING,
    SLACK,
    UNLIMITED,
    Influence,
    Limits,
    covariance_share_for,
    hessians_for,
    leading_for,
    limits_for,
    refusal,
    scale_share_for,
    settling_for,
)
from discreet.inference.scales import narrow_columns, scale_releases
from discreet.losses.base import Loss
from discreet.parameters import Count, CountOrZero, OneOf, Share, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.base import (
    COV_TYPES,
    UNWATCHED,
    Effects,
    Progress,
    Solution,
    Solver,
    count_release,
    filled,
    public_count,
)
from discreet.solvers.coordinates import (
    ASKED,
    COUNT_SHARE,
    Preconditioned,
    Target,
    estimate_target,
    longest_row,
    noises,
    release_weight,
    shares_to_noise,
)
from discreet.solvers.gd import GradientDescent
from discreet.solvers.propagation import affine
from discreet.typing import Floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.curator import Curator

    Start = Callable[[Domain, Budget], Solver]

MEAN_SHARE, SCALE_SHARE, MOMENT_SHARE, TARGET_SHARE = 0.015, 0.03, 0.08, 0.02
"""What the shape gets of mu^2 where the inner solver does not release it."""
LEAST_COVARIANCE_SHARE = 0.06
"""What the scores' covariance gets before its share is chosen."""
LAST_HESSIAN = 0.7
"""What the Hessian at the estimate gets of the Hessians' share: standard errors are made of it."""


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
    start_share, moment_share, curvature_share, covariance_share, slope_share, shell_share, settling_share : float
        Shares of mu^2 for the inner solver, the second moment of whole rows, the Hessians, the scores' covariance, the
        size of slopes, counts of far-out rows and slopes, and steps before those that are averaged, which get the rest.
    scale_share : float or None, default=None
        The share for columns in ranges that are far too wide; None: by public signal, as that of the covariance.
    n_hessians : int or None, default=None
        How often the Hessian is estimated; None: 3 to 6 times, the more signal the more; once where it is the same
        everywhere.
    n_leading : int or None, default=None
        Short steps before the Hessian is estimated; None: 4 for counts, whose curvature changes with the margin.
    n_kept : int, default=12
        The last steps, of lengths 1, 1/2, ..., which average their noise.
    n_settling : int or None, default=None
        Steps between Hessians before these; None: 2 to 24, the more signal the more.
    limits : Limits or None, default=None
        How far rows and slopes count in full; None: by public signal.
    even_if_empty : bool, default=False
        Whether to fit where the summary would probably show no effect.

    Examples
    --------
    >>> from discreet.solvers import GradientDescent, Preconditioned, Sandwich
    >>> Sandwich(Preconditioned(GradientDescent(n_steps=8))).name
    'sandwich'
    """

    solver: Solver
    cov_type: Annotated[str, OneOf(*COV_TYPES)] = "robust"
    start_share: Share = 0.12
    moment_share: Share = 0.03
    curvature_share: Share = 0.15
    covariance_share: Share | None = None
    slope_share: Share = 0.02
    shell_share: Share = 0.08
    settling_share: Share = 0.07
    scale_share: Share | None = None
    n_hessians: Count | None = None
    n_leading: CountOrZero | None = None
    n_kept: Count = 12
    n_settling: Count | None = None
    limits: Limits | None = None
    even_if_empty: bool = False
    name: ClassVar[str] = "sandwich"
    takes_public_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        if 1.0 - self._left_by(self.scale_share or 0.0) + (self.covariance_share or 0.0) >= 0.8:
            raise Unsupported("the shares must leave a part to the steps: their sum must be below 0.8")

    def filled(
        self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, start: "Start | None" = None
    ) -> "Sandwich":
        """Choose how far rows and slopes count in full, from public facts; refuse what cannot be answered for."""
        reason = refusal(domain, loss, penalty, budget, self.cov_type)
        if reason is None and self.n_leading and not loss.log_link:
            reason = "short steps come first for counts only: leave n_leading out"
        if reason is None and not self.even_if_empty:
            shortage = self.too_few(domain, loss, penalty, budget, start=start)
            reason = shortage and f"{shortage} ({FORECAST}). Nothing was released; {ANYWAY}"
        if reason is not None:
            raise Unsupported(reason)
        return self._completed(domain, loss, penalty, budget)

    def too_few(
        self,
        domain: Domain,
        loss: Loss,
        penalty: Penalty,
        budget: Budget,
        law: Law | None = None,
        start: "Start | None" = None,
    ) -> str | None:
        """Return why a summary would probably be empty, and what would help; None where it is not.

        ``start`` chooses the inner solver of a table with other facts; None: it stays as it is.
        """

        def complete(domain: Domain, budget: Budget) -> Sandwich:
            method = self if start is None else replace(self, solver=start(domain, budget))
            return method._completed(domain, loss, penalty, budget)

        return too_few(complete, domain, loss, penalty, budget, law)

    def _completed(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> "Sandwich":
        scale = scale_share_for(domain, budget) if self.scale_share is None else self.scale_share
        rest = self._left_by(scale) - sum(r.count / r.relative_noise**2 for r in self._shape_releases(domain, loss))
        covariance = covariance_share_for(budget, rest) if self.covariance_share is None else self.covariance_share
        first = (1.0 - LAST_HESSIAN) * self.curvature_share
        hessians = hessians_for(domain, loss, budget, first) if self.n_hessians is None else self.n_hessians
        settling = settling_for(domain, budget, hessians) if self.n_settling is None else self.n_settling
        return replace(
            self,
            solver=filled(self.solver, domain, loss, penalty, budget),
            limits=limits_for(domain, loss, budget) if self.limits is None else self.limits,
            scale_share=scale,
            covariance_share=covariance,
            n_leading=leading_for(loss) if self.n_leading is None else self.n_leading,
            n_settling=settling,
            n_hessians=hessians,
        )

    def _left_by(self, scale: float) -> float:
        """Return what the scores' covariance and the last steps have together, without what the shape may take."""
        others = (self.start_share, self.moment_share, self.curvature_share, self.slope_share, self.shell_share)
        return 1.0 - sum(others) - self.settling_share - scale

    @property
    def n_settled(self) -> int:
        """How many gradients are released before those that are averaged."""
        rounds = max(1, self.hessians - 2)
        return (self.n_leading or 0) + rounds * (self.n_settling or LEAST_SETTLING)

    @property
    def n_gradients(self) -> int:
        """How many weighted gradients its own steps take; the inner solver may have asked for others before."""
        return self.n_settled + self.n_kept

    @property
    def chooses_limits(self) -> bool:
        """Whether limits on unbounded slopes are chosen from noisy counts: where none was set."""
        return self.limits is not None and self.limits.slope >= UNLIMITED

    @property
    def _shape(self) -> Preconditioned | None:
        """The stage that estimates the shape, where the inner solver is none that does."""
        if getattr(self.solver, "gives_shape", False):
            return None
        return Preconditioned(
            GradientDescent(1),
            constant=None,
            mean_share=MEAN_SHARE,
            scale_share=SCALE_SHARE,
            target_share=0.0,
            moment_share=MOMENT_SHARE,
        )

    def _shape_releases(self, domain: Domain, loss: Loss) -> list[Release]:
        """List what the shape, and the place of a target, are made of where the inner solver does not give them."""
        shape = self._shape
        if shape is None:
            return []
        target = Release("noisy_target_moments", 1, relative_noise=shares_to_noise(TARGET_SHARE))
        return [*shape.releases(domain, loss), *[target] * (loss.task == "regression")]

    def _own(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List the stage's own releases but the steps."""
        releases = self._shape_releases(domain, loss)
        first = self.hessians - 1
        last = 1.0 if first == 0 else LAST_HESSIAN
        releases += scale_releases(domain, self.scale_share or LEAST_SCALE_SHARE)
        releases.append(_shared("noisy_second_moment", 1, self.moment_share))
        if first:
            releases.append(_shared("noisy_curvature", first, (1.0 - last) * self.curvature_share))
        releases.append(_shared("noisy_curvature", 1, last * self.curvature_share))
        if self.cov_type != "model":
            releases.append(_shared("noisy_score_covariance", 1, self.covariance_share or LEAST_COVARIANCE_SHARE))
        releases.append(_shared("noisy_squared_slopes", 2, self.slope_share, dimension=1))
        releases.append(_shared("noisy_shells", 2, self.shell_share))
        releases.append(_shared("noisy_weighted_gradient", self.n_settled, self.settling_share))
        return tuple(releases)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the inner solver's releases with its share, the stage's own, and the steps with the rest."""
        if getattr(self.solver, "gives_shape", None) is False:
            raise Unsupported("inference starts from full coordinates, or from a solver by itself: use solver='auto'")
        inner = self.solver.plan(domain, loss, penalty)
        releases = self._own(domain, loss)
        inner_releases = [release for release in inner.releases if release.query not in ("noisy_count", "noisy_weight")]
        refinable = {*ASKED, "noisy_second_moment", "noisy_mean", "noisy_mean_squares", "noisy_target_moments"}
        refinable |= {"noisy_magnitudes", "noisy_weighted_gradient"}
        names = {release.query for release in inner_releases}
        if isinstance(inner, AdaptivePlan) or inner.least_noise is not None or inner.total_variation:
            raise Unsupported("inference starts from a solver with a fixed plan: use solver='auto' or 'gd'")
        again = {"noisy_second_moment", "noisy_mean", "noisy_mean_squares", "noisy_weighted_gradient"}
        once = {release.query for release in releases} - again
        if names & once or not names <= refinable or "select_coordinate" in names:
            raise Unsupported("inference refines gradient steps, not choices or one-shot answers: use solver='auto'")
        scale = math.sqrt(sum(map(release_weight, inner_releases)) / self.start_share)
        scaled = (replace(release, relative_noise=release.relative_noise * scale) for release in inner_releases)
        rest = 1.0 - self.start_share - sum(r.count / r.relative_noise**2 for r in releases)
        steps = _shared("noisy_weighted_gradient", self.n_kept, rest)
        return Plan((*scaled, *releases, steps, *count_release(domain, shares_to_noise(COUNT_SHARE))))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Run the inner solver, refine its coefficients, and estimate their covariance."""
        n, admitted, loss = public_count(curator), curator.domain, curator.loss
        shape = self._shape
        target = estimate_target(curator, n) if shape is not None and loss.task == "regression" else Target()
        start_solution = self.solver.solve(curator, penalty, progress)
        estimate = start_solution.estimate if shape is None else shape.estimate(curator, n)
        assert estimate is not None
        narrow = narrow_columns(curator, admitted, estimate.recoding.center, n)
        recoding, length = whole_rows(estimate, target if shape is not None and loss.movable_target else None, narrow)
        recoding, length = self._whitened_again(curator, admitted, recoding, known_squares(estimate, narrow), n, length)
        widened = loss.widened(UNLIMITED * admitted.target_bound) if loss.log_link else loss  # means have no limit
        curator.recode(recoding, loss=loss.with_target_scale(recoding.target_scale) if loss.movable_target else widened)
        linear, offset = affine(recoding, admitted)
        counts = (estimate.target if shape is None else target) if loss.log_link else None
        unit = recoding.target_scale  # of coefficients
        start = np.asarray(np.linalg.solve(linear, (start_solution.coefficients.T - offset).T))
        facts = (self.settled, curator, n, length, longest_row(linear / unit, admitted))
        sure = Extents.of(linear @ linear.T / unit**2, admitted).sure
        if loss.softmax_link:
            classes = ClassRefinement(*facts, bounds=admitted.feature_bounds, sure=sure)
            certain = START if curator.noise_multiplier > 0 else 1.0
            v, effects, limits = classes.effects(certain * classes.flat(start), classes.against_first(linear))
            v, reach = classes.coefficients(v), limits.reach
        else:
            run = Refinement(*facts, counts, admitted.feature_bounds, sure, admitted, unit)
            v, effects, limits = run.effects(start, linear)
            effects, reach = replace(effects, deviation=effects.deviation * unit), limits.reach * unit
        effects = self.answered_for(effects, loss, admitted, linear, replace(limits, reach=reach))
        return Solution((linear @ v + offset.reshape(-1, *[1] * (v.ndim - 1))), None, estimate, effects)

    def _whitened_again(
        self, curator: "Curator", admitted: Domain, recoding: Recoding, known: Floats, n: float, length: float
    ) -> tuple[Recoding, float]:
        """Return the map to rows whose second moment is about the identity, and a typical length there.

        The inner solver shrinks long rows, so that it takes rare values for rarer than they are.
        """
        limits = self.settled.limits
        assert limits is not None
        radius = min(limits.reach * length, FARTHEST)
        with curator.recoded(replace(recoding, reach=radius, drop_longer=False)):
            clip = curator.domain.row_norm**2
            second = curator.noisy_second_moment(clip=clip, n=n)
        noise = noises(curator, "noisy_second_moment")[-1] / math.sqrt(curator.budget.neighbors.sum_factor) * clip / n
        white, typical = whitening(second, noise, recoding, known)
        assert recoding.matrix is not None
        whitened = replace(recoding, matrix=recoding.matrix @ white)
        longest = longest_row(affine(whitened, admitted)[0] / whitened.target_scale, admitted)
        return replace(whitened, reach=min(FARTHEST, 1.01 * longest)), typical

    def answered_for(
        self, effects: Effects, loss: Loss, admitted: Domain, linear: Floats, limits: Influence
    ) -> Effects:
        """Return effects with allowances for what weights and noisy steps may bias, in each class's block."""
        blocks = len(effects.metric) // len(linear)
        bounds = ends = np.tile(admitted.feature_bounds, blocks)
        if effects.reach > 0:
            ends = np.tile(within_reach(replace(effects, metric=linear @ linear.T), admitted, limits.reach), blocks)
        effects = allowance(effects, bounds, ends, limits)
        if not (loss.log_link or loss.sigmoid_link or loss.softmax_link):
            return effects
        far = np.minimum(bounds, SLACK * ends)  # beyond, weights fall with the square
        return skewness(effects, bounds, far, self.n_kept, counts=loss.log_link)

    @property
    def settled(self) -> "Sandwich":
        """The stage with its limits, wide ones where none were chosen."""
        return self if self.limits is not None else replace(self, limits=Limits(3.0, 8.0))

    @property
    def hessians(self) -> int:
        """How often the Hessian is estimated: at the start, after every few steps and at the estimate, or once."""
        return self.n_hessians or 1

    def settings(self) -> dict[str, object]:
        """Return its public settings and the inner solver's, for the certificate."""
        settings = {name: value for name, value in asdict(self).items() if name != "solver"}
        return {"name": self.name, **settings, "solver": self.solver.settings()}


def _shared(query: str, count: int, share: float, dimension: int | None = None) -> Release:
    """Plan so many answers that get this share of mu^2 together."""
    return Release(query, count, relative_noise=shares_to_noise(share, count), dimension=dimension)
