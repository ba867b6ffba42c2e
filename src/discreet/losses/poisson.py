"""The Poisson loss, made linear outside a limit so that its slope is bounded."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, Self

from discreet.errors import Unsupported
from discreet.losses.base import Loss, curvature, derivative, one_output, register_loss, slopes_in_decimals, value
from discreet.losses.sigmoid import exp
from discreet.parameters import Positive, checked


class _Fields(NamedTuple):
    limit: float


@register_loss("poisson")
class Poisson(_Fields, Loss):
    """exp(m) - t m where |m| <= B, for a target t >= 0 and limit B, continued along its tangents outside.

    With v = m clipped to [-B, B]: the loss is exp(v) (1 + m - v) - t m; its derivative exp(v) - t never decreases, so
    the loss is convex, and |f'| <= max(exp(B), T - exp(-B)) for t <= T; the curvature is exp(m) <= exp(B) inside and
    0 outside.

    Parameters
    ----------
    limit : float
        B, at most 700.

    Examples
    --------
    >>> from discreet.losses import Poisson
    >>> round(Poisson(limit=2.0).lipschitz_for(target_bound=10.0), 3)
    9.865
    """

    __slots__ = ()
    task = "regression"
    log_link = True
    margin_name = "logarithm of the mean"
    lipschitz = float("inf")
    proven = True

    @checked
    def __new__(cls, limit: Positive) -> Self:
        if not 0 < limit <= 700:
            raise Unsupported("the limit of the Poisson loss must lie in (0, 700], such as Poisson(limit=3.0)")
        return super().__new__(cls, float(limit))

    @property
    def smoothness(self) -> float:
        """exp(B)."""
        return math.exp(self.limit)

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return max(exp(B), T - exp(-B)): a large margin with target 0, or a small one with target T."""
        largest = min(self.limit, margin_bound)
        return max(math.exp(largest), target_bound - math.exp(-largest))

    def typical_slope(self, target_bound: float) -> float:
        """Return half of the typical curvature."""
        return 0.5 * self.typical_curvature(target_bound)

    def typical_curvature(self, target_bound: float) -> float:
        """Return about the mean count: the bound exp(limit) is never met in the mean."""
        return max(1.0, target_bound / 4)


@value.of(Poisson)
def _value(loss, margin, target):  # type: ignore[no-untyped-def]
    inside = margin if margin < loss.limit else loss.limit
    inside = inside if inside > -loss.limit else -loss.limit
    return exp(inside) * (1.0 + (margin - inside)) - target * margin


@derivative.of(Poisson)
def _derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    # in this order a NaN is clipped too, so that the bound holds for every bit pattern
    inside = margin if margin < loss.limit else loss.limit
    inside = inside if inside > -loss.limit else -loss.limit
    return exp(inside) - target


@curvature.of(Poisson)
def _curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    return exp(margin) if abs(margin) <= loss.limit else 0.0


@slopes_in_decimals.register
def _slopes(loss: Poisson, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    limit = Decimal(loss.limit)
    return [max(min(margins[0], limit), -limit).exp() - target]


def _least(loss, target):  # type: ignore[no-untyped-def]
    # at the margin log(target), within the limit
    margin = math.log(target) if target > 0.0 else -loss.limit
    return value(loss, min(max(margin, -loss.limit), loss.limit), target)


one_output(Poisson, _least)
