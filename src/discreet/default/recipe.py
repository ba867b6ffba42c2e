"""The library's own algorithm for classes, numbers and counts: estimate coordinates, then take few noisy steps in them.

    coordinates   c, s = noisy center and scale of each feature; z = ((x - c) / s, constant)
                  M = noisy second moment of z, shrunk to a typical length, its eigenvalues cleaned
                  (``coordinates.cleaned``)
                  y = A z,  A = (M + floor edge + penalty'' / f'')^{-1/2}
    start         v = 0; of classes and counts the constant that their noisy shares, or mean, are best predicted by
    clipped       for t < T:   g = (1/n) [ sum_i clip_C(weight_i f'_i y_i) + noise ] + h penalty'
                               v <- v + b (v - last v) - g / f''
                  v = the mean of the iterates, later ones with more weight; shrunk by its noise where nothing else is
    calibration   scale and shift of the predictor y.v, by two noisy gradients in two unknowns (``calibration``)
    weighted      slopes are not clipped any more, and more rows count in full
      travel      L = f'' noisy second moment of weighted rows + edge;    v <- v + b_t (v - last v) - d L^{-1} g
      newton      L = noisy Hessian of the weighted losses at v + edge;   z = v - L^{-1} g, each g with less noise;
                  v <- v_0 + d (the z so far, weighed by their noise, - v_0), v_0 being where these steps began;
                  where g rises more along a step than L says, beyond its noise, L is raised to that
                  a loss that bends has a new L after every few steps
                  g = noisy weighted gradient + penalty'; L has the penalty's Hessian too
      sizes       where noisy counts tell single rows: R and all limits are where rows, gradients and Hessians end
    corners       a penalty that is not smooth: v <- argmin of penalty + (. - v)^T L (. - v) / 2 after each of these

``edge`` is the largest eigenvalue of M's noise, f'' the largest curvature of the loss (of counts about their mean), C =
``clip`` times a typical row's length and slope, h what such a clip leaves of the mean slope at the start. In the
coordinates y every direction looks alike, so few clipped steps travel far, and a direction that noise hides hardly
moves. weight_i = min(1, R / ||y_i||, slack (R / ||y_i||)^2): rows stay whole; numbers are shrunk with their rows, which
weighs them too. Clips bias what the steps find. Calibration takes most of that back, weighted steps all of it, and what
weights did as the signal widens R; they cut slopes of an unbounded loss at ``slope_limit`` deviations. The first of
these cannot diverge, whatever the table is, as their L bounds the Hessian; b_t is Nesterov's momentum. d filters what
is noise (``posterior_weights``): Newton steps forget the noise of all before them where they tell anything, and leave a
coefficient where it was where they do not.
For K classes v has K columns.

Which recipe ``solver="auto"`` is: ``table``. Released: what the box calls noisy. Cost: n p^2 for M, for y and for each
H; n p for each gradient.

Privacy
-------
Relation and sensitivity: ``noisy_magnitudes``, ``noisy_mean``, ``noisy_mean_squares``, ``noisy_second_moment``,
``noisy_gradient``, for the shares of two classes ``noisy_coordinate_gradient``, ``noisy_curvature``,
``noisy_squared_slopes``, ``noisy_shells``, ``noisy_weighted_gradient`` and, for a numeric target,
``noisy_share_within`` and ``noisy_coordinate_gradient`` or ``noisy_target_moments``: each proven at the curator, on
records recoded by public and released values, which maps neighboring tables to neighboring tables (``Curator.recode``).
Mechanism: Gaussian noise, each answer with its share of mu^2.
Event: one ``Gaussian`` per answer; where n is private one more, for a count.
Conditions: coordinates, clips, radii and steps are made of public and released values only; the plan lists every
answer, and the answers to one query take their noises in the order of the plan (``Session.spend``).
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import Recoding
from discreet.default.rows import (
    Rows,
    Units,
    declared_features,
    declared_rows,
    search_releases,
    search_target,
    slope_left,
)
from discreet.default.weighted import Pooled, Weighted, columns, flat, inside, to_the_end
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.classification import contrasts
from discreet.parameters import Count, CountOrZero, OneOf, Positive, Weight, check_fields
from discreet.penalties.base import Penalty
from discreet.penalties.recoded import Quadratic
from discreet.solvers.base import (
    UNWATCHED,
    AuditCase,
    Progress,
    Solution,
    count_noise,
    count_release,
    on_one_thread,
    project,
    public_count,
)
from discreet.solvers.calibration import (
    CLASSES,
    LEAST_UNIT,
    Calibrated,
    Calibration,
    best_constant,
    best_log_mean,
    constant_doubt,
    mean_curvature,
    released_shares,
)
from discreet.solvers.coordinates import (
    COUNT_SHARE,
    LEAST_DIRECTION,
    Target,
    estimate_features,
    estimate_target,
    feature_releases,
    longer_in_l1,
    longest_row,
    moment_releases,
    noises,
    ridge_in,
    second_moment,
    shares_to_noise,
    standard_rows,
    whiten,
)
from discreet.solvers.propagation import affine, average_weights
from discreet.solvers.settings import LARGEST
from discreet.solvers.shrinkage import HIDDEN
from discreet.solvers.signal import PRIVATE_N
from discreet.solvers.traces import (
    CalibratedTrace,
    ContrastsTrace,
    DescentTrace,
    DirectionsTrace,
    Noise,
    RefinedTrace,
)
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

WEIGHTED_REACH = 64.0
"""Rows longer than this many typical ones are shrunk also by weighted steps: it bounds the lattice."""
FORGOTTEN = 1 / 2
"""What a Newton step leaves of the error before it, about: the Hessian is noisy, and changes on the way."""
STEPS_PER_HESSIAN = 3
"""Newton steps that a Hessian serves at least."""
SLACK = 4.0
"""Rows up to so many times the radius add as much to a clipped step as one at the radius; longer ones less."""
CALIBRATIONS = 2
"""Gradients of a calibration: the second corrects what the predictor's unknown law did to the first."""
FEWER = 0.5
"""Settings follow the released count where it is below this part of what stood for a private n."""
EQUAL = 0.25
"""The part of the Newton steps' share that is divided equally."""


@dataclass(frozen=True)
class Shares:
    """Shares of mu^2; the clipped steps get the rest.

    Parameters
    ----------
    target, width, mean, scale, moment : float
        For a numeric target's place, where in their ranges features are, centers, scales and the second moment.
    calibration : float
        For calibration; 0: none.
    slope, sizes, bound, travel, hessian, newton : float
        For the size of slopes without a bound; in its place for counts of records by their size; for the second moment
        of weighted rows and the steps that it bounds; for Hessians and their Newton steps.

    Examples
    --------
    >>> from discreet.default import Shares
    >>> Shares(moment=0.1).moment
    0.1
    """

    target: Weight = 0.05
    width: Weight = 0.0
    mean: Weight = 0.04
    scale: Weight = 0.08
    moment: Weight = 0.12
    calibration: Weight = 0.07
    slope: Weight = 0.01
    sizes: Weight = 0.0
    bound: Weight = 0.04
    travel: Weight = 0.06
    hessian: Weight = 0.06
    newton: Weight = 0.24

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Recipe:
    """Few noisy steps in estimated coordinates: what ``solver="auto"`` mostly is.

    Parameters
    ----------
    coordinates : {"full", "diagonal", "declared"}, default="full"
        Whether centers, scales and the second moment of the rows are estimated, centers and scales only, or nothing.
    shares : Shares
        Shares of the budget.
    constant : float, default=0.5
        The intercept's constant feature in units of the features' length.
    row_radius : float, default=1.0
        Rows longer than this many typical ones count less in clipped steps.
    floor : float, default=0.5
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
    weight_radius : float, default=1.0
        Rows longer than this many typical ones count less in weighted steps.
    slope_limit : float, default=3.0
        Where weighted steps cut the slope of a loss without a bound, in deviations of the residuals.

    Examples
    --------
    >>> from discreet import DPLogisticRegression
    >>> from discreet.default import Recipe
    >>> DPLogisticRegression(solver=Recipe(n_steps=16), bounds=1.0, classes=(0, 1)).solver.n_steps
    16
    """

    coordinates: Annotated[str, OneOf("full", "diagonal", "declared")] = "full"
    shares: Shares = field(default_factory=Shares)
    constant: Positive = 0.5
    row_radius: Positive = 1.0
    floor: Positive = 0.5
    least_scale: Positive = 0.1
    target_looks: CountOrZero = 16
    n_steps: Count = 12
    clip: Positive = 0.8
    momentum: Weight = 0.6
    calibration_clip: Positive = 3.2
    n_travel: CountOrZero = 0
    n_newton: CountOrZero = 0
    weight_radius: Positive = 1.0
    slope_limit: Positive = 3.0
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
        """List the answers, each with its share of mu^2; refuse what the steps do not serve."""
        if loss.task == "regression" and not (loss.movable_target or loss.log_link):
            raise Unsupported(f"a recipe knows no {type(loss).__name__} loss: use solver='gd'")
        if domain.sparse:
            raise Unsupported("a recipe's coordinates would fill sparse records: use solver='auto' or 'gd'")
        shares, asked = self.shares, [*self._shape_releases(domain, loss)]
        if self._counts_classes(domain, loss):
            entry = _share(
                "noisy_coordinate_gradient", 1, shares.target, 1
            )  # of records as they are, so it comes first
            asked = [entry, *asked] if loss.n_outputs == 1 else [*asked, _share("noisy_gradient", 1, shares.target)]
        calibration = [_share(steps_query(loss), CALIBRATIONS, shares.calibration)] if self._calibrates(loss) else []
        weighted = [*self._weighted_releases(loss)]
        rest = 1.0 - math.fsum(r.count / r.relative_noise**2 for r in (*asked, *calibration, *weighted))
        if rest <= 0:
            raise Unsupported("shares must leave some of the budget to the clipped steps: their sum must be below 1")
        steps = _share(steps_query(loss), self.n_steps, rest)
        return Plan((*asked, steps, *calibration, *weighted, *count_release(domain, shares_to_noise(COUNT_SHARE))))

    def _shape_releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List what the coordinates are made of."""
        target: tuple[Release, ...] = ()
        if loss.task == "regression" and self.shares.target > 0:
            looks = self._looks(domain, loss)
            moments = _share("noisy_target_moments", 1, self.shares.target)
            target = search_releases(self.shares.target, looks) if looks else (moments,)
        if self.coordinates == "declared":
            return target
        features = feature_releases(domain, mean=self.shares.mean, scale=self.shares.scale, width=self.shares.width)
        moment = moment_releases(domain, loss, self.shares.moment) if self.coordinates == "full" else ()
        return (*target, *features, *moment)

    def _weighted_releases(self, loss: Loss) -> Iterator[Release]:
        """List what the weighted steps ask, in their order."""
        shares, blocks, travels = self.shares, self._blocks, self._travels(loss)
        looks, look = travels + len(blocks), list[Release]()
        if blocks and shares.sizes:
            look = [_share("noisy_shells", 1, shares.sizes / (1 + looks))]
            yield from look
        elif blocks and loss.task == "regression":
            look = [_share("noisy_squared_slopes", 1, shares.slope / looks, dimension=1)]
        if travels:
            yield from (_share("noisy_second_moment", 1, shares.bound), *look)
            yield _share("noisy_weighted_gradient", self.n_travel, shares.travel)
        parts = iter(newton_shares(self.n_newton, 1.0))
        for at, count in enumerate(blocks):
            block = [next(parts) for _ in range(count)]
            yield from look
            if at == 0 or not loss.quadratic:
                yield _share("noisy_curvature", 1, shares.hessian * (1.0 if loss.quadratic else math.fsum(block)))
            yield from (_share("noisy_weighted_gradient", 1, shares.newton * part) for part in block)

    def _looks(self, domain: Domain, loss: Loss) -> int:
        """Return how often a target is looked for: one that may move, where an intercept may follow it."""
        return self.target_looks if domain.intercept and loss.movable_target else 0

    def _counts_classes(self, domain: Domain, loss: Loss) -> bool:
        """Say whether the shares of classes are asked for, so that an intercept starts where they put it."""
        return loss.task == "classification" and domain.intercept and domain.start is None and self.shares.target > 0

    @property
    def _blocks(self) -> list[int]:
        """How many Newton steps follow each look at slopes or sizes, and each Hessian of a loss that bends."""
        count = max(1, self.n_newton // STEPS_PER_HESSIAN)
        ends = [self.n_newton * at // count for at in range(count + 1)]
        return [end - begin for begin, end in pairwise(ends)] if self.n_newton else []

    def _calibrates(self, loss: Loss) -> bool:
        """Say whether the predictor is calibrated: that of one output, whose law between rows is known."""
        return self.shares.calibration > 0 and (loss.sigmoid_link or loss.task == "regression")

    def _expects(self, loss: Loss) -> bool:
        """Say whether calibration, and what is likely, take the noise out of slopes: of columns taken to be alike.

        Not for classes: where columns say nothing, a slope that is kept for what is likely costs most there.
        """
        return self.coordinates != "full" and loss.movable_target and self._calibrates(loss)

    def _travels(self, loss: Loss) -> bool:
        """Say whether steps with a bound on the Hessian come first: squares have one, counts no useful bound."""
        return self.n_travel > 0 and not loss.quadratic and not loss.log_link

    # --- the run -------------------------------------------------------------------------------------

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Estimate coordinates, take the clipped steps, calibrate, take the weighted steps."""
        with on_one_thread(curator.domain.n_features):
            n = public_count(curator)
            recipe = self if curator.domain.n is not None else self._for_count(curator, penalty, n)
            return recipe._solve(curator, penalty, progress, n)

    def _for_count(self, curator: "Curator", penalty: Penalty, n: float) -> "Recipe":
        """Return the table's recipe for the fewest records that a count is compatible with, where these are far fewer.

        Its steps and their noise are planned; what is made of them, and what of the plan is not asked, is free.
        """
        from discreet.default.table import Facts, recipe_for

        domain = curator.domain
        if n >= FEWER * PRIVATE_N or not curator.noise_multiplier:
            return self
        facts = Facts(domain, curator.loss, penalty, curator.budget)
        if self != recipe_for(facts):
            return self
        least = max(1, round(n - HIDDEN * count_noise(curator)))
        fewer = recipe_for(replace(facts, domain=replace(domain, n=least)))
        shares = replace(self.shares, target=min(self.shares.target, fewer.shares.target))
        planned = {name: getattr(self, name) for name in ("n_steps", "target_looks")}
        planned |= {name: getattr(self, name) * bool(getattr(fewer, name)) for name in ("n_travel", "n_newton")}
        return replace(fewer, shares=shares, **planned)

    def _solve(self, curator: "Curator", penalty: Penalty, progress: Progress, n: float) -> Solution:
        """Take the steps of these settings; the number of records is n."""
        admitted, loss, classes = curator.domain, curator.loss, None
        counts = self._counts_classes(admitted, loss)
        if counts and loss.n_outputs == 1:
            classes = released_shares(curator, n, noises(curator, "noisy_coordinate_gradient")[0])
        rows = self._rows(curator, admitted, penalty, n)
        if counts and classes is None:
            classes = released_shares(curator, n, noises(curator, "noisy_gradient")[0])
        loss = loss.with_target_scale(rows.target.scale) if loss.movable_target else loss
        rows = self._started(loss, rows, penalty, admitted, classes)
        if steps_query(loss) == "noisy_weighted_gradient":
            rows = replace(rows, recoding=self._whole(rows.recoding, rows.length, admitted))
        curator.recode(rows.recoding, loss=loss.widened(1.0))
        pull = ridge_in(penalty, rows.recoding, admitted)
        if pull is not None:
            weight = slope_left(loss, self.clip)
            rows = replace(rows, pull=Quadratic(pull.linear, pull.offset, weight * pull.strength))
        found, steps, evidence = self._clipped_steps(curator, rows, admitted, n, progress)
        if self._calibrates(loss):
            unknowns = self._calibration(curator, loss, rows, penalty, found, steps, evidence, n)
            recoding, gradient_at = unknowns.recoding, partial(curator.noisy_gradient, clip=unknowns.clip)
            if steps_query(loss) == "noisy_weighted_gradient":
                assert recoding.reach is not None
                gradient_at = partial(curator.noisy_weighted_gradient, clip=unknowns.clip, reach=recoding.reach)
                recoding = self._whole(recoding, recoding.reach, admitted)
            with curator.recoded(recoding, loss=loss):
                for _ in unknowns.noises:
                    unknowns.add(gradient_at(unknowns.theta) / n)
            found = _rescaled(found, unknowns.result())
        if not penalty.ridge:
            found = replace(found, coefficients=self._inside(loss, rows, penalty, found, admitted))
        if self._travels(loss) or self.n_newton:
            found = self._weighted_steps(curator, loss, rows, penalty, found, admitted, n)
        return found

    def _rows(self, curator: "Curator", domain: Domain, penalty: Penalty, n: float) -> Rows:
        """Estimate the coordinates in which steps are taken."""
        loss = curator.loss
        target = Target() if not loss.log_link else Target(1.0, loss.typical_slope(domain.target_bound))
        if loss.task == "regression" and self.shares.target > 0:
            looks = self._looks(domain, loss)
            target = search_target(curator, n, looks) if looks else estimate_target(curator, n)
        estimated = self.coordinates != "declared"
        features = estimate_features(curator, n, self.least_scale) if estimated else declared_features(domain)
        size = math.sqrt(features.square_length)
        longest = self.row_radius * size * math.hypot(1.0, self.constant * domain.intercept)
        standard = standard_rows(
            features,
            target if loss.movable_target else Target(),
            constant=self.constant * size,
            longest=longest,
            noiseless=curator.noise_multiplier == 0,
        )
        if self.coordinates != "full":
            return declared_rows(domain, standard, self.row_radius, target)
        second, edge = second_moment(curator, domain, standard, n)
        pull = ridge_in(penalty, standard, domain)
        added = np.zeros_like(second) if pull is None else pull.hessian / Units.of(loss, target).largest_curvature
        likely = None if features.likely is None else features.likely / longest**2
        return Rows(target, **vars(whiten(second, added, edge, self.floor, standard, domain, loss, likely)))

    @staticmethod
    def _whole(recoding: Recoding, length: float, admitted: Domain) -> Recoding:
        """Return the map to rows that are not shrunk, but for what bounds the lattice."""
        linear = affine(recoding, admitted)[0]
        longest = min(WEIGHTED_REACH * length, longest_row(linear / recoding.target_scale, admitted))
        return replace(recoding, row_norm=math.inf, reach=longest)

    def _clipped_steps(
        self,
        curator: "Curator",
        rows: Rows,
        admitted: Domain,
        n: float,
        progress: Progress,
    ) -> tuple[Solution, DescentTrace, float]:
        """Take steps on clipped gradients with momentum; return their average, what was done, and its evidence."""
        loss, query = curator.loss, steps_query(curator.loss)
        units = Units.of(loss, rows.target)
        pull, step = rows.pull, 1.0 / units.largest_curvature
        clip = self.clip * units.slope * rows.length * longer_in_l1(curator, admitted.n_features)
        start = curator.domain.starting_point if rows.start is None else rows.start
        v = last = start
        whitened = self.coordinates == "full"  # by the penalty's Hessian too, so that it may be part of the gradient
        implicit = None if whitened or pull is None else np.eye(len(v)) + step * pull.hessian
        weights = average_weights("polynomial", self.n_steps)
        mean = weights[0] * v
        gradient_at = partial(curator.noisy_gradient, clip=clip)
        if query == "noisy_weighted_gradient":
            reach = self.row_radius * rows.length
            gradient_at = partial(curator.noisy_weighted_gradient, clip=clip, reach=reach, slack=SLACK)
        for t in progress(range(self.n_steps)):
            ahead = v + self.momentum * (v - last)
            gradient = gradient_at(ahead) / n
            if pull is not None and implicit is None:
                gradient = gradient + pull.gradient(ahead)
            moved = ahead - step * gradient
            if pull is not None and implicit is not None:
                moved = np.asarray(np.linalg.solve(implicit, moved - step * pull.gradient(np.zeros_like(v))))
            v, last = project(moved, LARGEST), v
            mean = mean + weights[t + 1] * v
        noise = Noise.of(curator, query)
        momenta = np.full(self.n_steps, self.momentum)
        trace = DescentTrace(mean.shape, step, clip, n, momenta, weights, noise)
        calibrates = self._calibrates(loss)
        evidence = rows.evidence(mean - start, trace, loss) if calibrates else 0.0
        if self.coordinates != "full" or loss.log_link or not calibrates:
            mean = start + rows.shrunk(mean - start, trace, loss, constant=self._expects(loss))
        return rows.solution(mean, trace, admitted, curator.loss), trace, evidence

    @staticmethod
    def _started(
        loss: Loss, rows: Rows, penalty: Penalty, admitted: Domain, classes: tuple[Floats, float] | None
    ) -> Rows:
        """Return the rows with where steps start: at the constant that the released target is best predicted by."""
        if loss.movable_target and rows.target.noise > 0 and admitted.intercept:
            return replace(rows, unsure=rows.target.noise / rows.target.scale)
        if classes is None and not (loss.log_link and admitted.intercept and admitted.start is None):
            return rows  # at zero, or where the user says
        w, strength = admitted.starting_point, penalty.strong_convexity
        if classes is None:
            w[-1] = best_log_mean(loss, rows.target.center, strength)
            unsure: Floats | float = rows.target.noise / rows.target.center
        else:
            w[-1] = best_constant(loss, classes[0], strength)
            unsure = constant_doubt(loss, *classes, strength, shift=0.0)
        margin = float(w[-1]) if w.ndim == 1 else 0.0
        return replace(rows, start=rows.recoding.recoded(w), margin=margin, unsure=unsure)

    def _calibration(
        self,
        curator: "Curator",
        loss: Loss,
        rows: Rows,
        penalty: Penalty,
        found: Solution,
        steps: DescentTrace,
        evidence: float,
        n: float,
    ) -> Calibration:
        """Return what brings the predictor back to scale."""
        v = rows.recoding.recoded(found.coefficients)
        assert v is not None
        mean, deviation = rows.predictor(v)
        deviation = deviation if loss.movable_target else max(deviation, LEAST_UNIT)
        units = Units.of(loss, rows.target)
        clip = CLASSES.length if loss.task == "classification" else self.calibration_clip * units.slope
        first = self.n_steps if steps_query(loss) == "noisy_weighted_gradient" else -CALIBRATIONS
        answers = [noise / n for noise in noises(curator, steps_query(loss))[first:][:CALIBRATIONS]]
        whole, likely = 1.0, rows.signal_share(deviation, steps, loss) if curator.noise_multiplier else 1.0
        if self._expects(loss):
            whole, likely = rows.expected(steps, loss)
        unsure = float(rows.unsure) if np.all(np.isfinite(rows.unsure)) else 0.0
        return Calibration(
            loss, rows.recoding, v, mean=mean, deviation=deviation, likely=likely, whole=whole, clip=clip,
            noises=answers, penalty=penalty, start=rows.margin, evidence=evidence, unsure=unsure,
            is_told=rows.start is not None,
        )  # fmt: skip

    def _inside(self, loss: Loss, rows: Rows, penalty: Penalty, found: Solution, admitted: Domain) -> Floats:
        """Return what a penalty with corners makes of coefficients whose Hessian is about the rows' second moment."""
        v = rows.recoding.recoded(found.coefficients)
        assert v is not None
        units = Units.of(loss, rows.target)
        bend = mean_curvature(*rows.predictor(v)) if loss.sigmoid_link else units.curvature
        least = rows.widest + LEAST_DIRECTION * np.eye(len(v))  # what noise hides varies all the same
        hessian = np.asarray(np.kron(np.eye(loss.n_outputs), bend * least), dtype=np.float64)
        return inside(penalty, found.coefficients, hessian, rows.recoding, admitted)

    def _weighted_steps(
        self, curator: "Curator", loss: Loss, rows: Rows, penalty: Penalty, found: Solution, admitted: Domain, n: float
    ) -> Solution:
        """Take steps on weighted gradients of rows that are not shrunk: with a bound on their Hessian, then with it."""
        were_whole = steps_query(loss) == "noisy_weighted_gradient"
        recoding = rows.recoding if were_whole else self._whole(rows.recoding, rows.length, admitted)
        assert recoding.reach is not None
        reach = min(self.weight_radius * rows.length, recoding.reach)
        if self.n_newton and self.shares.sizes:
            recoding, reach = to_the_end(curator, loss, recoding, reach, rows.length)
            recoding = recoding.on_grid(admitted)
        skipped = 0 if loss.movable_target else self.n_steps + CALIBRATIONS * self._calibrates(loss)
        units = Units.of(loss, rows.target)
        run = Weighted(curator, loss, units, recoding, admitted, penalty, n, reach, skipped)
        run.length, run.slope_limit = rows.length, self.slope_limit
        start, linear = recoding.recoded(found.coefficients), affine(recoding, admitted)[0]
        assert start is not None
        v, metric = run.centered(columns(start)), None
        bound = run.bound() if self._travels(loss) else None
        if recoding is not rows.recoding:  # else the records are there already
            curator.recode(recoding, loss=loss)
        limited = self.n_newton > 0 and (self.shares.sizes > 0 or loss.task == "regression")
        limit = run.limit_sizes if self.shares.sizes else run.limit_slopes
        if bound is not None:
            if limited:
                limit(v)
            v = run.travel(v, bound, self.n_travel)
        pooled, step = Pooled(run.contrasted(v)), None
        for block, count in enumerate(self._blocks):
            if limited:
                limit(v)
            if metric is None or not loss.quadratic:
                metric = run.hessian(v, bound, is_near=block > 0)
            v, step, metric = run.newton(v, metric, count, pooled)
        w = recoding.coefficients(flat(v)) if run.at_corner is None else run.at_corner
        if found.trace is None or metric is None or step is None:
            return Solution(w, found.trace, found.estimate)
        curved = np.where(metric.values >= metric.edge, metric.values, 0.0)
        steps = DirectionsTrace(metric.vectors, np.square(step.factors * step.noise))
        parts = (found, steps, left := 1.0 - curved * step.factors, linear)
        trace = RefinedTrace(*parts) if loss.n_outputs == 1 else ContrastsTrace(*parts, contrasts(loss.n_outputs))
        estimate = found.estimate
        before = None if estimate is None else estimate.noise
        if estimate is not None and before is not None:
            kept = (steps.vectors * left) @ steps.vectors.T
            estimate = replace(estimate, noise=lambda: kept @ before() @ kept + steps.covariance)
        return Solution(w, trace, estimate)

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
        """Take two short steps."""
        return AuditCase(cls(n_steps=2))


def _rescaled(found: Solution, done: Calibrated) -> Solution:
    """Return a solution whose predictor was brought back to scale."""
    assert found.trace is not None
    trace = CalibratedTrace(found.trace, done.share, done.deviations)
    estimate = found.estimate
    before = None if estimate is None else estimate.noise
    if estimate is not None and before is not None:
        estimate = replace(estimate, noise=lambda: done.share**2 * before())
    return Solution(done.coefficients, trace, estimate)


def newton_shares(count: int, share: float) -> list[float]:
    """Divide a share among Newton steps in proportion to how much of each one's noise is left at the end.

    A step forgets all but rho of the error before it, rho being how far the Hessian is off. With q_t the variance that
    a unit of noise in step t leaves, shares in proportion to sqrt(q_t) = rho^(T - t) leave the least in all. A
    quarter is divided equally: first steps that are mostly noise would lead away from where the Hessian was taken.
    """
    weights = [FORGOTTEN ** (count - 1 - t) for t in range(count)]
    total = math.fsum(weights)
    return [share * (EQUAL / count + (1.0 - EQUAL) * weight / total) for weight in weights]


def steps_query(loss: Loss) -> str:
    """Return what clipped steps ask: gradients that are weighted by the lengths of their rows, which stay whole.

    A row that is shrunk has another margin, and so another class or count than is predicted for it: where an outcome is
    rare, long rows would push their coefficients far off. A numeric target is shrunk with its row, which is the same
    weight again, and serves pure budgets too.
    """
    return "noisy_gradient" if loss.movable_target else "noisy_weighted_gradient"


def _share(query: str, count: int, share: float, dimension: int | None = None) -> Release:
    """Plan so many answers that get this share of mu^2 together."""
    return Release(query, count, relative_noise=shares_to_noise(share, count), dimension=dimension)
