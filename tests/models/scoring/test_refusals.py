"""What public facts alone make impossible is refused before a score is charged, whichever metric it is."""

import numpy as np
import pytest

from discreet import Bounds, DiscreetError, DPLogisticRegression, Ledger, private_score
from discreet.accounting.pricing import remembered_prices
from discreet.curator import private_data, session
from discreet.curator.metrics import noisy_sums
from discreet.errors import Unsupported
from tests.models.scored import METRICS, model_of, table
from tests.replaying import window


@pytest.fixture(autouse=True, scope="module")
def _cheap_prices():
    with remembered_prices():
        yield


@pytest.fixture
def ledger():
    made = Ledger.create(":memory:")
    made.grant("people", 50.0, 1e-2)
    return made


def charges(ledger):
    return [entry for entry in ledger.entries() if entry.kind == "charge"]


def many_classes(count):
    model = DPLogisticRegression(bounds=Bounds(1.0, classes=tuple(range(count))))
    model.n_features_in_, model.classes_ = 2, np.arange(count)
    model.coef_, model.intercept_ = np.zeros((count, 2)), np.zeros(count)
    return model


@pytest.mark.parametrize("count", [1024, 1030, 2000])
def test_a_confusion_matrix_of_too_many_classes(ledger, count):
    model, X, y = many_classes(count), np.zeros((40, 2)), np.arange(40)
    with pytest.raises(Unsupported, match="metric='accuracy'"):
        private_score(model, X, y, metric="confusion", epsilon=1.0, ledger=ledger, dataset="people")
    assert charges(ledger) == []
    private_score(model, X, y, metric="accuracy", epsilon=1.0, ledger=ledger, dataset="people")
    assert len(charges(ledger)) == 1


def test_the_most_cells_are_what_one_scale_holds():
    for cells, fits in ((noisy_sums.MOST_CELLS, True), (noisy_sums.MOST_CELLS + 1, False)):
        rows = noisy_sums.one_hot(np.array([0]), cells)
        made = {"fit_intercept": False, "ledger": False}
        if fits:
            private_data.PrivateData(rows, np.zeros(1), Bounds(1.0, classes=(0, 1), scale="global"), **made)
        else:
            with pytest.raises(Unsupported, match="too many columns"):
                private_data.PrivateData(rows, np.zeros(1), Bounds(1.0, classes=(0, 1), scale="global"), **made)


def no_lattice(monkeypatch):
    def refuse(*_):
        raise Unsupported("planted")

    monkeypatch.setattr(session, "unit_for", refuse)


def no_columns(monkeypatch):
    def refuse(*_):
        raise Unsupported("planted")

    monkeypatch.setattr(private_data.admission, "check_containers", lambda X, *_: refuse() if X.shape[0] == 1 else None)


def no_kernels(monkeypatch):
    def refuse(*_, **__):
        raise Unsupported("planted")

    monkeypatch.setattr("discreet.curator.private_data.check_planned", refuse)


@pytest.mark.parametrize("plant", [no_lattice, no_columns, no_kernels])
@pytest.mark.parametrize("metric", METRICS)
def test_a_refusal_anywhere_on_the_way_comes_before_the_charge(monkeypatch, ledger, metric, plant):
    """Whatever depends on the plan, on classes and groups, and not on a row."""
    plant(monkeypatch)
    name = METRICS[metric]
    X, y = table(name, n=50)
    with pytest.raises(DiscreetError, match="planted"):
        private_score(model_of(name), X, y, metric=metric, epsilon=1.0, delta=1e-5, ledger=ledger, dataset="people")
    assert charges(ledger) == []


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-300, 1e3])
def test_a_budget_is_served_or_not_charged(metric, epsilon):
    ledger = Ledger.create(":memory:")
    ledger.grant("people", 1e4, 1e-2)
    name = METRICS[metric]
    X, y = table(name, n=50)
    try:
        private_score(model_of(name), X, y, metric=metric, epsilon=epsilon, delta=1e-5, ledger=ledger, dataset="people")
    except DiscreetError:
        assert charges(ledger) == []
    else:
        assert len(charges(ledger)) == 1


@pytest.mark.parametrize("metric", METRICS)
def test_the_rehearsal_is_not_observed(metric):
    """What is measured before the charge is of no row, and no observer takes it for an answer."""
    name = METRICS[metric]
    X, y = table(name, n=50)
    with window() as seen:
        score = private_score(model_of(name), X, y, metric=metric, epsilon=1.0, delta=1e-5, ledger=False)
    assert len(seen) == sum(event.count for event in score.certificate.events)
