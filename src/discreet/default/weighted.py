"""Steps on weighted gradients of rows that are not shrunk: a metric from released values, and steps in it."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.bounds import Domain
from discreet.curator import Recoding
from discreet.default.rows import pulled
from discreet.penalties.base import Penalty
from discreet.penalties.metric_prox import metric_prox
from discreet.solvers.center_and_scale import affine, noises
from discreet.solvers.class_refinement import contrasts
from discreet.solvers.gradient_loop import Momentum, Path, project
from discreet.solvers.shrinkage import posterior_weights
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

COUPLED = 0.25
"""The largest norm of a record's couplings between classes (``losses.softmax``)."""
WIDEST_RESIDUAL = 4.0
"""The size of slopes is estimated with slopes of at most this many deviations of the target."""
LONGEST_STEP = 3.0
"""A step moves the predictor by at most this many deviations: a Hessian from afar misleads."""


@dataclass(frozen=True)
class Metric:
    """A symmetric matrix by its eigenvalues, and the edge of its noise's spectrum."""

    values: Floats
    vectors: Floats
    edge: float

    @property
    def safe(self) -> Floats:
        """The eigenvalues that steps divide by: above what noise may have taken from them."""
        return np.asarray(np.maximum(self.values, 0.0) + max(self.edge, 1e-9 * max(float(self.values[-1]), 1e-300)))

    @property
    def matrix(self) -> Floats:
        """The matrix of these."""
        return np.asarray((self.vectors * self.safe) @ self.vectors.T)


class Weighted:
    """Who answers, in which coordinates, how far rows and slopes count in full."""

    def __init__(
        self,
        curator: "Curator",
        recoding: Recoding,
        admitted: Domain,
        penalty: Penalty,
        n: float,
        reach: float,
    ) -> None:
        self._curator, self._recoding, self._admitted, self._penalty = curator, recoding, admitted, penalty
        self._n, self._reach, self._pull = n, reach, pulled(penalty, recoding, admitted)
        self._clip, self._basis = curator.loss.lipschitz * reach, contrasts(curator.loss.n_outputs)
        self._noises = noises(curator, "noisy_weighted_gradient")
        self.at_corner: Floats | None = None

    def centered(self, v: Floats) -> Floats:
        """Return coefficients without what all outputs share: it changes no probability, and is noise alone."""
        return v if v.shape[1] == 1 else v @ self._basis @ self._basis.T

    def last_noises(self, count: int) -> list[float]:
        """Return the deviations of the noise in the last mean gradients."""
        return [noise * self._clip / self._n for noise in noises(self._curator, "noisy_weighted_gradient")[-count:]]

    def limit_slopes(self, v: Floats, deviations: float) -> None:
        """Cut slopes without a bound at so many deviations of residuals at v, by a noisy sum of their squares."""
        curator = self._curator
        most = min(WIDEST_RESIDUAL, 2.0 * curator.domain.target_bound) ** 2
        noise = noises(curator, "noisy_squared_slopes")[-1] / curator.budget.neighbors.sum_factor * most
        square = curator.noisy_squared_slopes(flat(v), clip=most)
        deviation = math.sqrt(min(most, max(square, noise) / self._n))
        self._clip = min(deviations * deviation, 2.0 * curator.domain.target_bound) * self._reach

    def bound(self) -> Metric:
        """Return a bound on the weighted losses' Hessian: their largest curvature times the rows' second moment.

        Rows are shrunk to the radius for it, which weighs their squares. Outputs share it.
        """
        curator = self._curator
        curator.recode(replace(self._recoding, reach=self._reach), once=True)
        clip, top = curator.domain.row_norm**2, curator.loss.smoothness
        second = top * curator.noisy_second_moment(clip=clip, n=self._n)
        noise = top * noises(curator, "noisy_second_moment")[-1] / self._root * clip / self._n
        shared = np.asarray(np.kron(np.eye(self._basis.shape[1]), second), dtype=np.float64)
        return self._metric(shared, noise * math.sqrt(2.0 * len(second)))

    def hessian(self, v: Floats) -> Metric:
        """Return the noisy Hessian of the weighted losses at v, in contrasts of the outputs."""
        curator, (outputs, p) = self._curator, (len(self._basis), len(v))
        clip = (COUPLED if outputs > 1 else curator.loss.smoothness) * self._reach**2
        asked = curator.noisy_curvature(flat(v), clip=clip, reach=self._reach) / self._n
        noise = noises(curator, "noisy_curvature")[-1] / self._root * clip / self._n
        if outputs == 1:
            return self._metric(asked, noise * math.sqrt(2.0 * p))
        ends = [self._basis[k] - self._basis[other] for k in range(outputs) for other in range(k + 1, outputs)]
        pairs = (np.kron(np.outer(end, end), one) for end, one in zip(ends, asked, strict=True))
        return self._metric(np.asarray(sum(pairs)), 2.0 * noise * math.sqrt(outputs * (p + 1.0)))

    @property
    def _root(self) -> float:
        """What a sum of positive semidefinite matrices moves by less than another, under ``replace_one``."""
        return math.sqrt(self._curator.budget.neighbors.sum_factor)

    def _metric(self, matrix: Floats, edge: float) -> Metric:
        if self._pull is not None:
            matrix = matrix + np.kron(np.eye(self._basis.shape[1]), self._pull.hessian)
        return Metric(*np.linalg.eigh(matrix), edge)

    def steps(self, v: Floats, metric: Metric, count: int, *, momentum: Momentum) -> tuple[Floats, list[Floats]]:
        """Take steps from v, (p, K); return where they end, and what each multiplied its gradient by."""
        curator, basis, safe = self._curator, self._basis, metric.safe
        path = Path(v, count, momentum=momentum, average="last", step=1.0, restart=True)
        used: list[Floats] = []
        for _ in range(count):
            ahead = path.ahead()
            gradient = (
                columns(curator.noisy_weighted_gradient(flat(ahead), clip=self._clip, reach=self._reach)) / self._n
            )
            gradient = gradient if self._pull is None else gradient + columns(self._pull.gradient(flat(ahead)))
            along = metric.vectors.T @ (gradient @ basis).T.ravel()
            noise = self._noises.pop(0) * self._clip / self._n
            used.append(posterior_weights(along, safe, noise, safe >= 2.0 * metric.edge))
            step = project(metric.vectors @ (used[-1] * along), LONGEST_STEP)
            w = ahead - step.reshape(basis.shape[1], -1).T @ basis.T
            path.move(ahead, w if self._penalty.ridge else self._inside(w, metric))
        return path.w, used

    def _inside(self, v: Floats, metric: Metric) -> Floats:
        """Return what a penalty with corners makes of a step, and keep it as it is in training coordinates.

        There and back it would be rounded: out of a box, and off zero.
        """
        w = self._recoding.coefficients(flat(v))
        self.at_corner = inside(self._penalty, w, metric.matrix, self._recoding, self._admitted)
        moved = self._recoding.recoded(self.at_corner)
        assert moved is not None
        return columns(moved)


def inside(penalty: Penalty, w: Floats, hessian: Floats, recoding: Recoding, admitted: Domain) -> Floats:
    """Return the minimizer of a separable penalty + the quadratic about w with this Hessian, in recoded coordinates."""
    back = np.linalg.inv(affine(recoding, admitted)[0] / recoding.target_scale)
    return metric_prox(w, back.T @ hessian @ back, np.ones(len(w)), penalty)


def columns(v: Floats) -> Floats:
    """Return coefficients as (p, K), one column for one output."""
    return v.reshape(len(v), -1)


def flat(v: Floats) -> Floats:
    """Return coefficients of one output as (p,)."""
    return v[:, 0] if v.shape[1] == 1 else v
