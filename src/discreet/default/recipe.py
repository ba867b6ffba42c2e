"""The library's own algorithm, for classes and numbers alike: estimate coordinates, then take few noisy steps in them.

    coordinates   c, s = noisy center and scale of each feature; z = ((x - c) / s, constant), shrunk to a typical length
                  M = noisy second moment of z;                  y = A z,  A = (M + floor edge + penalty'' / f'')^{-1/2}
    clipped       for t < T:   g = (1/n) [ sum_i clip_C(f'_i y_i) + noise ] + penalty'
                               v <- v + b (v - last v) - g / f''
                  v = the mean of the iterates, later ones with more weight; in declared coordinates shrunk by its noise
    calibration   scale and shift of the predictor y.v, by a noisy gradient in two unknowns (``calibration``)
    weighted      rows are not shrunk any more and slopes are not clipped; weight_i = min(1, (R / ||y_i||)^2)
      travel      L = f'' noisy second moment of weighted rows + edge;    v <- v + b_t (v - last v) - d L^{-1} g
      newton      L = noisy Hessian of the weighted losses at v + edge;   v <- v - d L^{-1} g, each g with less noise
                  g = noisy weighted gradient + penalty'; L has the penalty's Hessian too
    corners       a penalty that is not smooth: v <- argmin of penalty + (. - v)^T L (. - v) / 2 after each of these

``edge`` is the largest eigenvalue of M's noise, f'' the largest curvature of the loss, C = ``clip`` times a typical
row's length. In the coordinates y every direction looks alike, so few clipped steps travel far, and a direction that
noise hides hardly moves. Clips and shrunk rows bias what the steps find. Calibration takes most of that back, weighted
steps all of it as the signal widens R; they cut slopes of an unbounded loss at ``slope_limit`` deviations. The first
of these cannot diverge, whatever the table is, as their L bounds the Hessian; b_t is Nesterov's momentum. The last
forget the noise of all before them. d filters what is noise (``solvers/shrinkage``). For K classes v has K columns.

Which recipe ``solver="auto"`` is: ``table``. Released: what the box calls noisy. Cost: n p^2 for M, for y and for each
H; n p for each gradient.

Privacy
-------
Relation and sensitivity: ``noisy_mean``, ``noisy_mean_squares``, ``noisy_second_moment``, ``noisy_gradient``,
``noisy_curvature``, ``noisy_squared_slopes``, ``noisy_weighted_gradient`` and, for a numeric target,
``noisy_share_within`` and ``noisy_coordinate_gradient`` or ``noisy_target_moments``: each proven at the curator, on
records recoded by public and released values, which maps neighboring tables to neighboring tables (``Curator.recode``).
Mechanism: Gaussian noise, each answer with its share of mu^2.
Event: one ``Gaussian`` per answer; where n is private one more, for a count.
Conditions: coordinates, clips, radii and steps are made of public and released values only; the plan lists every
answer, and the answers to one query take their noises in the order of the plan (``Session.spend``).
"""

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.blas_threads import on_one_thread
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.default.rows import LEAST_DIRECTION, Rows, declared_features, declared_rows, pulled, whitened
from discreet.default.weighted import Weighted, columns, flat, inside
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Count, CountOrZero, OneOf, Positive, Weight, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.base import (
    UNWATCHED,
    Progress,
    Solution,
    count_release,
    public_count,
)
from discreet.solvers.calibration import CLASSES, calibrate, mean_curvature
from discreet.solvers.center_and_scale import (
    Target,
    affine,
    estimate_features,
    estimate_target,
    feature_releases,
    longer_in_l1,
    noise_of,
    noises,
    shares_to_noise,
    target_releases,
)
from discreet.solvers.class_refinement import contrasts
from discreet.solvers.gradient_loop import average_weights, project, slope_at_zero
from discreet.solvers.refinement import longest_row
from discreet.solvers.registry import AuditCase, register, register_part
from discreet.solvers.shrinkage import posterior_weights
from discreet.solvers.target_search import search_releases, search_target
from discreet.solvers.uncertainty.stage_noise import (
    CalibratedTrace,
    ContrastsTrace,
    DirectionsTrace,
    RefinedTrace,
    left_of_start,
)
from discreet.solvers.uncertainty.traces import DescentTrace, Noise
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

BALL = 100.0
"""Clipped steps stay within this ball: a predictor of a hundred deviations is certain of everything."""
WEIGHTED_REACH = 64.0
"""Rows longer than this many typical ones are shrunk also by weighted steps: it bounds the lattice."""
FORGOTTEN = 1 / 2
"""What a Newton step leaves of the error before it, about: the Hessian is noisy, and changes on the way."""
COUNT_SHARE = 0.02
"""What a count gets of mu^2, where n is private: one number with sensitivity 1 needs no more."""


@register_part("Shares")
@dataclass(frozen=True)
class Shares:
    """Shares of mu^2; the clipped steps get the rest.

    Parameters
    ----------
    target, mean, scale, moment : float
        For a numeric target's place, centers, scales and the second moment.
    calibration : float
        For calibration; 0: none.
    slope, bound, travel, hessian, newton : float
        For the size of slopes without a bound; for the second moment of weighted rows and the steps that it bounds; for
        a Hessian and its Newton steps.

    Examples
    --------
    >>> from discreet.default import Shares
    >>> Shares(moment=0.1).moment
    0.1
    """

    target: Weight = 0.05
    mean: Weight = 0.04
    scale: Weight = 0.08
    moment: Weight = 0.2
    calibration: Weight = 0.07
    slope: Weight = 0.01
    bound: Weight = 0.04
    travel: Weight = 0.06
    hessian: Weight = 0.06
    newton: Weight = 0.24

    def __post_init__(self) -> None:
        check_fields(self)


@register("recipe")
@dataclass(frozen=True)
class Recipe:
    """Few noisy steps in estimated coordinates: what ``solver="auto"`` mostly is.

    Parameters
    ----------
    coordinates : {"full", "declared"}, default="full"
        Whether centers, scales and the second moment of the rows are estimated, or ranges are taken as declared.
    shares : Shares
        Shares of the budget.
    constant : float, default=0.5
        The intercept's constant feature in units of the features' length.
    row_radius : float, default=1.0
        Clipped steps shrink rows longer than this many typical ones.
    floor : float, default=0.35
        What is added to the eigenvalues of the second moment, in units of its noise's edge.
    least_scale : float, default=0.1
        The smallest scale of a feature in units of its declared range.
    target_looks : int, default=16
        Looks for the place of a numeric target, with an intercept (``target_search``); 0: its two moments.
    n_steps : int, default=12
        Clipped steps.
    clip : float, default=0.8
        Bound on a record's gradient, in units of a typical row's length and of the loss's slope at 0.
    momentum : float, default=0.6
        Weight of the last move.
    calibration_clip : float, default=3.2
        Bound on a record's gradient in the two unknowns of the calibration.
    n_travel, n_newton : int, default=0
        Weighted steps with a bound on the Hessian, and with a noisy Hessian where these end; 0 for none.
    weight_radius : float, default=1.25
        Rows longer than this many typical ones count less in weighted steps.
    slope_limit : float, default=4.0
        Where weighted steps cut the slope of a loss without a bound, in deviations of the residuals.

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> from discreet.default import Recipe
    >>> DPLogisticRegression(solver=Recipe(n_steps=16), bounds=1.0, classes=(0, 1)).solver.n_steps
    16
    """

    coordinates: Annotated[str, OneOf("full", "declared")] = "full"
    shares: Shares = field(default_factory=Shares)
    constant: Positive = 0.5
    row_radius: Positive = 1.0
    floor: Positive = 0.35
    least_scale: Positive = 0.1
    target_looks: CountOrZero = 16
    n_steps: Count = 12
    clip: Positive = 0.8
    momentum: Weight = 0.6
    calibration_clip: Positive = 3.2
    n_travel: CountOrZero = 0
    n_newton: CountOrZero = 0
    weight_radius: Positive = 1.25
    slope_limit: Positive = 4.0
    name: ClassVar[str] = "recipe"
    takes_public_moments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        if self.target_looks % 4:
            raise Unsupported("target_looks must be 0 or a multiple of 4")

    @property
    def gives_shape(self) -> bool:
        """Whether what it estimates is the shape that inference starts from."""
        return self.coordinates == "full"

    # --- the plan: what is asked, and its shares -----------------------------------------------------

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the answers, each with its share of mu^2."""
        self._check(domain, loss, penalty)
        shares = self.shares
        asked = [*self._shape_releases(domain, loss)]
        calibration = [_share("noisy_gradient", 1, shares.calibration)] if self._calibrates(loss) else []
        weighted = []
        if self._travels(loss):
            weighted += [
                _share("noisy_second_moment", 1, shares.bound),
                _share("noisy_weighted_gradient", self.n_travel, shares.travel),
            ]
        if self.n_newton:
            if not math.isfinite(loss.lipschitz):
                weighted.append(_share("noisy_squared_slopes", 1, shares.slope, dimension=1))
            weighted += [
                _share("noisy_curvature", 1, shares.hessian),
                *(_share("noisy_weighted_gradient", 1, share) for share in newton_shares(self.n_newton, shares.newton)),
            ]
        rest = 1.0 - math.fsum(r.count / r.relative_noise**2 for r in (*asked, *calibration, *weighted))
        if rest <= 0:
            raise Unsupported("shares must leave some of the budget to the clipped steps: their sum must be below 1")
        steps = _share("noisy_gradient", self.n_steps, rest)
        return Plan((*asked, steps, *calibration, *weighted, *count_release(domain, shares_to_noise(COUNT_SHARE))))

    def _check(self, domain: Domain, loss: Loss, penalty: Penalty) -> None:
        """Refuse what the steps do not serve."""
        if loss.task == "regression" and not loss.movable_target:
            raise Unsupported(f"a recipe knows no {type(loss).__name__} loss: use solver='gd'")
        if domain.sparse:
            raise Unsupported("a recipe's coordinates would fill sparse records: use solver='auto' or 'gd'")
        if not penalty.ridge and (not penalty.separable or loss.n_outputs > 1):
            raise Unsupported("a recipe knows L2 penalties, and separable ones of one output: use solver='gd'")

    def _shape_releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List what the coordinates are made of."""
        target: tuple[Release, ...] = ()
        if loss.movable_target and self.shares.target > 0:
            share, looks = self.shares.target, self.target_looks if domain.intercept else 0
            target = search_releases(share, looks) if looks else target_releases(loss, share)
        if self.coordinates == "declared":
            return target
        features = feature_releases(domain, mean=self.shares.mean, scale=self.shares.scale)
        return (*target, *features, _share("noisy_second_moment", 1, self.shares.moment))

    def _calibrates(self, loss: Loss) -> bool:
        """Say whether the predictor is calibrated: that of one output, whose law between rows is known."""
        return self.shares.calibration > 0 and (loss.sigmoid_link or loss.movable_target)

    def _travels(self, loss: Loss) -> bool:
        """Say whether steps with a bound on the Hessian come first: squares have the same Hessian everywhere."""
        return self.n_travel > 0 and not loss.quadratic

    # --- the run -------------------------------------------------------------------------------------

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Estimate coordinates, take the clipped steps, calibrate, take the weighted steps."""
        with on_one_thread(curator.domain.n_features):
            n, admitted = public_count(curator), curator.domain
            rows = self._rows(curator, penalty, n)
            loss = curator.loss.with_target_scale(rows.target.scale) if curator.loss.movable_target else None
            curator.recode(rows.recoding, loss=loss)
            found, steps = self._clipped_steps(curator, rows, penalty, admitted, n, progress)
            if self._calibrates(curator.loss):
                found = self._calibrated(curator, rows, penalty, found, steps, n)
            if not penalty.ridge:
                found = replace(found, coefficients=self._inside(curator.loss, rows, penalty, found, admitted))
            if self._travels(curator.loss) or self.n_newton:
                found = self._weighted_steps(curator, rows, penalty, found, admitted, n)
            return found

    def _rows(self, curator: "Curator", penalty: Penalty, n: float) -> Rows:
        """Estimate the coordinates in which steps are taken."""
        domain, loss, full = curator.domain, curator.loss, self.coordinates == "full"
        target = Target()
        if loss.movable_target and self.shares.target > 0:
            looks = self.target_looks if domain.intercept else 0
            target = search_target(curator, n, looks) if looks else estimate_target(curator, n)
        features = estimate_features(curator, n, self.least_scale) if full else declared_features(domain)
        size = math.sqrt(features.square_length)
        longest = self.row_radius * size * math.hypot(1.0, self.constant * domain.intercept)
        standard = replace(
            features.recoding,
            scale=features.recoding.scale * longest,
            constant=self.constant * size / longest,
            row_norm=1.0 if curator.noise_multiplier else math.inf,
            target_center=target.center,
            target_scale=target.scale,
        )
        if not full:
            return declared_rows(domain, standard, self.row_radius, target)
        curator.recode(standard, once=True)
        clip = longer_in_l1(curator, domain.n_features) ** 2 if curator.noise_multiplier else curator.domain.row_norm**2
        second = curator.noisy_second_moment(clip=clip, n=n)
        noise = noises(curator, "noisy_second_moment")[0] / curator.budget.neighbors.sum_factor**0.5 * clip
        noise = noise if not curator.budget.is_pure else noise_of(curator, "noisy_second_moment", clip, 1.0)
        pull = pulled(penalty, standard, domain)
        added = np.zeros_like(second) if pull is None else pull.hessian / loss.smoothness
        return whitened(second, added, noise / n * math.sqrt(2.0 * len(second)), self.floor, standard, domain, target)

    def _clipped_steps(
        self, curator: "Curator", rows: Rows, penalty: Penalty, admitted: Domain, n: float, progress: Progress
    ) -> tuple[Solution, DescentTrace]:
        """Take steps on clipped gradients with momentum; return the average of the iterates, and what was done."""
        pull, step = pulled(penalty, rows.recoding, admitted), 1.0 / curator.loss.smoothness
        clip = self.clip * slope_at_zero(curator.loss) * rows.length * longer_in_l1(curator, admitted.n_features)
        v = last = curator.domain.starting_point
        weights = average_weights("polynomial", self.n_steps)
        mean = weights[0] * v
        for t in progress(range(self.n_steps)):
            ahead = v + self.momentum * (v - last)
            gradient = curator.noisy_gradient(ahead, clip=clip) / n
            gradient = gradient if pull is None else gradient + pull.gradient(ahead)
            v, last = project(ahead - step * gradient, BALL), v
            mean = mean + weights[t + 1] * v
        noise = Noise.of(curator, "noisy_gradient")
        momenta = np.full(self.n_steps, self.momentum)
        trace = DescentTrace(mean.shape, step, clip, n, momenta, weights, noise)
        if self.coordinates == "declared":
            mean = self._shrunk(mean, trace, len(rows.recoding.center))
        return rows.solution(mean, trace, admitted, curator.loss), trace

    @staticmethod
    def _shrunk(v: Floats, trace: DescentTrace, features: int) -> Floats:
        """Shrink the features' coefficients by what is noise in them: it is the same in all where steps hardly bend."""
        slopes, noise = v[:features].ravel(), float(trace.deviations().flat[0])
        kept = posterior_weights(slopes, np.ones(slopes.size), noise)
        return np.concatenate([(kept * slopes).reshape(v[:features].shape), v[features:]])

    def _calibrated(
        self, curator: "Curator", rows: Rows, penalty: Penalty, found: Solution, steps: DescentTrace, n: float
    ) -> Solution:
        """Bring the predictor back to scale."""
        v = rows.recoding.recoded(found.coefficients)
        assert v is not None
        assert found.trace is not None
        mean, deviation = rows.predictor(v)
        clip = CLASSES.length if curator.loss.task == "classification" else self.calibration_clip
        answers = [noise / n for noise in noises(curator, "noisy_gradient")[self.n_steps :]]
        likely = rows.signal_share(deviation, steps, curator.loss) if curator.noise_multiplier else 1.0
        done = calibrate(
            curator, rows.recoding, v, mean=mean, deviation=deviation, likely=likely, clip=clip, noises=answers,
            penalty=penalty, n=n,
        )  # fmt: skip
        trace = CalibratedTrace(found.trace, done.share, done.deviations)
        return Solution(done.coefficients, trace, found.estimate)

    def _inside(self, loss: Loss, rows: Rows, penalty: Penalty, found: Solution, admitted: Domain) -> Floats:
        """Return what a penalty with corners makes of coefficients whose Hessian is about the rows' second moment."""
        v = rows.recoding.recoded(found.coefficients)
        assert v is not None
        bend = mean_curvature(*rows.predictor(v)) if loss.sigmoid_link else loss.smoothness
        hessian = bend * (rows.moment + LEAST_DIRECTION * np.eye(len(v)))
        return inside(penalty, found.coefficients, hessian, rows.recoding, admitted)

    def _weighted_steps(
        self, curator: "Curator", rows: Rows, penalty: Penalty, found: Solution, admitted: Domain, n: float
    ) -> Solution:
        """Take steps on weighted gradients of rows that are not shrunk: with a bound on their Hessian, then with it."""
        loss = curator.loss
        recoding = replace(rows.recoding, row_norm=math.inf, reach=WEIGHTED_REACH * rows.length)
        linear = affine(recoding, admitted)[0]
        reach = min(self.weight_radius * rows.length, longest_row(linear / recoding.target_scale, admitted))
        run = Weighted(curator, recoding, admitted, penalty, n, reach)
        bound = run.bound() if self._travels(loss) else None
        curator.recode(recoding)
        start = recoding.recoded(found.coefficients)
        assert start is not None
        v, metric = run.centered(columns(start)), None
        used: list[Floats] = []
        if self.n_newton and not math.isfinite(loss.lipschitz):
            run.limit_slopes(v, self.slope_limit)
        if bound is not None:
            v, used = run.steps(v, bound, self.n_travel, momentum="nesterov")
        if self.n_newton:
            metric = run.hessian(v)
            v, used = run.steps(v, metric, self.n_newton, momentum=0.0)
        w = recoding.coefficients(flat(v)) if run.at_corner is None else run.at_corner
        if found.trace is None or metric is None:
            return Solution(w, found.trace, found.estimate)
        curved = np.where(metric.values >= metric.edge, metric.values, 0.0)
        steps = DirectionsTrace.of_steps(metric.vectors, used, curved, run.last_noises(self.n_newton))
        parts = (found, steps, left_of_start(used, curved), linear)
        trace = RefinedTrace(*parts) if loss.n_outputs == 1 else ContrastsTrace(*parts, contrasts(loss.n_outputs))
        return Solution(w, trace, found.estimate)

    def settings(self) -> dict[str, object]:
        """Return its public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> "Recipe":
        """Return the recipe of the table."""
        from discreet.default.table import Facts, recipe_for

        return recipe_for(Facts(domain, loss, penalty, budget))

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Take four short steps."""
        return AuditCase(cls(n_steps=4))


def newton_shares(count: int, share: float) -> list[float]:
    """Divide a share among Newton steps in proportion to how much of each one's noise is left at the end.

    A step forgets all but rho of the error before it, rho being how far the Hessian is off. With q_t the variance that
    a unit of noise in step t leaves, shares in proportion to sqrt(q_t) = rho^(T - t) leave the least in all.
    """
    weights = [FORGOTTEN ** (count - 1 - t) for t in range(count)]
    return [share * weight / math.fsum(weights) for weight in weights]


def _share(query: str, count: int, share: float, dimension: int | None = None) -> Release:
    """Plan so many answers that get this share of mu^2 together."""
    return Release(query, count, relative_noise=shares_to_noise(share, count), dimension=dimension)
