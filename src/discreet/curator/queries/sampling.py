"""The exponential mechanism for minimizers: one draw from exp(-k (sum of losses + (lambda/2) ||w||^2)).

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

import numpy as np

from discreet.accounting.plan import Release
from discreet.bounds import Domain
from discreet.curator.certified.descent import Objective
from discreet.curator.certified.float_passes import Smooth
from discreet.curator.certified.minimize import minimize
from discreet.curator.engines.base import LocalEngine
from discreet.curator.lattice.lattice import Unit
from discreet.curator.lattice.noise import Draws
from discreet.curator.queries.minimizers import Problem
from discreet.curator.session import Session
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import Loss, gradient_bound, gradient_smoothness
from discreet.losses.proofs import require_proof
from discreet.typing import Floats

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
    passes = engine.smooth()
    view = passes.view(row_norm=problem.row_norm or math.inf)
    center = _minimizer(engine, loss, domain, problem)
    margins = passes.slopes(center[np.newaxis], loss, view).margins
    hessian = passes.hessian(passes.states(margins, loss, view))
    return center, hessian + problem.total * np.eye(center.size)


def _interval(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    energy, gradient = _energy(engine.smooth(), loss, problem, k)
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
    energy, gradient = _energy(engine.smooth(), loss, problem, k)
    radius = problem.radius or math.inf
    return strongly_log_concave(energy, gradient, center, k * problem.total, radius, draws)


def _chain(engine: LocalEngine, loss: Loss, domain: Domain, problem: Problem, k: float, draws: Draws) -> Floats:
    center, hessian = _center(engine, loss, domain, problem)
    look = _energy_and_gradient(engine.smooth(), loss, problem, k)
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
    energy: Callable[[float], float],
    slope: Callable[[float], float],
    low: float,
    high: float,
    draws: Draws,
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
    energy: Energy,
    gradient: Gradient,
    center: Floats,
    modulus: float,
    radius: float,
    draws: Draws,
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
