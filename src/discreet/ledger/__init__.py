"""The durable account of everything that was ever spent on a data set."""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.ledger.account import Spent as Spent
    from discreet.ledger.ledger import Ledger as Ledger
    from discreet.ledger.ledger import Reservation as Reservation

__getattr__, __dir__, __all__ = lazy_names(__spec__)
