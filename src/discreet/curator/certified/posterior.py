"""Samplers of log-concave densities: pi(w) proportional to exp(-E(w)), E convex, on a ball or an interval.

The exponential mechanism for empirical risk releases one such draw. All but the last sampler here are
exact in real arithmetic, by one argument: if ``lower <= E`` on the support, then a point drawn with
density proportional to exp(-lower) and kept with probability exp(-(E - lower)) has the law pi, whatever
the quality of ``lower`` (a bad one only wastes tries). ``langevin_chain`` is approximate: anyone who
releases its draw must state the total-variation distance as an assumption.

How many tries a draw takes depends on the data; the count never leaves this module (running time is
outside the model). There is no largest number of tries: giving up would be an answer in no price. A try is
kept with a probability that is positive for every data set (``acceptance_bound`` for rejection, free of data),
so a draw ends with probability one, and after t tries it has not ended with probability (1 - a)^t at most:
that is the random bits' doing. Rounding can make an envelope look lower than it is; such a point is kept, as a point
on the envelope would be.
"""

import math
from bisect import insort
from collections.abc import Callable, Iterator

import numpy as np

from discreet.curator.lattice.noise import Draws
from discreet.typing import Floats

Energy = Callable[[Floats], float]
Gradient = Callable[[Floats], Floats]
Look = Callable[[Floats], tuple[float, Floats]]  # both at once, for a pass over the records gives both
Tangent = tuple[float, float, float]  # where it touches E, the value there, the slope

_MOST_IN_BLOCK = 1 << 16
"""Numbers drawn at once, at most."""

_PLAIN_TRIES = 8
"""Most balls are generous, and the decomposition that a tight one needs costs p^3."""


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
