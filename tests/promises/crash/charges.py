"""Small charges that cost little to price."""

import zlib

from discreet import Budget, Ledger
from discreet.accounting.events import Gaussian
from discreet.accounting.pricing import price_plan
from discreet.ledger.ledger import Reservation

DATASET = "ds"
MULTIPLIERS = (20.0, 23.0, 28.0, 35.0, 40.0)
BUDGET = Budget(0.4, 1e-7)


def multiplier_of(charge_id: str | None) -> float:
    """Each request has its own price, the same whoever asks."""
    return MULTIPLIERS[zlib.crc32((charge_id or "").encode()) % len(MULTIPLIERS)]


def charge(ledger: Ledger, charge_id: str | None = None) -> Reservation:
    """One small charge to the data set ``ds``."""
    return ledger.reserve(DATASET, price_plan((Gaussian(multiplier_of(charge_id)),), BUDGET), charge_id)
