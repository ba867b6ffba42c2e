"""What a loss is: a NamedTuple, with scalar kernels for its arithmetic and attributes for its constants.

The kernels are dispatched on the loss's class, in plain Python and inside compiled loops alike:

``value(loss, margin, target)``, ``derivative(loss, margin, target)``, ``curvature(loss, margin, target)``
    of one output: the loss of a record, its first and its second derivative in the margin x.w.
``least(loss, target)``
    about the least loss of a record with this target, so that what is above it is not negative: mostly 0.
``values(loss, margins, target)``, ``derivatives(loss, margins, target, out)``
    of any number of outputs: the loss, and its gradient in the margins, which are arrays of length K.

A new loss is one file: the class, its kernels, and ``one_output(cls)`` where K = 1.
"""

from typing import Any, Protocol, runtime_checkable

from discreet.dispatch import scalar_function

value = scalar_function("value")
derivative = scalar_function("derivative")
curvature = scalar_function("curvature")
least = scalar_function("least")
values = scalar_function("values")
derivatives = scalar_function("derivatives")


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
