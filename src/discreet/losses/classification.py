"""Losses of classes: logistic, softmax, and the hinge with its corner rounded off."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, Self

import numpy as np

from discreet.errors import Unsupported
from discreet.losses.base import (
    Loss,
    couplings,
    curvature,
    derivative,
    derivatives,
    exp_in_decimals,
    least,
    nothing,
    one_output,
    slopes_in_decimals,
    value,
    values,
)
from discreet.losses.sigmoid import exp, log1p_exp, quotient, sigmoid
from discreet.parameters import Count, Positive, checked
from discreet.typing import Floats


class _LogisticFields(NamedTuple):
    sharpness: float


class Logistic(_LogisticFields, Loss):
    """log(1 + exp(-k t m)) / k for a target t in {-1, +1}, with sharpness k (1: logistic regression).

    With s = sigmoid(-k t m): the derivative is -t s, so |f'| < 1 and -t gives its sign; the curvature is
    k s (1 - s) <= k/4, largest at s = 1/2.

    Parameters
    ----------
    sharpness : float, default=1.0
        k; the larger, the nearer to the hinge of a perceptron.

    Examples
    --------
    >>> from discreet.losses import Logistic
    >>> Logistic().lipschitz, Logistic().smoothness
    (1.0, 0.25)
    """

    __slots__ = ()
    task = "classification"
    one_signed = True
    lipschitz = 1.0
    sigmoid_link = True
    margin_name = "log-odds"
    nonnegative = True
    proven = True
    perturbation_slopes = "logistic"

    @checked
    def __new__(cls, sharpness: Positive = 1.0) -> Self:
        return super().__new__(cls, float(sharpness))

    @property
    def smoothness(self) -> float:
        """k / 4, where s = 1/2."""
        return self.sharpness / 4

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return 1, whatever the margins."""
        return 1.0

    def without_offsets(self, targets: Floats, offsets: Floats) -> tuple[Floats, Floats]:
        """Refuse: the loss of ``with_offsets`` does it."""
        raise Unsupported("offsets of classes need their range: use Logistic().with_offsets((low, high))")

    def with_offsets(self, offsets: tuple[float, float]) -> "OffsetLogistic":
        """Return the loss of margins to which an offset in this range is added, which comes with the target."""
        return OffsetLogistic(self.sharpness, offsets[0])

    def perturbed_curvature(self, row_norm: float, bound: float) -> float:
        """Return the largest k C^2 v (q - v), q = max(1, R/C): proof in ``accounting/objective_perturbation.py``."""
        reach = max(1.0, row_norm / bound)
        steepest = reach * reach / 4 if reach <= 2 else reach - 1
        return self.sharpness * bound * bound * steepest

    def slopes_at(self, margins: Floats, target: float) -> Floats:
        """Return -t s(-k t m) for all margins at once."""
        with np.errstate(over="ignore"):
            return np.asarray(-target / (1.0 + np.exp(self.sharpness * target * margins)))

    def bends_at(self, margins: Floats, target: float) -> Floats:
        """Return k s(k m) s(-k m) for all margins at once."""
        rest = np.exp(-np.abs(self.sharpness * margins))
        return np.asarray(self.sharpness * rest / np.square(1.0 + rest))


@value.of(Logistic)
def _logistic_value(loss, margin, target):  # type: ignore[no-untyped-def]
    return quotient(log1p_exp(-(loss.sharpness * target) * margin), loss.sharpness)


@derivative.of(Logistic)
def _logistic_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    # -t sigmoid(-k t m), written as one division
    return quotient(-target, 1.0 + exp((loss.sharpness * target) * margin))


@curvature.of(Logistic)
def _logistic_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    z = loss.sharpness * margin
    return loss.sharpness * (sigmoid(z) * sigmoid(-z))


@slopes_in_decimals.register
def _logistic_slopes(loss: Logistic, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    return [-target / (1 + exp_in_decimals(Decimal(loss.sharpness) * target * margins[0]))]


one_output(Logistic)


class _OffsetFields(NamedTuple):
    sharpness: float
    low: float


class OffsetLogistic(_OffsetFields, Loss):
    """The logistic loss at m + o, where the target is t (1 + o - low): its sign is the class, its size the offset.

    The derivative and the curvature are the logistic loss's at m + o, so |f'| < 1 and the curvature is at most k/4.
    """

    __slots__ = ()
    task = "classification"
    one_signed = True
    lipschitz = 1.0
    sigmoid_link = True
    margin_name = "log-odds"
    nonnegative = True

    @property
    def smoothness(self) -> float:
        """k / 4."""
        return self.sharpness / 4

    def without_offsets(self, targets: Floats, offsets: Floats) -> tuple[Floats, Floats]:
        """Return t (1 + o - low), and weights of 1."""
        return targets * (1.0 + (offsets - self.low)), np.ones_like(targets)


@value.of(OffsetLogistic)
def _offset_value(loss, margin, target):  # type: ignore[no-untyped-def]
    sign = 1.0 if target > 0.0 else -1.0
    return quotient(log1p_exp(-(loss.sharpness * sign) * (margin + (abs(target) - 1.0 + loss.low))), loss.sharpness)


@derivative.of(OffsetLogistic)
def _offset_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    sign = 1.0 if target > 0.0 else -1.0
    return quotient(-sign, 1.0 + exp((loss.sharpness * sign) * (margin + (abs(target) - 1.0 + loss.low))))


@curvature.of(OffsetLogistic)
def _offset_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    z = loss.sharpness * (margin + (abs(target) - 1.0 + loss.low))
    return loss.sharpness * (sigmoid(z) * sigmoid(-z))


one_output(OffsetLogistic)


class _SmoothedHingeFields(NamedTuple):
    width: float


class SmoothedHinge(_SmoothedHingeFields, Loss):
    """For a target t in {-1, +1}, s = t m and width h: 1 - s below 1 - h, 0 above 1 + h, (1 + h - s)**2 / (4h) between.

    The derivative is -t times (1 + h - s) / (2h) clipped to [0, 1], so |f'| <= 1 and -t gives its sign; the curvature
    is 1 / (2h) between and 0 elsewhere.

    Parameters
    ----------
    width : float, default=0.5
        h, half the length of the rounded part.

    Examples
    --------
    >>> from discreet.losses import SmoothedHinge
    >>> SmoothedHinge(width=0.25).smoothness
    2.0
    """

    __slots__ = ()
    task = "classification"
    one_signed = True
    lipschitz = 1.0
    nonnegative = True
    proven = True

    @checked
    def __new__(cls, width: Positive = 0.5) -> Self:
        return super().__new__(cls, float(width))

    @property
    def smoothness(self) -> float:
        """1 / (2h)."""
        return 1 / (2 * self.width)

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return 1, whatever the margins."""
        return 1.0


@value.of(SmoothedHinge)
def _smoothed_hinge_value(loss, margin, target):  # type: ignore[no-untyped-def]
    gap = (1.0 + loss.width) - target * margin
    gap = gap if gap > 0.0 else 0.0
    inside = gap if gap < 2.0 * loss.width else 2.0 * loss.width
    return (gap - inside) + quotient(inside * inside, 4.0 * loss.width)


@derivative.of(SmoothedHinge)
def _smoothed_hinge_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    slope = quotient((1.0 + loss.width) - target * margin, 2.0 * loss.width)
    slope = slope if slope > 0.0 else 0.0
    return -target * (slope if slope < 1.0 else 1.0)


@curvature.of(SmoothedHinge)
def _smoothed_hinge_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    return quotient(0.5, loss.width) if abs(1.0 - target * margin) <= loss.width else 0.0


@slopes_in_decimals.register
def _smoothed_hinge_slopes(loss: SmoothedHinge, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    width = Decimal(loss.width)
    slope = (1 + width - target * margins[0]) / (2 * width)
    return [-target * max(min(slope, Decimal(1)), Decimal(0))]


one_output(SmoothedHinge)


class _SoftmaxFields(NamedTuple):
    n_classes: int


class Softmax(_SoftmaxFields, Loss):
    """log(sum_k exp(m_k)) - m_y for K margins and a target y, the index of a class.

    With p = softmax(m) the gradient is p - e_y. Its norm is at most sqrt(2): (1 - p_y)**2 + sum of the other p_k**2
    <= 2 (1 - p_y)**2. The Hessian is diag(p) - p p^T; v^T H v is the variance of v under p, at most
    (max v - min v)**2 / 4 <= ||v||**2 / 2. In one entry: |p_k - [k = y]| <= 1 and p_k (1 - p_k) <= 1/4.

    The Hessian is also the sum over k < l of p_k p_l (e_k - e_l) (e_k - e_l)^T. The couplings a_kl = p_k p_l have a
    norm of at most 1/4. With s = sum p_k**2: sum_{k<l} a_kl = (1 - s) / 2, so sum a_kl**2 <= (1 - s)**2 / 4, at most
    1/16 where s >= 1/2. Else 2 sum a_kl**2 = s**2 - sum p_k**4 <= s**2 - s**3 (the mean of p_k**3 under p is at least
    the cube of that of p_k), which increases up to s = 2/3: at most 1/8, its value at s = 1/2. Two classes reach it.

    Parameters
    ----------
    n_classes : int
        K, at least 2.

    Examples
    --------
    >>> from discreet.losses import Softmax
    >>> Softmax(n_classes=3).n_outputs
    3
    """

    __slots__ = ()
    task = "classification"
    lipschitz = math.sqrt(2)
    smoothness = 0.5
    entry_lipschitz = 1.0
    entry_smoothness = 0.25
    nonnegative = True
    proven = True
    softmax_link = True
    perturbation_slopes = "softmax"
    margin_name = "log-odds"

    @checked
    def __new__(cls, n_classes: Count) -> Self:
        if n_classes < 2:
            raise Unsupported("softmax needs a whole number of at least two classes, such as Softmax(n_classes=3)")
        return super().__new__(cls, int(n_classes))

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """K, a margin for every class."""
        return self.n_classes

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return sqrt(2), whatever the margins."""
        return self.lipschitz

    def typical_slope(self, target_bound: float) -> float:
        """Return about sqrt(1 - 1/K), the slope at 0, for a few classes."""
        return 0.7


@values.of(Softmax)
def _softmax_values(loss, margins, target):  # type: ignore[no-untyped-def]
    top = 0
    for k in range(1, margins.shape[0]):
        if margins[k] > margins[top]:
            top = k
    others = 0.0
    chosen = margins[top]
    for k in range(margins.shape[0]):
        if k != top:
            others += exp(margins[k] - margins[top])
        if k == target:
            chosen = margins[k]
    return math.log1p(others) + (margins[top] - chosen)


@derivatives.of(Softmax)
def _softmax_derivatives(loss, margins, target, out):  # type: ignore[no-untyped-def]
    top = margins[0]
    for k in range(1, margins.shape[0]):
        top = margins[k] if margins[k] > top else top
    total = 0.0
    for k in range(margins.shape[0]):
        out[k] = exp(margins[k] - top)
        total += out[k]
    for k in range(margins.shape[0]):
        # comparing, rather than indexing by the target, keeps an impossible target inside the array
        out[k] = quotient(out[k], total) - (1.0 if k == target else 0.0)


@couplings.of(Softmax)
def _softmax_couplings(loss, margins, target, room, out):  # type: ignore[no-untyped-def]
    derivatives(loss, margins, -1.0, room)  # no class: the probabilities alone
    e = 0
    for k in range(margins.shape[0]):
        for other in range(k + 1, margins.shape[0]):
            out[e] = room[k] * room[other]
            e += 1


@slopes_in_decimals.register
def _softmax_slopes(loss: Softmax, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    top = max(margins)
    parts = [exp_in_decimals(margin - top) for margin in margins]
    total = sum(parts, Decimal(0))
    return [part / total - (1 if k == target else 0) for k, part in enumerate(parts)]


least.of(Softmax)(nothing)


def contrasts(outputs: int) -> Floats:
    """Return an orthonormal basis of the vectors that add up to 0, (K, K - 1): Helmert's; of one output, itself."""
    if outputs == 1:
        return np.ones((1, 1))
    sums = [np.append(np.ones(k), -k) / math.sqrt(k * (k + 1)) for k in range(1, outputs)]
    return np.column_stack([np.pad(column, (0, outputs - len(column))) for column in sums])
