"""Private descent in whitened coordinates: see the shape of the data, recode every record by it, take few steps.

    1. center and scale the features (``shape``); append a constant; shrink rows to a common length
    2. M = noisy second moment of these rows = U diag(e) U^T, noise edge s sqrt(2 p); A = U diag((e + floor)^{-1/2}) U^T
    3. v_{t+1} = P - eta (1/n) [ sum_i clip_C(A grad l_i) + noise ],   P = v_t + 0.7 (v_t - v_{t-1});   w = A v_T

Released: a noisy mean, noisy mean squares, a noisy second moment, T noisy gradients: all Gaussian. Privacy: exactly
mu-Gaussian-DP, mu^2 the sum of their parts, under each relation; step 3 is a plain clipped sum over recoded records.
What is made of released values (center, scales, A, clip) is post-processing. Cost: n p^2 for M and for the recoding, T
passes. Utility: in these coordinates every direction looks alike, so a dozen steps suffice and each gets a large part
of the budget; how badly the declared ranges fit hardly matters. A linear predictor of recoded rows is one of the
features: ``coefficients`` takes it back. Iterates stay within a ball, so that a noisy A cannot make them diverge.

``form="diagonal"`` stops after scaling (sparse and very wide records); ``form="plain"`` sees nothing and descends in
the declared coordinates with a large constant (too little signal). All numbers: ``whitened_rules``.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import Recoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss, derivative
from discreet.losses.constants import gradient_bound
from discreet.penalties.base import Penalty
from discreet.solvers import whitened_defaults as rules
from discreet.solvers.base import Progress, Solution, Solver, count_release, public_count
from discreet.solvers.gradient_loop import project
from discreet.solvers.probability_calibration import calibrate
from discreet.solvers.registry import SHORT_STEP, AuditCase, register
from discreet.solvers.standardize import (
    check_settings,
    declared_shape,
    noise_of,
    seen_shape,
    shape_releases,
    shares_to_noise,
    step_release,
)
from discreet.solvers.uncertainty.propagation import noise_deviation, taken_back
from discreet.solvers.uncertainty.whitened_noise import Spectrum, Steps, deviations, margins_of

if TYPE_CHECKING:
    from discreet.curator import Curator

Vector = NDArray[np.float64]

FORMS = ("full", "diagonal", "plain")
LARGEST = 100.0
"""The ball that iterates stay in: whitened margins of that size are certain of everything."""
REACH = 16.0
"""Whitened rows longer than this many typical ones are shrunk: it bounds the lattice, and hardly happens."""
LEAST_DIRECTION = 1e-7
"""Eigenvalues are kept above this part of the largest: below is the rounding of the records."""
LEAST_ROW = 0.1
"""Sparse rows are taken to be at least this long in declared coordinates."""
TYPICAL = 0.6
"""A row's typical length in units of sqrt(p) in declared coordinates."""


@dataclass(frozen=True)
class Seen:
    """The map to train in, a typical row's length there, and the curvature of a loss with f'' = 1.

    ``spectrum`` is what second moments show, where they were seen.
    """

    recoding: Recoding
    length: float
    curvature: float
    spectrum: Spectrum | None = None


@register("whitened")
@dataclass(frozen=True)
class WhitenedDescent:
    """Whitened descent for classes; its plain form for numbers too.

    Parameters
    ----------
    form
        ``"full"``, ``"diagonal"`` or ``"plain"``.
    n_steps, momentum, step
        Gradients to release; the weight of the last move; the step in units of 1 / curvature.
    slope
        A record's gradient is clipped at this times the rows' length.
    constant
        The constant feature, in units of the features' length.
    floor
        What is added to every eigenvalue, in units of the noise's edge.
    mean_share, scale_share, moment_share
        Shares of mu^2 for seeing; the steps get the rest.
    average
        Return the mean of the last half of the iterates instead of the last one.
    calibrate
        Release one gradient more, which brings probabilities back to scale (``calibration``): for the logistic loss of
        two classes in the full form, where there is an intercept.
    """

    form: str = "full"
    n_steps: int = 12
    momentum: float = 0.7
    step: float = 1.0
    slope: float = 0.4
    constant: float = 0.5
    floor: float = 0.35
    mean_share: float = rules.MEAN
    scale_share: float = rules.SCALE
    moment_share: float = rules.MOMENTS
    average: bool = False
    calibrate: bool = True
    name: ClassVar[str] = "whitened"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise Unsupported(f"form must be one of {', '.join(FORMS)}")
        if not 0 <= self.momentum < 1:
            raise Unsupported("momentum must lie in [0, 1)")
        shares = ("mean_share", "scale_share", "moment_share")
        positive = {name: getattr(self, name) for name in ("step", "slope", "constant", "floor", *shares)}
        check_settings(self.n_steps, positive, tuple(positive[name] for name in shares))

    @classmethod
    def for_facts(cls, domain: Domain, loss: Loss, budget: Budget) -> Self:
        """The configuration that public facts suggest (``whitened_rules``)."""
        numbers = loss.task == "regression"
        form = rules.form_for(domain, budget, numbers=numbers)
        slope = 0.8 * slope_at_zero(loss)
        if not budget.is_private:
            return cls(form=form, n_steps=rules.LIMIT_STEPS, momentum=0.9, slope=slope, floor=1e-9, calibrate=False)
        if form != "plain":
            return cls(
                form=form,
                n_steps=rules.step_count(domain, form),
                slope=slope,
                constant=rules.constant_for(domain, budget),
                momentum=0.7 if form == "full" else 0.9,
                calibrate=rules.calibrates(domain, budget),
            )
        length = rules.plain_length(domain, budget, numbers=numbers)
        if numbers:
            count = rules.plain_steps(domain, budget)
            return cls(
                form, count, momentum=0.0, step=3.0, slope=rules.PLAIN_RESIDUAL, constant=1 / length, average=True
            )
        return cls(form, rules.LEAST_STEPS, step=0.75, slope=slope_at_zero(loss), constant=1.0 / length)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """What is seen, then ``n_steps`` noisy gradients and that of the calibration; a count where n is private."""
        check_penalty(penalty)
        if domain.sparse and self.form == "full":
            raise Unsupported("whitening would fill sparse records: use WhitenedDescent(form='diagonal')")
        return Plan(
            (
                *self._seeing(domain),
                self._steps(domain, loss),
                *count_release(domain, shares_to_noise(rules.COUNT)),
            )
        )

    def _steps(self, domain: Domain, loss: Loss) -> Release:
        return step_release(self._seeing(domain), self.n_steps + self._calibrates(domain, loss))

    def _calibrates(self, domain: Domain, loss: Loss) -> bool:
        return self.calibrate and self.form == "full" and domain.intercept and loss.sigmoid_link

    def _seeing(self, domain: Domain) -> tuple[Release, ...]:
        if self.form == "plain":
            length = Release("noisy_mean", 1, relative_noise=shares_to_noise(self.mean_share), clip=1.0)
            return (length,) if domain.sparse and domain.intercept else ()
        shape = shape_releases(domain, mean=self.mean_share, scale=self.scale_share)
        if self.form == "diagonal":
            return shape
        noise = shares_to_noise(self.moment_share)
        return (*shape, Release("noisy_second_moment", 1, relative_noise=noise))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress | None = None) -> Solution:
        """See, recode, descend, and take the coefficients back.

        ``noise``, form ``full``: what the noise of the steps and of the seen second moment did, by that moment and a
        model of the margins (``margins``). The others know no curvature: a bound, as if the loss were flat.
        """
        n, quiet, admitted = public_count(curator), curator.noise_multiplier == 0, curator.domain
        seen = self._coordinates(curator, n, quiet)
        recoding, length, curvature = seen.recoding, seen.length, seen.curvature
        curator.recode(recoding)
        loss, domain = curator.loss, curator.domain
        clip = gradient_bound(loss, domain) if quiet else self.slope * length
        step, release = self.step / (loss.smoothness * curvature), self._steps(admitted, loss)
        prox = ridge_prox(penalty, recoding, domain, step)
        v = previous = np.zeros(domain.shape)
        tail = np.zeros(domain.shape)
        for t in range(self.n_steps):
            point = v + self.momentum * (v - previous)
            gradient = curator.noisy_gradient(point, clip=clip) / n
            previous, v = v, project(prox(point - step * gradient), LARGEST)
            tail += v if t >= self.n_steps // 2 else 0.0
            if progress is not None:
                progress(t + 1, release.count)
        if self.average:
            v = tail / (self.n_steps - self.n_steps // 2)
        unit = noise_deviation(curator, release, 1.0)
        spread = self._spread(seen, curator, v, step * clip * unit / n, step)
        if quiet or not self._calibrates(admitted, loss) or seen.spectrum is None:
            return Solution(recoding.coefficients(v), spread)
        middle, width = margins_of(seen.spectrum, v)
        found = calibrate(curator, recoding, v, middle, width, penalty, n, unit)
        if progress is not None:
            progress(release.count, release.count)
        return Solution(found.coefficients, np.hypot(found.share * spread, found.deviations))

    def _spread(self, seen: Seen, curator: "Curator", v: Vector, deviation: float, step: float) -> Vector:
        """What steps whose noise has this deviation make of it, in training coordinates."""
        if deviation == 0:
            return np.zeros(v.shape)
        momenta, averages = np.full(self.n_steps, self.momentum), np.zeros(self.n_steps + 1)
        averages[self.n_steps // 2 + 1 if self.average else self.n_steps :] = 1.0
        steps = Steps(momenta, averages / averages.sum(), step, deviation, self.slope)
        if seen.spectrum is None:
            return taken_back(seen.recoding, np.full(v.shape, deviation**2 * float(steps.gain(0.0)[0])))
        return deviations(seen.spectrum, affine(seen.recoding, curator.domain)[0], curator.loss, v, steps)

    def _coordinates(self, curator: "Curator", n: float, quiet: bool) -> Seen:
        """The map to train in, and what is known of rows there."""
        admitted = curator.domain
        if self.form == "plain":
            recoding = self._plain(curator, n)
            return Seen(recoding, recoding.row_norm, recoding.row_norm**2)
        releases = self._seeing(admitted)
        shape = seen_shape(curator, releases[:-1] if self.form == "full" else releases, n)
        features = math.sqrt(shape.square_length)
        longest = features * math.hypot(1.0, self.constant if admitted.intercept else 0.0)
        recoding = replace(
            shape.recoding,
            scale=shape.recoding.scale * longest,
            constant=self.constant * features / longest,
            row_norm=math.inf if quiet else 1.0,
        )
        if self.form == "diagonal":
            return Seen(recoding, 1.0, 1.0 if quiet else 1.0 / longest)
        curator.recode(recoding)
        clip = curator.domain.row_norm**2 if quiet else 1.0
        factor = curator.budget.neighbors.sum_factor**0.5
        second = curator.noisy_second_moment(clip=clip, n=n)
        edge = noise_of(curator, releases[-1], clip, factor) / n * math.sqrt(2.0 * len(second))
        matrix, length, shares, vectors, kept = whitening(second, edge, self.floor)
        mean = matrix @ second[:, -1] / recoding.constant if admitted.intercept else np.zeros(len(second))
        whitened = replace(recoding, matrix=matrix, reach=None if quiet else REACH * length)
        leverage = np.square(matrix).sum(axis=0) * np.square(curator.domain.feature_bounds)
        farthest = np.sqrt(np.maximum(1.0, 1.0 + (leverage - 1.0) / length**2))
        entry = edge / (2.0 * math.sqrt(len(second)))  # off the diagonal, of the mean of two
        return Seen(whitened, length, 1.0, Spectrum(shares, vectors, mean, farthest, kept, entry))

    def _plain(self, curator: "Curator", n: float) -> Recoding:
        """Declared coordinates: a typical row of features has length 1 / constant against the constant 1.

        How long a sparse row is cannot be told from ranges: it is seen in the constant's mean 1 / sqrt(1 + length^2)
        once rows are shrunk to 1, a single number.
        """
        domain = curator.domain
        start = declared_shape(domain)
        length = 1.0 / self.constant
        typical = TYPICAL * math.sqrt(max(1, len(start.center)))
        if self._seeing(domain):
            curator.recode(replace(start, row_norm=1.0))
            mean = min(1.0, max(1.0 / math.hypot(1.0, typical), float(curator.noisy_mean(clip=1.0, n=n)[-1])))
            typical = max(LEAST_ROW, math.sqrt(1.0 / mean**2 - 1.0))
        ends = domain.target_range
        return Recoding(
            start.center,
            start.scale * (typical / length),
            row_norm=math.hypot(1.0, length),
            target_center=sum(ends) / 2.0 if ends is not None and domain.intercept else 0.0,
        )

    def settings(self) -> dict[str, object]:
        """Public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Descent for classes, Newton steps for numbers, unless there is too little signal for these."""
        numbers = loss.task == "regression"
        if numbers and not loss.movable_target:
            name = type(loss).__name__
            raise Unsupported(f"whitened coordinates know no {name} loss: use solver='gd'")
        if budget.is_pure:
            raise Unsupported("whitened coordinates need a delta above 0: leave delta out, or use solver='objective'")
        if numbers and rules.form_for(domain, budget, numbers=True) != "plain":
            from discreet.solvers.whitened_newton import WhitenedNewton

            return WhitenedNewton.for_facts(domain, loss, budget)
        return cls.for_facts(domain, loss, budget)

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Four short steps."""
        return AuditCase(cls(n_steps=4, step=SHORT_STEP))


def slope_at_zero(loss: Loss) -> float:
    """|f'| where nothing is known yet: 1/2 for the logistic loss, 1 for the hinge, the residual's unit for numbers."""
    if loss.n_outputs > 1:
        return math.sqrt(1.0 - 1.0 / loss.n_outputs)
    return abs(float(derivative(loss, 0.0, 1.0)))


def check_penalty(penalty: Penalty) -> None:
    """Only smooth penalties can be followed in other coordinates."""
    if not penalty.ridge:
        raise Unsupported("whitened coordinates know no penalty but l2: use solver='gcd', 'cd' or 'gd' for this one")


def ridge_prox(penalty: Penalty, recoding: Recoding, domain: Domain, step: float) -> Callable[[Vector], Vector]:
    """argmin ||v - v0||^2 / (2 step) + alpha/2 ||w||^2 with w = Q v + c, the coefficients in training coordinates.

    A gradient step would diverge: a feature in a range that is much too wide has a large Q.
    """
    if penalty.strong_convexity == 0:
        return lambda v: v
    pull = step * penalty.strong_convexity
    if recoding.matrix is None:  # p^2 numbers may not fit: the intercept is penalized where the features are centered
        slopes = np.append(1.0 / recoding.scale, recoding.constant)[: domain.n_features]
        return lambda v: (v.T / (1.0 + pull * slopes**2)).T
    linear, offset = affine(recoding, domain)
    inverse = np.linalg.inv(np.eye(domain.n_features) + pull * (linear.T @ linear))
    shift = pull * (linear.T @ offset)
    return lambda v: inverse @ (v.T - shift).T


def affine(recoding: Recoding, domain: Domain) -> tuple[Vector, Vector]:
    """Q and c with coefficients(v) = Q v + c."""
    offset = recoding.coefficients(np.zeros(domain.n_features))
    return (recoding.coefficients(np.eye(domain.n_features)).T - offset).T, offset


def whitening(second: Vector, edge: float, floor: float) -> tuple[Vector, float, Vector, Vector, Vector]:
    """A = (M + floor edge)^{-1/2}, a whitened row's length, the whitened moment's eigenvalues and vectors, M's + floor.

    The length is the root of the directions that are seen. Eigenvalues below the noise's edge are taken for their mean,
    which the trace tells.
    """
    values, vectors = np.linalg.eigh(second)
    kept = np.maximum(values, 0.0) + max(floor * edge, LEAST_DIRECTION * max(float(values[-1]), 1e-300))
    seen = values > edge
    rest = max(float(np.trace(second)) - float(values[seen].sum()), 0.0) / max(1, int((~seen).sum()))
    likely = np.where(seen, values, min(edge, rest))
    length = math.sqrt(max(1.0, float((np.maximum(likely, 0.0) / kept).sum())))
    return (vectors / np.sqrt(kept)) @ vectors.T, length, np.where(seen, values / kept, 0.0), vectors, kept
