"""Losses of residuals: squared, Huber's and smoothed quantiles."""

import math
from collections.abc import Sequence
from decimal import Decimal
from statistics import NormalDist
from typing import NamedTuple, Self

from discreet.losses.base import Loss, curvature, derivative, one_output, slopes_in_decimals, value
from discreet.parameters import Positive, Share, checked


class _SquaredFields(NamedTuple):
    weight: float


class Squared(_SquaredFields, Loss):
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
def _squared_value(loss, margin, target):  # type: ignore[no-untyped-def]
    residual = margin - target
    return 0.5 * loss.weight * residual * residual


@derivative.of(Squared)
def _squared_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    return loss.weight * (margin - target)


@curvature.of(Squared)
def _squared_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    return loss.weight


@slopes_in_decimals.register
def _squared_slopes(loss: Squared, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    return [Decimal(loss.weight) * (margins[0] - target)]


one_output(Squared)


class _HuberFields(NamedTuple):
    width: float


class Huber(_HuberFields, Loss):
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
def _huber_value(loss, margin, target):  # type: ignore[no-untyped-def]
    size = abs(margin - target)
    inside = size if size < loss.width else loss.width
    return inside * (size - 0.5 * inside)


@derivative.of(Huber)
def _huber_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    # in this order a NaN is clipped too, so that the bound holds for every bit pattern
    residual = margin - target
    residual = residual if residual < loss.width else loss.width
    return residual if residual > -loss.width else -loss.width


@curvature.of(Huber)
def _huber_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    return 1.0 if abs(margin - target) <= loss.width else 0.0


@slopes_in_decimals.register
def _huber_slopes(loss: Huber, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    width = Decimal(loss.width)
    return [max(min(margins[0] - target, width), -width)]


one_output(Huber)


class _QuantileFields(NamedTuple):
    level: float
    width: float


class Quantile(_QuantileFields, Loss):
    """The check loss of the quantile q, smoothed over the width h: for r = m - t, -q r below -h, (1 - q) r above h.

    Between -h and h it is (r + h)**2 / (4 h) - q r, which meets both lines with their values and slopes. The
    derivative is -q below -h, (r + h) / (2 h) - q between and 1 - q above: it never decreases, so the loss is convex,
    and |f'| <= max(q, 1 - q). The curvature is 1 / (2 h) inside and 0 outside. The least value is h q (1 - q) > 0.

    Parameters
    ----------
    level : float
        q, in (0, 1): 0.5 is the median.
    width : float
        h, in units of the target: residuals below it are weighed smoothly. Small against the spread of residuals.

    Examples
    --------
    >>> from discreet.losses import Quantile
    >>> Quantile(level=0.9, width=0.5).lipschitz
    0.9
    """

    __slots__ = ()
    task = "regression"
    movable_target = True
    nonnegative = True
    proven = True
    has_standard_errors = False

    @checked
    def __new__(cls, level: Share, width: Positive) -> Self:
        return super().__new__(cls, float(level), float(width))

    @property
    def lipschitz(self) -> float:
        """max(q, 1 - q), attained by every residual beyond h on that side."""
        return max(self.level, 1.0 - self.level)

    @property
    def smoothness(self) -> float:
        """1 / (2 h)."""
        return 0.5 / self.width

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return max(q, 1 - q), whatever the margins."""
        return self.lipschitz

    def with_target_scale(self, scale: float) -> Self:
        """Return the loss of the width h / scale."""
        return type(self)(self.level, self.width / scale)

    @property
    def normal_curvature(self) -> float:  # type: ignore[override]
        """The density of normal targets at z, their q-quantile, smoothed as the loss is.

        A window about z that holds most of them, which is what they are measured by, is about 1 + |z| / 2 times as wide
        as one about their center.
        """
        place = NormalDist().inv_cdf(self.level)
        spread = math.hypot(1.0 / (1.0 + abs(place) / 2.0), self.width / math.sqrt(3.0))
        return min(self.smoothness, NormalDist().pdf(place) / spread)


@value.of(Quantile)
def _quantile_value(loss, margin, target):  # type: ignore[no-untyped-def]
    residual = margin - target
    inside = residual if residual < loss.width else loss.width
    inside = inside if inside > -loss.width else -loss.width
    above = residual - inside if residual > inside else 0.0
    return (inside + loss.width) * (inside + loss.width) / (4.0 * loss.width) + above - loss.level * residual


@derivative.of(Quantile)
def _quantile_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    # in this order a NaN is clipped too, so that the bound holds for every bit pattern
    residual = margin - target
    residual = residual if residual < loss.width else loss.width
    residual = residual if residual > -loss.width else -loss.width
    return (residual + loss.width) / (2.0 * loss.width) - loss.level


@curvature.of(Quantile)
def _quantile_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    return 0.5 / loss.width if abs(margin - target) <= loss.width else 0.0


@slopes_in_decimals.register
def _quantile_slopes(loss: Quantile, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    width = Decimal(loss.width)
    return [(max(min(margins[0] - target, width), -width) + width) / (2 * width) - Decimal(loss.level)]


one_output(Quantile)
