"""The exponential mechanism for minimizers: one draw from exp(-k (sum of losses + (lambda/2) ||w||^2)).

*With lambda > 0 (Gopi, Lee & Liu 2022).* The exponents of neighbors are (k lambda)-strongly convex and differ by an
(a G k)-Lipschitz function, G the bound on a record's gradient on the support; two such densities are
a G k / sqrt(k lambda) = a G sqrt(k/lambda) Gaussian-DP apart. At noise multiplier z: k = lambda / (z a G)^2.

*With lambda = 0, on a ball (McSherry & Talwar 2007; Bassily, Smith & Thakurta 2014).* The exponents differ by a
function whose range over the ball is at most k a G 2 radius, so the log-ratio of the densities has that range: bounded
range, and pure. At noise multiplier z: k = 1 / (z a G 2 radius).

Both are of the exact law, in real arithmetic. ``posterior`` has the samplers; the chain's law is approximate.
"""

import math

import numpy as np

from discreet.accounting.plan import Release
from discreet.bounds import Domain
from discreet.curator.certified import posterior
from discreet.curator.certified.float_passes import Smooth
from discreet.curator.certified.minimize import Objective, minimize
from discreet.curator.engines.base import LocalEngine
from discreet.curator.lattice.lattice import Unit
from discreet.curator.lattice.noise import Draws
from discreet.curator.queries.minimizers import Problem
from discreet.curator.session import Session
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import Loss, gradient_bound, gradient_smoothness
from discreet.losses.proofs import require_proof
from discreet.typing import Floats

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
    return posterior.acceptance_bound(problem.regularization, smoothness, domain.n_features)


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


def _energy(passes: Smooth, loss: Loss, problem: Problem, k: float) -> tuple[posterior.Energy, posterior.Gradient]:
    """k (S(w) + (lambda/2) ||w||^2) and its gradient."""
    view = passes.view(row_norm=problem.row_norm or math.inf)

    def energy(w: Floats) -> float:
        return k * (passes.value(w, loss, problem.row_norm or math.inf) + 0.5 * problem.total * float(w @ w))

    def gradient(w: Floats) -> Floats:
        return np.asarray(k * (passes.slopes(w[np.newaxis], loss, view).gradient[0] + problem.total * w))

    return energy, gradient


def _energy_and_gradient(passes: Smooth, loss: Loss, problem: Problem, k: float) -> posterior.Look:
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
    passes = engine.smooth()
    view = passes.view(row_norm=problem.row_norm or math.inf)
    center = _minimizer(engine, loss, domain, problem)
    margins = passes.slopes(center[np.newaxis], loss, view).margins
    hessian = passes.hessian(passes.states(margins, loss, view))
    return center, hessian + problem.total * np.eye(center.size)


def _interval(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    energy, gradient = _energy(engine.smooth(), loss, problem, k)
    assert problem.radius is not None
    point = posterior.log_concave_on_interval(
        lambda x: energy(np.array([x])),
        lambda x: float(gradient(np.array([x]))[0]),
        -problem.radius,
        problem.radius,
        draws,
    )
    return np.array([point])


def _gaussian(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    center, hessian = _center(engine, loss, domain, problem)
    return posterior.gaussian_in_ball(center, posterior.factor_of(k * hessian), problem.radius or math.inf, draws)


def _rejection(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    center = _minimizer_in_ball(engine, loss, domain, problem, k)
    energy, gradient = _energy(engine.smooth(), loss, problem, k)
    radius = problem.radius or math.inf
    return posterior.strongly_log_concave(energy, gradient, center, k * problem.total, radius, draws)


def _chain(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    center, hessian = _center(engine, loss, domain, problem)
    look = _energy_and_gradient(engine.smooth(), loss, problem, k)
    return posterior.langevin_chain(look, center, k * hessian, problem.radius or math.inf, draws, CHAIN_STEPS)


_DRAWS = {"interval": _interval, "gaussian": _gaussian, "rejection": _rejection, "chain": _chain}
