"""Steps on weighted gradients of rows that are not shrunk: limits and a metric from released values, and steps in it.

What a record adds to an answer is limited by a guess from the signal, or, where counts of records by their size have so
little noise that they tell single ones, by where these end: limits then cut nothing, and are no larger than they must
be. So no bias is left in the limit of no noise, and noise is that of the rows as they are.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.bounds import Domain
from discreet.curator import Edges, Recoding
from discreet.default.rows import NOTHING, Units
from discreet.losses.base import Loss
from discreet.losses.classification import contrasts
from discreet.penalties.base import Penalty
from discreet.penalties.recoded import metric_prox
from discreet.solvers.base import project
from discreet.solvers.coordinates import LEAST_DIRECTION, noises, ridge_in
from discreet.solvers.gradient_loop import Path
from discreet.solvers.propagation import affine, posterior_weights
from discreet.solvers.shrinkage import HIDDEN, LEAST, ODDS
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

COUPLED = 0.25
"""The largest norm of a record's couplings between classes (``Softmax``)."""
WIDEST_RESIDUAL = 4.0
"""The size of slopes is estimated with slopes of at most this many deviations of the target."""
CURVED = 0.05
"""The part of the largest curvature that a loss is taken to have at least."""
FREE = 1e-2
"""The curvature of what all outputs share, in units of the least of the rest: steps along it are long."""
LONGEST_STEP = 3.0
"""A step moves the predictor by at most this many deviations: a Hessian from afar misleads."""

WIDEST = 1e3
"""Radii and clips where there is no noise, in typical sizes: they hold nothing back."""
FINE = math.sqrt(math.sqrt(2.0))
"""Edges of shells grow by this factor."""
NONE = np.empty(0)


@dataclass(frozen=True)
class Metric:
    """A symmetric matrix by its eigenvalues, and the edge of its noise's spectrum.

    A move by d changes it by a factor of at most exp(``bends`` |d|); 0: that is not known.
    """

    values: Floats
    vectors: Floats
    edge: float
    bends: float = 0.0

    @property
    def safe(self) -> Floats:
        """The eigenvalues that steps divide by: above what noise may have taken from them."""
        return np.asarray(
            np.maximum(self.values, 0.0) + max(self.edge, LEAST_DIRECTION * max(float(self.values[-1]), LEAST))
        )

    @property
    def matrix(self) -> Floats:
        """The matrix of these."""
        return np.asarray((self.vectors * self.safe) @ self.vectors.T)

    def after(self, moved: Floats, rise: Floats, noise: float) -> "Metric":
        """Return what a move and the rise of noisy gradients over it tell, along the directions of this.

        Where rows' curvature was cut, steps go too far, and back: along the move it is raised to what the rise is
        beyond its noise. A move is made of the noise of the gradient before it, by which the rise looks larger.
        """
        pulled = self.safe * moved
        known, reach = float(moved @ pulled), math.sqrt(2.0) * HIDDEN * float(np.linalg.norm(moved))
        shown = float(moved @ rise) - noise * (reach + noise * float((1.0 / self.safe).sum()))
        if not shown > known > 0:
            return self
        added = (shown / known - 1.0) / known * np.outer(pulled, pulled)
        values, vectors = np.linalg.eigh(np.diag(self.values) + added)
        return replace(self, values=values, vectors=self.vectors @ vectors)


class Step(NamedTuple):
    """What was made of gradients along the metric's directions, as factors, and the deviation of their noise there."""

    factors: Floats
    noise: Floats


class Pooled:
    """Where the optimum is by all Newton steps so far, each direction of each weighed by its noise.

    Steps also differ by what a Hessian from afar does: what of the difference between a step and those before it is
    beyond the noise of both is taken for an error of those before.
    """

    def __init__(self, start: Floats) -> None:
        self.start = self.mean = start
        self._covariance: Floats | None = None

    def add(self, there: Floats, metric: Metric, noise: float) -> Floats:
        """Add where a step leads, by coordinates; return the noise of the mean along the metric's directions."""
        safe, vectors = metric.safe, metric.vectors
        step = np.square(noise / safe)
        if self._covariance is None or noise == 0:
            self.mean, variances = there, step
        else:
            before = (vectors * (self._covariance @ vectors)).sum(axis=0)
            apart = vectors.T @ (there - self.mean)
            doubt = np.maximum(before, np.square(apart) - step)
            weights = doubt / (doubt + step)
            self.mean = self.mean + vectors @ (weights * apart)
            variances = np.square(1.0 - weights) * before + np.square(weights) * step
        self._covariance = (vectors * variances) @ vectors.T
        return np.asarray(safe * np.sqrt(variances))


class Weighted:
    """Who answers, in which coordinates, how far rows and slopes count in full."""

    def __init__(
        self,
        curator: "Curator",
        loss: Loss,
        units: Units,
        recoding: Recoding,
        admitted: Domain,
        penalty: Penalty,
        n: float,
        reach: float,
        skip: int = 0,
    ) -> None:
        self._curator, self._loss, self._recoding = curator, loss, recoding
        self._units, self._curvature, self._longest = units, loss.smoothness, LONGEST_STEP
        self._admitted, self._penalty = admitted, penalty
        self._n, self._reach, self._pull = n, reach, ridge_in(penalty, recoding, admitted)
        self._clip, self._basis = loss.lipschitz * reach, contrasts(loss.n_outputs)
        self._largest_hessian, self._bends, self._least = math.inf, 0.0, 0.0
        self._noises = noises(curator, "noisy_weighted_gradient")[skip:]
        self._hessian_noises = noises(curator, "noisy_curvature", nonnegative=True)
        self.at_corner: Floats | None = None
        self.length, self.slope_limit = reach, math.inf

    def centered(self, v: Floats) -> Floats:
        """Return coefficients without what all outputs share: it changes no probability, and is noise alone."""
        return v if v.shape[1] == 1 else v @ self._basis @ self._basis.T

    def limit_slopes(self, v: Floats) -> None:
        """Cut slopes at so many deviations of those at v, by a noisy sum of their squares."""
        curator, steepest, deviations = self._curator, self._steepest, self.slope_limit
        most = min(WIDEST_RESIDUAL * self._units.slope, steepest) ** 2
        square = curator.noisy_squared_slopes(flat(v), clip=most)
        noise = noises(curator, "noisy_squared_slopes")[-1] / curator.budget.neighbors.sum_factor * most
        deviation = math.sqrt(min(most, max(square, noise) / self._n))
        if deviation > 0:  # without noise slopes may be less than the lattice tells
            self._clip = min(deviations * deviation, steepest) * self._reach
        if self._loss.log_link:  # predicted counts have no useful bound: nor has a step that multiplies them
            self._curvature, self._longest = min(self._curvature, deviations * self._units.curvature), 1.0

    def limit_sizes(self, v: Floats) -> None:
        """Limit gradients and Hessians of records to where these end at v, by noisy counts of larger ones."""
        units, several, length = self._units, len(self._basis) > 1, self.length
        bend, slope = min(COUPLED if several else self._curvature, WIDEST * units.curvature), WIDEST * units.slope
        scores = edges_to(min(self._steepest, slope) * self._reach, units.slope * length / WIDEST)
        hessians = edges_to(bend * self._reach**2, units.curvature * length**2 / WIDEST)
        shells = self._curator.noisy_shells(flat(v), edges=Edges(NONE, hessians, scores, NONE), reach=self._reach)
        is_self_concordant = self._loss.sigmoid_link or self._loss.softmax_link or self._loss.log_link
        self._bends, self._least = self._reach * is_self_concordant, 1.0 / self._n
        noise = shells.noise
        self._clip, self._largest_hessian = end(shells.scores, scores, noise), end(shells.hessians, hessians, noise)
        if self._loss.log_link:
            self._longest = 1.0

    @property
    def _steepest(self) -> float:
        """The largest slope that declared targets allow."""
        bound = self._curator.domain.target_bound
        return float(self._loss.lipschitz_for(bound, bound if self._loss.movable_target else math.inf))

    def bound(self) -> Metric:
        """Return a bound on the weighted losses' Hessian: their largest curvature times the rows' second moment.

        Rows are shrunk to the radius for it, which weighs their squares. Outputs share it.
        """
        curator = self._curator
        top = self._loss.smoothness
        with curator.recoded(replace(self._recoding, reach=self._reach)):
            clip = curator.domain.row_norm**2
            second = top * curator.noisy_second_moment(clip=clip, n=self._n)
        noise = top * noises(curator, "noisy_second_moment", nonnegative=True)[-1] * clip / self._n
        shared = np.asarray(np.kron(np.eye(self._basis.shape[1]), second), dtype=np.float64)
        return self._metric(shared, noise * math.sqrt(2.0 * len(second)))

    def hessian(self, v: Floats, bound: Metric | None, *, is_near: bool) -> Metric:
        """Return the noisy Hessian of the weighted losses at v, in contrasts of the outputs, with a part of its bound.

        Where a loss is flat at v, as Huber's is far from its target, the Hessian alone would be no limit to a step;
        near the optimum, with steps that know how the Hessian bends, it is one: rare categories are nearly separated.
        """
        curator, (outputs, p) = self._curator, (len(self._basis), len(v))
        clip = min((COUPLED if outputs > 1 else self._curvature) * self._reach**2, self._largest_hessian)
        asked = curator.noisy_curvature(flat(v), clip=clip, reach=self._reach) / self._n
        noise = self._hessian_noises.pop(0) * clip / self._n
        least = 0.0 if bound is None or (is_near and self._bends) else CURVED * bound.matrix
        if outputs == 1:
            return self._metric(asked + least, noise * math.sqrt(2.0 * p))
        ends = [self._basis[k] - self._basis[other] for k in range(outputs) for other in range(k + 1, outputs)]
        pairs = (np.kron(np.outer(end, end), one) for end, one in zip(ends, asked, strict=True))
        return self._metric(np.asarray(sum(pairs)) + least, 2.0 * noise * math.sqrt(outputs * (p + 1.0)))

    def _metric(self, matrix: Floats, edge: float) -> Metric:
        if self._pull is not None:
            matrix = matrix + np.kron(np.eye(self._basis.shape[1]), self._pull.hessian)
        return Metric(*np.linalg.eigh(matrix), edge, self._bends)

    def travel(self, v: Floats, bound: Metric, count: int) -> Floats:
        """Take steps with Nesterov's momentum from v, (p, K), with a bound on the Hessian; return where they end."""
        safe = bound.safe
        path = Path(v, count, momentum="nesterov", average="last", step=1.0, restart=True)
        for _ in range(count):
            ahead = path.ahead()
            along, noise = self._along(ahead, bound)
            factors = posterior_weights(along, safe, noise, safe >= 2.0 * bound.edge, least=self._least)
            move = -(bound.vectors @ (factors * along))
            path.move(ahead, self._moved(ahead, move, bound))
        return path.w

    def newton(self, v: Floats, metric: Metric, count: int, pooled: Pooled) -> tuple[Floats, Step, Metric]:
        """Take Newton steps from v, (p, K); return where they end, what was made of the whole way, and the last metric.

        Each leads to the optimum but for its noise. What all say together is filtered by how far it is from where the
        first began: a filter of each move would let noise through at one of them by chance, and the others would keep
        it.
        """
        step, before = Step(np.zeros_like(metric.safe), np.zeros(())), None
        for _ in range(count):
            along, noise = self._along(v, metric)
            at = self.contrasted(v)
            gradient = metric.vectors @ along
            if before is not None:
                moved, rise = (metric.vectors.T @ change for change in (at - before[0], gradient - before[1]))
                metric = metric.after(moved, rise, before[2])
            before, safe, along = (at, gradient, noise), metric.safe, metric.vectors.T @ gradient
            noises = pooled.add(at - metric.vectors @ (along / safe), metric, noise)
            along = safe * (metric.vectors.T @ (pooled.start - pooled.mean))
            clear, guess = safe >= 2.0 * metric.edge, {"least": self._least, "prior": NOTHING, "odds": ODDS}
            step = Step(posterior_weights(along, safe, noises, clear, **guess), noises)
            aim = pooled.start - metric.vectors @ (step.factors * along)
            v = self._moved(v, aim - at, metric)
        return v, step, metric

    def contrasted(self, v: Floats) -> Floats:
        """Return coefficients in contrasts of the outputs, one after the other."""
        return np.asarray((v @ self._basis).T.ravel())

    def _along(self, v: Floats, metric: Metric) -> tuple[Floats, float]:
        """Return a noisy gradient at v along the metric's directions, and its noise."""
        gradient = self._curator.noisy_weighted_gradient(flat(v), clip=self._clip, reach=self._reach) / self._n
        gradient = columns(gradient if self._pull is None else gradient + self._pull.gradient(flat(v)))
        noise = self._noises.pop(0) * self._clip / self._n
        return metric.vectors.T @ (gradient @ self._basis).T.ravel(), noise

    def _moved(self, v: Floats, move: Floats, metric: Metric) -> Floats:
        """Return v after a move in contrasts of outputs, no longer than it may be; with corners, where they put it."""
        w = v + project(move, self._longest).reshape(self._basis.shape[1], -1).T @ self._basis.T
        w = w if self._penalty.ridge else self._inside(w, metric)
        if metric.bends:
            w = v + damping(metric.bends * float(np.linalg.norm((w - v) @ self._basis))) * (w - v)
        return w

    def _inside(self, v: Floats, metric: Metric) -> Floats:
        """Return what a penalty with corners makes of a step, and keep it as it is in training coordinates.

        There and back it would be rounded: out of a box, and off zero.
        """
        w, matrix = self._recoding.coefficients(flat(v)), metric.matrix
        if v.shape[1] > 1:  # a shift of all outputs changes no loss: the penalty alone decides on it
            outputs, basis = len(self._basis), np.kron(self._basis, np.eye(len(v)))
            shared = np.kron(np.full((outputs, outputs), FREE * float(metric.safe[0]) / outputs), np.eye(len(v)))
            matrix = basis @ matrix @ basis.T + shared
        self.at_corner = inside(self._penalty, w, matrix, self._recoding, self._admitted)
        moved = self._recoding.recoded(self.at_corner)
        assert moved is not None
        return columns(moved)


def inside(penalty: Penalty, w: Floats, hessian: Floats, recoding: Recoding, admitted: Domain) -> Floats:
    """Return the minimizer of a penalty + the quadratic about w with this Hessian, in recoded coordinates."""
    back = np.linalg.inv(affine(recoding, admitted)[0] / recoding.target_scale)
    back = np.kron(np.eye(columns(w).shape[1]), back)
    return metric_prox(w, back.T @ hessian @ back, penalty)


def damping(change: float) -> float:
    """Return the part log(1 + a) / a of a Newton step that descends always, a = ``bends`` times its length.

    Sun & Tran-Dinh 2018, *Generalized self-concordant functions*. Near the optimum it is the whole step.
    """
    return math.log1p(change) / change if change > 0 else 1.0


def to_the_end(
    curator: "Curator", loss: Loss, recoding: Recoding, reach: float, length: float
) -> tuple[Recoding, float]:
    """Return the map with rows in full up to where they end, by noisy counts of longer ones, and that length.

    Rows that end before a typical length are stretched to it, as the lattice has room for: an L2 penalty that outweighs
    them made them short.
    """
    edges = edges_to(reach, length / WIDEST)
    with curator.recoded(recoding, loss=loss):
        counts = curator.noisy_shells(np.zeros(curator.domain.shape), edges=Edges(edges, NONE, NONE, NONE), reach=reach)
    longest = end(counts.lengths, edges, counts.noise)
    matrix = np.ones(curator.domain.n_features) if recoding.matrix is None else recoding.matrix
    reach = max(length, longest)
    return replace(recoding, matrix=matrix * (reach / longest), reach=reach), reach


def edges_to(stop: float, start: float) -> Floats:
    """Return edges of shells that grow up to ``stop``, the first not above ``start``."""
    count = math.ceil(max(0.0, math.log(stop / start) / math.log(FINE)))
    return np.asarray(stop * FINE ** np.arange(-count, 1))


def end(counts: Floats, edges: Floats, noise: float) -> float:
    """Return the edge of the last shell with a record in it, of noisy counts that tell single ones.

    A record is likelier than noise of this deviation where a count is above 1/2, and, at r times the edge of the last
    filled shell, where its odds exp((2 count - 1) / (2 noise^2)) outweigh r^2: so few records are beyond, mostly. Noise
    that is taken for a record far out would make all limits as wide.
    """
    outer, last = np.append(edges, edges[-1]), 0
    for shell in np.flatnonzero(counts > 1 / 2):
        if counts[shell] > 1 / 2 + 2.0 * noise**2 * math.log(outer[shell] / outer[last]):
            last = int(shell)
    return float(outer[last])


def columns(v: Floats) -> Floats:
    """Return coefficients as (p, K), one column for one output."""
    return v.reshape(len(v), -1)


def flat(v: Floats) -> Floats:
    """Return coefficients of one output as (p,)."""
    return v[:, 0] if v.shape[1] == 1 else v
