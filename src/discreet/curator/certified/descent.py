"""The minimizer's last resort: descent that certifies a point of every data set, in a bounded number of steps.

Whether a minimizer is found may not depend on records: that would be an answer in no price. Newton's method in doubles
(``minimize.py``) nearly always certifies its point, but nothing proves that it does: rounding may exceed the tolerance,
and a loss with corners may send it in circles. What it leaves is done here, with ``exact_gradient.py``'s gradients.

Theorem (the end is reached). Let J be lambda-strongly convex, g its gradient, L-Lipschitz, kappa = L / lambda, tau the
tolerance. Let computed gradients G be off by at most E <= tau / 16, and let a point count as certified where the
computed bound on ||g|| (at least ||G|| + E, at most ||G|| + 2 E) is at most tau. From w = 0 the steps

    w+ = w - G(w) / L,  rounded by at most tau / (16 L),

meet a certified point within ceil((16/15) kappa ln(2 kappa (a / tau)^2)) + 1 steps, a = ||G(0)||.

Proof. Put w+ - w = -(g + e) / L; then ||e|| <= E + tau / 16 <= tau / 8. By the descent lemma

    J(w+) <= J(w) + g.(w+ - w) + (L/2) ||w+ - w||^2 = J(w) - (||g||^2 - ||e||^2) / (2 L).

A point that is not certified has ||g|| >= ||G|| - E > tau - 3 E >= 13 tau / 16, so ||e||^2 < ||g||^2 / 16 and the step
gains at least (15/16) ||g||^2 / (2 L). With gap = J(w) - min J this says two things. Since ||g||^2 >= 2 lambda gap, the
gap shrinks to at most 1 - 15/(16 kappa) of itself. And since no step gains more than the gap, the gap at such a point
is more than (15/16)(13/16)^2 tau^2 / (2 L) > 0.3 tau^2 / L. At the start the gap is at most ||g(0)||^2 / (2 lambda) <=
0.6 a^2 / lambda. So k steps without a certified point mean e^(-15 k / (16 kappa)) 0.6 a^2 / lambda > 0.3 tau^2 / L. QED

*Shortcuts.* The proof speaks of the gap alone, so that between two steps the point may be exchanged for any at which J
is no larger. That is certain where g(new).(new - old) <= 0, because J(old) >= J(new) + g(new).(old - new) by convexity;
the gradient's error is counted against it. Each step is preceded by one such attempt, of at most ``_TRIALS`` passes,
along Newton's direction or that of BFGS. They make the way short in practice and cannot make it longer.

*Public bounds.* As computed (a power of two), L <= 4 (beta n R^2 + the largest ridge); and a <= n C + ||b|| + tau.
Precision is raised to whatever E is asked for, so that no condition is left: the loop ends with a certificate and in
no other way. How long that takes is public, too: solvers refuse before the charge where kappa exceeds
``MOST_CURVATURE``.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.curator.certified.exact_gradient import ExactGradient, ExactPoint, Whole, doubles, whole
from discreet.curator.certified.float_passes import Smooth, View, by_outputs
from discreet.curator.certified.newton_steps import Point, steps_for
from discreet.curator.records.admission import Records
from discreet.typing import Floats

MOST_CURVATURE = 2.0**44
"""The largest beta R^2 over the regularization, per record, for which a minimizer is promised."""
_TRIALS = 60
"""Points looked at along one direction, at most."""
_MOST_REMEMBERED = 1000
"""Coefficients up to which BFGS's matrix is kept."""


def most_steps(kappa: Fraction, start: Fraction, tolerance: Fraction) -> int:
    """Return the theorem's number of steps from a gradient of norm ``start``."""
    ratio = 2 * kappa * start**2 / tolerance**2
    logarithm = math.log(ratio.numerator) - math.log(ratio.denominator)
    return math.ceil(Fraction(16, 15) * kappa * Fraction(max(0.0, logarithm) * (1 + 2.0**-40))) + 1


class Descent:
    """Gradient steps, and Newton's where they surely descend, on one objective with exact gradients."""

    def __init__(self, records: Records, passes: Smooth, view: View, objective: Any, tolerance: float) -> None:
        linear, strength = by_outputs(objective.linear), Fraction(objective.regularization)
        self.tolerance, self.shape = Fraction(tolerance), linear.shape
        self.exponent = _exponent_above(smoothness(view, objective) + _largest_ridge(objective))
        self.kappa = Fraction(2) ** self.exponent / strength
        # a step is rounded by less than one unit per entry, sqrt(size) 2^-bits in norm
        bits = _exponent_above(16 * Fraction(2) ** self.exponent * (math.isqrt(linear.size) + 1) / self.tolerance)
        self._gradient = ExactGradient(records, view, objective, linear, max(bits, 0))
        self._directions = Directions(passes, objective, view)

    def run(self) -> tuple[Floats, float]:
        """Return the certified point as doubles, (K, p), and the bound on its gradient."""
        point = self.at(np.full(self.shape, 0, dtype=object))
        while not self.is_certified(point):
            point = self.step(self.attempt(point))
        return doubles(point.w, self._gradient.bits), _above(point.bound)

    def at(self, w: Whole) -> ExactPoint:
        """The gradient at a point, as exactly as the theorem asks."""
        return self._gradient.at(w, self.tolerance / 16)

    def is_certified(self, point: ExactPoint) -> bool:
        """Whether the gradient there is surely within the tolerance."""
        return point.bound <= self.tolerance

    def step(self, point: ExactPoint) -> ExactPoint:
        """w - G / L, where L is a power of two: a shift, rounded down. A certified point is kept."""
        if self.is_certified(point):
            return point
        shift = point.q + self.exponent - self._gradient.bits
        return self.at(point.w - (point.gradient >> shift if shift >= 0 else point.gradient << -shift))

    def attempt(self, point: ExactPoint) -> ExactPoint:
        """A point along some direction that surely is no worse; the same one where there is none."""
        try:
            scale = _scale(point)
            direction = self._directions.next(doubles(point.gradient, point.q + scale), point.margins)
            found = self._along(point, direction, scale)
            moved = doubles(found.w - point.w, self._gradient.bits)
            turned = doubles((found.gradient << point.q) - (point.gradient << found.q), point.q + found.q)
            self._directions.learn(moved, turned)
            return found
        except Exception:  # of linear algebra or memory: it depends on records, and without an attempt the step remains
            return point

    def _along(self, start: ExactPoint, direction: Floats, scale: int) -> ExactPoint:
        """Where the slope along the direction, times 2^scale, has at least halved, and not turned."""
        best, low, high, size = start, 0.0, math.inf, 1.0
        first = low_slope = float((doubles(start.gradient, start.q + scale) * direction).sum())
        high_slope = math.inf
        for _ in range(_TRIALS):
            trial = self.at(start.w + whole(size * direction, self._gradient.bits + scale))
            if self.is_certified(trial):
                return trial
            slope = float((doubles(trial.gradient, trial.q + scale) * direction).sum())
            if self._descends(start, trial):
                best, low, low_slope = trial, size, slope
                if abs(slope) <= 0.5 * abs(first):
                    break
            else:
                high, high_slope = size, slope
            if high == math.inf:
                size *= 4.0
            else:
                share = low_slope / (low_slope - high_slope)
                size = low + (high - low) * (min(max(0.9 * share, 0.1), 0.9) if share == share else 0.1)
        return best

    def _descends(self, start: ExactPoint, trial: ExactPoint) -> bool:
        """Whether g(trial) . (trial - start) <= 0 surely: then J is no larger at the trial, being convex."""
        way = trial.w - start.w
        slope = int((trial.gradient * way).sum())
        length = math.isqrt(int((way * way).sum())) + 1
        return slope <= 0 and Fraction(-slope, 1 << trial.q) >= trial.error * length


class Directions:
    """Where to look next, in doubles: Newton's direction, and BFGS's in turn, which corners do not confuse.

    Nothing rests on these but speed.
    """

    def __init__(self, passes: Smooth, objective: Any, view: View) -> None:
        self._passes, self._loss, self._view = passes, objective.loss, view
        self._ridge = objective.ridge
        self._inverse: Floats | None = None
        self._turn = 0

    def next(self, gradient: Floats, margins: Floats) -> Floats:
        """A direction of descent, of the gradient's shape."""
        self._turn += 1
        if self._turn % 2 and self._inverse is not None:
            return -(self._inverse @ gradient.ravel()).reshape(gradient.shape)
        if self._loss.n_outputs > 1 or not self._passes.can_form_hessian:
            norm = float(np.linalg.norm(gradient))
            point = Point(gradient, gradient, norm, 0.0, margins)
            found = steps_for(self._passes, self._loss, self._ridge, self._view, 0.0).direction(point)
            return -gradient if found is None else found
        hessian = self._passes.hessian(self._passes.states(margins, self._loss, self._view))
        values, axes = np.linalg.eigh(hessian + np.diag(self._ridge))
        curvature = np.maximum(values, float(self._ridge.min()))
        return np.asarray(-(axes @ ((axes.T @ gradient[0]) / curvature))[None, :])

    def learn(self, moved: Floats, turned: Floats) -> None:
        """BFGS's update of the inverse Hessian, by how far the gradient turned over this move."""
        s, y = moved.ravel(), turned.ravel()
        product = float(s @ y)
        if not product > 0 or s.size > _MOST_REMEMBERED:
            return
        if self._inverse is None:
            self._inverse = np.eye(s.size) * (product / float(y @ y))
        left = np.eye(s.size) - np.outer(s, y) / product
        inverse = left @ self._inverse @ left.T + np.outer(s, s) / product
        self._inverse = inverse if np.isfinite(inverse).all() else None


def smoothness(view: View, objective: Any) -> Fraction:
    """Above the Lipschitz constant of the losses' gradient: beta sum weight ||x||^2, the sum's own rounding added."""
    return Fraction(objective.loss.smoothness) * Fraction(view.sum_of_squares) * (1 + Fraction(1, 1 << 20))


def _largest_ridge(objective: Any) -> Fraction:
    """Return the largest curvature that is added to the losses'."""
    return Fraction(float(objective.ridge.max(initial=0.0)))


def gradient_within(records: Records, view: View, objective: Any, w: Floats, allowed: float) -> tuple[Floats, float]:
    """Return the gradient at ``w`` (K, p) in doubles, off by at most ``allowed``, and a bound on by how much it is."""
    goal = Fraction(allowed) / 4
    most = smoothness(view, objective) + _largest_ridge(objective) + 1
    # as many bits as keep the rounding of w, times the smoothness, within the goal
    bits = max(_exponent_above(most * (math.isqrt(w.size) + 1) / goal), 0)
    point = ExactGradient(records, view, objective, by_outputs(objective.linear), bits).at(whole(w, bits), goal)
    gradient = doubles(point.gradient, point.q)
    return gradient, _above(point.error + goal + point.norm * Fraction(1, 1 << 52))


def _scale(point: ExactPoint) -> int:
    """The power of two that brings a gradient near 1, so that doubles hold it whatever its size."""
    return max(int(v).bit_length() for v in point.gradient.ravel()) - point.q


def _exponent_above(value: Fraction) -> int:
    """The least power of two that is certainly not below: of its exponent."""
    return value.numerator.bit_length() - value.denominator.bit_length() + 1


def _above(value: Fraction) -> float:
    """A double that is not below; infinite beyond their range."""
    try:
        return math.nextafter(float(value), math.inf)
    except OverflowError:
        return math.inf
