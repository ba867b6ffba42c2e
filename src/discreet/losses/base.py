"""What a loss is: a NamedTuple, with scalar kernels for its arithmetic and attributes for its constants.

The kernels are dispatched on the loss's class, in plain Python and inside compiled loops alike:

``value(loss, margin, target)``, ``derivative(loss, margin, target)``, ``curvature(loss, margin, target)``
    of one output: the loss of a record, its first and its second derivative in the margin x.w.
``least(loss, target)``
    about the least loss of a record with this target, so that what is above it is not negative: mostly 0.
``values(loss, margins, target)``, ``derivatives(loss, margins, target, out)``
    of any number of outputs: the loss, and its gradient in the margins, which are arrays of length K.
``slopes_in_decimals(loss, margins, target)``
    that gradient once more, to the precision of the current decimal context: for the minimizer's last resort.

A new loss is one file: the class, its kernels, and ``one_output(cls)`` where K = 1.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import singledispatch
from typing import Any, Protocol, runtime_checkable

from discreet.errors import Unsupported
from discreet.numba_dispatch import scalar_function

value = scalar_function("value")
derivative = scalar_function("derivative")
curvature = scalar_function("curvature")
least = scalar_function("least")
values = scalar_function("values")
derivatives = scalar_function("derivatives")

_FLAT = Decimal(10_000)
"""Beyond this an exponential is taken as at it: e^-10000 is smaller than any error that is counted."""


@singledispatch
def slopes_in_decimals(loss: Any, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    """Return the gradient in the margins, in the current decimal context.

    With u half a unit in the last of the context's digits, relative to the number, the answer is off by at most
    (16 + 2 K) u (1 + |gradient| + smoothness (1 + largest |margin| + |target|)): a handful of roundings, of which
    those in the argument of an exponential count |margin| times.
    """
    raise Unsupported("this loss has no slopes in decimals, which an exact minimizer needs: use solver='gd'")


def exp_in_decimals(argument: Decimal) -> Decimal:
    """Return e to this power, the power held within +-10000."""
    return max(min(argument, _FLAT), -_FLAT).exp()


class Loss(Protocol):
    """The constants of a loss; suprema run over all margins and all allowed targets."""

    @property
    def task(self) -> str:
        """``"classification"`` or ``"regression"``."""

    @property
    def n_outputs(self) -> int:
        """K, the number of margins of a record."""

    @property
    def one_signed(self) -> bool:
        """Whether a record's target fixes the sign of the derivative."""

    @property
    def lipschitz(self) -> float:
        """The largest norm of the derivative; inf where targets or margins would have to be bounded."""

    @property
    def smoothness(self) -> float:
        """The largest curvature (eigenvalue of the Hessian in the margins)."""

    def lipschitz_for(self, target_bound: float, margin_bound: float = ...) -> float:
        """The largest norm of the derivative where |target| and |margin| are bounded."""


@runtime_checkable
class SeveralOutputs(Loss, Protocol):
    """A loss of K > 1 margins also knows the constants of one entry, which are smaller than the whole's."""

    @property
    def entry_lipschitz(self) -> float:
        """The largest |derivative| in one of the margins."""

    @property
    def entry_smoothness(self) -> float:
        """The largest second derivative in one of the margins."""


def _first_value(loss, margins, target):  # type: ignore[no-untyped-def]
    return value(loss, margins[0], target)


def _first_derivative(loss, margins, target, out):  # type: ignore[no-untyped-def]
    out[0] = derivative(loss, margins[0], target)


def nothing(loss, target):  # type: ignore[no-untyped-def]
    """The least value of most losses."""
    return 0.0


def one_output(cls: type, least_value: Any = nothing) -> None:
    """Give a loss of one margin the kernels of several, so that generic loops serve it too."""
    least.of(cls)(least_value)
    values.of(cls)(_first_value)
    derivatives.of(cls)(_first_derivative)
