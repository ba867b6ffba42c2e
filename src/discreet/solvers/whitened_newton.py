"""Private least squares: standardize privately, see the second moment, take few filtered Newton steps.

    1. the target's mean and scale, the features' centers and scales (``shape``): all bought; rows (u, 1) shrunk to R,
       their targets with them (weighted least squares)
    2. M = noisy second moment of the rows = V diag(l) V^T, l floored at half of the noise's edge
    3. q = V^T (1/n) [ sum_i clip(residual_i row_i) + noise ];   w <- w + V diag( x / (l x + s^2) ) q

Penalties other than L2 act by a proximal step in the metric V diag(l) V^T; the intercept is penalized at the center.

x is the prior variance (times l) under which the noisy q is likeliest, among a grid with 0 in it: empirical Bayes, on
released numbers only. A direction in which only noise is seen moves by next to nothing, and with no signal at all
x = 0: the model predicts the noisy mean. s is the noise's standard deviation, which is public.

Released: noisy target moments, a noisy mean, noisy mean squares, a noisy second moment, T noisy gradients: all
Gaussian. Privacy: exactly mu-Gaussian-DP under each relation. Cost: n p^2 and T passes. Without noise: least squares.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import Recoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound
from discreet.penalties.base import Penalty
from discreet.solvers import whitened_defaults as rules
from discreet.solvers.base import Progress, Solution, count_release, public_count
from discreet.solvers.metric_prox import metric_prox
from discreet.solvers.registry import register_part
from discreet.solvers.standardize import (
    check_settings,
    noise_of,
    seen_shape,
    shape_releases,
    shares_to_noise,
    step_release,
)
from discreet.solvers.whitened import affine

if TYPE_CHECKING:
    from discreet.curator import Curator

Vector = NDArray[np.float64]

LEAST_TARGET_SCALE = 0.02
"""In units of half the target's declared range."""
TARGET_NOISE = 1.5
"""The noise of the target's variance that is added to it."""
LENGTHS = 1.1
"""Rows are shrunk to this times their typical length, once that is seen."""
LEAST_LENGTH = 0.2
"""The mean squared entry of a standardized row is at least this."""
LIMIT_RADIUS = 16.0
"""Without noise: coefficients of standardized rows stay within this ball, and residuals on a fine lattice."""
PRIORS = np.concatenate([[0.0], np.geomspace(1e-6, 10.0, 60)])


@register_part("WhitenedNewton")
@dataclass(frozen=True)
class WhitenedNewton:
    """Filtered Newton steps for squared and Huber losses.

    Parameters
    ----------
    n_steps
        Gradients to release.
    row
        Rows are shrunk to this many standard deviations a column.
    residual
        A record's gradient is clipped at this times a row's length, in standard deviations of the target.
    floor
        The smallest eigenvalue, in units of the noise's edge.
    mean_share, scale_share, target_share, moment_share
        Shares of mu^2 for seeing; the steps get the rest.
    """

    n_steps: int = 3
    row: float = 0.8
    residual: float = 1.0
    floor: float = 0.5
    mean_share: float = rules.MEAN_NUMBERS
    scale_share: float = rules.SCALE_NUMBERS
    target_share: float = rules.TARGET
    moment_share: float = rules.MOMENTS_NUMBERS
    name: ClassVar[str] = "whitened_newton"

    def __post_init__(self) -> None:
        positive = {name: value for name, value in asdict(self).items() if name != "n_steps"}
        shares = tuple(value for name, value in positive.items() if name.endswith("_share"))
        check_settings(self.n_steps, positive, shares)

    @classmethod
    def for_facts(cls, domain: Domain, loss: Loss, budget: Budget) -> Self:
        """The configuration that public facts suggest (``whitened_rules``)."""
        if not budget.is_private:
            return cls(n_steps=4 if loss.quadratic else rules.LIMIT_NEWTON, floor=1e-9)
        return cls(residual=rules.residual_clip(domain, budget))

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """Target moments, shape, second moment, then ``n_steps`` noisy gradients; a count where n is private."""
        if not loss.movable_target:
            raise Unsupported(
                "Newton steps need a loss of residuals, such as squared or Huber: use solver='gd' for this one"
            )
        if not (penalty.ridge or penalty.separable):
            raise Unsupported("Newton steps know l2 and separable penalties: use solver='gd' for this one")
        if domain.sparse:
            raise Unsupported("Newton steps need dense records: use solver='cd' or 'gd' for sparse ones")
        return Plan(
            (
                *self._seeing(domain),
                step_release(self._seeing(domain), self.n_steps),
                *count_release(domain, shares_to_noise(rules.COUNT)),
            )
        )

    def _seeing(self, domain: Domain) -> tuple[Release, ...]:
        target = Release("noisy_target_moments", 1, relative_noise=shares_to_noise(self.target_share))
        moments = Release("noisy_second_moment", 1, relative_noise=shares_to_noise(self.moment_share))
        return (target, *shape_releases(domain, mean=self.mean_share, scale=self.scale_share), moments)

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress | None = None) -> Solution:
        """See, standardize, step, and take the coefficients back.

        ``noise`` is what the steps' noise became through the filters that were used, in the coordinates that were seen.
        A step forgets l d of what was there (d: ``filter_weights``), for the share of records whose gradient is not
        clipped; that share is taken from a Gaussian residual as wide as the target, directions that are not seen forget
        nothing, and what a penalty's corners swallow is left in: there the noise of the target's mean stays too.
        """
        n, quiet = public_count(curator), curator.noise_multiplier == 0
        target, *shape, moments = seeing = self._seeing(curator.domain)
        noise = (
            noise_of(curator, step_release(seeing, self.n_steps), 1.0, float(curator.budget.neighbors.sum_factor)) / n
        )
        admitted = curator.domain
        center, scale, mean_noise = self._target(curator, target, n)
        seen = seen_shape(curator, tuple(shape), n).recoding
        longest = self.row * math.sqrt(len(seen.center) + 1.0)
        recoding = replace(
            seen, scale=seen.scale * longest, constant=1.0 / longest, row_norm=math.inf if quiet else 1.0,
            target_center=center, target_scale=scale,
        )  # fmt: skip
        curator.recode(recoding)
        clip = curator.domain.row_norm**2 if quiet else 1.0
        factor = curator.budget.neighbors.sum_factor**0.5
        second = curator.noisy_second_moment(clip=clip, n=n)
        edge = noise_of(curator, moments, clip, factor) / n * math.sqrt(2.0 * len(second))
        if not quiet:
            typical = min(1.0, max(LEAST_LENGTH * len(second) / longest**2, float(np.trace(second))))
            recoding = replace(recoding, row_norm=min(1.0, LENGTHS * math.sqrt(typical)))
        loss = curator.loss
        curator.recode(recoding, loss=loss.with_target_scale(scale))
        w, spread = self._descend(curator, penalty, recoding, second, edge, n, noise, progress)
        if admitted.intercept and not penalty.ridge:  # the last step may not correct the center
            spread[-1] = math.hypot(spread[-1], mean_noise)
        return Solution(recoding.coefficients(w), spread)

    def _target(self, curator: "Curator", release: Release, n: float) -> tuple[float, float, float]:
        """The target's center and scale in training coordinates, and the center's noise.

        A mean within its noise is drawn to the middle.
        """
        low, high = curator.domain.target_range or (-1.0, 1.0)
        middle, half = (low + high) / 2.0, (high - low) / 2.0 or 1.0
        noise = noise_of(curator, release, math.sqrt(2.0), float(curator.budget.neighbors.sum_factor)) / n
        mean, square = curator.noisy_target_moments(n=n)
        mean = mean * mean**2 / (mean**2 + noise**2) if mean else 0.0
        if not curator.domain.intercept:
            mean, middle = 0.0, 0.0
        spread = max(square - mean**2, 0.0) + TARGET_NOISE * noise
        scale = math.sqrt(min(1.0, max(spread, LEAST_TARGET_SCALE**2)))
        return middle + half * min(1.0, max(-1.0, mean)), half * scale, half * noise

    def _descend(
        self, curator: "Curator", penalty: Penalty, recoding: Recoding, second: Vector, edge: float, n: float,
        noise: float, progress: Progress | None,
    ) -> tuple[Vector, Vector]:  # fmt: skip
        quiet, domain = curator.noise_multiplier == 0, curator.domain
        clip = gradient_bound(curator.loss, domain, LIMIT_RADIUS) if quiet else self.residual * domain.row_norm
        linear, offset = affine(recoding, domain)
        alpha = (penalty.strong_convexity if penalty.ridge else 0.0) / recoding.target_scale**2
        values, vectors = np.linalg.eigh(second + alpha * (linear.T @ linear))
        floored = np.maximum(values, max(self.floor * edge, 1e-12 * max(float(values[-1]), 1e-300)))
        metric, units = (vectors * floored) @ vectors.T, np.abs(np.diag(linear))
        w, variances = np.zeros(domain.n_features), np.zeros(domain.n_features)
        curved = self._unclipped(curator.loss) * np.where(values >= edge, np.maximum(values, 0.0), 0.0)
        for t in range(self.n_steps):
            gradient = curator.noisy_gradient(w, clip=clip) / n + alpha * (linear.T @ (linear @ w + offset))
            q = vectors.T @ gradient
            weights = filter_weights(q, floored, noise * clip, edge)
            w = w - vectors @ (weights * q)
            variances = (1.0 - curved * weights) ** 2 * variances + (weights * noise * clip) ** 2
            if not penalty.ridge:
                w = metric_prox(w, metric * recoding.target_scale**2, units, penalty)
            if progress is not None:
                progress(t + 1, self.n_steps)
        return w, np.sqrt(np.square(linear @ vectors) @ variances)

    def _unclipped(self, loss: Loss) -> float:
        """The share of Gaussian residuals, as wide as the target, that neither the clip nor Huber's width cuts off."""
        width = min(self.residual, loss.lipschitz)
        return math.erf(width / math.sqrt(2.0))

    def settings(self) -> dict[str, object]:
        """Public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}


def filter_weights(q: Vector, values: Vector, noise: float, edge: float) -> Vector:
    """x / (l x + noise^2) for the x under which q ~ N(0, l x + noise^2) is likeliest in directions that are seen."""
    if noise == 0:
        return np.asarray(1.0 / values)
    seen = values >= edge
    spreads = np.multiply.outer(PRIORS / len(q), values[seen]) + noise**2
    likelihood = -0.5 * (np.log(spreads) + q[seen] ** 2 / spreads).sum(axis=1)
    prior = PRIORS[int(np.argmax(likelihood))] / len(q)
    return np.asarray(prior / (values * prior + noise**2))
