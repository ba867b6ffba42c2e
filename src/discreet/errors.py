"""The errors and warnings of discreet. Each message names the remedy and never a value from the data."""


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
