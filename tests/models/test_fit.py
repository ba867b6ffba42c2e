"""A fit: what must be declared, what is made of it, what its certificate says, what is refused before a charge."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from discreet import Bounds, DPLogisticRegression, DPRandomizedSearch, DPRidge, Ledger, private_score
from discreet.budget import InvalidBudget
from discreet.curator.session import observe
from discreet.errors import MissingBounds, Unsupported
from discreet.models.forecast import forecast
from discreet.penalties import GroupL2
from tests.covering import covering
from tests.models.declared import CLASSIFIERS, REGRESSORS, every, fit

# -------------------------------------------------------------------------------------------- certificates


@every
def test_seeded_noise_is_stamped(kind, small_table, seeded):
    with seeded(0):
        certificate = fit(kind, small_table).certificate_
    assert certificate.stamp.startswith("NOT PRIVATE")


def test_a_given_delta_is_the_delta_used(small_table):
    assert fit(DPRidge, small_table, delta=1e-7).certificate_.delta == 1e-7


# -------------------------------------------------------------------------------------------- missing facts


@every
def test_features_must_be_declared(kind, small_table):
    with pytest.raises(MissingBounds, match=r"bounds=Bounds\("):
        fit(kind, small_table, bounds=None)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classes_must_be_declared(kind, small_table):
    with pytest.raises(MissingBounds, match=r"classes=\(0, 1\)"):
        fit(kind, small_table, classes=None)
    fit(kind, small_table, classes=None, bounds=Bounds(1.0, classes=(0, 1)))


@pytest.mark.parametrize("kind", REGRESSORS)
def test_targets_must_be_declared(kind, small_table):
    with pytest.raises(MissingBounds, match=r"target=\(low, high\)"):
        fit(kind, small_table, target=None)
    fit(kind, small_table, target=None, bounds=Bounds(1.0, target=(0, 10)))


@every
def test_a_wrong_n_is_refused_where_n_is_public(kind, small_table):
    with pytest.raises(MissingBounds, match="declared n"):
        fit(kind, small_table, bounds=Bounds(1.0, n=119))


# ---------------------------------------------------------------------------- settings that make no sense


def test_a_penalty_that_does_not_fit_is_refused_before_anything_is_released(small_table):
    released = []

    def watch(measurement):
        released.append(measurement.query)
        return measurement.noisy

    with observe(watch), pytest.raises(Unsupported, match="column"):
        fit(DPLogisticRegression, small_table, penalty=GroupL2(0.1, ((0, 9),)))
    assert not released


# ---------------------------------------------------------------------------------------------------- delta

N = 50
TWO_COLUMNS = Bounds(features=[(-1, 1)] * 2, classes=(0, 1))
ROWS, LABELS = np.linspace(-1, 1, 2 * N).reshape(N, 2), np.arange(N) % 2


def asked(kind, delta, **settings):
    """Ask for one release of this kind."""
    model = DPLogisticRegression(1.0, 1e-6, bounds=TWO_COLUMNS)
    large = clone(model).set_params(delta=delta)
    if kind == "fit":
        return large.set_params(**settings).fit(ROWS, LABELS)
    if kind == "quote":
        return large.set_params(**settings).quote(ROWS, LABELS)
    if kind == "select":
        return DPRandomizedSearch(model, {"alpha": [1e-3, 1e-2]}, delta=delta, mean_runs=3, **settings).fit(
            ROWS, LABELS
        )
    if kind == "score":
        return private_score(
            model.set_params(ledger=False).fit(ROWS, LABELS), ROWS, LABELS, epsilon=1.0, delta=delta, **settings
        )
    return forecast(large.set_params(**settings), N, seeds=2, epsilons=[1.0], n_grid=[N])


KINDS = ("fit", "quote", "select", "score", "forecast")


@covering(("kind", KINDS), ("delta", [1 / N, 0.5]))
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
    private = DPLogisticRegression(1.0, 0.5, bounds=TWO_COLUMNS, neighbors="add_remove")
    assert private.fit(ROWS, LABELS).certificate_.delta == 0.5  # n is private: nothing to compare with
    with pytest.raises(InvalidBudget, match="at least 1/n"):
        private.set_params(bounds=TWO_COLUMNS.with_facts(n=N)).fit(ROWS, LABELS)


def test_columns_of_one_name_are_refused():
    X = pd.DataFrame(np.zeros((10, 2)), columns=["age", "age"])
    with pytest.raises(Unsupported, match="columns of the same name"):
        DPLogisticRegression(1.0, bounds=1.0, classes=(0, 1), ledger=False).fit(X, np.arange(10) % 2)
