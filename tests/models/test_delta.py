"""delta: what None means, and that a delta which promises nothing is refused before anything is charged."""

import numpy as np
import pytest
from sklearn.base import clone

from discreet import Bounds, DPLogisticRegression, DPRandomizedSearch, Ledger, private_score
from discreet.budget import InvalidBudget
from discreet.models.fitting import LARGEST_DEFAULT_DELTA, budget_of
from discreet.models.forecast.forecast import forecast

N = 50
BOUNDS = Bounds(features=[(-1, 1)] * 2, classes=(0, 1))
X, y = np.linspace(-1, 1, 2 * N).reshape(N, 2), np.arange(N) % 2


@pytest.mark.parametrize("n", [1, 2, 10, 100, 300, 999])
def test_the_default_delta_of_a_small_table_is_small(n):
    assert budget_of(1.0, None, "replace_one", n).delta == LARGEST_DEFAULT_DELTA <= 1 / (100 * n)


@pytest.mark.parametrize("n", [1_000, 20_000, 10**6])
def test_the_default_delta_of_a_large_table_is_the_inverse_square(n):
    assert budget_of(1.0, None, "replace_one", n).delta == 1 / n**2


def asked(kind, delta, **settings):
    """Ask for one release of this kind."""
    model = DPLogisticRegression(1.0, 1e-6, bounds=BOUNDS)
    large = clone(model).set_params(delta=delta)
    if kind == "fit":
        return large.set_params(**settings).fit(X, y)
    if kind == "quote":
        return large.set_params(**settings).quote(X, y)
    if kind == "select":
        return DPRandomizedSearch(model, {"alpha": [1e-3, 1e-2]}, delta=delta, mean_runs=3, **settings).fit(X, y)
    if kind == "score":
        return private_score(model.set_params(ledger=False).fit(X, y), X, y, epsilon=1.0, delta=delta, **settings)
    return forecast(large.set_params(**settings), N, seeds=2, epsilons=[1.0], n_grid=[N])


KINDS = ("fit", "quote", "select", "score", "forecast")


@pytest.mark.parametrize("delta", [1 / N, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_delta_that_allows_publishing_a_record_is_refused(kind, delta):
    with pytest.raises(InvalidBudget, match=r"delta is at least 1/n.*allow_large_delta"):
        asked(kind, delta)


@pytest.mark.parametrize("kind", KINDS)
def test_a_delta_just_below_and_an_explicit_wish_are_granted(kind):
    assert asked(kind, 0.9 / N) is not None
    assert asked(kind, 1.5 / N, allow_large_delta=True) is not None


@pytest.mark.parametrize("kind", ["fit", "select", "score"])
def test_a_refused_delta_charges_nothing(kind, tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.grant("people", epsilon=100.0, delta=0.9, neighbors="replace_one")
    with pytest.raises(InvalidBudget):
        asked(kind, 0.5, ledger=ledger, dataset="people")
    assert ledger.spent("people").share == 0


def test_a_delta_is_compared_with_a_declared_number_of_records_only():
    private = DPLogisticRegression(1.0, 0.5, bounds=BOUNDS, neighbors="add_remove")
    assert private.fit(X, y).certificate_.delta == 0.5  # n is private: nothing to compare with
    with pytest.raises(InvalidBudget, match="at least 1/n"):
        private.set_params(bounds=BOUNDS.with_facts(n=N)).fit(X, y)


def test_other_numbers_of_rows_may_be_compared_with_the_same_delta():
    model = DPLogisticRegression(1.0, 1e-3, bounds=BOUNDS)
    assert forecast(model, 500, seeds=2, epsilons=[1.0], n_grid=[500, 2_000]).over_n[-1].delta == 1e-3
