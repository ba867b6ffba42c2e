"""What coordinate methods need of each coordinate (smoothness M_j, clip C_j, step), and bounds on their excess risk.

A step on j with an L2 penalty of strength lambda (0: none) is theta_j <- theta_j - (d_j F + b_j) / M'_j with
M'_j = M_j / gamma + lambda: a plain step on the whole objective F, which is M'_j-smooth along j for gamma <= 1.
b_j is noise of standard deviation s_j = a z C_j / n; the bounds are for C_j >= L_j, where no entry is clipped.
Proofs: docs/theory/coordinates.md.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from scipy.special import ndtri

from discreet.accounting.plan import Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss, coordinate_gradient_bounds, coordinate_smoothness
from discreet.parameters import OneOf, Positive, Share, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.base import planned
from discreet.solvers.gradient_loop import clip_for
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator


CLIP_RULES = ("smoothness", "uniform")


@dataclass(frozen=True)
class Geometry:
    """How coordinates are clipped and scaled.

    Parameters
    ----------
    clip : float or None, default=None
        The total clip C, with sum C_j^2 = C^2. None: by ``relative_clip``.
    relative_clip : float or None, default=None
        C in units of sqrt(sum M / sup f''), the root mean square row norm where M is estimated. None: the bound on a
        record's whole gradient.
    clip_rule : {"smoothness", "uniform"}, default="smoothness"
        C_j = C sqrt(M_j / sum M), or C / sqrt(p).
    smoothness : {"declared", "private", "paper"}, default="declared"
        M_j = sup f'' r_j^2 from the declared bounds or what was released of the rows' squares; an estimate of
        (1/n) sum_i f'' x_ij^2; or the papers' estimate, with Laplace noise on each square, p times as large.
    share : float, default=0.1
        Share of mu^2 for such an estimate.
    row_clip : float or None, default=None
        Rows are clipped at this for it. None: at their declared or typical length.
    coordinate_clips, coordinate_smoothness : sequence of float or None, default=None
        C_j and M_j, where they are publicly known: one number per column in training coordinates, the intercept's last.
        They take the place of what the other settings make.

    Examples
    --------
    >>> from discreet.solvers import CoordinateDescent, Geometry
    >>> CoordinateDescent(geometry=Geometry(clip=1.0, smoothness="private")).geometry.share
    0.1
    """

    clip: Positive | None = None
    relative_clip: Positive | None = None
    clip_rule: Annotated[str, OneOf(*CLIP_RULES)] = "smoothness"
    smoothness: Annotated[str, OneOf("declared", "private", "paper")] = "declared"
    share: Share = 0.1
    row_clip: Positive | None = None
    coordinate_clips: tuple[Positive, ...] | None = None
    coordinate_smoothness: tuple[Positive, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def releases(self, domain: Domain, others: float) -> tuple[Release, ...]:
        """List the estimate of squared norms; ``others`` is what the rest of the plan spends, in units of 1/z^2."""
        for given in (self.coordinate_clips, self.coordinate_smoothness):
            if given is not None and len(given) != domain.n_features:
                raise Unsupported(
                    f"give one clip and one smoothness for each of {domain.n_features} columns, the intercept's last"
                )
        if self._is_known:
            return ()
        relative = math.sqrt((1 - self.share) / (self.share * others))
        clip = self._row_clip(domain)
        mechanism = "laplace" if self.smoothness == "paper" else "additive"
        return (Release("noisy_squared_norms", 1, relative_noise=relative, clip=clip, mechanism=mechanism),)

    def total_clip(self, domain: Domain, loss: Loss, smoothness: Floats) -> float:
        """Return C."""
        if self.clip is not None:
            return self.clip
        if self.relative_clip is not None:
            return self.relative_clip * math.sqrt(float(smoothness.sum()) / loss.smoothness)
        return clip_for(domain, loss, None)

    def _row_clip(self, domain: Domain) -> float:
        """Return the length that rows are clipped at where the smoothness is estimated: a typical one if estimated."""
        typical = None if domain.typical is None else domain.typical.norm
        return self.row_clip or typical or domain.row_norm

    @property
    def _is_known(self) -> bool:
        """Whether M_j are known before a run."""
        return self.smoothness == "declared" or self.coordinate_smoothness is not None

    def known_smoothness(self, domain: Domain, loss: Loss) -> Floats:
        """Return M_j as given, as declared, or as they were released."""
        if not self._is_known:
            raise Unsupported("no bound covers estimated smoothness: use Geometry(smoothness='declared')")
        if self.coordinate_smoothness is not None:
            return np.array(self.coordinate_smoothness)
        typical = domain.typical
        smoothness = coordinate_smoothness(loss, domain) if typical is None else loss.smoothness * typical.squares
        return np.maximum(smoothness, 1e-12)

    def measure(self, curator: "Curator", n: float) -> Floats:
        """Return M_j, declared or estimated; estimates are floored at twice their noise, so that steps stay bounded."""
        domain, loss = curator.domain, curator.loss
        if self._is_known:
            return self.known_smoothness(domain, loss)
        declared = coordinate_smoothness(loss, domain)
        release, clip = planned(curator, "noisy_squared_norms"), self._row_clip(domain)
        sums = curator.noisy_squared_norms(clip=clip)
        deviation = curator.noise_multiplier * release.relative_noise * self._noise_size(curator, clip)
        floor = np.maximum(2.0 * deviation, 1.0) / n
        estimated = loss.smoothness * np.maximum(sums / n, floor)
        return np.asarray(np.clip(estimated, 1e-12, np.maximum(declared, 1e-12)))

    def _noise_size(self, curator: "Curator", clip: float) -> Floats:
        """Standard deviation of the noise on a sum of squares, at noise multiplier 1."""
        p, replaced = curator.domain.n_features, curator.budget.neighbors.sum_factor == 2
        if self.smoothness == "paper":
            return np.asarray(math.sqrt(2.0) * p * np.square(curator.domain.feature_bounds))
        laplace = curator.budget.is_pure
        factor = (2.0 if laplace else math.sqrt(2.0)) if replaced else 1.0
        return np.full(p, factor * clip**2 * (math.sqrt(2.0) if laplace else 1.0))

    def clips(self, domain: Domain, loss: Loss, smoothness: Floats) -> Floats:
        """Return C_j for each coordinate."""
        if self.coordinate_clips is not None:
            return np.array(self.coordinate_clips)
        total = self.total_clip(domain, loss, smoothness)
        if self.clip_rule == "uniform":
            return np.full(smoothness.size, total / math.sqrt(smoothness.size))
        return np.asarray(total * np.sqrt(smoothness / smoothness.sum()))

    @property
    def has_clips(self) -> bool:
        """Whether clips are given."""
        return any(given is not None for given in (self.clip, self.relative_clip, self.coordinate_clips))


@dataclass(frozen=True)
class Coordinates:
    """What the proofs know of each coordinate: L_j, C_j, M_j, M'_j; of the problem: lambda, n, epsilon, a, w0.

    ``moduli`` are one's own, of F: (mu_{M,1}, mu_{M,2}), in the norms sum_j sqrt(M_j) |v_j| and sqrt(sum_j M_j v_j^2).
    """

    slopes: Floats
    clips: Floats
    smoothness: Floats
    curvature: Floats
    modulus: float
    n: int
    epsilon: float
    factor: float
    start: Floats
    moduli: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(
        cls,
        geometry: Geometry,
        relative_step: float,
        domain: Domain,
        loss: Loss,
        penalty: Penalty,
        budget: Budget,
        moduli: tuple[float, float] | None = None,
    ) -> "Coordinates":
        """Collect the constants, or say what no proof covers."""
        if domain.n is None:
            raise Unsupported("the bound needs n: declare Bounds(n=...)")
        if budget.is_pure or not budget.is_private:
            raise Unsupported("the bound is for Gaussian noise: give a finite epsilon and a delta, such as 1e-6")
        if not penalty.ridge or relative_step > 1 or domain.typical is not None:
            raise Unsupported("the bound is for steps up to 1 / M_j on records as they are, with an L2 penalty or none")
        smoothness, modulus = geometry.known_smoothness(domain, loss), penalty.strong_convexity
        slopes, clips = coordinate_gradient_bounds(loss, domain), geometry.clips(domain, loss, smoothness)
        if np.any(clips < slopes * (1 - 1e-9)):
            raise Unsupported(
                "clips below the entries' bounds add a bias that no bound covers: give Geometry(coordinate_clips=...)"
            )
        curvature = smoothness / relative_step + modulus
        strong = _checked_moduli(moduli, domain.n_features)
        factor, start = budget.neighbors.sum_factor, domain.starting_point
        return cls(slopes, clips, smoothness, curvature, modulus, domain.n, budget.epsilon, factor, start, strong)

    @property
    def strong(self) -> tuple[float, float]:
        """(kappa_1, kappa_2), moduli of F in the norms of M': by the penalty or by one's own, whichever is larger.

        M_j >= c M'_j for all j makes a modulus in a norm of M one of c times as much in that of M'.
        """
        c = float((self.smoothness / self.curvature).min())
        by_all, by_largest = float(self.curvature.sum()), float(self.curvature.max())
        return max(self.modulus / by_all, c * self.moduli[0]), max(self.modulus / by_largest, c * self.moduli[1])

    def initial(self, nearby: float, trivial: float) -> float:
        """Return what F(w0) - F* is at most: ``trivial`` from 0, else ``nearby`` and the penalty of w0."""
        return trivial if not np.any(self.start) else nearby + 0.5 * self.modulus * float(np.sum(self.start**2))

    def noise(self, multiplier: float) -> Floats:
        """Return s_j^2 / M'_j."""
        return np.asarray(np.square(self.factor * multiplier * self.clips / self.n) / self.curvature)


def _checked_moduli(moduli: tuple[float, float] | None, p: int) -> tuple[float, float]:
    """Return moduli in both norms: ||v||_{M,2} <= ||v||_{M,1} <= sqrt(p) ||v||_{M,2} ties them, and mu_{M,2} <= 1."""
    by_one, by_two = moduli or (0.0, 0.0)
    if not (0 <= by_one <= by_two * (1 + 1e-9) and by_two <= min(1.0, p * by_one) * (1 + 1e-9)):
        raise Unsupported("mu_{M,2} is at most 1, and mu_{M,1} lies between mu_{M,2} / p and mu_{M,2}")
    return by_one, by_two


def randomized_bound(
    at: Coordinates,
    multiplier: float,
    chances: Floats,
    *,
    rounds: int,
    steps: int,
    averaged: bool,
    radius: float,
    initial: float,
) -> float:
    """Bound E F - F* after ``rounds`` times ``steps`` steps on coordinates drawn with these chances.

    |w*_j - w0_j| <= ``radius``, and ``initial`` is what F(w0) - F* is at most.

    With c = min chance and V = (c/2) sum_j (M'_j / chance_j) (theta_j - w*_j)^2 + F - F*, a step has
    E V_{k+1} <= E V_k - c (F - F* + (kappa/2) ||.||^2) + N,  N = sum_j (c + chance_j) s_j^2 / (2 M'_j).
    The mean of K iterates: E F - F* <= V_0 / (c K) + N / c. The last one: E V_K <= (1 - c kappa)^K V_0 + N / (c kappa).
    """
    least = float(chances.min())
    weights = least * at.curvature / chances
    by_own = at.moduli[1] * float((at.smoothness / weights).min())
    kappa = min(1.0, max(at.modulus / float(weights.max()), by_own))
    V = 0.5 * radius**2 * float(weights.sum()) + initial
    N = float(np.sum((least + chances) / 2.0 * at.noise(multiplier)))
    if not averaged:
        if kappa == 0:
            raise Unsupported(
                "the last iterate has a bound where F is strongly convex only: give an L2 penalty, or average='uniform'"
            )
        left = (1.0 - least * kappa) ** (rounds * steps)
        return left * V + (1.0 - left) * N / (least * kappa)
    excess = initial
    for _ in range(rounds):
        excess = V / (least * steps) + N / least
        drifted = V + (steps + 1) / 2.0 * N  # E V_k <= V_0 + k N, and V is convex
        V = drifted if kappa == 0 else min(drifted, (1.0 + 1.0 / kappa) * excess)
    return excess


@dataclass(frozen=True)
class GreedyErrors:
    """How far choices and steps fall short: B = (e^2 + v^2) / 2 per step, in expectation or with a probability.

    The exponential mechanism's choice is at most ``scale`` (ln p + x) below the best score but for a chance of e^-x;
    v^2 is the step's noise in units of M'_j.
    """

    scale: float
    noise: float
    n_steps: int
    p: int

    def per_step(self, confidence: float | None) -> float:
        """Return B: its mean, or what no step exceeds but for a chance of 1 - ``confidence``."""
        log_p = math.log(self.p)
        if confidence is None:
            return 0.5 * (self.scale**2 * (log_p**2 + 2 * log_p + 2) + self.noise)
        if not 0 < confidence < 1:
            raise Unsupported("confidence must lie between 0 and 1")
        fails = (1 - confidence) / (2 * self.n_steps)
        choice = self.scale * (log_p - math.log(fails))
        return 0.5 * (choice**2 + self.noise * float(ndtri(fails / 2)) ** 2)


def greedy_convex_bound(B: float, n_steps: int, reach: float) -> float:
    """Bound F - F* where no step's B is larger: ||w - w*||_{M',1} <= reach wherever F is no larger than this or F(0).

    Each step has h' <= h - h^2 / (4 reach^2) + B, so that h <= max(8 reach^2 / T, sqrt(8 B) reach + B).
    """
    return max(8.0 * reach**2 / n_steps, math.sqrt(8.0 * B) * reach + B)


def greedy_strong_bound(
    at: Coordinates, B: float, n_steps: int, initial: float, quasi_sparse: tuple[float, int] | None
) -> float:
    """Bound F - F* for a strongly convex objective: in step t, h' <= h - r (h - d) + B.

    By ||.||_{M',1}: r = kappa_1 / 2, d = 0. Where at most ``tau`` of |w*_j - w0_j| exceed ``alpha``, k = t + tau
    entries of w - w* are large: r = kappa_2 / (2 k) for alpha = 0; else r = kappa_2 / (4 k) and
    d = kappa_2 A^2 / (2 k), where A = alpha sum_j sqrt(M'_j). The better of the two in each step.
    """
    kappa_1, kappa_2 = at.strong
    alpha, tau = (0.0, at.slopes.size) if quasi_sparse is None else quasi_sparse
    A, h = alpha * float(np.sqrt(at.curvature).sum()), initial
    for t in range(n_steps):
        by_all = (1.0 - kappa_1 / 2) * h + B
        k = min(max(1, t + tau), at.slopes.size)
        rate = kappa_2 / (2 * k) if A == 0 else kappa_2 / (4 * k)
        by_few = h - rate * (h - kappa_2 * A**2 / (2 * k)) + B
        h = min(by_all, by_few)
    return h


def lower_order(at: Coordinates, width: float, diameter: float) -> float:
    """Return the order of lower bounds: width D / (n epsilon), or width^2 / (lambda n^2 epsilon^2) where lambda > 0."""
    reach, modulus = width / (at.n * at.epsilon), max(at.modulus, at.moduli[1] * float(at.smoothness.max()))
    return reach * diameter if modulus == 0 else reach**2 / modulus
