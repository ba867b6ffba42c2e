"""The exact minimizer inside the wall: a point, and a proven bound on the true gradient's norm there.

    J(w) = sum_i weight_i l(x_i . w, y_i) + (1/2) sum_j ridge_j w_j^2 + b . w,      ridge_j >= lambda

in real units (the private copy's integers divided by ``grid.one``, exactly), weight_i = 1 / k for one of a
person's k rows. With a clip, l is replaced by the convex loss whose slope is l' clipped to +-clip / ||x_i||; with a
row norm R, x_i by x_i min(1, R / ||x_i||). These quotients are numbers of the objective's definition, as computed.
How the point was found does not matter to the proof: only the last gradient counts.

Theorem (certificate). Let u = 2^-53, gamma_k = k u / (1 - k u), beta = sup l'', r_i >= ||x_i||, and let hats be
computed values. Then ||grad J(w)|| <= ``gradient_norm``, the computed norm plus

1. margins: beta gamma_depth ||w|| sum weight_i r_i^2. A margin is a sum of products of which each passes through
   at most ``depth`` roundings, so |m^_i - m_i| <= gamma_depth |x_i| . |w| <= gamma_depth r_i ||w||; and slopes are
   beta-Lipschitz in the margin (as a vector of K margins, in the Frobenius norm, too), clipped or not.
2. evaluation: 2^-48 max(1, K / 8) (sum |c^_i| r_i + beta sum weight_i r_i). At a given margin a loss's kernel is off
   by at most 2^-48 max(1, K / 8) (|slope| + beta) (tests compare every loss with 60 digits, tails included; three
   further roundings for weight and shrinking, and the clip, which is a contraction with a limit that is the loss's own
   definition, fit into the same 32 u). A slope above its limit by more than that is clipped in truth too, so
   the clipped slope may stand for the unclipped one. c_i is weight_i times the slope.
3. summation: (gamma_terms + gamma_n^2) sum |c^_i| r_i. Each product passes through at most ``terms`` plain
   roundings; sums of blocks (sparse: single products) are added with their rounding errors kept, which leaves one
   rounding and gamma_n^2 of the sum of sizes (Ogita, Rump & Oishi 2005). Entry by entry |c_i x_ij|, in norm
   |c_i| r_i by the triangle inequality.
4. the rest: gamma_4 (||sum|| + max ridge ||w|| + ||b||) for forming ridge w + b + sum.

The bound's own arithmetic is off by less than a relative 2^-20 for fewer than 2^31 numbers, and underflow adds less
than 2^-400; both are added. NaN and overflow make the bound NaN or infinite: not certified. A point that is not
certified is left behind, and ``Descent`` certifies one: for every data set, so that no failure can reveal records.

**Newton steps**, for smooth or piecewise smooth convex objectives: Cholesky or conjugate gradients, and a line search.
A gradient costs one pass over the records, a Hessian several: its factor is kept as long as it still contracts the
gradient well enough. Far from the minimum a sample of the records is Hessian enough; and single precision is, unless
the problem is too ill-conditioned for it. No decision here touches the certificate, which is
proven above.

**The last resort.** Whether a minimizer is found may not depend on records: that would be an answer in no price.
Newton's method in doubles nearly always certifies its point, but nothing proves that it does: rounding may exceed the
tolerance, and a loss with corners may send it in circles. What it leaves is done here, with gradients to any precision.

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

**The gradient to any precision**: whole numbers, and decimals for the losses' slopes.
Coefficients are whole numbers W over 2^bits, so that a record's product x . W is exact. A slope is computed in decimals
of ``digits`` digits, times the record's pull, and rounded to a whole number over 2^q; the sum of these times x is
exact again, and ridge w + b is rounded once per entry. Slow, some 20 microseconds per record: it is asked for
where double precision does not reach.

Theorem (error). Let u = 5 10^-digits, so that an operation is off by at most u times its result. Then the gradient is
off, in norm, by at most the sum over the records of

    pull ||x|| (24 + 2 K) u (1 + |slope| + beta (1 + |m| + |t|))  +  K ||x|| 2^-q,   and  2 sqrt(K p) 2^-q once.

Proof. The margin m = shrink (x . W) 2^-bits passes through three roundings, so it is off by at most 3.01 u |m|, which
moves the slope by at most 3.01 u beta |m|; the slope itself is off by the bound of ``slopes_in_decimals``, with 16 in
place of 24, as a vector of K outputs; a clip is a contraction; the pull (shrink over the person's number of rows) and
the step to units of 2^-q are three more roundings, u each relative to the slope, and the last one is to a whole number,
in each of the K outputs. Both slopes and margins may be replaced by computed ones, at 1/256 more. x is as stored and
||x|| the copy's ceiling of its norm. Rounding ridge w and b to whole numbers costs at most one unit per entry. QED

``digits`` and q are raised until the bound is as small as asked: it falls by 10^-1 per digit, so this always ends.
"""

import decimal
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from discreet.curator.certified.float_passes import Smooth, SparseSmooth, View, by_outputs
from discreet.curator.engines import LocalEngine
from discreet.curator.known_answers import check_smooth
from discreet.curator.records.admission import Records
from discreet.errors import Unsupported
from discreet.losses.base import Loss, slopes_in_decimals
from discreet.typing import Floats, Integers

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
class Objective:
    """J: a loss, lambda (for the sum, not the mean), the linear term b ((p,) or (p, K)), and two bounds, in real units.

    ``clip`` bounds the norm of every record's gradient; records longer than ``row_norm`` are shrunk onto it. ``extra``
    are numbers that are not negative, one per column, which are added to lambda there.
    """

    loss: Loss
    regularization: float
    linear: Floats
    clip: float = math.inf
    row_norm: float = math.inf
    extra: Floats | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.regularization < math.inf:
            raise Unsupported("the regularization must be finite, and not negative")
        if self.extra is not None and not (np.isfinite(self.extra) & (self.extra >= 0)).all():
            raise Unsupported("what is added to the regularization must be finite, and not negative")
        if not (self.clip > 0 and self.row_norm > 0):
            raise Unsupported("the clip and the norm of rows must be positive")
        if self.loss.n_outputs > 1 and self.clip < math.inf:
            raise Unsupported(
                "the clipped gradient of a loss of several outputs is no gradient of a convex function: "
                "declare bounds on the features, which bound it without a clip"
            )

    @property
    def ridge(self) -> Floats:
        """Return lambda and what is added to it, one number per column, as computed: none is below lambda."""
        extra = np.zeros(len(self.linear)) if self.extra is None else self.extra
        return np.asarray(self.regularization + extra)


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


Whole = NDArray[np.object_]
"""Python's integers, of any size, one row per output: (K, p)."""

_BLOCK = 1 << 12
"""Records at once."""
_FIRST_DIGITS = 40
_BITS_PER_DIGIT = 3.4  # a little more than log2(10)


def whole(values: Floats, bits: int) -> Whole:
    """Return finite doubles times 2^bits, rounded to whole numbers."""
    unit = Fraction(2) ** bits
    exact = [round(Fraction(value) * unit) for value in values.ravel().tolist()]
    return np.array(exact, dtype=object).reshape(values.shape)


def doubles(integers: Whole, bits: int) -> Floats:
    """Return whole numbers over 2^bits as the nearest doubles; beyond their range, the largest."""
    unit, up = 1 << max(bits, 0), 1 << max(-bits, 0)
    largest = int(np.finfo(np.float64).max) * unit
    fitted = [min(max(int(v) * up, -largest), largest) / unit for v in integers.ravel()]
    return np.array(fitted, dtype=np.float64).reshape(integers.shape)


@dataclass(frozen=True)
class ExactPoint:
    """A point W / 2^bits, the gradient G / 2^q there, bounds on its norm and on its error, and all margins."""

    w: Whole
    gradient: Whole
    q: int
    norm: Fraction
    error: Fraction
    margins: Floats

    @property
    def bound(self) -> Fraction:
        """Above the true gradient's norm."""
        return self.norm + self.error


class ExactGradient:
    """Gradients of J over private records at coefficients with ``bits`` fractional bits."""

    def __init__(self, records: Records, view: View, objective: Objective, linear: Floats, bits: int) -> None:
        self._records, self._loss, self.bits = records, objective.loss, bits
        self._ridge, self._linear = [Fraction(r) for r in objective.ridge.tolist()], linear
        self._places = view.limits.size  # the copy's layout pads its records
        n = records.n_rows
        self._shrinks, self._limits = view.shrinks.ravel()[:n], view.limits.ravel()[:n]
        self._shares = np.ones(n, dtype=np.int64) if records.shares is None else records.shares
        self._digits = _FIRST_DIGITS

    def at(self, w: Whole, accuracy: Fraction) -> ExactPoint:
        """Return the gradient at ``w``, off by at most ``accuracy`` in norm."""
        while True:
            point = self._pass(w)
            if point.error <= accuracy:
                return point
            self._digits *= 2

    def _pass(self, w: Whole) -> ExactPoint:
        records, outputs, q = self._records, len(w), math.ceil(_BITS_PER_DIGIT * self._digits)
        q_sum, total = q + records.grid.bits, np.full(w.shape, 0, dtype=object)
        margins, sizes, lengths = np.zeros((self._places, outputs)), Decimal(0), 0
        context = decimal.Context(self._digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
        with decimal.localcontext(context):
            unit, scale = 1 / Decimal(1 << (self.bits + records.grid.bits)), Decimal(1 << q)
            for chosen, values, columns, starts in self._blocks():
                products = np.array([np.add.reduceat(values * row[columns], starts) for row in w])
                coefficients = np.empty((outputs, len(chosen)), dtype=object)
                for j, i in enumerate(chosen.tolist()):
                    shrink = Decimal(float(self._shrinks[i]))
                    row_margins = [Decimal(int(product)) * unit * shrink for product in products[:, j]]
                    slopes, pull = self._slopes(i, row_margins), shrink / int(self._shares[i])
                    coefficients[:, j] = [int((slope * pull * scale).to_integral_value()) for slope in slopes]
                    margins[i] = [float(m) for m in row_margins]
                    sizes += self._size(i, row_margins, slopes) * pull * int(records.norms[i])
                    lengths += int(records.norms[i])
                counts = np.diff(np.append(starts, len(values)))
                for row, own_coefficients in zip(total, coefficients, strict=True):
                    np.add.at(row, columns, np.repeat(own_coefficients, counts) * values)
        gradient = total + self._smooth_part(w, q_sum)
        norm = Fraction(math.isqrt(sum(int(g) ** 2 for g in gradient.ravel())) + 1, 1 << q_sum)
        roundings = Fraction(24 + 2 * outputs) * Fraction(5, 10**self._digits) * Fraction(sizes) / records.grid.one
        last = Fraction(outputs * lengths + 2 * math.isqrt(w.size) + 2, 1 << q_sum)
        return ExactPoint(w, gradient, q_sum, norm, roundings * Fraction(257, 256) + last, margins)

    def _slopes(self, i: int, margins: list[Decimal]) -> list[Decimal]:
        limit = Decimal(float(self._limits[i]))
        slopes = slopes_in_decimals(self._loss, margins, Decimal(float(self._records.targets[i])))
        return [max(min(slope, limit), -limit) for slope in slopes]

    def _size(self, i: int, margins: list[Decimal], slopes: list[Decimal]) -> Decimal:
        """What the error of a record's slope is in proportion to."""
        largest = max(abs(margin) for margin in margins) + abs(Decimal(float(self._records.targets[i])))
        return 1 + sum((abs(s) for s in slopes), Decimal(0)) + Decimal(float(self._loss.smoothness)) * (1 + largest)

    def _smooth_part(self, w: Whole, q: int) -> Whole:
        """ridge w + b, in units of 2^-q."""
        unit = Fraction(2) ** (q - self.bits)
        shares = [ridge * unit for ridge in self._ridge] * len(w)
        scaled = [(share.numerator * int(v)) // share.denominator for share, v in zip(shares, w.ravel(), strict=True)]
        return np.asarray(np.array(scaled, dtype=object).reshape(w.shape) + whole(self._linear, q))

    def _blocks(self) -> Iterator[tuple[Integers, Whole, Integers, Integers]]:
        """Records that are not null, some at a time: which, their entries, the entries' columns, where each begins."""
        records = self._records
        nonzero = np.flatnonzero(records.norms > 0)
        for first in range(0, len(nonzero), _BLOCK):
            chosen = nonzero[first : first + _BLOCK]
            if records.sparse is None:
                assert records.rows is not None
                columns = np.tile(np.arange(records.n_columns), len(chosen))
                starts = np.arange(len(chosen)) * records.n_columns
                yield chosen, records.rows[chosen].ravel().astype(object), columns, starts
                continue
            indptr, indices, data = records.sparse
            counts = (indptr[chosen + 1] - indptr[chosen]).astype(np.int64)
            starts = np.cumsum(counts) - counts
            places = np.repeat(indptr[chosen] - starts, counts) + np.arange(counts.sum())
            yield chosen, data[places].astype(object), indices[places].astype(np.int64), starts


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

    def __init__(self, records: Records, passes: Smooth, view: View, objective: Objective, tolerance: float) -> None:
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
            candidate = self._along(point, direction, scale)
            moved = doubles(candidate.w - point.w, self._gradient.bits)
            turned = doubles((candidate.gradient << point.q) - (point.gradient << candidate.q), point.q + candidate.q)
            self._directions.learn(moved, turned)
            return candidate
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

    def __init__(self, passes: Smooth, objective: Objective, view: View) -> None:
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
            step = steps_for(self._passes, self._loss, self._ridge, self._view, 0.0).direction(point)
            return -gradient if step is None else step
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


def smoothness(view: View, objective: Objective) -> Fraction:
    """Above the Lipschitz constant of the losses' gradient: beta sum weight ||x||^2, the sum's own rounding added."""
    return Fraction(objective.loss.smoothness) * Fraction(view.sum_of_squares) * (1 + Fraction(1, 1 << 20))


def _largest_ridge(objective: Objective) -> Fraction:
    """Return the largest curvature that is added to the losses'."""
    return Fraction(float(objective.ridge.max(initial=0.0)))


def gradient_within(
    records: Records, view: View, objective: Objective, w: Floats, allowed: float
) -> tuple[Floats, float]:
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


MAX_STEPS = 200
"""Newton steps in doubles, at most. The number taken depends on data and never leaves."""

_UNIT = 2.0**-53


@dataclass(frozen=True)
class Minimum:
    """A point, and a proven upper bound on the true ||grad J|| there."""

    point: Floats
    gradient_norm: float


def minimize(engine: LocalEngine, objective: Objective, tolerance: float) -> Minimum:
    """Return the doubles nearest to a point at which ||grad J|| is certainly at most ``tolerance``: for every records.

    Newton's method, by Cholesky factors that are kept while they serve, or by conjugate gradients where there are
    many columns or outputs; ``Descent`` where that does not certify. Which of the two, and how many steps, is not
    reported. Only facts that are not of the records are refused.
    """
    if not objective.regularization > 0:
        raise Unsupported("a minimizer needs a positive regularization: without one it need not exist")
    if not (tolerance > 0 and np.isfinite(objective.linear).all()):
        raise Unsupported("a minimizer needs a positive tolerance and a finite linear term")
    with np.errstate(all="ignore"):  # a warning is an answer
        problem = _certified(engine, objective)
        minimum = _by_newton(problem, tolerance) or _by_descent(engine, problem, tolerance)
    point = minimum.point.T if objective.linear.ndim == 2 else minimum.point[0]
    return Minimum(np.ascontiguousarray(point), minimum.gradient_norm)


def certified_gradient(
    engine: LocalEngine, objective: Objective, w: Floats, allowed: float = math.inf
) -> tuple[Floats, float]:
    """The gradient of J at ``w``, and a proven bound on its distance from the true one, at most ``allowed``.

    ``allowed`` must be more than 2^-50 times the gradient's norm, which its own rounding to doubles may take.
    """
    with np.errstate(all="ignore"):
        problem = _certified(engine, objective)
        point = problem.at(by_outputs(w))
        gradient, error = point.gradient, above(point.error)
        if not error <= allowed:
            gradient, error = gradient_within(engine.records, problem.view, objective, by_outputs(w), allowed)
    return np.ascontiguousarray(gradient.T if w.ndim == 2 else gradient[0]), error


def _certified(engine: LocalEngine, objective: Objective) -> "_Certified":
    passes = engine.smooth
    check_smooth(objective.loss, sparse=isinstance(passes, SparseSmooth), grid=engine.grid)
    return _Certified(passes, objective)


def _by_newton(problem: "_Certified", tolerance: float) -> Minimum | None:
    """The minimum by Newton's method in doubles; None where that does not certify, whatever the reason."""
    objective = problem.objective
    try:
        steps = steps_for(problem.passes, objective.loss, problem.ridge, problem.view, tolerance)
        end = search(problem.at, problem.at(np.zeros_like(problem.linear)), steps, tolerance, MAX_STEPS)
    except Exception:  # of linear algebra or memory: an outcome that depends on records, so none that may leave
        return None
    return Minimum(end.w, end.bound) if end.bound <= tolerance else None


def _by_descent(engine: LocalEngine, problem: "_Certified", tolerance: float) -> Minimum:
    end = Descent(engine.records, problem.passes, problem.view, problem.objective, tolerance).run()
    return Minimum(*end)


class _Certified:
    """The objective on an engine's records: gradients with their error bounds."""

    def __init__(self, passes: Smooth, objective: Objective) -> None:
        self.passes, self.objective = passes, objective
        self.linear, self.ridge = by_outputs(objective.linear), objective.ridge
        self.view = passes.view(objective.clip, objective.row_norm)

    def at(self, w: Floats) -> Point:
        slopes = self.passes.slopes(w, self.objective.loss, self.view)
        gradient = slopes.gradient + self.ridge * w + self.linear
        error = self._error(float(np.linalg.norm(w)), float(np.linalg.norm(slopes.gradient)), slopes.size)
        return Point(w, gradient, float(np.linalg.norm(gradient)), error, slopes.margins)

    def _error(self, length: float, total: float, size: float) -> float:
        """The sum of the theorem's four terms."""
        passes, loss = self.passes, self.objective.loss
        beta, evaluation = loss.smoothness, 2.0**-48 * max(1.0, loss.n_outputs / 8)
        rest = total + float(self.ridge.max(initial=0.0)) * length + float(np.linalg.norm(self.linear))
        return float(
            beta * _gamma(passes.depth) * length * self.view.sum_of_squares
            + evaluation * (size + beta * self.view.sum_of_norms)
            + (_gamma(passes.terms) + _gamma(passes.n_rows) ** 2) * size
            + _gamma(4) * rest
        )


def _gamma(k: int) -> float:
    return k * _UNIT / (1 - k * _UNIT)
