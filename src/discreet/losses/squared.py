"""The squared loss."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, Self

from discreet.losses.base import (
    Loss,
    curvature,
    derivative,
    one_output,
    register_loss,
    slopes_in_decimals,
    value,
)
from discreet.losses.huber import Huber
from discreet.parameters import Positive, checked


class _Fields(NamedTuple):
    weight: float


@register_loss("squared")
class Squared(_Fields, Loss):
    """k (m - t)**2 / 2 for a real target t, with weight k (1: least squares).

    The derivative is k (m - t), unbounded: |f'| <= k (B + T) only where |m| <= B and |t| <= T. The curvature is k.

    Parameters
    ----------
    weight : float, default=1.0
        k.

    Examples
    --------
    >>> from discreet.losses import Squared
    >>> Squared().lipschitz_for(target_bound=1.0, margin_bound=2.0)
    3.0
    """

    __slots__ = ()
    task = "regression"
    lipschitz = float("inf")
    quadratic = True
    movable_target = True
    nonnegative = True
    proven = True

    @checked
    def __new__(cls, weight: Positive = 1.0) -> Self:
        return super().__new__(cls, float(weight))

    @property
    def smoothness(self) -> float:
        """k, everywhere."""
        return self.weight

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return k (B + T): the margin and the target at opposite ends."""
        return self.weight * (margin_bound + target_bound)

    def with_target_scale(self, scale: float) -> Self:
        """Return the loss itself: it has no unit."""
        return self

    def bounded_on(self, margin_bound: float, target_bound: float) -> Loss:
        """Return Huber's loss, as wide as the largest residual: the same function there, with a bounded slope."""
        return Huber(margin_bound + target_bound) if self.weight == 1 else self


@value.of(Squared)
def _value(loss, margin, target):  # type: ignore[no-untyped-def]
    residual = margin - target
    return 0.5 * loss.weight * residual * residual


@derivative.of(Squared)
def _derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    return loss.weight * (margin - target)


@curvature.of(Squared)
def _curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    return loss.weight


@slopes_in_decimals.register
def _slopes(loss: Squared, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    return [Decimal(loss.weight) * (margins[0] - target)]


one_output(Squared)
