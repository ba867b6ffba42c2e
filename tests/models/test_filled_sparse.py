"""Narrow sparse records are stored with their zeros once they are charged for, and not before."""

import numpy as np
import pytest
from scipy import sparse

from discreet import BudgetExceeded, DPLogisticRegression, Ledger
from discreet.curator.records import admission

RNG = np.random.default_rng(0)
X = sparse.csr_array(np.where(RNG.random((4000, 5)) < 0.3, 1.0, 0.0))
Y = RNG.integers(0, 2, 4000)
FACTS = {"bounds": [(0, 1)] * 5, "classes": (0, 1)}


def refuse(*_):
    raise AssertionError("a record was read")


def test_nothing_is_read_before_the_charge(tmp_path, monkeypatch):
    made = Ledger.create(tmp_path / "budget.db")
    made.grant("words", 0.5, 1e-6)
    monkeypatch.setattr(admission, "canonical", refuse)
    assert DPLogisticRegression(1.0, 1e-7, ledger=False, **FACTS).quote(X, Y).solver["name"] == "recipe"
    with pytest.raises(BudgetExceeded):
        DPLogisticRegression(1.0, 1e-7, ledger=tmp_path / "budget.db", dataset="words", **FACTS).fit(X, Y)
    paid = DPLogisticRegression(0.1, 1e-7, ledger=tmp_path / "budget.db", dataset="words", **FACTS)
    with pytest.raises(AssertionError, match="was read"):
        paid.fit(X, Y)
    assert Ledger(tmp_path / "budget.db").spent("words").fits == 1
