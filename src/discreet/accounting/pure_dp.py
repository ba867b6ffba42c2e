"""Pure epsilon: basic composition, in exact fractions and once more in decimals."""

import decimal
import math
from collections.abc import Iterable
from fractions import Fraction

from discreet.accounting import objective_perturbation, rdp
from discreet.accounting.events import (
    BoundedRange,
    Event,
    Laplace,
    PerturbedMinimum,
    PoissonSampled,
    PureDP,
    reciprocal_up,
    unwrapped,
)
from discreet.errors import Unsupported


def epsilon_of(event: Event) -> float:
    """The pure epsilon of one release, rounded up."""
    event = unwrapped(event)
    if isinstance(event, PoissonSampled):
        return rdp.amplified_pure(epsilon_of(event.event), float(event.probability))
    if isinstance(event, PerturbedMinimum) and event.noise == "gamma":
        total = objective_perturbation.determinant_term(event) + reciprocal_up(event.noise_multiplier)
        return math.nextafter(total, math.inf)
    if isinstance(event, (Laplace, PureDP, BoundedRange)):
        return event.epsilon
    raise Unsupported(
        "Gaussian noise has no pure guarantee: set a delta above 0 (such as 1e-6), or use a solver with Laplace noise"
    )


def _exact_epsilon(event: Event) -> Fraction:
    """The same without rounding where the event is not sampled: 1/z of a double z is no double."""
    if isinstance(event, PerturbedMinimum) and event.noise == "gamma":
        return Fraction(objective_perturbation.determinant_term(event)) + 1 / Fraction(event.noise_multiplier)
    return 1 / Fraction(event.noise_multiplier) if isinstance(event, Laplace) else Fraction(epsilon_of(event))


def composed(events: Iterable[Event]) -> float:
    """Basic composition, summed exactly and rounded up."""
    total = sum((event.count * _exact_epsilon(event) for event in events), Fraction(0))
    epsilon = float(total)
    return epsilon if Fraction(epsilon) >= total else math.nextafter(epsilon, math.inf)


def composed_in_decimals(events: Iterable[Event]) -> float:
    """The pure price in 50 digits, rounded down; sampling by epsilon + ln(q + (1 - q) e^-epsilon)."""
    with decimal.localcontext() as context:
        context.prec, context.rounding = 50, decimal.ROUND_FLOOR
        total = decimal.Decimal(0)
        for event in events:
            inner = event.inner
            epsilon = _decimal_epsilon(inner)
            if isinstance(event, PoissonSampled):
                q = decimal.Decimal(event.numerator) / 2**16
                epsilon += (q + (1 - q) * (-epsilon).exp()).ln()
            total += event.count * epsilon
        answer = float(total)
        return answer if decimal.Decimal(answer) <= total else math.nextafter(answer, 0.0)


def _decimal_epsilon(event: Event) -> decimal.Decimal:
    if isinstance(event, Laplace):
        return 1 / decimal.Decimal(event.noise_multiplier)
    if isinstance(event, (PureDP, BoundedRange)):
        return decimal.Decimal(event.epsilon)
    if isinstance(event, PerturbedMinimum) and event.noise == "gamma":
        # The rank of the changed record's Hessian, and the mean of its eigenvalues over lambda.
        rank, mean = 1, decimal.Decimal(event.curvature)
        if event.slopes == "softmax":
            rank, mean = event.outputs - 1, 2 * mean / event.outputs
        return rank * (1 + mean).ln() + 1 / decimal.Decimal(event.noise_multiplier)
    raise Unsupported("only pure events have a price at delta=0")
