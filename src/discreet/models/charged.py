"""What estimators share whose fits are charged: they keep the ledger's address without a password."""

from typing import Any

from sklearn.base import BaseEstimator

from discreet.ledger.default_ledger import kept


class Charged(BaseEstimator):
    """An estimator with the parameter ``ledger``.

    Parameters are printed, pickled, and sent to workers. So whatever sets this one, a constructor, ``set_params`` or an
    assignment, a URL with a password becomes a ``Ledger``. A ``Ledger`` is copied as itself, so that ``clone`` works.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, kept(value) if name == "ledger" else value)
