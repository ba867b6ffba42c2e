"""Solve once, privately: the minimizer with noise added to it or inside its objective, or a draw near it.

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

**Exponential mechanism**: one draw from exp(-k (sum of losses + (lambda/2) ||w||^2)).

*With lambda > 0 (Gopi, Lee & Liu 2022).* The exponents of neighbors are (k lambda)-strongly convex and differ by an
(a G k)-Lipschitz function, G the bound on a record's gradient on the support; two such densities are
a G k / sqrt(k lambda) = a G sqrt(k/lambda) Gaussian-DP apart. At noise multiplier z: k = lambda / (z a G)^2.

*With lambda = 0, on a ball (McSherry & Talwar 2007; Bassily, Smith & Thakurta 2014).* The exponents differ by a
function whose range over the ball is at most k a G 2 radius, so the log-ratio of the densities has that range: bounded
range, and pure. At noise multiplier z: k = 1 / (z a G 2 radius).

Both are of the exact law, in real arithmetic.

*Samplers.* A draw has the density pi(w) proportional to exp(-E(w)), E convex, on a ball or an interval. All samplers
but the chain are exact in real arithmetic, by one argument: if ``lower <= E`` on the support, then a point drawn with
density proportional to exp(-lower) and kept with probability exp(-(E - lower)) has the law pi, whatever the quality of
``lower`` (a bad one only wastes tries). ``langevin_chain`` is approximate: anyone who releases its draw must state the
total-variation distance as an assumption.

How many tries a draw takes depends on the data; the count never leaves this module (running time is outside the model).
There is no largest number of tries: giving up would be an answer in no price. A try is kept with a probability that is
positive for every data set (``acceptance_bound`` for rejection, free of data), so a draw ends with probability one, and
after t tries it has not ended with probability (1 - a)^t at most: that is the random bits' doing. Rounding can make an
envelope look lower than it is; such a point is kept, as a point on the envelope would be.
"""

import math
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from discreet.accounting.objective_perturbation import covers, perturbation_of, record_bound
from discreet.accounting.plan import Perturbation, Release
from discreet.bounds import Domain
from discreet.curator.certified.float_passes import Smooth, by_outputs
from discreet.curator.certified.minimize import MOST_CURVATURE, Objective, certified_gradient, minimize
from discreet.curator.engines import LocalEngine
from discreet.curator.known_answers import check_smooth
from discreet.curator.lattice import Unit
from discreet.curator.noise import Draws
from discreet.curator.session import Session
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import Loss, gradient_bound, gradient_smoothness, lipschitz_within
from discreet.losses.proofs import require_proof
from discreet.penalties import L2Ball
from discreet.penalties.base import Penalty
from discreet.penalties.recoded import metric_prox
from discreet.typing import Floats, Integers

_STEPS = 1 << 22  # lattice steps in one sensitivity: rounding costs sqrt(p) of them
_LEAST_STEP = 2.0**-36  # so that coordinates up to 2^15 have room
_LARGEST = 1 << 52  # steps that a coordinate may be from 0: below it doubles divide and round to within one step
GRADIENT_ERROR = 1e-11  # of a computed gradient, over n times the bound on a record's: checked at every step
ROUNDED = 1e-12  # eigenvalues below this part of the largest may be rounding
ENDED = 2.0**-50  # a step that promises less than this part of the objective is rounding
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
    linear : array or None, default=None
        c of a term c.w, public or released, which is added to the mean; for minimizers alone.

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
    linear: Floats | None = field(default=None, compare=False)

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
        """Return the sum to be minimized, with b.w and n c.w added; an L1 penalty is left to steps."""
        added = np.zeros(domain.shape) if self.linear is None else self.n * self.linear
        return Objective(
            self.loss_for(loss, domain),
            self.total,
            added if linear is None else added + linear,
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
    Conditions: convex loss; the problem's numbers are public or released, its linear term among them: that is the same
    for neighbors, so that gradients differ as without it, and the modulus is the same. A minimizer is certified for
    every data set (``certified/minimize.py``).
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
    if problem.extra is not None or problem.linear is not None:
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


def exact_minimizer(session: Session, penalty: Penalty, *, n: float, n_steps: int) -> Floats:
    """Return the minimizer of the mean loss + a convex penalty, in double precision: for records without privacy.

    Proximal steps in the metric of a bound on the Hessian, the largest curvature times the second moment of the rows
    (of squares the Hessian itself), with momentum. A direction in which rows do not vary, up to rounding, hardly moves.

    Privacy
    -------
    Sensitivity: unbounded. Mechanism: none.
    Event: none. A plan with this query opens without privacy alone (``check_answers_match_prices``).
    Conditions: epsilon is infinite, which is checked here too.
    """
    if session.budget.is_private:
        raise PlanViolation("exact_minimizer adds no noise: ask for it with epsilon=inf alone")
    loss, domain = session.loss, session.domain
    session.spend("exact_minimizer")
    smooth = session.engine.whole().smooth
    check_smooth(loss, sparse=session.engine.is_sparse, grid=session.engine.grid)
    view = smooth.view()
    second = smooth.hessian(view.curvature_weights.reshape(-1, 1)) / n
    values, vectors = np.linalg.eigh(loss.smoothness * second)
    values = np.where(values > ROUNDED * values[-1], values, max(values[-1], np.finfo(np.float64).tiny))
    back = (vectors / values) @ vectors.T
    metric = np.kron(np.eye(domain.n_outputs), (vectors * values) @ vectors.T)
    w = last = domain.starting_point
    turns = 0
    for _ in range(n_steps):
        ahead = w + turns / (turns + 3) * (w - last)
        slopes = smooth.slopes(by_outputs(ahead), loss, view)
        moved = metric_prox(ahead - (slopes.gradient @ back).T.reshape(w.shape) / n, metric, penalty)
        step, height = (moved - ahead).T.ravel(), smooth.value_at(slopes.margins, loss) / n + penalty.value(moved)
        is_uphill = float(np.sum((ahead - moved) * (moved - w))) > 0
        w, last, turns = moved, w, 0 if is_uphill else turns + 1
        if float(step @ metric @ step) <= ENDED * abs(height):
            break
    return w


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
    Conditions: a convex loss of one linear score (or softmax), differentiable with a Lipschitz gradient; a linear term
    is public or released, so that neighbors' gradients and Hessians differ as without it; lambda > 0
    on every coordinate; one row per person; the planned curvature covers that of what is minimized (checked). A
    minimizer is certified for every data set and every b (``certified/minimize.py``), and b is drawn once.
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


Energy = Callable[[Floats], float]
Gradient = Callable[[Floats], Floats]
Look = Callable[[Floats], tuple[float, Floats]]  # both at once, for a pass over the records gives both
Tangent = tuple[float, float, float]  # where it touches E, the value there, the slope

_MOST_IN_BLOCK = 1 << 16
"""Numbers drawn at once, at most."""

_PLAIN_TRIES = 8
"""Most balls are generous, and the decomposition that a tight one needs costs p^3."""

SAMPLERS = ("interval", "gaussian", "rejection", "chain")
CHAIN_STEPS = 2000
MOST_COLUMNS = 4096
LEAST_ACCEPTANCE = 1e-3
_HALVINGS = 60


def inverse_temperature(multiplier: float, sensitivity: float, problem: Problem) -> float:
    """k, for the sum of the losses; infinite without noise, where a draw is the minimizer."""
    if multiplier == 0:
        return math.inf
    if problem.total > 0:
        return problem.total / (multiplier * sensitivity) ** 2
    assert problem.radius is not None
    return 1.0 / (multiplier * sensitivity * 2 * problem.radius)


def expected_acceptance(loss: Loss, domain: Domain, problem: Problem) -> float:
    """A public lower bound on how often rejection keeps a point (without a ball); 0 without regularization."""
    if problem.total == 0:
        return 0.0
    smoothness = gradient_smoothness(loss, problem.seen(domain))
    return acceptance_bound(problem.regularization, smoothness, domain.n_features)


def sample_minimizer(session: Session, problem: Problem, *, sampler: str) -> Floats:
    """Return one draw from the density exp(-k (sum of losses + (lambda/2) ||w||^2)) on a ball.

    Privacy
    -------
    Sensitivity: with G the bound on a record's gradient on the ball, exponents of neighbors differ by an
    (a G k)-Lipschitz function. Planned as exponential (lambda = 0): by at most k a G 2 radius in range.
    Mechanism: with lambda > 0 the exponent is (k lambda)-strongly convex, so a draw is a G sqrt(k/lambda)-Gaussian
    DP (Gopi, Lee & Liu 2022), and k = lambda / (multiplier a G)^2; else k = 1/(multiplier a G 2 radius).
    Event: ``Gaussian``, or ``BoundedRange`` of 1/multiplier; a chain adds ``TotalVariation``, an assumption.
    Conditions: convex losses, G-Lipschitz on the support; the problem's numbers are public or released;
    real arithmetic (the certificate says idealized). A sampler ends with a draw and in no other way.
    """
    loss = session.loss
    _check(session.domain, loss, problem, sampler)
    release = session.spend("sample_minimizer")
    if (release.mechanism == "exponential") == (problem.total > 0):
        raise PlanViolation("a regularized draw is planned as additive (Gaussian DP), one without as exponential")
    if (sampler == "chain") != (session.total_variation > 0):
        raise PlanViolation("a chain is planned with its total variation, an exact sampler without")
    bound = gradient_bound(loss, problem.seen(session.domain), problem.radius)
    sensitivity = session.factor * bound
    if (
        sampler == "gaussian"
    ):  # centered where the gradient is only nearly 0: as if each data set had a linear term more
        sensitivity += 2 * _tau(loss, session.domain, problem)
    k = inverse_temperature(session.multiplier(release), sensitivity, problem)
    draws, engine = Draws(session.entropy), session.engine.whole()
    if k == math.inf:
        return problem.projected(_center(engine, loss, session.domain, problem)[0])
    with np.errstate(all="ignore"):  # a warning is an answer
        point = _DRAWS[sampler](engine, loss, session.domain, problem, k, draws)
    return _shown(session, release, point)


def _shown(session: Session, release: Release, point: Floats) -> Floats:
    """What leaves; a test sees the draw itself, which has no exact answer next to it, in steps of 2^-40."""
    unit = Unit(1 << 62, None, 2.0**-40)
    integers = np.rint(point / unit.step).astype(np.int64)
    shown = session.release(release, unit, integers, integers)
    return shown.astype(np.float64) * unit.step if session.is_observed else point


def _check(domain: Domain, loss: Loss, problem: Problem, sampler: str) -> None:
    require_proof(loss, domain)
    single = domain.n_features == 1
    if domain.n_outputs > 1 or problem.clip is not None:
        raise Unsupported("the exponential mechanism is sampled for one output and without a clip: use solver='gd'")
    if domain.n_features > MOST_COLUMNS:
        raise Unsupported("so many features cannot be sampled: use solver='objective' or 'gd'")
    if sampler not in SAMPLERS or ((sampler == "interval") and not (single and problem.radius)):
        raise PlanViolation("sampler must be interval (one coefficient, in a ball), gaussian, rejection or chain")
    if sampler == "gaussian" and not loss.quadratic:
        raise PlanViolation("only the squared loss has a Gaussian posterior")
    if sampler == "rejection" and expected_acceptance(loss, domain, problem) < LEAST_ACCEPTANCE:
        raise Unsupported("rejection would hardly ever keep a point here: use sampler='chain', or regularize more")
    if sampler != "interval":
        problem.check_curvature(loss, domain)
    if problem.total == 0 and sampler != "interval":
        raise PlanViolation("without regularization only one coefficient can be sampled exactly, in a ball")


def _energy(passes: Smooth, loss: Loss, problem: Problem, k: float) -> tuple[Energy, Gradient]:
    """k (S(w) + (lambda/2) ||w||^2) and its gradient."""
    view = passes.view(row_norm=problem.row_norm or math.inf)

    def energy(w: Floats) -> float:
        return k * (passes.value(w, loss, problem.row_norm or math.inf) + 0.5 * problem.total * float(w @ w))

    def gradient(w: Floats) -> Floats:
        return np.asarray(k * (passes.slopes(w[np.newaxis], loss, view).gradient[0] + problem.total * w))

    return energy, gradient


def _energy_and_gradient(passes: Smooth, loss: Loss, problem: Problem, k: float) -> Look:
    """Both by one pass over the records, whose margins they share."""
    view = passes.view(row_norm=problem.row_norm or math.inf)

    def look(w: Floats) -> tuple[float, Floats]:
        slopes = passes.slopes(w[np.newaxis], loss, view)
        value = passes.value_at(slopes.margins, loss)
        return k * (value + 0.5 * problem.total * float(w @ w)), k * (slopes.gradient[0] + problem.total * w)

    return look


def _tau(loss: Loss, domain: Domain, problem: Problem) -> float:
    """What the center's gradient is certified to."""
    return problem.tolerance * problem.n * gradient_bound(loss, problem.seen(domain), problem.radius)


def _minimizer(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, extra: float = 0.0) -> Floats:
    """The minimizer over all of space of S + ((lambda + extra)/2) ||w||^2."""
    strength, row_norm = problem.total + extra, problem.row_norm or math.inf
    objective = Objective(loss, strength, np.zeros(domain.shape), row_norm=row_norm)
    return minimize(engine, objective, _tau(loss, domain, problem)).point


def _minimizer_in_ball(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float) -> Floats:
    """A point of the ball at which the gradient g of the exponent has g.(w - c) >= -0.1 or so for all w of the ball.

    The minimizer with a multiplier nu for the ball, c, has g = -k nu c, so g.(w - c) >= -k nu ||c|| (radius - ||c||):
    nu is found by halving until this is small. Should doubles not get there, the last one inside serves: the draw is
    exact from any center.
    """
    center = _minimizer(engine, loss, domain, problem)
    if problem.radius is None or np.linalg.norm(center) <= problem.radius:
        return center
    radius, low = problem.radius, 0.0
    high = 2 * problem.n * gradient_bound(loss, problem.seen(domain), radius) / radius
    center = np.zeros(domain.shape)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        tried = _minimizer(engine, loss, domain, problem, middle)
        length = float(np.linalg.norm(tried))
        if length > radius:
            low = middle
            continue
        high, center = middle, tried
        if k * middle * length * (radius - length) <= 0.1:
            break
    return center


def _center(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem) -> tuple[Floats, Floats]:
    """The minimizer over all of space, ball or not, and the Hessian of S + (lambda/2) ||w||^2 there."""
    passes = engine.smooth
    view = passes.view(row_norm=problem.row_norm or math.inf)
    center = _minimizer(engine, loss, domain, problem)
    margins = passes.slopes(center[np.newaxis], loss, view).margins
    hessian = passes.hessian(passes.states(margins, loss, view))
    return center, hessian + problem.total * np.eye(center.size)


def _interval(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    energy, gradient = _energy(engine.smooth, loss, problem, k)
    assert problem.radius is not None
    point = log_concave_on_interval(
        lambda x: energy(np.array([x])),
        lambda x: float(gradient(np.array([x]))[0]),
        -problem.radius,
        problem.radius,
        draws,
    )
    return np.array([point])


def _gaussian(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    center, hessian = _center(engine, loss, domain, problem)
    return gaussian_in_ball(center, factor_of(k * hessian), problem.radius or math.inf, draws)


def _rejection(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    center = _minimizer_in_ball(engine, loss, domain, problem, k)
    energy, gradient = _energy(engine.smooth, loss, problem, k)
    radius = problem.radius or math.inf
    return strongly_log_concave(energy, gradient, center, k * problem.total, radius, draws)


def _chain(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    center, hessian = _center(engine, loss, domain, problem)
    look = _energy_and_gradient(engine.smooth, loss, problem, k)
    return langevin_chain(look, center, k * hessian, problem.radius or math.inf, draws, CHAIN_STEPS)


_DRAWS = {"interval": _interval, "gaussian": _gaussian, "rejection": _rejection, "chain": _chain}


def acceptance_bound(modulus: float, smoothness: float, p: int) -> float:
    """A lower bound, free of data, on how often ``strongly_log_concave`` keeps a point of its tilted Gaussian.

    For E = modulus/2 ||w||^2 + a convex part with Hessian at most ``smoothness``, and ``center`` c its minimizer on the
    ball (or everywhere), with gradient g: write v = w - c, m = modulus, M = modulus + smoothness. The envelope has mass
    A = integral of exp(-g.v - m/2 ||v||^2) over the ball, E at least that of exp(-g.v - M/2 ||v||^2). With v = s u,
    s = sqrt(m/M) <= 1, the latter is s^p times an integral of exp(-s g.u - m/2 ||u||^2) over u in (ball - c)/s, which
    contains ball - c, being star-shaped about 0; and there s g.u <= g.u, since g.u >= 0 at a minimizer. So it is at
    least s^p A. A center at which g.u >= -t on the ball costs a further factor of at least exp(-t).
    """
    return float((modulus / (modulus + smoothness)) ** (p / 2))


def log_concave_on_interval(
    energy: Callable[[float], float], slope: Callable[[float], float], low: float, high: float, draws: Draws
) -> float:
    """One exact draw from exp(-E) on [low, high]: adaptive rejection (Gilks & Wild 1992).

    A tangent of a convex E is a lower bound everywhere, so tangents glued at any cuts are one; the cuts
    here, where neighbors cross, are merely the best. A rejected point adds its tangent: the envelope
    depends on rejected points only, and given those each kept point has the law pi. ``slope`` may be any
    subgradient. The first tangents close in on the minimum by bisection, until E changes by about one
    between the last two: a peak of any sharpness is met with an envelope of its own scale.
    """
    tangents = _tangents_around_minimum(lambda x: (x, energy(x), slope(x)), low, high)
    while True:
        point, bound = _draw_under_tangents(np.array(tangents).T, low, high, draws)
        value = energy(point)
        if _keeps(value - bound, draws):
            return point
        insort(tangents, (point, value, slope(point)))


def gaussian_in_ball(mean: Floats, precision_cholesky: Floats, radius: float, draws: Draws) -> Floats:
    """One exact draw from N(mean, P^-1) given ||w|| <= radius (infinity allowed), with P = L L^T.

    A few plain tries first, the first one in the ball kept; then, in P's own axes, which the ball does not mind,
    the envelope of ``_ball_proposals``. Each try ends with the right law or with nothing, so their order is free.
    """
    # L^T is triangular, so its elimination is back substitution; scipy's own starts threads, slow for small p
    plain = draws.normal((mean.size, 1 if radius == math.inf else _PLAIN_TRIES))
    points = mean[:, np.newaxis] + np.linalg.solve(precision_cholesky.T, plain)
    inside = np.flatnonzero(np.linalg.norm(points, axis=0) <= radius)
    if inside.size:
        return points[:, inside[0]].copy()
    basis, roots, _ = np.linalg.svd(precision_cholesky)  # P = basis diag(roots^2) basis^T
    natural = roots**2 * (basis.T @ mean)
    accepted = next(point for point, slack in _ball_proposals(roots**2, natural, radius, draws) if _keeps(slack, draws))
    return np.asarray(basis @ accepted)


def strongly_log_concave(
    energy: Energy, gradient: Gradient, center: Floats, modulus: float, radius: float, draws: Draws
) -> Floats:
    """One exact draw from exp(-E) on ||w|| <= radius, for a ``modulus``-strongly convex E.

    Envelope: E(w) >= E(c) + g.(w - c) + modulus/2 ||w - c||^2 with g a (sub)gradient at c, a Gaussian around
    c - g/modulus. True for any c, so the draw is exact wherever ``center`` is; near the minimizer over the ball it is
    quick (``acceptance_bound``). A modulus of zero needs a finite radius.
    """
    if not (modulus > 0 or (modulus == 0 and radius < math.inf)):
        raise ValueError("the envelope needs a positive modulus, or a ball")
    bottom, tilt = energy(center), gradient(center)
    precisions = np.full(center.size, float(modulus))

    def excess(point: Floats) -> float:
        step = point - center
        return energy(point) - (bottom + float(tilt @ step + modulus / 2 * (step @ step)))

    proposals = _ball_proposals(precisions, modulus * center - tilt, radius, draws)
    return next(point for point, slack in proposals if _keeps(excess(point) + slack, draws))


def langevin_chain(look: Look, center: Floats, precision: Floats, radius: float, draws: Draws, n_steps: int) -> Floats:
    """The last state of a Metropolis-adjusted Langevin chain for exp(-E) on ||w|| <= radius: approximate.

    In coordinates v with w = center + L^-T v (``precision`` = L L^T, ideally E's Hessian at the center) a
    step proposes v' = v - h/2 grad + sqrt(h) N(0, I) and takes it with the Metropolis probability, which
    leaves pi invariant for every h; outside the ball pi is zero. The chain starts from
    N(center, precision^-1) in the ball, with h = 1.65^2 p^(-1/3) (Roberts & Rosenthal 1998). A first run of
    a quarter of ``n_steps`` moves h towards their acceptance of 0.574; then h is fixed for the ``n_steps`` that count.
    ``look`` gives E and its gradient.
    """
    factor = factor_of(precision)
    whiten = np.linalg.inv(factor)

    def seen(w: Floats) -> tuple[float, Floats]:
        if not np.linalg.norm(w) <= radius:
            return math.inf, 0.0 * w
        level, gradient = look(w)
        return level, whiten @ gradient

    w = gaussian_in_ball(center, factor, radius, draws)
    level, downhill = seen(w)
    width, n_tuning = 1.65**2 * center.size ** (-1 / 3), -(-n_steps // 4)
    for step in range(n_tuning + n_steps):
        noise = draws.normal(center.size)
        move = math.sqrt(width) * noise - width / 2 * downhill
        proposal = w + move @ whiten
        new_level, new_downhill = seen(proposal)
        back = move - width / 2 * new_downhill  # minus the noise, times sqrt(h), that would lead back
        log_ratio = level - new_level + (noise @ noise - back @ back / width) / 2
        if draws.exponential() > -log_ratio:
            w, level, downhill = proposal, new_level, new_downhill
        if step < n_tuning:
            chance = 0.0 if math.isnan(log_ratio) else math.exp(min(0.0, log_ratio))
            width *= math.exp((chance - 0.574) / math.sqrt(1 + step))
    return w


def factor_of(precision: Floats) -> Floats:
    """L with L L^T = precision, which is positive definite but for its rounding; Cholesky's, or a rounded one's.

    Where rounding hides the smallest eigenvalues, they are raised to the largest one's rounding: L is lower triangular
    either way, by the QR factorization of a root.
    """
    try:
        return np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, axes = np.linalg.eigh(precision)
        root = axes * np.sqrt(np.maximum(values, 2.0**-52 * max(float(values[-1]), 2.0**-900)))
        triangle = np.asarray(np.linalg.qr(root.T, mode="r")).T
        return np.asarray(triangle * np.where(np.diag(triangle) < 0, -1.0, 1.0), dtype=np.float64)


def _keeps(excess: float, draws: Draws) -> bool:
    """True with probability exp(-excess), and where rounding makes the excess negative."""
    return bool(draws.exponential() > excess)


def _ball_proposals(precisions: Floats, natural: Floats, radius: float, draws: Draws) -> Iterator[tuple[Floats, float]]:
    """Points of the ball from an envelope of exp(natural.w - w.Dw/2), each with what the envelope exceeds it by.

    Without an end. On the ball lambda/2 (radius^2 - ||w||^2) >= 0 for every lambda >= 0, so the Gaussian with D +
    lambda is an envelope there, and this slack is the logarithm of its excess. The lambda of least total mass
    solves E||w||^2 = radius^2 (or is zero): it keeps proposals near a ball that is far from the mean, or
    much smaller than the Gaussian, where plain rejection would never end.
    """
    pull = _pull(precisions, natural, radius)
    spread, mean = 1 / np.sqrt(precisions + pull), natural / (precisions + pull)
    block = 1
    while True:
        points = mean + spread * draws.normal((block, mean.size))
        room = radius**2 - np.einsum("ij,ij->i", points, points)
        for i in np.flatnonzero(room >= 0):
            yield points[i], pull / 2 * room[i] if pull else 0.0
        block = min(2 * block, max(1, _MOST_IN_BLOCK // mean.size))


def _pull(precisions: Floats, natural: Floats, radius: float) -> float:
    """The lambda >= 0 at which the mean square of N(natural / (D + lambda), 1 / (D + lambda)) is radius^2."""

    def mean_square(pull: float) -> float:
        total = precisions + pull
        return float(np.sum((natural / total) ** 2 + 1 / total))

    if radius == math.inf or (precisions.min() > 0 and mean_square(0.0) <= radius**2):
        return 0.0
    p, push, least = precisions.size, float(np.linalg.norm(natural)), float(precisions.min())
    common = (p + math.hypot(p, 2 * push * radius)) / (2 * radius**2)  # D + lambda, were D the same everywhere
    low, high = max(0.0, common - float(precisions.max())), common - least
    while high - low > 1e-3 * (high + least):  # how near only matters for speed
        middle = (low + high) / 2
        low, high = (middle, high) if mean_square(middle) > radius**2 else (low, middle)
    return high


def _tangents_around_minimum(touch: Callable[[float], Tangent], low: float, high: float) -> list[Tangent]:
    left, right = touch(low), touch(high)
    tangents = [left, right]
    while max(abs(left[2]), abs(right[2])) * (right[0] - left[0]) > 1:
        middle = touch(left[0] + (right[0] - left[0]) / 2)
        if not left[0] < middle[0] < right[0]:  # neighboring doubles: a kink
            break
        tangents.append(middle)
        left, right = (left, middle) if middle[2] > 0 else (middle, right)
    return sorted(tangents)


def _draw_under_tangents(tangents: Floats, low: float, high: float, draws: Draws) -> tuple[float, float]:
    """A point with density exp(-envelope), and the envelope there. Rows: where each tangent touches, value, slope."""
    x, value, slope = tangents
    gap, rise, turn = np.diff(tangents)
    with np.errstate(divide="ignore", invalid="ignore"):  # parallel neighbors cross nowhere, empty cells weigh nothing
        crossing = np.where(turn > 0, (slope[1:] * gap - rise) / turn, gap / 2)
        cuts = x[:-1] + np.clip(crossing, 0, gap)
        left, right = np.append(low, cuts), np.append(cuts, high)
        foot = np.where(slope >= 0, left, right)  # the end of the cell where its tangent is lowest
        length, fall = right - left, np.abs(slope) * (right - left)
        share = np.where(fall > 0, -np.expm1(-fall) / fall, 1.0)  # the cell's mass relative to a flat one's
        log_mass = np.log(length * share) - (value + slope * (foot - x))
    mass = np.cumsum(np.exp(log_mass - log_mass.max()))
    choice, depth = draws.uniform(2)
    i = min(int(np.searchsorted(mass, choice * mass[-1])), mass.size - 1)
    # an exponential cut off at `fall`, as a fraction of the cell
    fraction = -np.log1p(depth * np.expm1(-fall[i])) / fall[i] if fall[i] > 0 else depth
    away = length[i] if slope[i] >= 0 else -length[i]
    point = float(np.clip(foot[i] + fraction * away, left[i], right[i]))
    return point, float(value[i] + slope[i] * (point - x[i]))
