"""Solve once, privately: the minimizer with noise added to it, or with noise inside its objective.

J(w) = sum_i l_i(w) + (lambda/2) ||w||^2 (+ b.w) with convex losses, so J is lambda-strongly convex, on every
coordinate, the intercept's too. A convex quadratic that is the same for neighbors (``extra``: a penalty in a stage's
coordinates) may be added: J stays lambda-strongly convex, its gradient and Hessian cancel between neighbors.
``minimize`` returns a point whose gradient is proven to be at most tau, rounded to doubles, and does so for every data
set: there is no failing that could depend on records.

*Sensitivity of the minimizer.* Let w, w' be points with ||grad J_D(w)|| <= tau and ||grad J_D'(w')|| <= tau for
neighbors D, D'. The sums differ by one record's gradient (two, under ``replace_one``), each of norm at most C. So
||grad J_D'(w)|| <= tau + a C, and strong convexity gives
lambda ||w - w'|| <= ||grad J_D'(w) - grad J_D'(w')|| <= a C + 2 tau. lambda is public and the same for D and D':
under ``add_remove`` it does not follow the number of records.

*On the lattice.* A point is clipped to +-2^52 steps of size h and rounded to integers k; the rounding of the point to
doubles and that of the quotient are at most half a step each there, so a coordinate moves by at most 1.5 steps. Clip
and projection are non-expansive. Neighbors are then at most D = (sensitivity)/h + 3 ceil(sqrt(p)) steps apart, in
integers, and k + round(2^m N) is the ideal Gaussian mechanism rounded, of noise multiplier 2^m/D. h comes from public
numbers alone. A projection is computed in doubles: (p + 8) 2^-52 of the radius is added to the sensitivity for it.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from discreet.accounting.objective_perturbation import covers, perturbation_of, record_bound
from discreet.accounting.plan import Perturbation, Release
from discreet.bounds import Domain
from discreet.curator.certified.descent import MOST_CURVATURE, Objective
from discreet.curator.certified.minimize import certified_gradient, minimize
from discreet.curator.lattice.lattice import Unit
from discreet.curator.lattice.noise import Draws
from discreet.curator.session import Session
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import Loss, gradient_smoothness, lipschitz_within
from discreet.losses.proofs import require_proof
from discreet.penalties import L2Ball
from discreet.typing import Floats, Integers

_STEPS = 1 << 22  # lattice steps in one sensitivity: rounding costs sqrt(p) of them
_LEAST_STEP = 2.0**-36  # so that coordinates up to 2^15 have room
_LARGEST = 1 << 52  # steps that a coordinate may be from 0: below it doubles divide and round to within one step
GRADIENT_ERROR = 1e-11  # of a computed gradient, over n times the bound on a record's: checked at every step
STEPS_NEED_N = (
    "gradient steps contract only where n is the number of records, which is private under add_remove: use the exact "
    "minimizer, or another relation"
)
ONE_ROW = (
    "objective perturbation is proven for one row per person, since a person's several rows have no common direction: "
    "use solver='gd', or aggregate the rows"
)


@dataclass(frozen=True)
class Problem:
    """What is minimized: the mean loss + (regularization/2) ||w||^2, in public numbers.

    Parameters
    ----------
    regularization, n : float
        lambda = n regularization belongs to the sum of the losses.
    clip : float or None, default=None
        Bound on a record's gradient. None: what the loss and the declared bounds imply.
    row_norm : float or None, default=None
        Records longer than this are shrunk onto it, each by itself. None: as declared.
    radius : float or None, default=None
        A ball; the squared loss is taken as Huber's, which is the same on it, so that its gradients are bounded.
    tolerance : float, default=1e-11
        The minimizer's certified gradient, over n times the bound on a record's.
    extra : array or None, default=None
        Numbers that are not negative, public or released, one per column, which are added to the regularization.
    l1 : float, default=0.0
        Of l1 ||w||_1, which is added; for gradient steps alone, which end each with its proximal operator.

    Examples
    --------
    >>> from discreet.curator import Problem
    >>> Problem(regularization=0.01, n=1000).total
    10.0
    """

    regularization: float
    n: float
    clip: float | None = None
    row_norm: float | None = None
    radius: float | None = None
    tolerance: float = 1e-11
    extra: Floats | None = field(default=None, compare=False)
    l1: float = 0.0

    def __post_init__(self) -> None:
        if not all(math.isfinite(value) and value > 0 for value in (self.n, self.tolerance)):
            raise PlanViolation("a minimizer needs a positive tolerance and number of records")
        bounds = (self.clip, self.row_norm, self.radius)
        if not all(bound is None or (bound > 0 and math.isfinite(bound)) for bound in bounds):
            raise PlanViolation("clip, row_norm and radius are positive and finite, or None")
        if not (math.isfinite(self.total) and self.total >= 0):
            raise PlanViolation("the regularization must be finite, and not negative")
        if not 0 <= self.l1 < math.inf:
            raise PlanViolation("the strength of an L1 penalty must be finite, and not negative")

    @property
    def total(self) -> float:
        """lambda, of the sum."""
        return self.regularization * self.n

    def seen(self, domain: Domain) -> Domain:
        """Return the domain with rows shrunk."""
        return domain if self.row_norm is None else replace(domain, row_norm=min(domain.row_norm, self.row_norm))

    def loss_for(self, loss: Loss, domain: Domain) -> Loss:
        """Return the loss (a proven one), or one that equals it on the ball and has bounded gradients everywhere."""
        require_proof(loss, domain)
        bounded = loss if self.clip is not None else lipschitz_within(loss, self.seen(domain), self.radius)
        require_proof(bounded, domain)
        return bounded

    def bound_for(self, loss: Loss, domain: Domain) -> float:
        """Return the bound on a record's gradient."""
        return record_bound(self.loss_for(loss, domain), self.seen(domain), self.clip)

    def perturbation_for(self, loss: Loss, domain: Domain) -> Perturbation:
        """Return what objective perturbation of this problem is priced by."""
        return perturbation_of(self.loss_for(loss, domain), self.seen(domain), self.clip, self.total)

    def projected(self, w: Floats) -> Floats:
        """Project onto the ball, where there is one: non-expansive."""
        return w if self.radius is None else L2Ball(self.radius).prox(w, 1.0)

    def thresholded(self, w: Floats, step: float) -> Floats:
        """Return the proximal operator of step l1 ||w||_1: non-expansive, as that of every convex function is."""
        return w if self.l1 == 0 else np.asarray(np.sign(w) * np.maximum(np.abs(w) - step * self.l1, 0.0))

    def rounding(self, size: int) -> float:
        """Return by how much the rounding of two projections can move them apart."""
        return 0.0 if self.radius is None else (size + 8) * 2.0**-52 * self.radius

    def check_curvature(self, loss: Loss, domain: Domain) -> None:
        """Refuse, by public facts, a minimizer that is promised (``descent``) but might take forever."""
        most = gradient_smoothness(self.loss_for(loss, domain), self.seen(domain))
        if not most <= MOST_CURVATURE * self.regularization:
            raise Unsupported(
                "the regularization is too small against the curvature of the loss for a certified minimizer: raise "
                "it, shrink rows (row_norm), or bend the loss less (a smaller limit, a larger width)"
            )

    def objective(self, loss: Loss, domain: Domain, linear: Floats | None = None) -> Objective:
        """Return the sum to be minimized, with b.w added; an L1 penalty is left to steps."""
        return Objective(
            self.loss_for(loss, domain),
            self.total,
            np.zeros(domain.shape) if linear is None else linear,
            math.inf if self.clip is None else self.clip,
            math.inf if self.row_norm is None else self.row_norm,
            None if self.extra is None else self.n * self.extra,
        )


def _refuse_corners(problem: Problem) -> None:
    """Refuse an L1 penalty where a minimizer is certified by its gradient, which has none at a corner."""
    if problem.l1:
        raise PlanViolation("a certified minimizer has no L1 penalty: take gradient steps")


def slack_of(size: int, use_l1: bool) -> int:
    """By how many steps the rounding of two points can move them apart: 3 p in the L1 norm, 3 ceil(sqrt(p)) in L2."""
    return 3 * (size if use_l1 else math.isqrt(size - 1) + 1)


def unit_of_point(multiplier: float, sensitivity: float, slack: int) -> Unit:
    """The lattice of a point whose neighbors are within ``sensitivity``: bound D and 2^m with 2^m / D >= multiplier."""
    if multiplier == 0:
        return Unit(_STEPS, None, sensitivity / _STEPS)
    steps = min(max(sensitivity / _LEAST_STEP, 64.0 * slack), _STEPS)
    m = min(56, max(1, math.ceil(math.log2(multiplier * (steps + slack)))))
    bound = int((1 << m) / Fraction(multiplier))
    if bound <= 4 * slack:
        raise Unsupported("the noise this budget needs is beyond the lattice's range: raise epsilon")
    # one step more than the slack, for the rounding of this division
    return Unit(bound, m, max(sensitivity / (bound - slack - 1), 0.5 * _LEAST_STEP))


def release_point(session: Session, release: Release, point: Floats, sensitivity: float, shown: float = 0.0) -> Floats:
    """A point on the lattice, plus noise. ``shown`` is the sensitivity a test should see, where it is another."""
    use_l1 = session.uses_l1(release)
    slack = slack_of(point.size, use_l1)
    if use_l1:
        sensitivity, shown = math.sqrt(point.size) * sensitivity, math.sqrt(point.size) * shown
    unit = unit_of_point(session.multiplier(release), sensitivity, slack)
    if unit.m is None and not session.is_observed:
        return point
    exact = _on_lattice(point, unit)
    noisy = exact + session.noise(release, unit, point.size).reshape(point.shape)
    seen = Unit(math.ceil(shown / unit.step) + slack + 1, unit.m, unit.step) if shown else unit
    return session.release(release, seen, exact, noisy, factor=1).astype(np.float64) * unit.step


def _on_lattice(point: Floats, unit: Unit) -> Integers:
    with np.errstate(all="ignore"):  # the point is not released, so a warning of its size would be an answer
        return np.clip(np.rint(point / unit.step), -_LARGEST, _LARGEST).astype(np.int64)


def noisy_minimizer(session: Session, problem: Problem) -> Floats:
    """Return the minimizer of the mean loss + (regularization/2) ||w||^2, projected onto the ball, plus noise.

    Privacy
    -------
    Sensitivity: with lambda = n regularization and gradients of norm at most C, neighbors' certified points are
    within (a C + 2 tau) / lambda (above), attained by linear losses; rounding to the lattice adds
    3 ceil(sqrt(p)) steps, which are counted.
    Mechanism: point + round(2^m N(0, I)) in lattice steps; for pure budgets a vector of density
    exp(-||b|| / scale), whose length is a Gamma variable (floating point: the certificate says idealized).
    Event: ``Gaussian`` (``Laplace``, the same pure epsilon) at the planned multiplier.
    Conditions: convex loss; the problem's numbers are public or released. A minimizer is certified for
    every data set (``certified/descent.py``).
    """
    loss = session.loss
    domain, bound = session.domain, problem.bound_for(loss, session.domain)
    if not problem.total > 0:
        raise PlanViolation("a minimizer moves by any amount without regularization: it must be positive")
    _refuse_corners(problem)
    problem.check_curvature(loss, domain)
    objective = problem.objective(loss, domain)
    release = session.spend("noisy_minimizer")
    tau = problem.tolerance * problem.n * bound
    point = minimize(session.engine.whole(), objective, tau).point
    sensitivity = (session.factor * bound + 2 * tau) / problem.total
    return _with_noise(session, release, problem.projected(point), sensitivity + problem.rounding(point.size))


def noisy_descent(session: Session, problem: Problem, *, n_steps: int, step_size: float) -> Floats:
    """Return the point after ``n_steps`` projected proximal gradient steps from zero, plus noise: needs no minimizer.

    Privacy
    -------
    Sensitivity: a step of size eta <= 2/(beta + 2 regularization) on a convex, beta-smooth mean loss is
    (1 - eta regularization)-Lipschitz, and one record moves it by eta a C / n; so T steps move the last point by
    eta (a C / n + 2 e) (1 + q + ... + q^(T-1)), q = 1 - eta regularization, where e bounds the rounding errors
    of a gradient: one that doubles cannot hold to it is computed exactly. An L1 penalty's proximal operator and the
    projection are the same maps for neighbors, and non-expansive: ||prox(u) - prox(v)|| <= ||u - v||, so that distances
    after them are no larger. Thresholds are one subtraction, hence one rounding, an entry.
    Mechanism: as ``noisy_minimizer``.
    Event: ``Gaussian`` (``Laplace``) at the planned multiplier.
    Conditions: convex and smooth loss; the steps and sizes are fixed beforehand.
    """
    loss = session.loss
    domain, mu = session.domain, problem.regularization
    bound, lossy = problem.bound_for(loss, domain), problem.loss_for(loss, domain)
    if problem.n != domain.n or not session.budget.neighbors.n_is_public:
        raise Unsupported(STEPS_NEED_N)
    if problem.extra is not None:
        raise Unsupported("gradient steps know one regularization for all coordinates: use the exact minimizer")
    if not 0 < step_size * (gradient_smoothness(lossy, problem.seen(domain)) + 2 * mu) <= 2:
        raise PlanViolation("steps are stable up to 2/(beta + 2 regularization): take a smaller step_size")
    release = session.spend("noisy_descent")
    objective = replace(problem.objective(loss, domain), regularization=0.0)
    allowed = GRADIENT_ERROR * problem.n * bound
    w = np.zeros(domain.shape)
    for _ in range(n_steps):
        gradient, _ = certified_gradient(session.engine.whole(), objective, w, allowed)
        w = problem.projected(problem.thresholded(w - step_size * (gradient / problem.n + mu * w), step_size))
    pull = step_size * mu
    steps = float(n_steps) if pull == 0 else -math.expm1(n_steps * math.log1p(-min(pull, 1 - 2.0**-53))) / pull
    # doubles: a step errs by a few units in the last place of w, which is at most eta L times the steps so far, and a
    # projection by as many as a norm has additions
    longest = step_size * n_steps * bound
    rounding = 2.0**-49 * (longest * (1 + step_size * mu * n_steps) + (math.log2(w.size) + 8) * longest)
    moved = step_size * (session.factor * bound / problem.n + 2 * GRADIENT_ERROR * bound) * steps
    return _with_noise(session, release, w, moved * (1 + 2.0**-40) + 2 * n_steps * rounding)


def _with_noise(session: Session, release: Release, point: Floats, sensitivity: float) -> Floats:
    if session.budget.is_pure and session.multiplier(release):
        return _gamma_noise(session, release, point, sensitivity)
    return release_point(session, release, point, sensitivity)


def _gamma_noise(session: Session, release: Release, point: Floats, sensitivity: float) -> Floats:
    """w + b, b of density exp(-||b|| / (z sensitivity)): pure 1/z, since ||b|| moves by at most the sensitivity."""
    unit = unit_of_point(session.multiplier(release), sensitivity, slack_of(point.size, use_l1=False))
    scale, p = session.multiplier(release) * unit.bound, point.size
    if scale * (p + 40 * math.sqrt(p) + 40) >= 2.0**62:  # further than any Gamma variable goes
        raise Unsupported("the noise this budget needs is beyond the lattice's range: raise epsilon")
    drawn = Draws(session.entropy).gamma_vector(p, scale)
    exact = _on_lattice(point, unit)
    noisy = exact + np.rint(drawn).astype(np.int64).reshape(point.shape)
    return session.release(release, unit, exact, noisy, norm="l2", factor=1).astype(np.float64) * unit.step


def perturbed_minimizer(session: Session, problem: Problem) -> Floats:
    """Return the minimizer of the mean loss + (regularization/2) ||w||^2 + b.w / n, b random, projected afterwards.

    Privacy
    -------
    Sensitivity: of the sum of gradients, a C. The minimizer's density has a Jacobian, whose ratio for neighbors is
    at most 1 + beta/lambda for one row per record; the price of both: ``accounting/objective_perturbation.py``.
    Mechanism: b = round(2^m N(0, I)) in lattice steps (Gamma length for pure budgets), minimize, then noise on the
    point: its gradient is certified to be at most tau, so it is within (tau + ||rounding of b||) / lambda of the
    ideal minimizer for the ideal b, whatever the solver did, and the second noise covers twice that.
    Event: ``PerturbedMinimum`` for b, ``Gaussian`` (``Laplace``) for the second noise.
    Conditions: a convex loss of one linear score (or softmax), differentiable with a Lipschitz gradient; lambda > 0
    on every coordinate; one row per person; the planned curvature covers that of what is minimized (checked). A
    minimizer is certified for every data set and every b (``certified/descent.py``), and b is drawn once.
    """
    loss = session.loss
    domain, bound = session.domain, problem.bound_for(loss, session.domain)
    if session.engine.is_grouped:
        raise Unsupported(ONE_ROW)
    _refuse_corners(problem)
    problem.check_curvature(loss, domain)
    needed = problem.perturbation_for(loss, domain)
    inside, outside = session.spend("perturb_objective"), session.spend("perturbed_minimizer")
    if session.multiplier(inside) and not (inside.perturbation and covers(inside.perturbation, needed)):
        raise PlanViolation("the plan was priced for another loss, clip or regularization than is minimized")
    linear, rounding = _linear_term(session, inside, session.factor * bound)
    tau = problem.tolerance * problem.n * bound
    point = minimize(session.engine.whole(), problem.objective(loss, domain, linear), tau).point
    shown = (session.factor * bound + 2 * tau) / problem.total
    apart = 2 * (tau + rounding) / problem.total + problem.rounding(point.size)
    return release_point(session, outside, problem.projected(point), apart, shown)


def _linear_term(session: Session, release: Release, sensitivity: float) -> tuple[Floats, float]:
    """b, and by how much its rounding to the lattice may have moved it: the minimizer's gradient takes that up."""
    shape, multiplier = session.domain.shape, session.multiplier(release)
    size = math.prod(shape)
    if multiplier == 0:
        return np.zeros(shape), 0.0
    if session.budget.is_pure:
        return Draws(session.entropy).gamma_vector(size, multiplier * sensitivity).reshape(shape), 0.0
    unit = Unit(1, 40, math.nextafter(multiplier * sensitivity, math.inf) * 2.0**-40)
    drawn = session.noise(release, unit, size).reshape(shape).astype(np.float64) * unit.step
    # half a step per coordinate for rounding the ideal b; 2^-7 for the product's, for draws below 2^46 (64 deviations)
    return drawn, unit.step * math.sqrt(size)
