"""The hinge loss with its corner rounded off: support vector machines with a gradient."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, Self

from discreet.losses.base import Loss, curvature, derivative, one_output, register_loss, slopes_in_decimals, value
from discreet.losses.sigmoid import quotient
from discreet.parameters import Positive, checked


class _Fields(NamedTuple):
    width: float


@register_loss("smoothed_hinge")
class SmoothedHinge(_Fields, Loss):
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
def _value(loss, margin, target):  # type: ignore[no-untyped-def]
    gap = (1.0 + loss.width) - target * margin
    gap = gap if gap > 0.0 else 0.0
    inside = gap if gap < 2.0 * loss.width else 2.0 * loss.width
    return (gap - inside) + quotient(inside * inside, 4.0 * loss.width)


@derivative.of(SmoothedHinge)
def _derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    slope = quotient((1.0 + loss.width) - target * margin, 2.0 * loss.width)
    slope = slope if slope > 0.0 else 0.0
    return -target * (slope if slope < 1.0 else 1.0)


@curvature.of(SmoothedHinge)
def _curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    return quotient(0.5, loss.width) if abs(1.0 - target * margin) <= loss.width else 0.0


@slopes_in_decimals.register
def _slopes(loss: SmoothedHinge, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    width = Decimal(loss.width)
    slope = (1 + width - target * margins[0]) / (2 * width)
    return [-target * max(min(slope, Decimal(1)), Decimal(0))]


one_output(SmoothedHinge)
