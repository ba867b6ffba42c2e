"""Losses with a log link, whose margin is the logarithm of the mean: counts and amounts.

A family is its variance function V: with mean e = exp(m), the slope of a record's loss is (e - t) e / V(e), the quasi-
likelihood of Wedderburn (1974), and the expected curvature e^2 / V(e).

==================  ===============================  ==================================================
family              V(e)                             slope
==================  ===============================  ==================================================
Poisson             e                                e - t
negative binomial   e + a e^2, a the dispersion      (e - t) / (1 + a e)
Tweedie             e^p, 1 < p < 2 the power         e^(2 - p) - t e^(1 - p)
Gamma               e^2                              1 - t / e
==================  ===============================  ==================================================

Each slope grows with m for every target t >= 0, so each loss is convex. Above m = B, the limit, it is continued along
its tangent: the slope is that at v = m clipped to B, hence bounded, and the curvature 0. So are Tweedie and Gamma below
m = -B, where a small mean makes slopes large. Slopes of counts have a bound there, so that means may be as small as
double precision holds.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, Self

import numpy as np

from discreet.bounds import Range
from discreet.errors import Unsupported
from discreet.losses.base import LEAST_LOG, Loss, curvature, derivative, one_output, slopes_in_decimals, value
from discreet.losses.sigmoid import exp, log1p_exp, quotient
from discreet.parameters import Positive, checked
from discreet.scalar_functions import when_compiling
from discreet.typing import Floats

LARGEST_LIMIT = 700.0
"""exp of more is no finite number."""
LEAST_COUNT_LIMIT = 5.0
LARGEST_SPREAD = 1e100
"""Counts, times their dispersion: squares and cubes of more are no finite numbers."""
LARGEST_TARGET = 1e15
"""Of counts and amounts in training coordinates: beyond, doubles lack whole numbers. 1 / this is the least."""


def count_limit(most: float) -> float:
    """Return a limit for counts up to ``most``: their means may be twice as large."""
    return min(LARGEST_LIMIT, max(LEAST_COUNT_LIMIT, math.log(max(2.0 * most, 1.0))))


def _limit(limit: float) -> float:
    if not 0 < limit <= LARGEST_LIMIT:
        raise Unsupported("the limit of a loss with a log link must lie in (0, 700], such as Poisson(limit=3.0)")
    return float(limit)


def _held(number: float, low: float, high: float) -> float:
    # in this order a NaN is clipped too, so that bounds hold for every bit pattern
    number = number if number < high else high
    return number if number > low else low


@when_compiling
def _compile_held() -> None:
    from numba.extending import register_jitable

    register_jitable(_held)


def _at_log_of_count(loss, target):  # type: ignore[no-untyped-def]
    # the least value, as far as the limit lets the mean be the target
    margin = math.log(target) if target > 0.0 else LEAST_LOG
    return value(loss, _held(margin, LEAST_LOG, loss.limit), target)


def _at_log_of_target(loss, target):  # type: ignore[no-untyped-def]
    # the least value, as far as the limit lets the mean be the target
    margin = math.log(target) if target > 0.0 else -loss.limit
    return value(loss, min(max(margin, -loss.limit), loss.limit), target)


def _exps(values: Floats) -> Floats:
    """Return exp of each value by itself: the vector form need not be row-pure."""
    return np.array([math.exp(value) for value in values.tolist()])


class _LogLink(Loss):
    """What losses with a log link share."""

    __slots__ = ()
    task = "regression"
    log_link = True
    margin_name = "logarithm of the mean"

    def typical_slope(self, target_bound: float) -> float:
        """Return half of the typical curvature."""
        return 0.5 * self.typical_curvature(target_bound)

    def for_targets(self, ends: Range, *, intercept: bool) -> Self:
        """Return the loss in training coordinates, where clips, steps and curvatures of this range are numbers."""
        if (
            ends[1]
            and not 1.0 / LARGEST_TARGET <= ends[1] / self.target_place(ends, intercept=intercept)[1] <= LARGEST_TARGET
        ):
            raise Unsupported(
                "counts and amounts, over exp of their offsets, are to end between 1e-15 and 1e15: give them in other "
                "units, such as thousands, or declare shorter ranges"
            )
        return self


class _Capped(_LogLink):
    """What losses with a field ``largest`` share: T, which larger targets are counted as."""

    __slots__ = ()

    @property
    def lipschitz(self) -> float:
        """A large margin with target 0, or a small one with target T."""
        return self.lipschitz_for(self.largest)  # type: ignore[attr-defined]

    def for_targets(self, ends: Range, *, intercept: bool) -> Self:
        """Return the loss whose T is the end of this range, in training coordinates."""
        super().for_targets(ends, intercept=intercept)
        largest = ends[1] / self.target_place(ends, intercept=intercept)[1] or 1.0
        return self._replace(largest=largest)  # type: ignore[attr-defined,no-any-return]


class _PoissonFields(NamedTuple):
    limit: float


class Poisson(_PoissonFields, _LogLink):
    """exp(m) - t m where m <= B, for a target t >= 0 and limit B, continued along its tangent above.

    With v = m clipped to B: the loss is exp(v) (1 + m - v) - t m; its derivative exp(v) - t never decreases, so the
    loss is convex, and |f'| <= max(exp(B), T) for t <= T; the curvature is exp(m) <= exp(B) below B and 0 above.

    Parameters
    ----------
    limit : float
        B, at most 700: the largest logarithm of a mean.

    Examples
    --------
    >>> from discreet.losses import Poisson
    >>> round(Poisson(limit=2.0).lipschitz_for(target_bound=1.0), 3)
    7.389
    """

    __slots__ = ()
    lipschitz = float("inf")
    proven = True
    offsets_weigh = True

    @checked
    def __new__(cls, limit: Positive) -> Self:
        return super().__new__(cls, _limit(limit))

    @property
    def prediction_limit(self) -> float:
        """B."""
        return self.limit

    def variance(self, mean: float) -> float:
        """Return the mean."""
        return mean

    @property
    def smoothness(self) -> float:
        """exp(B)."""
        return math.exp(self.limit)

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return max(exp(B), T - the least mean): a large margin with target 0, or a small one with target T."""
        return max(math.exp(min(self.limit, margin_bound)), target_bound - math.exp(-margin_bound))

    def widened(self, width: float) -> Self:
        """Return the loss of means that may be as large as this."""
        return self._replace(limit=min(LARGEST_LIMIT, max(self.limit, math.log(width))))

    def without_offsets(self, targets: Floats, offsets: Floats) -> tuple[Floats, Floats]:
        """Return rates per exposure e = exp(offset), weighted by it: exp(m + o) - t m = e (exp(m) - (t / e) m)."""
        exposures = _exps(offsets)
        return targets / exposures, exposures

    def offset_target_range(self, ends: tuple[float, float], offsets: tuple[float, float]) -> tuple[float, float]:
        """Return the rates of records of the largest exposure: weighted slopes of others are no larger."""
        return ends[0] * math.exp(-offsets[1]), ends[1] * math.exp(-offsets[1])

    def typical_curvature(self, target_bound: float) -> float:
        """Return about the mean count: the bound exp(limit) is never met in the mean."""
        return max(1.0, target_bound / 4)


@value.of(Poisson)
def _poisson_value(loss, margin, target):  # type: ignore[no-untyped-def]
    inside = _held(margin, LEAST_LOG, loss.limit)
    return exp(inside) * (1.0 + (margin - inside)) - target * margin


@derivative.of(Poisson)
def _poisson_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    inside = _held(margin, LEAST_LOG, loss.limit)
    return exp(inside) - target


@curvature.of(Poisson)
def _poisson_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    return exp(_held(margin, LEAST_LOG, loss.limit)) if margin <= loss.limit else 0.0


def _mean_of_count(margin: Decimal, limit: float) -> Decimal:
    return max(min(margin, Decimal(limit)), Decimal(LEAST_LOG)).exp()


@slopes_in_decimals.register
def _poisson_slopes(loss: Poisson, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    return [_mean_of_count(margins[0], loss.limit) - target]


one_output(Poisson, _at_log_of_count)


class _NegativeBinomialFields(NamedTuple):
    dispersion: float
    limit: float
    largest: float


class NegativeBinomial(_NegativeBinomialFields, _Capped):
    """(t + 1/a) log(1 + a exp(m)) - t m where m <= B, for a count t in [0, T] and dispersion a; linear above.

    Counts vary by mean + a mean^2 (a near 0: Poisson). With v = m clipped to B and t clipped to [0, T], the derivative
    is (exp(v) - t) / (1 + a exp(v)), between -T and exp(B) / (1 + a exp(B)) < 1/a. The curvature is
    (1 + a t) s (1 - s) / a <= (1 + a T) / (4 a) below B, with s = a exp(m) / (1 + a exp(m)), and 0 above.

    Parameters
    ----------
    dispersion : float
        a, declared: how much more than Poisson's the variance is.
    limit : float, default=5.0
        B, at most 700: the largest logarithm of a mean.
    largest : float, default=100.0
        T; larger counts are counted as it. Models set it to the end of the declared range.

    Examples
    --------
    >>> from discreet.losses import NegativeBinomial
    >>> NegativeBinomial(dispersion=2.0).variance(3.0)
    21.0
    """

    __slots__ = ()
    proven = True
    has_standard_errors = False

    @checked
    def __new__(cls, dispersion: Positive, limit: Positive = 5.0, largest: Positive = 100.0) -> Self:
        return super().__new__(cls, float(dispersion), _limit(limit), float(largest))

    def for_targets(self, ends: Range, *, intercept: bool) -> Self:
        """Return the loss whose T is the end of this range, where T and a T have squares that are finite numbers."""
        loss = super().for_targets(ends, intercept=intercept)
        if not max(1.0, self.dispersion) * loss.largest <= LARGEST_SPREAD:
            raise Unsupported(
                "the declared range of counts times the dispersion is beyond 1e100: declare a shorter range or a "
                "smaller dispersion"
            )
        return loss

    @property
    def prediction_limit(self) -> float:
        """B."""
        return self.limit

    def variance(self, mean: float) -> float:
        """Return mean + a mean^2."""
        return mean + self.dispersion * mean**2

    @property
    def smoothness(self) -> float:
        """(1 + a T) / (4 a), or less where no margin within the limit reaches s = 1/2."""
        odds = self.dispersion * math.exp(min(self.limit, -math.log(self.dispersion)))
        return (1.0 + self.dispersion * self.largest) * odds / (self.dispersion * (1.0 + odds) ** 2)

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return the larger of exp(B) / (1 + a exp(B)) and (T - e) / (1 + a e), e the least mean."""
        most, least = math.exp(min(self.limit, margin_bound)), math.exp(-margin_bound)
        top = min(target_bound, self.largest)
        return max(most / (1.0 + self.dispersion * most), (top - least) / (1.0 + self.dispersion * least))

    def typical_curvature(self, target_bound: float) -> float:
        """Return that of a mean count of about a quarter of the range."""
        mean = max(1.0, target_bound / 4)
        return mean**2 / self.variance(mean)


@value.of(NegativeBinomial)
def _negative_binomial_value(loss, margin, target):  # type: ignore[no-untyped-def]
    inside, t = _held(margin, LEAST_LOG, loss.limit), _held(target, 0.0, loss.largest)
    height = (t + 1.0 / loss.dispersion) * log1p_exp(inside + math.log(loss.dispersion)) - t * inside
    return height + derivative(loss, inside, t) * (margin - inside)


@derivative.of(NegativeBinomial)
def _negative_binomial_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    mean = exp(_held(margin, LEAST_LOG, loss.limit))
    return quotient(mean - _held(target, 0.0, loss.largest), 1.0 + loss.dispersion * mean)


@curvature.of(NegativeBinomial)
def _negative_binomial_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    mean = exp(_held(margin, LEAST_LOG, loss.limit))
    spread = 1.0 + loss.dispersion * mean
    bend = quotient((1.0 + loss.dispersion * _held(target, 0.0, loss.largest)) * mean, spread * spread)
    return bend if margin <= loss.limit else 0.0


@slopes_in_decimals.register
def _negative_binomial_slopes(loss: NegativeBinomial, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    mean, t = _mean_of_count(margins[0], loss.limit), max(min(target, Decimal(loss.largest)), Decimal(0))
    return [(mean - t) / (1 + Decimal(loss.dispersion) * mean)]


def _in_decimals(margin: Decimal, target: Decimal, limit: float, largest: float) -> tuple[Decimal, Decimal]:
    """Return the mean and the target, both held within their bounds."""
    mean = max(min(margin, Decimal(limit)), -Decimal(limit)).exp()
    return mean, max(min(target, Decimal(largest)), Decimal(0))


one_output(NegativeBinomial, _at_log_of_count)


class _TweedieFields(NamedTuple):
    power: float
    limit: float
    largest: float


class Tweedie(_TweedieFields, _Capped):
    """e^(2 - p) / (2 - p) + t e^(1 - p) / (p - 1), e = exp(m), where |m| <= B, for t in [0, T]; linear outside.

    For amounts that are often exactly 0, such as claims: they vary by a factor times mean^p, 1 < p < 2. With v = m
    clipped to [-B, B] and t clipped to [0, T], the derivative is exp((2 - p) v) - t exp((1 - p) v): it grows with v
    and with -t, so it is between exp(-(2 - p) B) - T exp((p - 1) B) and exp((2 - p) B). The curvature is
    (2 - p) exp((2 - p) m) + (p - 1) t exp((1 - p) m) inside, which is convex in m and so largest at B or -B, and
    0 outside. Dividing all targets by a number c multiplies the loss by c^(p - 2), with the margin less by log c: it
    moves the intercept alone.

    Parameters
    ----------
    power : float, default=1.5
        p, between 1 (Poisson) and 2 (Gamma), declared.
    limit : float, default=10.0
        B, at most 700: the bound on the logarithm of the mean, in training coordinates.
    largest : float, default=10.0
        T, in training coordinates; larger targets are counted as it. Models set it to the end of the declared range.

    Examples
    --------
    >>> from discreet.losses import Tweedie
    >>> Tweedie(power=1.5).variance(4.0)
    8.0
    """

    __slots__ = ()
    proven = True
    has_standard_errors = False
    unit_free = True
    offsets_weigh = True

    @checked
    def __new__(cls, power: Positive = 1.5, limit: Positive = 10.0, largest: Positive = 10.0) -> Self:
        if not 1 < power < 2:
            raise Unsupported(
                "the power of the Tweedie loss must lie between 1 (use Poisson) and 2 (use Gamma), such as 1.5"
            )
        return super().__new__(cls, float(power), _limit(limit), float(largest))

    def variance(self, mean: float) -> float:
        """Return mean^p."""
        return float(mean**self.power)

    @property
    def smoothness(self) -> float:
        """The larger of (2 - p) exp((2 - p) m) + (p - 1) T exp(-(p - 1) m) at m = B and at m = -B: it is convex."""
        up, down = 2.0 - self.power, self.power - 1.0
        return max(up * math.exp(up * m) + down * self.largest * math.exp(-down * m) for m in (self.limit, -self.limit))

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return the larger of exp((2 - p) B) and T exp((p - 1) B) - exp(-(2 - p) B)."""
        up, down, most = 2.0 - self.power, self.power - 1.0, min(self.limit, margin_bound)
        low = min(target_bound, self.largest) * math.exp(down * most) - math.exp(-up * most)
        return max(math.exp(up * most), low)

    def without_offsets(self, targets: Floats, offsets: Floats) -> tuple[Floats, Floats]:
        """Return t / e for e = exp(offset), weighted by e^(2 - p), which the loss of m + o is a factor of."""
        exposures = _exps(offsets)
        return targets / exposures, _exps((2.0 - self.power) * offsets)

    def offset_target_range(self, ends: tuple[float, float], offsets: tuple[float, float]) -> tuple[float, float]:
        """Return the range of t / e, and of its product with the weight over the largest weight."""
        return ends[0] * math.exp(-offsets[1]), ends[1] * math.exp(-offsets[0])

    def typical_curvature(self, target_bound: float) -> float:
        """Return that of a mean of 1."""
        return 1.0


@value.of(Tweedie)
def _tweedie_value(loss, margin, target):  # type: ignore[no-untyped-def]
    inside, t = _held(margin, -loss.limit, loss.limit), _held(target, 0.0, loss.largest)
    up, down = 2.0 - loss.power, loss.power - 1.0
    height = exp(up * inside) / up + t * exp(-down * inside) / down
    return height + derivative(loss, inside, t) * (margin - inside)


@derivative.of(Tweedie)
def _tweedie_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    inside = _held(margin, -loss.limit, loss.limit)
    return exp((2.0 - loss.power) * inside) - _held(target, 0.0, loss.largest) * exp((1.0 - loss.power) * inside)


@curvature.of(Tweedie)
def _tweedie_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    inside, t = _held(margin, -loss.limit, loss.limit), _held(target, 0.0, loss.largest)
    up, down = 2.0 - loss.power, loss.power - 1.0
    bend = up * exp(up * inside) + down * t * exp(-down * inside)
    return bend if abs(margin) <= loss.limit else 0.0


@slopes_in_decimals.register
def _tweedie_slopes(loss: Tweedie, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    mean, t = _in_decimals(margins[0], target, loss.limit, loss.largest)
    power = Decimal(loss.power)
    return [mean ** (2 - power) - t * mean ** (1 - power)]


one_output(Tweedie, _at_log_of_target)


class _GammaFields(NamedTuple):
    limit: float
    largest: float


class Gamma(_GammaFields, _Capped):
    """m + t exp(-m) where |m| <= B, for a target t in [0, T], continued along its tangents outside.

    For positive amounts, such as costs and durations, whose standard deviation grows with their mean. With v = m
    clipped to [-B, B] and t clipped to [0, T], the derivative is 1 - t exp(-v), between 1 - T exp(B) and 1; the
    curvature is t exp(-m) <= T exp(B) inside and 0 outside. Dividing all targets by a number moves the intercept alone.

    Parameters
    ----------
    limit : float, default=10.0
        B, at most 700: the bound on the logarithm of the mean, in training coordinates.
    largest : float, default=10.0
        T, in training coordinates; larger targets are counted as it. Models set it to the end of the declared range.

    Examples
    --------
    >>> from discreet.losses import Gamma
    >>> Gamma().variance(3.0)
    9.0
    """

    __slots__ = ()
    proven = True
    has_standard_errors = False
    unit_free = True

    @checked
    def __new__(cls, limit: Positive = 10.0, largest: Positive = 10.0) -> Self:
        return super().__new__(cls, _limit(limit), float(largest))

    def variance(self, mean: float) -> float:
        """Return mean^2."""
        return mean**2

    @property
    def smoothness(self) -> float:
        """T exp(B)."""
        return self.largest * math.exp(self.limit)

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return the larger of 1 (a target of 0) and T exp(B) - 1."""
        return max(1.0, min(target_bound, self.largest) * math.exp(min(self.limit, margin_bound)) - 1.0)

    def without_offsets(self, targets: Floats, offsets: Floats) -> tuple[Floats, Floats]:
        """Return t / exp(offset), and weights of 1: m + o + t exp(-m - o)."""
        exposures = _exps(offsets)
        return targets / exposures, np.ones_like(targets)

    def offset_target_range(self, ends: tuple[float, float], offsets: tuple[float, float]) -> tuple[float, float]:
        """Return the range of t / exp(offset)."""
        return ends[0] * math.exp(-offsets[1]), ends[1] * math.exp(-offsets[0])

    def typical_curvature(self, target_bound: float) -> float:
        """Return 1, the mean curvature where the mean is right."""
        return 1.0


@value.of(Gamma)
def _gamma_value(loss, margin, target):  # type: ignore[no-untyped-def]
    inside = _held(margin, -loss.limit, loss.limit)
    return margin + _held(target, 0.0, loss.largest) * exp(-inside) * (1.0 - (margin - inside))


@derivative.of(Gamma)
def _gamma_derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    return 1.0 - _held(target, 0.0, loss.largest) * exp(-_held(margin, -loss.limit, loss.limit))


@curvature.of(Gamma)
def _gamma_curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    bend = _held(target, 0.0, loss.largest) * exp(-_held(margin, -loss.limit, loss.limit))
    return bend if abs(margin) <= loss.limit else 0.0


@slopes_in_decimals.register
def _gamma_slopes(loss: Gamma, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    mean, t = _in_decimals(margins[0], target, loss.limit, loss.largest)
    return [1 - t / mean]


one_output(Gamma, _at_log_of_target)
