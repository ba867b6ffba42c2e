"""Shrink what was released by what is noise in it. Post-processing: it costs no budget.

Noise is known: its variance follows from the plan and from the steps that were taken (``traces``). With s its deviation

    intercept   v_0 max(0, 1 - (2 s / v_0)^2): within two deviations it is taken for where the steps started
                (the garrote of Breiman 1995)
    slopes      E[v_j | v], by empirical Bayes (``posterior_weights``), where columns were centered, so that
                predictions keep their mean; elsewhere those of numbers are 0 if all of them together are noise
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from discreet.solvers.base import Solution
from discreet.solvers.propagation import posterior_weights
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

HIDDEN = 2.0
"""An intercept within this many deviations of its noise is taken for none."""
CURVED = 0.25
"""The mean curvature of a loss over its largest, as far as clips and columns in wide ranges leave it."""
PREDICTED = {"classification": 4.0, "regression": 1.0}
"""How large the variance of a predictor mostly is at most: log odds of 2, or that of a standardized number."""
LEAST = 1e-100
"""Divides, where all else may be 0; what it divides has a square."""


@runtime_checkable
class Forgetting(Protocol):
    """A trace that knows the noise of each coordinate from how curved the mean loss is along it."""

    def variances(self, bends: Floats) -> Floats:
        """Return the noise's variance in coordinates of these curvatures."""
        ...


def shrunk(found: Solution, curator: "Curator", *, intercept: bool, slopes: bool) -> Solution:
    """Return a solution in recoded coordinates without what is noise in its intercept, and in its ``slopes``.

    Its trace stays that of the coefficients as they were released. Losses with a log link start far from where they
    end, so that nothing is shrunk to the start.
    """
    domain, loss, trace = curator.domain, curator.loss, found.trace
    if loss.log_link or domain.typical is None or not isinstance(trace, Forgetting) or not curator.noise_multiplier:
        return found
    typical = domain.typical
    squares = typical.squares if typical.likely is None else typical.likely
    noise = np.sqrt(trace.variances(CURVED * loss.smoothness * squares))
    if not np.isfinite(noise).all():
        return found
    start, features = domain.starting_point, len(squares) - intercept
    units = np.maximum(noise, LEAST)[:, None]
    v = (found.coefficients - start).reshape(len(squares), -1) / units
    moved = noise[:features] > 0  # greedy steps leave most where they were
    if slopes and features:
        most = PREDICTED[loss.task] / max(float(squares[:features] @ np.square(noise[:features])), LEAST)
        flat = v[:features].ravel()
        v[:features] = (posterior_weights(flat, np.ones(flat.size), 1.0, most=most) * flat).reshape(features, -1)
    elif typical.likely is not None and intercept and loss.task == "regression" and is_noise(v[:features][moved]):
        v[:features] = 0.0
    if intercept:
        v[-1] = garrote(v[-1], 1.0)
    return replace(found, coefficients=start + (v * units).reshape(start.shape))


def is_noise(v: Floats) -> bool:
    """Say whether the squares of entries with noise of deviation 1 add up to no more than noise alone may."""
    return float(np.square(v).sum()) < v.size + HIDDEN * math.sqrt(2.0 * v.size)


def garrote(v: Floats, noise: float) -> Floats:
    """Return what is left of numbers with this noise: nothing of what is within two deviations of it."""
    return np.asarray(np.maximum(np.square(v) - (HIDDEN * noise) ** 2, 0.0) / np.where(v == 0, 1.0, v))
