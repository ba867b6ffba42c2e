"""What a loss is: a NamedTuple, with scalar kernels for its arithmetic and attributes for its constants.

The kernels are dispatched on the loss's class, in plain Python and inside compiled loops alike:

``value(loss, margin, target)``, ``derivative(loss, margin, target)``, ``curvature(loss, margin, target)``
    of one output: the loss of a record, its first and its second derivative in the margin x.w.
``least(loss, target)``
    about the least loss of a record with this target, so that what is above it is not negative: mostly 0.
``values(loss, margins, target)``, ``derivatives(loss, margins, target, out)``
    of any number of outputs: the loss, and its gradient in the margins, which are arrays of length K.
``couplings(loss, margins, target, room, out)``
    of several outputs whose loss a common shift of all margins does not change: what couples outputs k < l, in the
    order (0, 1), (0, 2), ..., (1, 2), ... The Hessian in the margins is the sum of couplings times
    (e_k - e_l) (e_k - e_l)^T. For intervals; ``room`` is for K numbers.
``slopes_in_decimals(loss, margins, target)``
    that gradient once more, to the precision of the current decimal context: for the minimizer's last resort.

A new loss is one file: the class, its kernels, and ``one_output(cls)`` where K = 1.

The constants of a record's loss as a function of the coefficients follow from what is declared of the data: its
gradient is f'(x.w) x and its Hessian f''(x.w) x x^T; hence, with R the bound on ||x|| and r_j the bound on |x_j|, each
constant is one of the loss times a power of R or r_j (``gradient_bound`` and others).
"""

from __future__ import annotations  # a loss brings the compiler, which its constants do not need

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import singledispatch
from typing import Protocol, Self

import numpy as np

from discreet.bounds import Domain, Range, target_place
from discreet.errors import Unsupported
from discreet.registry import BUILT_IN_LOSSES, Registry, not_a_tuple
from discreet.scalar_functions import scalar_function
from discreet.typing import Floats

value = scalar_function("value")
derivative = scalar_function("derivative")
curvature = scalar_function("curvature")
least = scalar_function("least")
values = scalar_function("values")
derivatives = scalar_function("derivatives")
couplings = scalar_function("couplings")

_FLAT = Decimal(10_000)
"""Beyond this an exponential is taken as at it: e^-10000 is smaller than any error that is counted."""

MOST_OFFSET = 600.0
"""The largest offset of a loss with a log link: exp of more is no finite number, or leaves no room for a target."""
LEAST_LOG = -700.0
"""The least logarithm of a mean: exp of less is hardly a positive number."""
USUAL_MEAN = 0.1
"""The unit of amounts, in units of the end of their range: about their mean, so that constants are near 0."""


@singledispatch
def slopes_in_decimals(loss: Loss, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    """Return the gradient in the margins, in the current decimal context.

    With u half a unit in the last of the context's digits, relative to the number, the answer is off by at most
    (16 + 2 K) u (1 + |gradient| + smoothness (1 + largest |margin| + |target|)): a handful of roundings, of which
    those in the argument of an exponential count |margin| times.
    """
    raise Unsupported("this loss has no slopes in decimals, which an exact minimizer needs: use solver='gd'")


def exp_in_decimals(argument: Decimal) -> Decimal:
    """Return e to this power, the power held within +-10000."""
    return max(min(argument, _FLAT), -_FLAT).exp()


class Loss:
    """What others ask of a loss, with the answers that most give: one's own states what differs.

    Suprema run over all margins and all allowed targets. ``task`` and ``smoothness`` have no default.

    Privacy does not rest on what a loss says, for solvers that clip: every record's contribution is clipped in
    integers, whatever the kernels return. Output, objective and exponential perturbation add noise for a sensitivity
    that is computed from ``lipschitz``, ``smoothness`` and convexity. They refuse a loss that does not say ``proven``,
    which its author may do where the docstring proves the constants, and one whose constants disagree with its kernels
    on a grid of points (``disagreements.require_proof``).

    Attributes
    ----------
    task : {"classification", "regression"}
        What is predicted.
    entry_lipschitz, entry_smoothness : float or None
        The largest |first| and second derivative in one of several margins, where they are less than the whole's.
    normal_curvature : float or None
        The mean curvature where normal targets are predicted by a constant, where it is less than the largest by far.
    one_signed : bool
        Whether a record's target fixes the sign of the derivative.
    proven : bool
        Whether convexity and the constants are proven, so that a sensitivity may rest on them.
    quadratic : bool
        Whether the curvature is constant, so that minimizers are linear and posteriors Gaussian.
    nonnegative : bool
        Whether no record's loss is below 0.
    log_link : bool
        Whether the margin is the logarithm of the predicted mean.
    sigmoid_link : bool
        Whether sigmoid(margin) is the predicted probability of the positive class.
    movable_target : bool
        Whether the loss depends on margin - target alone, so that targets may be centered and scaled.
    unit_free : bool
        Whether dividing all targets by a number moves the intercept of a log link alone, so that they are divided.
    offsets_weigh : bool
        Whether an offset changes a record's weight, the more the larger it is.
    has_standard_errors : bool
        Whether the law of its estimates is known, so that ``inference`` serves it where its other facts do.
    softmax_link : bool
        Whether softmax(margins) are the predicted probabilities of the classes; ``couplings`` is then defined.
    n_outputs : int
        K, the number of margins of a record.
    margin_name : str
        What the margin is called where coefficients are explained.

    Examples
    --------
    >>> from discreet.losses import Logistic, Loss
    >>> isinstance(Logistic(), Loss), Logistic().task
    (True, 'classification')
    """

    __slots__ = ()
    task: str
    entry_lipschitz: float | None = None
    entry_smoothness: float | None = None
    normal_curvature: float | None = None
    one_signed = False
    proven = False
    quadratic = False
    nonnegative = False
    log_link = False
    sigmoid_link = False
    softmax_link = False
    movable_target = False
    unit_free = False
    offsets_weigh = False
    has_standard_errors = True
    n_outputs: int = 1
    margin_name = "the prediction"

    @property
    def lipschitz(self) -> float:
        """The largest norm of the derivative; inf where targets or margins would have to be bounded."""
        return math.inf

    @property
    def smoothness(self) -> float:
        """The largest curvature (eigenvalue of the Hessian in the margins)."""
        raise Unsupported(f"{type(self).__name__} does not say what its largest curvature is: define smoothness")

    @property
    def perturbation_slopes(self) -> str:
        """By which formula objective perturbation prices the slopes (``accounting/objective_perturbation.py``)."""
        return "one_signed" if self.one_signed else "two_signed"

    @property
    def prediction_limit(self) -> float:
        """With a log link: the prediction is exp(margin), of a margin held below this, so that it stays finite."""
        return 700.0

    def variance(self, mean: float) -> float:
        """With a log link: return how much targets of this mean vary, up to a factor. See ``losses/log_link.py``."""
        raise Unsupported(f"{type(self).__name__} does not say how much its targets vary: define variance")

    def lipschitz_for(self, target_bound: float, margin_bound: float = math.inf) -> float:
        """Return the largest norm of the derivative where |target| and |margin| are bounded."""
        return self.lipschitz

    def typical_slope(self, target_bound: float) -> float:
        """Return about the size of the derivative on most records early in training: default clips follow it."""
        return min(0.5, self.lipschitz_for(target_bound))

    def typical_curvature(self, target_bound: float) -> float:
        """Return about the curvature on most records: default steps follow it."""
        return self.smoothness

    def perturbed_curvature(self, row_norm: float, bound: float) -> float:
        """Return sup f'' ||x||^2 over rows of norm up to ``row_norm`` whose gradients are clipped at ``bound``."""
        return self.smoothness * row_norm**2

    def with_target_scale(self, scale: float) -> Self:
        """Return the loss of targets and margins that are divided by ``scale``, up to a factor."""
        raise Unsupported(f"{type(self).__name__} does not say what it is on another scale: define with_target_scale")

    def widened(self, width: float) -> Self:
        """Return a loss whose slopes have no bound below this one, for steps that come from afar."""
        return self

    def bounded_on(self, margin_bound: float, target_bound: float) -> Loss:
        """Return a convex loss that equals this one where margins and targets are bounded, with a bounded slope."""
        return self

    def without_offsets(self, targets: Floats, offsets: Floats) -> tuple[Floats, Floats]:
        """Return targets and weights with which this loss of x.w is that of x.w + offset, up to terms without w.

        A map of one record. A loss of residuals has the target less the offset; others say what they do.
        """
        if not self.movable_target:
            raise Unsupported(f"offsets are not defined for the {type(self).__name__} loss: leave them out")
        return targets - offsets, np.ones_like(targets)

    def offset_target_range(self, ends: tuple[float, float], offsets: tuple[float, float]) -> tuple[float, float]:
        """Return where the targets of ``without_offsets`` lie, in the size that weighted slopes have."""
        return ends[0] - offsets[1], ends[1] - offsets[0]

    def with_offsets(self, offsets: tuple[float, float]) -> Loss:
        """Return the loss of the targets that ``without_offsets`` returns: mostly this one. Refuse where it does."""
        if self.log_link and max(map(abs, offsets)) > MOST_OFFSET:
            raise Unsupported("offsets of a loss with a log link must be declared within [-600, 600]")
        self.without_offsets(np.zeros(1), np.zeros(1))
        return self

    def prediction(self, margins: Floats) -> Floats:
        """Return the predicted targets of a regression: its margins, or exp of them within the limit."""
        return np.asarray(np.exp(np.clip(margins, LEAST_LOG, self.prediction_limit))) if self.log_link else margins

    def slopes_at(self, margins: Floats, target: float) -> Floats:
        """Return the derivatives of one output at these margins, up to rounding: for models of records, and no sums."""
        return np.array([derivative(self, margin, target) for margin in margins.tolist()])

    def bends_at(self, margins: Floats, target: float) -> Floats:
        """Return the curvatures at these margins, likewise."""
        return np.array([curvature(self, margin, target) for margin in margins.tolist()])

    def target_place(self, ends: Range, *, intercept: bool) -> tuple[float, float]:
        """Return the center and the scale of targets in training coordinates, from their declared range."""
        if self.log_link:
            return 0.0, USUAL_MEAN * target_place(ends, moves=False)[1] if self.unit_free and intercept else 1.0
        return target_place(ends, moves=self.movable_target and intercept)

    def for_targets(self, ends: Range, *, intercept: bool) -> Self:
        """Return the loss in training coordinates of targets in this range: one of residuals has their unit."""
        return self.with_target_scale(self.target_place(ends, intercept=intercept)[1]) if self.movable_target else self

    def coefficient_place(self, center: float, scale: float) -> tuple[float, float]:
        """Return what takes coefficients of targets in this place back: a shift of the intercept, and a factor."""
        return (math.log(scale), 1.0) if self.log_link else (center, scale)


class Valued(Protocol):
    """What has kernels ``values`` and ``least``: a loss, or a score."""

    @property
    def n_outputs(self) -> int:
        """The number of margins of a record."""
        ...


LOSSES: Registry[type[Loss]] = Registry("loss", BUILT_IN_LOSSES, not_a_tuple)
register_loss = LOSSES.register


def loss_of(loss: Loss | str) -> Loss:
    """Return a loss object as it is, or the one that a name means, with its defaults."""
    if not isinstance(loss, str):
        if isinstance(loss, type) or not hasattr(loss, "lipschitz_for"):
            raise Unsupported(f"loss must be one of {', '.join(LOSSES.names())}, or a loss object such as Logistic()")
        return loss
    try:
        return LOSSES[loss]()
    except TypeError:
        raise Unsupported(f"the loss {loss!r} has parameters: pass an object, such as Huber(width=0.5)") from None


def _first_value(loss, margins, target):  # type: ignore[no-untyped-def]
    return value(loss, margins[0], target)


def _first_derivative(loss, margins, target, out):  # type: ignore[no-untyped-def]
    out[0] = derivative(loss, margins[0], target)


def nothing(loss, target):  # type: ignore[no-untyped-def]
    """The least value of most losses."""
    return 0.0


def one_output(cls: type, least_value: Callable[..., float] = nothing) -> None:
    """Give a loss of one margin the kernels of several, so that generic loops serve it too."""
    least.of(cls)(least_value)
    values.of(cls)(_first_value)
    derivatives.of(cls)(_first_derivative)


def slope_at_zero(loss: Loss) -> float:
    """Return |f'| where nothing is known yet: 1/2 for the logistic loss, 1 for the hinge, 1 for numbers."""
    if loss.n_outputs > 1:
        return math.sqrt(1.0 - 1.0 / loss.n_outputs)
    return float(max(abs(loss.slopes_at(np.zeros(1), 1.0)[0]), abs(loss.slopes_at(np.zeros(1), -1.0)[0])))


def _margin_bound(domain: Domain, radius: float | None) -> float:
    return math.inf if radius is None else radius * domain.row_norm


def _finite(bound: float, loss: Loss) -> float:
    if not math.isfinite(bound):
        raise Unsupported(
            f"the gradients of {type(loss).__name__} are unbounded: declare a ball that the coefficients stay in (the "
            "solver's radius=...), take a solver that clips gradients, such as the default (solver='auto'), or use "
            "Huber's loss, such as DPHuberRegressor"
        )
    return bound


def gradient_bound(loss: Loss, domain: Domain, radius: float | None = None) -> float:
    """L = sup |f'| R: no record's gradient is longer. ``radius`` bounds ||w||, for the losses that need it."""
    return _finite(loss.lipschitz_for(domain.target_bound, _margin_bound(domain, radius)), loss) * domain.row_norm


def gradient_smoothness(loss: Loss, domain: Domain) -> float:
    """beta = sup f'' R**2: no record's Hessian has a larger eigenvalue."""
    return loss.smoothness * domain.row_norm**2


def coordinate_gradient_bounds(loss: Loss, domain: Domain, radius: float | None = None) -> Floats:
    """L_j = sup |f'| r_j, in the shape of the coefficients: no entry of a record's gradient is larger."""
    slope = _finite(loss.lipschitz_for(domain.target_bound, _margin_bound(domain, radius)), loss)
    slope = slope if loss.entry_lipschitz is None else loss.entry_lipschitz
    return _in_shape(slope * domain.feature_bounds, domain)


def coordinate_smoothness(loss: Loss, domain: Domain) -> Floats:
    """M_j = sup f'' r_j**2, in the shape of the coefficients: no diagonal entry of a record's Hessian is larger."""
    curvature = loss.smoothness if loss.entry_smoothness is None else loss.entry_smoothness
    return _in_shape(curvature * np.square(domain.feature_bounds), domain)


def _in_shape(per_feature: Floats, domain: Domain) -> Floats:
    if domain.n_outputs == 1:
        return per_feature
    return np.repeat(per_feature[:, np.newaxis], domain.n_outputs, axis=1)


def lipschitz_within(loss: Loss, domain: Domain, radius: float | None) -> Loss:
    """The loss itself where its gradients are bounded; else one that equals it on the ball and is bounded everywhere.

    On ||w|| <= radius the residuals of the squared loss are at most radius R + |target|: Huber's loss of that width is
    the same function there, convex and smooth everywhere, and its slope is bounded by the width.
    """
    bounded = loss if radius is None else loss.bounded_on(radius * domain.row_norm, domain.target_bound)
    _finite(bounded.lipschitz_for(domain.target_bound), loss)
    return bounded
