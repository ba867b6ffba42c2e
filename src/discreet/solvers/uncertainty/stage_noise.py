"""What the noise of a run in recoded coordinates did to coefficients in training coordinates.

The map back is linear, w = Q v + c. Noise that is independent from coordinate to coordinate of v has the variances
(Q^2) var(v) in w. In whitened coordinates more is known: ``whitened_noise``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.bounds import Domain
from discreet.curator import Recoding
from discreet.losses.base import Loss
from discreet.solvers.base import Solution, Trace
from discreet.solvers.center_and_scale import affine
from discreet.solvers.uncertainty.propagation import taken_back
from discreet.solvers.uncertainty.traces import DescentTrace
from discreet.solvers.uncertainty.whitened_noise import Spectrum, Steps, deviations
from discreet.typing import Floats


@dataclass(frozen=True)
class DirectionsTrace:
    """Independent noise along orthogonal directions, one column of ``vectors`` each."""

    vectors: Floats
    variances: Floats

    @classmethod
    def of_steps(
        cls, vectors: Floats, weights: Sequence[Floats], curved: Floats, noises: Sequence[float]
    ) -> "DirectionsTrace":
        """Return the noise of steps ``- weights q``, each q with noise of its own deviation.

        A step forgets ``curved`` times its weights of the noise that was there.
        """
        variances = np.zeros(len(vectors))
        for used, noise in zip(weights, noises, strict=True):
            variances = np.square(1.0 - curved * used) * variances + np.square(used * noise)
        return cls(vectors, variances)

    def deviations(self) -> Floats:
        """Return the deviation of each coordinate."""
        return self.through(np.eye(len(self.vectors)))

    def through(self, linear: Floats) -> Floats:
        """Return the deviations after a linear map."""
        return np.asarray(np.sqrt(np.square(linear @ self.vectors) @ self.variances))


@dataclass(frozen=True)
class StageTrace:
    """A run in recoded coordinates; ``center_noise`` is left in the intercept where steps may not have corrected it."""

    inner: Solution
    recoding: Recoding
    admitted: Domain
    loss: Loss
    spectrum: Spectrum | None = None
    center_noise: float = 0.0

    def deviations(self) -> Floats | None:
        """Return the deviations in training coordinates."""
        found = self._mapped()
        if found is not None and self.center_noise:
            found[-1] = np.hypot(found[-1], self.center_noise)
        return found

    def deviations_in(self, units: Recoding) -> Floats | None:
        """Return the deviations for records before the map ``units``: both maps are one."""
        both = replace(
            self.recoding,
            center=units.center + units.scale * self.recoding.center,
            scale=units.scale * self.recoding.scale,
            target_scale=units.target_scale * self.recoding.target_scale,
        )
        return replace(self, recoding=both, center_noise=units.target_scale * self.center_noise).deviations()

    def _mapped(self) -> Floats | None:
        v, trace = self.inner.coefficients, self.inner.trace
        if isinstance(trace, DirectionsTrace):
            return trace.through(affine(self.recoding, self.admitted)[0])
        if isinstance(trace, DescentTrace):
            steps = steps_of(trace, 1.0 if self.spectrum is None else self.spectrum.length)
            if self.spectrum is not None and self.loss.task == "classification" and steps.deviation > 0:
                return deviations(self.spectrum, affine(self.recoding, self.admitted)[0], self.loss, v, steps)
            variances = np.full(v.shape, steps.deviation**2 * float(steps.gain(0.0)[0]))
        elif self.inner.noise is None:
            return None
        else:
            variances = np.square(self.inner.noise)
        if self.recoding.matrix is None:
            return taken_back(self.recoding, variances)
        return np.asarray(np.sqrt(np.square(affine(self.recoding, self.admitted)[0]) @ variances))


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


def left_of_start(weights: Sequence[Floats], curved: Floats) -> Floats:
    """Return what such steps leave of a distance at the start, in each direction."""
    return np.asarray(np.prod([1.0 - curved * used for used in weights], axis=0))


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
