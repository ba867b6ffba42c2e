"""A ledger to break."""

from pathlib import Path

import pytest

from discreet import Ledger
from tests.promises.crash.charges import DATASET


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger file with one data set under a cap of (5.0, 1e-6)."""
    where = tmp_path / "budget.db"
    Ledger.create(where).grant(DATASET, epsilon=5.0, delta=1e-6)
    return where
