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
certified is left behind, and ``descent.py`` certifies one: for every data set, so that no failure can reveal records.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet.curator.certified.descent import Descent, Objective, Point, above, gradient_within, search, steps_for
from discreet.curator.certified.float_passes import Smooth, SparseSmooth, by_outputs
from discreet.curator.engines.base import LocalEngine
from discreet.curator.known_answers import check_smooth
from discreet.errors import Unsupported
from discreet.typing import Floats

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
    many columns or outputs; ``descent.py`` where that does not certify. Which of the two, and how many steps, is not
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
    passes = engine.smooth()
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
