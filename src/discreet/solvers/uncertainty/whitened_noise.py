"""What the noise of whitened steps did to the coefficients: by the released second moment and a model of the margins.

In whitened coordinates the rows' second moment is released and near the identity, so the mean loss's curvature is about
h times that moment, h = E f'' at the released model (``curvature``). Each direction of the moment then forgets noise at
its own pace (``propagation``), and the map back to training coordinates is linear. Two kinds of directions are flatter:

- that of the coefficients: along it margins are large, and f'' is small at large margins;
- those of features with rare, far-out values. Their rows are long, so they are clipped first, and a clipped record has
  no curvature. How rare a feature's values are is private, but they cannot be further out than its declared range: a
  feature's curvature is taken to come from rows at the far end of the range (``farthest``). This errs to the flat side.

The released moment is noisy itself. Steps in whitened coordinates are steps with the preconditioner P =
(M + floor)^{-1}, so that after T of them w = P S, S the sum of (scaled) gradients; noise E in M moves it by -P E w.
Along converged directions that error is corrected, along flat ones it persists: the surviving fraction is the factor by
which T steps shrink the initial error (``left_of_start``). It matters for features that are rare, or that nearly add up
to each other.

An L2 penalty's pull is left out: it shrinks.
"""

from dataclasses import dataclass

import numpy as np

from discreet.losses.base import Loss
from discreet.solvers.uncertainty.curvature import Margins, binary_margins, softmax_margins
from discreet.solvers.uncertainty.propagation import gain, left_of_start
from discreet.typing import Floats

GRID = 128


@dataclass(frozen=True)
class Spectrum:
    """Whitened rows: the eigenvalues and vectors of their second moment, and their mean.

    Directions that are not distinguished from noise have eigenvalue 0: features that add up to a constant are flat.
    ``farthest`` is how long rows at the end of a feature's range are, over a typical row's length; ``kept`` are
    the eigenvalues that whitening divided by, before it, ``deviation`` the noise of an entry of that moment, and
    ``length`` a typical row's.
    """

    shares: Floats
    vectors: Floats
    mean: Floats
    farthest: Floats
    kept: Floats
    deviation: float
    length: float


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
    moved = _moved(spectrum, squares, v.reshape(len(v), -1), steps, typical)
    if outputs > 1:  # a common shift of all classes' margins changes nothing, so nothing forgets its noise
        variances += (gains[0] * squares.sum(axis=1) - variances) / outputs
        return np.asarray(np.sqrt(steps.deviation**2 * np.tile(variances[:, None], outputs) + moved))
    length = float(np.linalg.norm(v))
    if length > 0:
        flatter = max(0.0, float(np.interp(min(margins.along(), typical), grid, gains) - gains[-1]))
        variances += flatter * np.square(linear @ (v / length))
    return np.asarray(np.sqrt(steps.deviation**2 * variances + moved[:, 0]))


def _moved(spectrum: Spectrum, squares: Floats, columns: Floats, steps: Steps, typical: float) -> Floats:
    """Variances, one column per output, of what noise in the released moment does."""
    lengths = (np.square(spectrum.vectors.T @ columns) / spectrum.kept[:, None]).sum(axis=0)
    shares = (
        1.0 - spectrum.kept.min() / spectrum.kept
    )  # of all directions: the steps were taken in them, distinguished from noise or not
    left = left_of_start(steps.momenta, steps.averages, steps.size * typical * shares)
    return np.asarray(np.multiply.outer(squares @ (left**2 / spectrum.kept), spectrum.deviation**2 * lengths))


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
