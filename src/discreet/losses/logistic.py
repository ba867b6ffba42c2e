"""The logistic loss."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, Self

from discreet.losses.base import (
    Loss,
    curvature,
    derivative,
    exp_in_decimals,
    one_output,
    register_loss,
    slopes_in_decimals,
    value,
)
from discreet.losses.sigmoid import exp, log1p_exp, quotient, sigmoid
from discreet.parameters import Positive, checked


class _Fields(NamedTuple):
    sharpness: float


@register_loss("logistic")
class Logistic(_Fields, Loss):
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

    def perturbed_curvature(self, row_norm: float, bound: float) -> float:
        """Return the largest k C^2 v (q - v), q = max(1, R/C): proof in ``accounting/objective_perturbation.py``."""
        reach = max(1.0, row_norm / bound)
        steepest = reach * reach / 4 if reach <= 2 else reach - 1
        return self.sharpness * bound * bound * steepest


@value.of(Logistic)
def _value(loss, margin, target):  # type: ignore[no-untyped-def]
    return quotient(log1p_exp(-(loss.sharpness * target) * margin), loss.sharpness)


@derivative.of(Logistic)
def _derivative(loss, margin, target):  # type: ignore[no-untyped-def]
    # -t sigmoid(-k t m), written as one division
    return quotient(-target, 1.0 + exp((loss.sharpness * target) * margin))


@curvature.of(Logistic)
def _curvature(loss, margin, target):  # type: ignore[no-untyped-def]
    z = loss.sharpness * margin
    return loss.sharpness * (sigmoid(z) * sigmoid(-z))


@slopes_in_decimals.register
def _slopes(loss: Logistic, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    return [-target / (1 + exp_in_decimals(Decimal(loss.sharpness) * target * margins[0]))]


one_output(Logistic)
