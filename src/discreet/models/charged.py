"""What estimators share whose fits are charged: they keep the ledger's address without a password."""

from typing import Any

from sklearn.base import BaseEstimator

from discreet.ledger.default_ledger import kept


class Charged(BaseEstimator):
    """An estimator with the parameter ``ledger``.

    Parameters are printed, pickled, and sent to workers. So whatever sets this one, a constructor, ``set_params`` or an
    assignment, a URL with a password becomes a ``Ledger``. A ``Ledger`` is copied as itself, so that ``clone`` works.
    """

    def _keep(self, given: dict[str, Any]) -> None:
        """Store a constructor's arguments, its ``locals()``, unchanged: scikit-learn's ``clone`` relies on it."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, kept(value) if name == "ledger" else value)
