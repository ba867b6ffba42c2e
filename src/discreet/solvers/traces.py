"""Traces of runs: what a solver did, in public and released values, and the noise's part in its coefficients.

The recursion is in ``propagation``. No figure counts the sampling of batches, the bias of clips or early stopping.

**Curvature.** The records are private, so the mean loss's curvature at a released model follows from a public model of
the margins: they are Gaussian, with the mean and the variance that released moments give them; squared row lengths
vary about the released one as those of Gaussian rows; labels are logistic in c times the margin, with c such that the
released model is a fixed point of the clipped gradient step (clipping makes margins larger than the law's). A clipped
gradient is the gradient of a Huberized loss: a clipped record has no curvature left (of several outputs: none along
its gradient), and the longer a row, the sooner it is clipped. Nothing here is proven of real records.

**Whitened steps.** The rows' second moment is released and near the identity, so the mean loss's curvature is about h
times that moment, h = E f'' at the released model. Each direction of the moment forgets noise at its own pace, and the
map back to training coordinates is linear. Two kinds of directions are flatter:

- that of the coefficients: along it margins are large, and f'' is small at large margins;
- those of features with rare, far-out values. Their rows are long, so they are clipped first, and a clipped record has
  no curvature. How rare a feature's values are is private, but they cannot be further out than its declared range: a
  feature's curvature is taken to come from rows at the far end of the range (``farthest``). This errs to the flat side.

The released moment is noisy itself. Steps in whitened coordinates are steps with the preconditioner P =
(M + floor)^{-1}, so that after T of them w = P S, S the sum of (scaled) gradients; noise E in M moves it by -P E w.
Along converged directions that error is corrected, along flat ones it persists: the surviving fraction is the factor by
which T steps shrink the initial error (``left_of_start``). It matters for features that are rare, or that nearly add up
to each other. An L2 penalty's pull is left out: it shrinks.

**Recoded coordinates.** The map back is linear, w = Q v + c: noise that is independent from coordinate to coordinate of
v has the variances (Q^2) var(v) in w.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtri, softmax

from discreet.bounds import Domain
from discreet.curator import Recoding
from discreet.losses.base import Loss
from discreet.solvers.base import Solution, Trace, planned
from discreet.solvers.propagation import affine, gain, left_of_start, responses, taken_back
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.solvers.decrease import Decrease

POINTS = 256
LEAST_LENGTH, LARGEST_FACTOR = 0.2, 16.0


@dataclass(frozen=True)
class Margins:
    """Points of the model, each with every target: chances, sizes of slopes, curvatures, of shape (points, targets).

    ``left`` is the curvature that is left of a slope that is clipped to nothing, over what the clip leaves of it;
    ``lengths`` are relative to a typical row's, ``units`` the first margin in deviations from its mean.
    """

    chances: Floats
    sizes: Floats
    bends: Floats
    left: Floats
    lengths: Floats
    units: Floats
    slope: float

    def curvature(self, longer: float = 1.0) -> float:
        """E f'' of rows that are this many times longer than typical ones."""
        return float(self._found(longer).mean())

    def along(self) -> float:
        """The same in the margins' own direction: E f'' units^2."""
        return float((self._found(1.0) * self.units**2).mean() / (self.units**2).mean())

    def _found(self, longer: float) -> Floats:
        length = longer * self.lengths[:, None]
        share = np.minimum(1.0, self.slope / np.maximum(self.sizes * length, 1e-300))
        bends = np.where(share == 1.0, self.bends, self.left * share) * self.lengths[:, None] ** 2
        return np.asarray((self.chances * bends).sum(axis=1))


def binary_margins(loss: Loss, mean: float, deviation: float, slope: float, directions: float) -> Margins:
    """Of a loss with one output and targets +-1; rows see this many directions."""
    points, length = normal_points(1, directions)
    units = points[:, 0]
    margins = mean + deviation * units
    slopes, bends = (
        np.column_stack([at(margins, target) for target in (1.0, -1.0)]) for at in (loss.slopes_at, loss.bends_at)
    )
    pulls = np.clip(slopes * length[:, None], -slope, slope) * units[:, None]

    def chances(factor: float) -> Floats:
        return np.column_stack([expit(factor * margins), expit(-factor * margins)])

    factor = rest(lambda scale: float((chances(scale) * pulls).sum()))
    return Margins(chances(factor), np.abs(slopes), bends, np.zeros_like(bends), length, units, slope)


def softmax_margins(mean: Floats, covariance: Floats, slope: float, directions: float) -> Margins:
    """Of the softmax loss; curvatures are means over the K - 1 directions in which margins differ."""
    outputs = len(mean)
    values, vectors = np.linalg.eigh(covariance)
    points, length = normal_points(outputs, directions)
    apart = (points * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    found = softmax(mean + apart, axis=1)
    whole = (found * (1.0 - found)).sum(axis=1)
    sizes, left, pulls = np.zeros((3, POINTS, outputs))
    for target in range(outputs):
        gradient = found - np.eye(outputs)[target]
        sizes[:, target] = np.maximum(np.linalg.norm(gradient, axis=1), 1e-300)
        along = (gradient**2 * found).sum(axis=1) - (gradient * found).sum(axis=1) ** 2
        left[:, target] = whole - along / sizes[:, target] ** 2
        share = np.minimum(1.0, slope / (sizes[:, target] * length))
        pulls[:, target] = share * length * (gradient * apart).sum(axis=1)
    factor = rest(lambda scale: float((softmax(scale * (mean + apart), axis=1) * pulls).sum()))
    chances, rank = softmax(factor * (mean + apart), axis=1), max(1, outputs - 1)
    bends = np.tile(whole[:, None], outputs)
    return Margins(chances, sizes, bends / rank, left / rank, length, points[:, 0], slope)


def normal_points(dimension: int, directions: float) -> tuple[Floats, Floats]:
    """(POINTS, dimension) evenly spread standard normals, and for each a row's length over a typical one's.

    A lattice rule by powers of a generalized golden ratio. Squares of Gaussian rows deviate by sqrt(2 / directions).
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (dimension + 2))
    steps = ratio ** -np.arange(1.0, dimension + 2)
    points = np.asarray(ndtri(np.mod(0.5 + np.multiply.outer(np.arange(1.0, POINTS + 1), steps), 1.0)))
    return points[:, :-1], np.sqrt(np.maximum(LEAST_LENGTH, 1.0 + points[:, -1] * np.sqrt(2.0 / directions)))


def rest(pull: Callable[[float], float]) -> float:
    """The factor in [0, LARGEST_FACTOR] at which a falling pull is 0: by halving."""
    low, high = 0.0, LARGEST_FACTOR
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if pull(middle) > 0 else (low, middle)
    return 0.5 * (low + high)


GRID = 128


@dataclass(frozen=True)
class Spectrum:
    """Whitened rows: the eigenvalues and vectors of their second moment, and their mean.

    Directions that are not distinguished from noise have what is known of them in all: their eigenvalues, cleaned.
    ``farthest`` is how long rows at the end of a feature's range are, over a typical row's length; ``kept`` are
    the eigenvalues that whitening divided by, ``standard`` the second moment before it, as released, ``deviation`` the
    noise of its entries, and ``length`` a typical row's. ``likely`` are mean squares of the standardized features as
    they are in rows that are not shrunk, at least; None where they are not estimated.
    """

    shares: Floats
    vectors: Floats
    mean: Floats
    farthest: Floats
    kept: Floats
    deviation: float
    length: float
    standard: Floats
    likely: Floats | None = None


@dataclass(frozen=True)
class Steps:
    """Steps of this ``size``; ``deviation`` is what one step's noise adds to a coordinate."""

    momenta: Floats
    averages: Floats
    size: float
    deviation: float
    slope: float

    def gain(self, curvature: Floats | float) -> Floats:
        """The result's variance over one step's, for each curvature."""
        return gain(self.momenta, self.averages, self.size * np.asarray(curvature))


def deviations(spectrum: Spectrum, linear: Floats, loss: Loss, v: Floats, steps: Steps) -> Floats:
    """Of coefficients ``linear @ v``."""
    outputs = 1 if v.ndim == 1 else v.shape[1]
    margins = _margins(spectrum, loss, v.reshape(len(v), -1), steps.slope)
    typical = margins.curvature()
    bends = np.array([min(typical, margins.curvature(float(longer))) for longer in spectrum.farthest])
    grid = np.linspace(0.0, typical, GRID)
    gains = steps.gain(grid)
    squares = np.square(linear @ spectrum.vectors)
    variances = np.array(
        [row @ np.interp(h * spectrum.shares, grid, gains) for row, h in zip(squares, bends, strict=True)]
    )
    moved = squares @ moved_by_moment(spectrum, v.reshape(len(v), -1), steps, typical)
    if outputs > 1:  # a common shift of all classes' margins changes nothing, so nothing forgets its noise
        variances += (gains[0] * squares.sum(axis=1) - variances) / outputs
        return np.asarray(np.sqrt(steps.deviation**2 * np.tile(variances[:, None], outputs) + moved))
    length = float(np.linalg.norm(v))
    if length > 0:
        flatter = max(0.0, float(np.interp(min(margins.along(), typical), grid, gains) - gains[-1]))
        variances += flatter * np.square(linear @ (v / length))
    return np.asarray(np.sqrt(steps.deviation**2 * variances + moved[:, 0]))


def curvature_of_margins(spectrum: Spectrum, loss: Loss, v: Floats, steps: Steps) -> float:
    """Return E f'' of one output at the released model, as far as clips leave it."""
    return _margins(spectrum, loss, v.reshape(len(v), -1), steps.slope).curvature()


def moved_by_moment(spectrum: Spectrum, columns: Floats, steps: Steps, typical: float) -> Floats:
    """Return the variances, (directions, outputs), of what noise in the released moment does to coefficients."""
    lengths = (np.square(spectrum.vectors.T @ columns) / spectrum.kept[:, None]).sum(axis=0)
    left = left_of_start(steps.momenta, steps.averages, steps.size * typical * spectrum.shares)
    return np.asarray(np.multiply.outer(left**2 / spectrum.kept, spectrum.deviation**2 * lengths))


def margins_of(spectrum: Spectrum, v: Floats) -> tuple[float, float]:
    """The mean and the deviation of the margins of one output, at least a hundredth."""
    center, rotated = float(spectrum.mean @ v), spectrum.vectors.T @ v
    return center, max(float(rotated**2 @ spectrum.shares) - center**2, 1e-4) ** 0.5


def _margins(spectrum: Spectrum, loss: Loss, columns: Floats, slope: float) -> Margins:
    center, rotated = spectrum.mean @ columns, spectrum.vectors.T @ columns
    covariance = (rotated.T * spectrum.shares) @ rotated - np.multiply.outer(center, center)
    directions = max(1.0, float(spectrum.shares.sum()))
    if len(center) > 1:
        return softmax_margins(center, covariance, slope, directions)
    return binary_margins(loss, float(center[0]), max(float(covariance[0, 0]), 0.0) ** 0.5, slope, directions)


@dataclass(frozen=True)
class Noise:
    """The noise of one kind of release: Gaussian, or Laplace for pure budgets."""

    factor: int
    multiplier: float
    relative: float
    laplace: bool

    @classmethod
    def of(cls, curator: "Curator", query: str) -> "Noise":
        """Return the noise with which this query is answered."""
        release, budget = planned(curator, query), curator.budget
        laplace = budget.is_pure or release.mechanism == "laplace"
        return cls(budget.neighbors.sum_factor, curator.noise_multiplier, release.relative_noise, laplace)

    def deviation(self, clip: float = 1.0) -> float:
        """Return the standard deviation of an entry of a sum of contributions of norm ``clip``."""
        scale = self.factor * clip * self.multiplier * self.relative
        return scale * (math.sqrt(2.0) if self.laplace else 1.0)


def prox_factor(step: Floats | float, shrink: float, strengths: Floats | None) -> Floats | float:
    """Return what an L2 penalty's prox multiplies by: along directions in which it has these strengths, or at least."""
    return shrink if strengths is None else 1.0 / (1.0 + step * strengths)


@dataclass(frozen=True)
class DescentTrace:
    """Steps on noisy mean gradients, each a sum over ``count`` records; ``shrink`` is a penalty's prox.

    The deviations are a bound, for a loss that is flat but for its penalty: its curvature is not public. It is wide
    where the loss is curved, and takes steps to be stable (eta H <= 1). ``decrease`` is what they gained, by gradients.
    """

    shape: tuple[int, ...]
    step: float
    clip: float
    count: float
    momenta: Floats
    averages: Floats
    noise: Noise
    shrink: float = 1.0
    decrease: "Decrease | None" = None

    def deviations(self) -> Floats:
        """Return what independent noise in every step adds up to."""
        return np.full(self.shape, math.sqrt(float(self.variances(np.zeros(1))[0])))

    def variances(self, bends: Floats, strengths: Floats | None = None) -> Floats:
        """Return the noise's variance along directions in which the mean loss, and a penalty, have these curvatures."""
        pull, shrink = np.minimum(self.step * bends, 1.0), prox_factor(self.step, self.shrink, strengths)
        unit = self.step * self.noise.deviation(self.clip) / self.count
        return np.asarray(unit**2 * gain(self.momenta, self.averages, pull, shrink))


@dataclass(frozen=True)
class EpochsTrace:
    """Epochs of steps from an anchor: its noise is in all of its epoch's steps, a change's in one.

    ``momenta`` and ``reaches`` (clips of changes; 0 where none was asked) have one row per epoch. The deviations are
    the bound for a flat loss; None where anchors are means, which is another recursion.
    """

    shape: tuple[int, ...]
    step: float
    clip: float
    count: float
    batch: float
    momenta: Floats
    reaches: Floats
    anchors: Noise
    changes: Noise
    shrink: float
    average: str

    def deviations(self) -> Floats | None:
        """Return what the noise of anchors and changes adds up to."""
        if self.average != "last":
            return None
        return np.full(self.shape, math.sqrt(float(self.variances(np.zeros(1))[0])))

    def variances(self, bends: Floats, strengths: Floats | None = None) -> Floats:
        """Return the noise's variance along directions in which the mean loss, and a penalty, have these curvatures."""
        last, pull = np.append(np.zeros(self.momenta.size), 1.0), np.minimum(self.step * bends, 1.0)
        shrink = prox_factor(self.step, self.shrink, strengths)
        weights = responses(self.momenta.ravel(), last, pull, shrink).reshape(*self.momenta.shape, -1)
        first = self.anchors.deviation(self.clip) / self.count * weights.sum(axis=1)
        others = self.changes.deviation() / self.batch * self.reaches[..., None] * weights
        return np.asarray(self.step**2 * (np.square(first).sum(axis=0) + np.square(others).sum(axis=(0, 1))))


@dataclass(frozen=True)
class CoordinateTrace:
    """Steps on noisy gradient entries; ``blocks`` holds the coordinates of each step, outer iteration by outer one.

    The deviations add up the noise of a coordinate's own steps, as if the loss were flat. Steps forget, so this is a
    bound where coordinates are not strongly correlated; correlations may carry noise over elsewhere.
    """

    blocks: list[list[Integers]]
    clips: Floats
    smoothness: Floats
    relative_step: float
    count: float
    noise: Noise
    average: str

    def deviations(self) -> Floats | None:
        """Return the root of what each coordinate's steps add."""
        return np.sqrt(sum((self._variances(blocks) for blocks in self.blocks), np.zeros(self.clips.size)))

    def variances(self, bends: Floats, strengths: Floats | None = None) -> Floats:
        """Return the noise's variance in each coordinate, of these curvatures, whose steps are spread evenly."""
        steps = self.relative_step / self.smoothness
        shrink = prox_factor(steps, 1.0, strengths)
        pull = 1.0 - shrink * (1.0 - np.minimum(steps * bends, 1.0))
        total, unit = np.zeros(self.clips.size), self.noise.deviation() / self.count
        for blocks in self.blocks:
            counts = np.bincount(np.concatenate(blocks), minlength=self.clips.size)
            sizes = shrink * unit * self.clips * steps / blocks[0].size ** 0.5
            times = np.arange(1, max(1, int(counts.max())) + 1)[:, None]
            left = np.power(1.0 - pull, times - 1.0)
            if self.average == "uniform":  # an answer is in all iterates after it
                left = np.cumsum(left, axis=0) / np.maximum(counts, 1)
            noise = np.where(times <= counts, np.square(left), 0.0).sum(axis=0) * np.square(sizes)
            stays = np.where(times <= counts, np.power(1.0 - pull, times), 0.0).sum(axis=0) / np.maximum(counts, 1)
            stays = stays if self.average == "uniform" else np.power(1.0 - pull, counts)
            total = np.square(stays) * total + noise
        return np.asarray(total)

    def _variances(self, blocks: list[Integers]) -> Floats:
        variances, inner, unit = np.zeros(self.clips.size), len(blocks), self.noise.deviation() / self.count
        weights = 1.0 - np.arange(inner) / inner if self.average == "uniform" else np.ones(inner)
        if all(block.size == 1 for block in blocks):
            np.add.at(variances, np.concatenate(blocks), weights**2)
            return np.asarray(variances * (unit * self.clips * self.relative_step / self.smoothness) ** 2)
        for block, stays in zip(blocks, weights.tolist(), strict=True):
            size = float(np.linalg.norm(self.clips[block], 1 if self.noise.laplace else 2))
            variances[block] += (stays * unit * size * self.relative_step / (block.size * self.smoothness[block])) ** 2
        return variances


@dataclass(frozen=True)
class GreedyTrace(CoordinateTrace):
    """Greedy steps on chosen coordinates. With other noise others are chosen, which is no small change: no deviations.

    The noise of the steps that were taken is known all the same.
    """

    def deviations(self) -> None:
        """Return nothing."""
        return None


@dataclass(frozen=True)
class PathTrace:
    """Plain steps of lengths that noisy choices made: no deviations. The noise of those that were taken is known.

    ``steps`` are in units of the mean gradient, ``noises`` the deviations of an entry of each mean gradient.
    """

    steps: Floats
    noises: Floats
    averages: Floats

    def deviations(self) -> None:
        """Return nothing."""
        return None

    def variances(self, bends: Floats, strengths: Floats | None = None) -> Floats:
        """Return the noise's variance along directions in which the mean loss, and a penalty, have these curvatures."""
        total, response = np.zeros(bends.size), np.zeros(bends.size)
        bends = bends if strengths is None else bends + strengths
        for step, noise, share in zip(self.steps[::-1], self.noises[::-1], self.averages[:0:-1], strict=True):
            response = response + share
            total = total + np.square(step * noise * response)
            response = response * (1.0 - np.minimum(step * bends, 1.0))
        return total


@dataclass(frozen=True)
class PointTrace:
    """One noisy point of this L2 sensitivity; ``cut`` where a ball cut it off, ``inside`` where an objective had it.

    What a ball leaves of the noise is neither Gaussian nor centered: no deviations there. Noise inside an objective
    moves its minimizer by (H + lambda)^{-1}, of which the sensitivity is the bound for H = 0.
    """

    shape: tuple[int, ...]
    multiplier: float
    sensitivity: float
    pure: bool
    cut: bool = False
    inside: bool = False

    def deviations(self) -> Floats | None:
        """Return the deviation of an entry of the noise vector.

        For pure budgets the vector has a length of Gamma(p, s) and any direction, so that an entry's variance is
        E length^2 / p = s^2 (p + 1).
        """
        scale = self.multiplier * self.sensitivity * (math.sqrt(math.prod(self.shape) + 1.0) if self.pure else 1.0)
        return None if self.cut else np.full(self.shape, scale)

    def variances(self, bends: Floats, strengths: Floats | None = None) -> Floats:
        """Return the noise's variance: the same along all directions, and not known of noise inside an objective.

        There columns that go together have flat directions, along which it is many times what their curvature says.
        """
        noise = None if self.inside else self.deviations()
        return np.full_like(bends, np.inf if noise is None else float(noise.flat[0]) ** 2)


@dataclass(frozen=True)
class DirectionsTrace:
    """Independent noises along directions, one column of ``vectors`` each."""

    vectors: Floats
    variances: Floats

    @property
    def covariance(self) -> Floats:
        """The covariance of the coordinates."""
        return np.asarray((self.vectors * self.variances) @ self.vectors.T)

    def deviations(self) -> Floats:
        """Return the deviation of each coordinate."""
        return self.through(np.eye(len(self.vectors)))

    def through(self, linear: Floats) -> Floats:
        """Return the deviations after a linear map."""
        return np.asarray(np.sqrt(np.square(linear @ self.vectors) @ self.variances))


@dataclass(frozen=True)
class StageTrace:
    """A run in recoded coordinates; ``center_noise`` is left in the intercept, for steps may not have corrected it."""

    inner: Solution
    recoding: Recoding
    admitted: Domain
    loss: Loss
    spectrum: Spectrum | None = None
    center_noise: Floats | float = 0.0

    def deviations(self) -> Floats | None:
        """Return the deviations in training coordinates."""
        v, trace, variances = self.inner.coefficients, self.inner.trace, None
        if isinstance(trace, DirectionsTrace):
            mapped = trace.through(affine(self.recoding, self.admitted)[0])
        elif isinstance(trace, DescentTrace):
            steps = steps_of(trace, 1.0 if self.spectrum is None else self.spectrum.length)
            if self.spectrum is not None and self.loss.task == "classification" and steps.deviation > 0:
                mapped = deviations(self.spectrum, affine(self.recoding, self.admitted)[0], self.loss, v, steps)
            else:
                variances = np.full(v.shape, steps.deviation**2 * float(steps.gain(0.0)[0]))
        elif self.inner.noise is None:
            return None
        else:
            variances = np.square(self.inner.noise)
        if variances is not None and self.recoding.matrix is None:
            mapped = taken_back(self.recoding, variances)
        elif variances is not None:
            mapped = np.sqrt(np.square(affine(self.recoding, self.admitted)[0]) @ variances)
        if np.any(self.center_noise):
            mapped[-1] = np.hypot(mapped[-1], self.center_noise)
        return mapped

    def deviations_in(self, units: Recoding) -> Floats | None:
        """Return the deviations for records before the map ``units``: both maps are one."""
        both = replace(
            self.recoding,
            center=units.center + units.scale * self.recoding.center,
            scale=units.scale * self.recoding.scale,
            target_scale=units.target_scale * self.recoding.target_scale,
        )
        return replace(self, recoding=both, center_noise=units.target_scale * self.center_noise).deviations()


@dataclass(frozen=True)
class CalibratedTrace:
    """A run whose margins were then multiplied by ``share`` and shifted, by one more noisy answer."""

    before: Trace
    share: float
    added: Floats

    def deviations(self) -> Floats | None:
        """Return both noises together."""
        before = self.before.deviations()
        return None if before is None else np.hypot(self.share * before, self.added)

    def deviations_in(self, units: Recoding) -> Floats | None:
        """Return both noises for records before the map ``units``."""
        before = Solution(self.added, self.before).noise_in(units)
        return None if before is None else np.hypot(self.share * before, taken_back(units, np.square(self.added)))


@dataclass(frozen=True)
class RefinedTrace:
    """A run that was then refined by steps along orthogonal directions, after which ``kept`` of it is left in each.

    What is left of the noise before is taken to be spread over a coefficient's directions like the map ``linear``.
    """

    before: Solution
    steps: DirectionsTrace
    kept: Floats
    linear: Floats

    def deviations(self) -> Floats | None:
        """Return both noises together."""
        before = self.before.noise
        return None if before is None else self.added_to(before)

    def added_to(self, before: Floats) -> Floats:
        """Return what is left of these deviations together with the steps' noise."""
        squares = np.square(self.linear @ self.steps.vectors)
        left = (squares @ np.square(self.kept)) / np.maximum(squares.sum(axis=1), 1e-300)
        return np.asarray(np.sqrt(np.square(before).T * left + squares @ self.steps.variances)).T


@dataclass(frozen=True)
class ContrastsTrace:
    """The same for several classes: steps in contrasts between them, columns of ``basis``."""

    before: Solution
    steps: DirectionsTrace
    kept: Floats
    linear: Floats
    basis: Floats

    def deviations(self) -> Floats | None:
        """Return both noises together, one column per class."""
        before = self.before.noise
        if before is None:
            return None
        classes = [np.kron(row, self.linear) for row in self.basis]
        traces = (RefinedTrace(self.before, self.steps, self.kept, linear) for linear in classes)
        return np.column_stack([trace.added_to(before[:, k]) for k, trace in enumerate(traces)])


def steps_of(trace: DescentTrace, length: float) -> Steps:
    """Return the steps as the model of the margins takes them: without a penalty's pull, which shrinks."""
    deviation = trace.step * trace.clip * trace.noise.deviation() / trace.count
    return Steps(trace.momenta, trace.averages, trace.step, deviation, trace.clip / length)
