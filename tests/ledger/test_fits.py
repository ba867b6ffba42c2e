"""Fits with a ledger: what is charged, what a request returns, what is refused and with which words."""

from typing import ClassVar

import numpy as np
import pytest

from discreet import Bounds, BudgetExceeded, DPLogisticRegression, DPRandomizedSearch, Ledger
from discreet.datasets import hospital
from discreet.errors import Diverged, LedgerError, Unsupported
from discreet.solvers import ExponentialMechanism, GradientDescent

TABLE = hospital(600)


@pytest.fixture
def path(tmp_path):
    made = Ledger.create(tmp_path / "budget.db")
    made.grant("stays", 1.0, 1e-6)
    made.grant("pure", 1.0)
    return tmp_path / "budget.db"


def model(path, **changes):
    settings = {"epsilon": 0.5, "delta": 1e-7, "bounds": TABLE.bounds, "ledger": path, "dataset": "stays", **changes}
    return DPLogisticRegression(**settings)


def test_the_same_request_is_the_same_model_for_one_charge(path):
    first, second = (model(path).fit(TABLE.X, TABLE.y, charge_id="r") for _ in range(2))
    assert (first.coef_ == second.coef_).all()
    assert first.certificate_ == second.certificate_
    assert Ledger(path).spent("stays").fits == 1


@pytest.mark.parametrize("change", [{"alpha": 0.1}, {"solver": "cd"}, {"fit_intercept": False}, {"epsilon": 0.4}])
def test_a_request_is_not_answered_with_another_model(path, change):
    model(path).fit(TABLE.X, TABLE.y, charge_id="r")
    with pytest.raises(LedgerError, match="for something else"):
        model(path, **change).fit(TABLE.X, TABLE.y, charge_id="r")


def test_a_selection_whose_candidates_name_the_ledger_is_not_free(path):
    chosen = DPRandomizedSearch(model(path), {"alpha": [1e-5, 1e-3]}, epsilon=0.5, delta=1e-7)
    with pytest.raises(LedgerError, match="in DPRandomizedSearch itself"):
        chosen.fit(TABLE.X, TABLE.y)


def test_a_cap_without_delta_asks_for_pure_fits(path):
    with pytest.raises(BudgetExceeded, match="delta=0"):
        model(path, dataset="pure").fit(TABLE.X, TABLE.y)
    model(path, dataset="pure", delta=0, solver="gd").fit(TABLE.X, TABLE.y)


def test_an_assumption_in_delta_has_no_price_beside_other_fits(path):
    model(path, epsilon=0.1).fit(TABLE.X, TABLE.y)
    chain = ExponentialMechanism(total_variation=1e-12)
    with pytest.raises(BudgetExceeded, match="approximate sampler"):
        model(path, epsilon=0.2, solver=chain, alpha=0.1).fit(TABLE.X, TABLE.y)


# --- errors after the charge --------------------------------------------------------------------------


class _Failing(GradientDescent):
    """Steps that end in an error."""

    error: ClassVar[BaseException]

    def solve(self, curator, penalty, progress=None):
        raise self.error


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Unsupported("no"), Unsupported),
        (KeyError("secret"), KeyError),
        (np.linalg.LinAlgError("secret"), Diverged),
        (OverflowError("secret"), Diverged),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (MemoryError(), MemoryError),
    ],
    ids=lambda one: getattr(one, "__name__", type(one).__name__),
)
def test_an_error_after_the_charge_says_what_was_charged(error, raised):
    ledger = Ledger(":memory:")
    ledger.grant("census", 10.0, 1e-5)
    facts = {"bounds": Bounds(1.0, classes=(0, 1)), "solver": _Failing(n_steps=2), "dataset": "census"}
    _Failing.error = error
    for charge_id in (None, "first"):
        with pytest.raises(raised) as found:
            DPLogisticRegression(2.0, 1e-6, ledger=ledger, **facts).fit([[0.5], [-0.5]], [0, 1], charge_id=charge_id)
        entry = len(ledger.entries())
        note = f"epsilon = 2, delta = 1e-06 was charged to 'census' for this (entry {entry}), and stays charged"
        assert found.value.__notes__[-1] == note
        assert "secret" not in str(found.value) or raised is KeyError
    facts |= {"solver": GradientDescent(n_steps=2), "alpha": "x"}
    with pytest.raises(Unsupported, match="alpha") as found:
        DPLogisticRegression(2.0, 1e-6, ledger=ledger, **facts).fit([[0.5], [-0.5]], [0, 1])
    assert not hasattr(found.value, "__notes__")
