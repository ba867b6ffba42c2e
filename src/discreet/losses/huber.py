"""Huber's loss: the squared loss with clipped residuals."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, Self

from discreet.losses.base import Loss, curvature, derivative, one_output, register_loss, slopes_in_decimals, value
from discreet.parameters import Positive, checked


class _Fields(NamedTuple):
    width: float


@register_loss("huber")
class Huber(_Fields, Loss):
    """u**2 / 2 where |u| <= c, and c |u| - c**2 / 2 beyond, for the residual u = m - t of a real target t and width c.

    The derivative is u clipped to [-c, c], so |f'| <= c; the curvature is 1 inside and 0 outside.

    Parameters
    ----------
    width : float
        c, in units of the target.

    Examples
    --------
    >>> from discreet.losses import Huber
    >>> Huber(width=0.5).lipschitz
    0.5
    """

    __slots__ = ()
    task = "regression"
    smoothness = 1.0
    movable_target = True
    nonnegative = True
    proven = True

    @checked
    def __new__(cls, width: Positive) -> Self:
        return super().__new__(cls, float(width))

    @property
    def lipschitz(self) -> float:
        """c, attained by every residual of at least c."""
        return self.width

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return c, or the largest residual where that is less."""
        return min(self.width, margin_bound + target_bound)

    def typical_slope(self, target_bound: float) -> float:
        """Return c: most residuals are clipped early in training."""
        return self.width

    def with_target_scale(self, scale: float) -> Self:
        """Return the loss of the width c / scale."""
        return type(self)(self.width / scale)

    def widened(self, width: float) -> Self:
        """Return the loss of a width of at least this."""
        return type(self)(max(self.width, width))


@value.of(Huber)
def _value(loss, margin, target):  # type: ignore[no-untyped-def]
    size = abs(margin - target)
    inside = size if size < loss.width else loss.width
    return inside * (size - 0.5 * inside)


@derivative.of(Huber)
def _derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    # in this order a NaN is clipped too, so that the bound holds for every bit pattern
    residual = margin - target
    residual = residual if residual < loss.width else loss.width
    return residual if residual > -loss.width else -loss.width


@curvature.of(Huber)
def _curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    return 1.0 if abs(margin - target) <= loss.width else 0.0


@slopes_in_decimals.register
def _slopes(loss: Huber, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    width = Decimal(loss.width)
    return [max(min(margins[0] - target, width), -width)]


one_output(Huber)
