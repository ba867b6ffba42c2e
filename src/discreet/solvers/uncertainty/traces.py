"""Traces of runs: what a solver did, in public and released values, and the noise's part that follows from it.

The mathematics is in ``propagation``. No figure counts the sampling of batches, the bias of clips or early stopping.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.solvers.base import planned
from discreet.solvers.uncertainty.propagation import gain, responses
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator import Curator


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


@dataclass(frozen=True)
class DescentTrace:
    """Steps on noisy mean gradients, each a sum over ``count`` records; ``shrink`` is a penalty's prox.

    The deviations are a bound, for a loss that is flat but for its penalty: its curvature is not public. It is wide
    where the loss is curved, and takes steps to be stable (eta H <= 1).
    """

    shape: tuple[int, ...]
    step: float
    clip: float
    count: float
    momenta: Floats
    averages: Floats
    noise: Noise
    shrink: float = 1.0

    def deviations(self) -> Floats:
        """Return what independent noise in every step adds up to."""
        root = math.sqrt(float(gain(self.momenta, self.averages, shrink=self.shrink)[0]))
        return np.full(self.shape, self.step * self.noise.deviation(self.clip) / self.count * root)


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
        last = np.append(np.zeros(self.momenta.size), 1.0)
        weights = responses(self.momenta.ravel(), last, shrink=self.shrink).reshape(self.momenta.shape)
        first = self.anchors.deviation(self.clip) / self.count * weights.sum(axis=1)
        others = self.changes.deviation() / self.batch * self.reaches * weights
        total = self.step * math.sqrt(float(np.square(first).sum() + np.square(others).sum()))
        return np.full(self.shape, total)


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

    def deviations(self) -> Floats:
        """Return the root of what each coordinate's steps add."""
        return np.sqrt(sum((self._variances(blocks) for blocks in self.blocks), np.zeros(self.clips.size)))

    def _variances(self, blocks: list[Integers]) -> Floats:
        found, inner, unit = np.zeros(self.clips.size), len(blocks), self.noise.deviation() / self.count
        kept = 1.0 - np.arange(inner) / inner if self.average == "uniform" else np.ones(inner)
        if all(block.size == 1 for block in blocks):
            np.add.at(found, np.concatenate(blocks), kept**2)
            return np.asarray(found * (unit * self.clips * self.relative_step / self.smoothness) ** 2)
        for block, stays in zip(blocks, kept.tolist(), strict=True):
            size = float(np.linalg.norm(self.clips[block], 1 if self.noise.laplace else 2))
            found[block] += (stays * unit * size * self.relative_step / (block.size * self.smoothness[block])) ** 2
        return found


@dataclass(frozen=True)
class PointTrace:
    """One noisy point of this L2 sensitivity; ``cut`` where a ball cut it off.

    What a ball leaves of the noise is neither Gaussian nor centered: no deviations there.
    """

    shape: tuple[int, ...]
    multiplier: float
    sensitivity: float
    pure: bool
    cut: bool = False

    def deviations(self) -> Floats | None:
        """Return the deviation of an entry of the noise vector.

        For pure budgets the vector has a length of Gamma(p, s) and any direction, so that an entry's variance is
        E length^2 / p = s^2 (p + 1).
        """
        scale = self.multiplier * self.sensitivity * (math.sqrt(math.prod(self.shape) + 1.0) if self.pure else 1.0)
        return None if self.cut else np.full(self.shape, scale)
