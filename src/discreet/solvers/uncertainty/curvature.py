"""How curved the mean loss is at a released model: by a public model of the margins, since the records are private.

The model: margins are Gaussian, with the mean and the variance that released moments give them; squared row lengths
vary about the released one as those of Gaussian rows; labels are logistic in c times the margin, with c such that the
released model is a fixed point of the clipped gradient step (clipping makes margins larger than the law's).
A clipped gradient is the gradient of a Huberized loss: a clipped record has no curvature left (of several outputs: none
along its gradient), and the longer a row, the sooner it is clipped. Nothing here is proven of real records; tests and
``docs/intervals.md`` measure how well it does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri, softmax

from discreet.losses.base import Loss, curvature, derivative
from discreet.typing import Floats

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
        kept = np.minimum(1.0, self.slope / np.maximum(self.sizes * length, 1e-300))
        bends = np.where(kept == 1.0, self.bends, self.left * kept) * self.lengths[:, None] ** 2
        return np.asarray((self.chances * bends).sum(axis=1))


def binary_margins(loss: Loss, mean: float, deviation: float, slope: float, directions: float) -> Margins:
    """Of a loss with one output and targets +-1; rows see this many directions."""
    points = normal_points(2)
    units, length = points[:, 0], row_lengths(points[:, 1], directions)
    margins = mean + deviation * units
    slopes, bends = np.zeros((POINTS, 2)), np.zeros((POINTS, 2))
    for i, margin in enumerate(margins.tolist()):
        for k, target in enumerate((1.0, -1.0)):
            slopes[i, k], bends[i, k] = derivative(loss, margin, target), curvature(loss, margin, target)
    pulls = np.clip(slopes * length[:, None], -slope, slope) * units[:, None]

    def chances(factor: float) -> Floats:
        return np.column_stack([expit(factor * margins), expit(-factor * margins)])

    factor = rest(lambda scale: float((chances(scale) * pulls).sum()))
    return Margins(chances(factor), np.abs(slopes), bends, np.zeros_like(bends), length, units, slope)


def softmax_margins(mean: Floats, covariance: Floats, slope: float, directions: float) -> Margins:
    """Of the softmax loss; curvatures are means over the K - 1 directions in which margins differ."""
    outputs = len(mean)
    values, vectors = np.linalg.eigh(covariance)
    points = normal_points(outputs + 1)
    apart = (points[:, :-1] * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    found, length = softmax(mean + apart, axis=1), row_lengths(points[:, -1], directions)
    whole = (found * (1.0 - found)).sum(axis=1)
    sizes, left, pulls = np.zeros((3, POINTS, outputs))
    for target in range(outputs):
        gradient = found - np.eye(outputs)[target]
        sizes[:, target] = np.maximum(np.linalg.norm(gradient, axis=1), 1e-300)
        along = (gradient**2 * found).sum(axis=1) - (gradient * found).sum(axis=1) ** 2
        left[:, target] = whole - along / sizes[:, target] ** 2
        kept = np.minimum(1.0, slope / (sizes[:, target] * length))
        pulls[:, target] = kept * length * (gradient * apart).sum(axis=1)
    factor = rest(lambda scale: float((softmax(scale * (mean + apart), axis=1) * pulls).sum()))
    chances, rank = softmax(factor * (mean + apart), axis=1), max(1, outputs - 1)
    bends = np.tile(whole[:, None], outputs)
    return Margins(chances, sizes, bends / rank, left / rank, length, points[:, 0], slope)


def normal_points(dimension: int) -> Floats:
    """(POINTS, dimension) evenly spread standard normals: a lattice rule by powers of a generalized golden ratio."""
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    return np.asarray(ndtri(np.mod(0.5 + np.multiply.outer(np.arange(1.0, POINTS + 1), steps), 1.0)))


def row_lengths(units: Floats, directions: float) -> Floats:
    """Relative to the typical one: the squares of Gaussian rows deviate by sqrt(2 / directions)."""
    return np.asarray(np.sqrt(np.maximum(LEAST_LENGTH, 1.0 + units * np.sqrt(2.0 / directions))))


def rest(pull: Callable[[float], float]) -> float:
    """The factor in [0, LARGEST_FACTOR] at which a falling pull is 0: by halving."""
    low, high = 0.0, LARGEST_FACTOR
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if pull(middle) > 0 else (low, middle)
    return 0.5 * (low + high)
