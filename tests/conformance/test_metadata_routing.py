"""scikit-learn's metadata routing: ``groups`` and ``charge_id`` reach a fit through pipelines and searches."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet import DPLogisticRegression, DPRandomizedSearch, DPRidge, Ledger
from discreet.solvers import GradientDescent

_GD = GradientDescent(n_steps=3, clip=0.5)
GROUPS = np.arange(120) // 2


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def rows(small_table):
    return small_table.X, (small_table.signs > 0).astype(int)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "budget.db")
    made.grant("people", 20.0, 1e-3, unit="person")
    return made


def model(**settings):
    return DPLogisticRegression(1.0, 1e-5, bounds=1.0, classes=(0, 1), solver=_GD, **settings)


def unit(fitted):
    return fitted.certificate_.unit


@pytest.mark.parametrize("estimator", [model(), DPRidge(), DPRandomizedSearch(model(), {"alpha": [0.1]})])
def test_groups_can_be_requested(estimator):
    asked = clone(estimator).set_fit_request(groups=True)
    assert asked.get_metadata_routing().fit.requests["groups"] is True
    assert clone(asked).get_metadata_routing().fit.requests["groups"] is True


def test_a_pipeline_passes_groups_and_id(rows, ledger):
    estimator = model(ledger=ledger, dataset="people").set_fit_request(groups=True, charge_id=True)
    pipeline = make_pipeline(FunctionTransformer(np.tanh), estimator)
    first = pipeline.fit(*rows, groups=GROUPS, charge_id="monday")[-1].coef_
    again = clone(pipeline).fit(*rows, groups=GROUPS, charge_id="monday")[-1]
    np.testing.assert_array_equal(first, again.coef_)  # settled under its id, and charged once
    assert ledger.spent("people").fits == 1
    assert unit(again) == "person"


def test_what_is_not_requested_is_refused(rows):
    """Passed and not requested, groups would be lost silently, and rows protected where persons were meant."""
    with pytest.raises(UnsetMetadataPassedError, match="groups"):
        make_pipeline(FunctionTransformer(), model()).fit(*rows, groups=GROUPS)


@pytest.mark.filterwarnings("ignore::discreet.errors.PrivacyWarning")
def test_a_search_passes_the_groups_of_each_part(rows):
    pipeline = Pipeline([("same", FunctionTransformer()), ("model", model().set_fit_request(groups=True))])
    search = GridSearchCV(pipeline, {"model__alpha": [1e-3, 1e-1]}, cv=GroupKFold(2))
    search.fit(*rows, groups=GROUPS)
    assert unit(search.best_estimator_[-1]) == "person"
    scores = cross_val_score(pipeline, *rows, params={"groups": GROUPS}, cv=GroupKFold(2))
    assert np.isfinite(scores).all()
