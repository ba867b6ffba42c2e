"""Bounds on the excess risk of coordinate steps as they are configured, from declared constants alone.

A step on j with an L2 penalty of strength lambda (0: none) is theta_j <- theta_j - (d_j F + b_j) / M'_j with
M'_j = M_j / gamma + lambda: a plain step on the whole objective F, which is M'_j-smooth along j for gamma <= 1.
b_j is noise of standard deviation s_j = a z C_j / n; no entry is clipped, since C_j >= L_j.
Proofs: docs/solvers/cd.md and gcd.md.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import coordinate_gradient_bounds
from discreet.penalties.base import Penalty
from discreet.solvers.coordinate_geometry import Geometry
from discreet.typing import Floats


@dataclass(frozen=True)
class Coordinates:
    """What the proofs know of each coordinate: L_j, C_j, M_j, M'_j; of the problem: lambda, n, epsilon, a."""

    slopes: Floats
    clips: Floats
    smoothness: Floats
    curvature: Floats
    modulus: float
    n: int
    epsilon: float
    factor: float

    @classmethod
    def of(
        cls, geometry: Geometry, relative_step: float, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget
    ) -> "Coordinates":
        """Collect the constants, or say what no proof covers."""
        if domain.n is None:
            raise Unsupported("the bound needs n: declare Bounds(n=...)")
        if budget.is_pure or not budget.is_private:
            raise Unsupported("the bound is for Gaussian noise: give a finite epsilon and a delta, such as 1e-6")
        if not penalty.ridge or relative_step > 1 or np.any(domain.starting_point) or domain.typical is not None:
            raise Unsupported("the bound is for steps up to 1 / M_j from 0 without a stage, with an L2 penalty or none")
        smoothness, modulus = geometry.known_smoothness(domain, loss), penalty.strong_convexity
        slopes, clips = coordinate_gradient_bounds(loss, domain), geometry.clips(domain, loss, smoothness)
        if np.any(clips < slopes * (1 - 1e-9)):
            raise Unsupported(
                "clips below the entries' bounds add a bias that no bound covers: give Geometry(coordinate_clips=...)"
            )
        curvature = smoothness / relative_step + modulus
        factor = budget.neighbors.sum_factor
        return cls(slopes, clips, smoothness, curvature, modulus, domain.n, budget.epsilon, factor)

    def noise(self, multiplier: float) -> Floats:
        """Return s_j^2 / M'_j."""
        return np.asarray(np.square(self.factor * multiplier * self.clips / self.n) / self.curvature)


def randomized_bound(
    at: Coordinates,
    multiplier: float,
    chances: Floats,
    *,
    rounds: int,
    steps: int,
    averaged: bool,
    radius: float,
    trivial: float,
) -> float:
    """Bound E F - F* after ``rounds`` times ``steps`` steps on coordinates drawn with these chances, |w*_j| <= radius.

    With c = min chance and V = (c/2) sum_j (M'_j / chance_j) (theta_j - w*_j)^2 + F - F*, a step has
    E V_{k+1} <= E V_k - c (F - F* + (kappa/2) ||.||^2) + N,  N = sum_j (c + chance_j) s_j^2 / (2 M'_j).
    The mean of K iterates: E F - F* <= V_0 / (c K) + N / c. The last one: E V_K <= (1 - c kappa)^K V_0 + N / (c kappa).
    """
    least = float(chances.min())
    weights = least * at.curvature / chances
    kappa = min(1.0, at.modulus / float(weights.max()))
    V = 0.5 * radius**2 * float(weights.sum()) + trivial
    N = float(np.sum((least + chances) / 2.0 * at.noise(multiplier)))
    if not averaged:
        if kappa == 0:
            raise Unsupported("the last iterate has a bound with an L2 penalty only: set average='uniform'")
        left = (1.0 - least * kappa) ** (rounds * steps)
        return left * V + (1.0 - left) * N / (least * kappa)
    excess = trivial
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
    at: Coordinates, B: float, n_steps: int, trivial: float, quasi_sparse: tuple[float, int] | None
) -> float:
    """Bound F - F* for a strongly convex objective: in step t, h' <= h - r (h - d) + B.

    By ||.||_{M',1}: r = kappa_1 / 2, d = 0. Where at most ``tau`` of |w*_j| exceed ``alpha``, k = t + tau entries of
    w - w* are large: r = kappa_2 / (2 k) for alpha = 0; else r = kappa_2 / (4 k) and d = kappa_2 A^2 / (2 k), where
    A = alpha sum_j sqrt(M'_j). The better of the two in each step.
    """
    kappa_1, kappa_2 = at.modulus / float(at.curvature.sum()), at.modulus / float(at.curvature.max())
    alpha, tau = (0.0, at.slopes.size) if quasi_sparse is None else quasi_sparse
    A, h = alpha * float(np.sqrt(at.curvature).sum()), trivial
    for t in range(n_steps):
        by_all = (1.0 - kappa_1 / 2) * h + B
        k = min(max(1, t + tau), at.slopes.size)
        rate = kappa_2 / (2 * k) if A == 0 else kappa_2 / (4 * k)
        by_few = h - rate * (h - kappa_2 * A**2 / (2 * k)) + B
        h = min(by_all, by_few)
    return h


def lower_order(at: Coordinates, width: float, diameter: float) -> float:
    """Return the order of lower bounds: width D / (n epsilon), or width^2 / (lambda n^2 epsilon^2) where lambda > 0."""
    reach = width / (at.n * at.epsilon)
    return reach * diameter if at.modulus == 0 else reach**2 / at.modulus
