"""The errors and warnings of discreet. Each message names the remedy and never a value from the data.

Errors of other libraries in discreet's words: theirs may quote cells.

``raise ... from None`` hides such an error from a traceback, and keeps it in ``__context__``, where a logger or a
debugger finds it. Here it is dropped.
"""

from collections.abc import Callable


class DiscreetError(Exception):
    """The base of every error that is discreet's own."""


class MissingBounds(DiscreetError, ValueError):
    """A fact that must be declared (a range, the classes, n) was not."""


class Unsupported(DiscreetError, ValueError):
    """The combination asked for has no proof, or no implementation, here."""


class BudgetExceeded(DiscreetError, RuntimeError):
    """Answering would spend more than the budget allows."""


class Diverged(DiscreetError, ArithmeticError):
    """A computation on released values ended in numbers that double precision does not hold."""


class PlanViolation(DiscreetError, RuntimeError):
    """A query that the reserved plan does not contain."""


class StaleKernels(DiscreetError, RuntimeError):
    """A compiled kernel failed its known-answer test."""


class AccountingError(DiscreetError, RuntimeError):
    """Two independent accountants disagree about a price."""


class LedgerError(DiscreetError, RuntimeError):
    """The ledger cannot be used, was asked for something that it does not have, or does not hold together."""


class LedgerUnavailable(LedgerError):
    """The ledger is missing, out of reach, busy, or no ledger: nothing can be said of what is in it."""


class LedgerDamaged(LedgerError):
    """The ledger's file is not whole."""


class ClusterFailed(DiscreetError, RuntimeError):
    """A cluster is out of reach, lost a part of the records for good, or answered for other records than it had."""


class MissingExtra(DiscreetError, ImportError):
    """A library that an optional feature needs is not installed."""


class MissingTables(MissingExtra):
    """pyarrow is not installed."""


class AlreadyReleased(DiscreetError, RuntimeError):
    """A charge was settled before: ``release`` is its answer, and nothing was charged or read again."""

    def __init__(self, release: str) -> None:
        super().__init__("this charge was answered before: its answer is in `release`, and nothing was charged again")
        self.release = release


class PrivacyWarning(UserWarning):
    """Something weakens the protection of the data, or is a release that no certificate counts.

    The text says what to do about it, and never depends on the data.
    """


class unquoted:  # reads like a statement
    """Raise a refusal in place of some errors that the block raises, and attach nothing to it.

    Parameters
    ----------
    words
        What is said instead.
    *errors
        The errors that are replaced. None: all that are Exceptions.
    when
        Says of an error of another kind whether it is replaced, too.
    kind
        The class of the refusal.

    Examples
    --------
    >>> from discreet.errors import unquoted
    >>> try:
    ...     with unquoted("this is no number", ValueError):
    ...         float("a cell")
    ... except ValueError as error:
    ...     print(error, error.__context__)
    this is no number None
    """

    def __init__(
        self,
        words: str,
        *errors: type[BaseException],
        when: Callable[[BaseException], bool] = lambda error: False,
        kind: type[DiscreetError] = Unsupported,
    ) -> None:
        self._words, self._errors, self._when, self._kind = words, errors or (Exception,), when, kind

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or not (isinstance(error, self._errors) or self._when(error)):
            return
        refusal = self._kind(self._words)
        try:
            raise refusal
        finally:  # after Python has attached the error that is being handled
            refusal.__context__ = None
