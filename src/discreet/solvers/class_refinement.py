"""Averaged chord steps for several classes, in contrasts between them: what ``refinement`` does for one output.

A common shift of all classes' margins changes no probability: coefficients are determined up to one vector. With E an
orthonormal basis of contrasts, (K, K - 1), steps are taken in theta = v E, one column of p coefficients after another;
the noise of gradients and scores stays isotropic there. Effects are differences to the first class.

The Hessian is the sum over pairs k < l of (E_k - E_l) (E_k - E_l)^T (x) A_kl (``queries.effects.noisy_curvature``). Of
noise with deviation s in an entry of A_kl it makes N with E N^2 = s^2 K (p + 1) I, since the pairs' (E_k - E_l) have
squared length 2 and add up to K I: its spectrum ends at about 2 s sqrt(K (p + 1)), and N d has the mean square
s^2 K (p + 1) ||d||^2. Both are those of symmetric noise of ``spread`` below.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.solvers.influence import Influence
from discreet.solvers.refinement import Metric, Refinement
from discreet.solvers.sandwich_rules import SLACK
from discreet.typing import Floats

START = 0.6
"""What is taken of the start: clipped steps make classes too certain, and chords of their Hessian overshoot."""
STEEP, HEAVY_BALL = 0.6, 0.7
"""Curvature of the leading steps in units of the loss's largest, and their momentum."""
COUPLED = 0.25
"""The largest norm of a record's couplings (``losses.softmax``)."""


def contrasts(outputs: int) -> Floats:
    """Return an orthonormal basis of the vectors that add up to 0, (K, K - 1): Helmert's; of one output, itself."""
    if outputs == 1:
        return np.ones((1, 1))
    sums = [np.append(np.ones(k), -k) / math.sqrt(k * (k + 1)) for k in range(1, outputs)]
    return np.column_stack([np.pad(column, (0, outputs - len(column))) for column in sums])


@dataclass(frozen=True)
class ClassRefinement(Refinement):
    """One run for several classes; points are theta, flat."""

    @cached_property
    def basis(self) -> Floats:
        """E."""
        return contrasts(self.curator.loss.n_outputs)

    def flat(self, v: Floats) -> Floats:
        """Return theta of coefficients (p, K)."""
        return np.asarray((v @ self.basis).T.ravel())

    def coefficients(self, theta: Floats) -> Floats:
        """Return coefficients (p, K) that add up to 0 over the classes."""
        return np.asarray(theta.reshape(self.basis.shape[1], -1).T @ self.basis.T)

    def against_first(self, linear: Floats) -> Floats:
        """Return the map from theta to differences from the first class, after the map ``linear`` of coefficients."""
        return np.kron(self.basis[1:] - self.basis[0], linear)

    @property
    def _directions(self) -> int:
        return int(self.basis.shape[1])

    def _leading_step(self, v: Floats, last: Floats, gradient: Floats) -> Floats:
        return v - gradient / (STEEP * self.curator.loss.smoothness) + HEAVY_BALL * (v - last)

    def _point(self, v: Floats) -> Floats:
        return self.coefficients(v)

    @property
    def _steepest(self) -> float:
        return self.curator.loss.lipschitz

    @property
    def _sharpest(self) -> float:
        return COUPLED

    def _gradient(self, v: Floats, limits: Influence) -> Floats:
        return self.flat(super()._gradient(self.coefficients(v), limits))

    def _curvature(self, v: Floats, limits: Influence) -> Metric:
        clip = limits.hessian
        self._ask("noisy_curvature")
        pairs = self.curator.noisy_curvature(self.coefficients(v), clip=clip, reach=limits.reach, slack=SLACK)
        outputs, p = len(self.basis), pairs.shape[1]
        ends = [self.basis[k] - self.basis[other] for k in range(outputs) for other in range(k + 1, outputs)]
        hessian = sum(np.kron(np.outer(end, end), pair) for end, pair in zip(ends, pairs, strict=True))
        edge = 2.0 * self._noise("noisy_curvature") / self._root * clip * math.sqrt(outputs * (p + 1.0))
        return Metric(*np.linalg.eigh(np.asarray(hessian)), edge / math.sqrt(2.0 * len(v)))

    def _score_covariance(self, v: Floats, clip: float, reach: float) -> Floats:
        found = super()._score_covariance(self.coefficients(v), clip, reach)
        project = np.kron(self.basis.T, np.eye(len(found) // len(self.basis)))
        return np.asarray(project @ found @ project.T)
