"""Newton steps for smooth or piecewise smooth convex objectives: Cholesky or conjugate gradients, and a line search.

A gradient costs one pass over the records, a Hessian several: its factor is kept as long as it still contracts the
gradient well enough. Far from the minimum a sample of the records is Hessian enough; and single precision is, unless
the problem is too ill-conditioned for it. No decision here touches the certificate, which ``minimize.py`` proves.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from discreet.curator.certified.float_passes import Smooth, View
from discreet.losses.base import Loss
from discreet.typing import Floats

_PATIENCE = 6.0
"""How many steps with an old factor are worth a new one."""
_SETTLED = 0.25
"""A sampled Hessian that contracts the gradient to this share is followed by the whole one."""
_MOST_SAMPLES = 8
_LEAST_CURVATURE = 0.1
"""Share of the largest possible curvature that a step far from the minimum counts on."""
_MOST_TRIALS = 40
_MOST_PRODUCTS = 1000


def above(computed: float) -> float:
    """Above the exact value of a norm or a bound that was computed: its own rounding, and underflow, are added."""
    return computed * (1 + 2.0**-20) + 2.0**-400


@dataclass(frozen=True)
class Point:
    """Weights (K, p), the computed gradient and its norm, a bound on its error, and the records' margins."""

    w: Floats
    gradient: Floats
    norm: float
    error: float
    margins: Floats

    @property
    def bound(self) -> float:
        """Above the true gradient's norm."""
        return above(self.norm + self.error)


class Steps(Protocol):
    """Where to go from a point, and what to learn from having gone there."""

    def direction(self, point: Point) -> Floats | None:
        """A direction of descent; None where none can be computed."""
        ...

    def judge(self, before: Point, after: Point) -> None:
        """Decide what to keep for the next direction."""
        ...


def damped_states(passes: Smooth, loss: Loss, view: View, point: Point, first: float) -> Floats:
    """The records' curvatures, and some of the largest one far from the minimum where they are few.

    A loss that is linear in places, or clipped, has none there, and a step without curvature goes astray. What is
    added vanishes with the gradient (``first`` is its norm at the start), so that the last steps are Newton's.
    """
    states = passes.states(point.margins, loss, view)
    if loss.n_outputs > 1:
        return states
    largest = loss.smoothness * view.curvature_weights.reshape(-1, 1)
    share = float(states.sum()) / max(float(largest.sum()), 1e-300)
    lacking = max(0.0, _LEAST_CURVATURE - share) * min(1.0, point.norm / first)
    return states + lacking * largest if lacking > 0 else states


def steps_for(passes: Smooth, loss: Loss, ridge: Floats, view: View, tolerance: float) -> Steps:
    """Cholesky where a Hessian can be formed, conjugate gradients elsewhere."""
    if loss.n_outputs == 1 and passes.can_form_hessian:
        return CholeskySteps(passes, loss, ridge, view, tolerance)
    return ConjugateSteps(passes, loss, ridge, view, tolerance)


def search(at: Callable[[Floats], Point], start: Point, steps: Steps, tolerance: float, most_steps: int) -> Point:
    """Follow directions until the gradient is certified, or there is none to follow: the last point either way."""
    point = start
    for _ in range(most_steps):
        if point.bound <= tolerance or not math.isfinite(point.bound):
            break
        if point.norm < point.error > tolerance:  # rounding is all that is left
            break
        direction = steps.direction(point)
        if direction is None or not np.isfinite(direction).all():
            break
        before, point = point, follow(at, point, direction, tolerance)
        steps.judge(before, point)
    return point


def follow(at: Callable[[Floats], Point], point: Point, direction: Floats, tolerance: float) -> Point:
    """A point along the direction where the slope has at least halved; steps that still descend steeply grow.

    Gradients alone decide: near the minimum the differences of values are lost to rounding.
    """
    start = float((point.gradient * direction).sum())
    low, low_slope, high, high_slope, step = 0.0, start, math.inf, math.inf, 1.0
    best = trial = at(point.w + direction)
    for _ in range(_MOST_TRIALS):
        slope = float((trial.gradient * direction).sum())
        if trial.norm < best.norm:
            best = trial
        if trial.bound <= tolerance or abs(slope) <= 0.5 * abs(start):
            return trial
        if slope <= 0:
            low, low_slope = step, slope
        else:  # NaN too: too far
            high, high_slope = step, slope
        if high == math.inf:
            step *= 4.0
        else:
            share = low_slope / (low_slope - high_slope)
            step = low + (high - low) * (min(max(share, 0.1), 0.9) if share == share else 0.1)
        trial = at(point.w + step * direction)
    return best


class CholeskySteps:
    """Solves with a Cholesky factor of the Hessian at this or an earlier point, of all records or a sample."""

    def __init__(self, passes: Smooth, loss: Loss, ridge: Floats, view: View, tolerance: float) -> None:
        self._passes, self._loss, self._view = passes, loss, view
        self._ridge, self._tolerance = ridge, tolerance
        constant = loss.quadratic and not np.isfinite(view.limits).any()
        self._stride = 1 if constant else passes.stride
        self._dtype: type[np.floating[Any]] = np.float32
        self._factor: Any = None
        self._is_new, self._samples, self._first = False, 0, 0.0

    def direction(self, point: Point) -> Floats | None:
        self._is_new, self._first = self._factor is None, self._first or point.norm
        if self._factor is None:
            self._factor = self._factorize(point)
        if self._factor is None:
            return None
        return -np.asarray(cho_solve(self._factor, point.gradient[0], check_finite=False))[None, :]

    def judge(self, before: Point, after: Point) -> None:
        if after.norm == 0:  # there is nothing left to learn
            return
        contraction = after.norm / before.norm
        if self._stride > 1:
            self._samples += 1
            if contraction < _SETTLED or self._samples == _MOST_SAMPLES:
                self._stride = 1
            self._factor = None
            return
        if contraction >= 1 or math.log(after.norm / self._tolerance) > -_PATIENCE * math.log(contraction):
            if self._is_new and contraction > 0.5:
                self._dtype = np.float64
            self._factor = None

    def _factorize(self, point: Point) -> Any:
        """A factor of Hessian + ridge, with as much more on the diagonal as rounding makes necessary."""
        states = damped_states(self._passes, self._loss, self._view, point, self._first)
        hessian = self._passes.hessian(states, self._stride, self._dtype)
        if not np.isfinite(hessian).all():
            hessian = self._passes.hessian(states, self._stride, np.float64)
        ridge, size = self._ridge, float(np.trace(hessian))
        for _ in range(20):
            try:
                return cho_factor(hessian + np.diag(ridge), lower=True, check_finite=False)
            except LinAlgError:
                ridge = np.maximum(10 * ridge, 1e-15 * size)
        return None


class ConjugateSteps:
    """Solves by conjugate gradients, more exactly the nearer the minimum."""

    def __init__(self, passes: Smooth, loss: Loss, ridge: Floats, view: View, tolerance: float) -> None:
        self._passes, self._loss, self._view = passes, loss, view
        self._ridge, self._tolerance = ridge, tolerance
        self._first = 0.0

    def direction(self, point: Point) -> Floats | None:
        self._first = self._first or point.norm
        states = damped_states(self._passes, self._loss, self._view, point, self._first)
        enough = max(min(0.1, math.sqrt(point.norm / self._first)) * point.norm, 0.1 * self._tolerance)
        return self._solve(states, -point.gradient, enough)

    def judge(self, before: Point, after: Point) -> None:
        pass

    def _solve(self, states: Floats, right: Floats, enough: float) -> Floats:
        x, r = np.zeros_like(right), right.copy()
        d, squares = r.copy(), float((r * r).sum())
        for _ in range(_MOST_PRODUCTS):
            product = self._passes.product(states, d, self._view) + self._ridge * d
            step = squares / float((d * product).sum())
            x += step * d
            r -= step * product
            before, squares = squares, float((r * r).sum())
            if not math.sqrt(squares) > enough:
                break
            d = r + (squares / before) * d
        return x
