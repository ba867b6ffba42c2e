"""Warnings of what no certificate counts: they come where they should, once, and never follow from the data."""

import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet import Bounds, DPLogisticRegression, DPRandomizedSearch, DPRidge, Ledger
from discreet.errors import PrivacyWarning
from discreet.models import words as privacy_warnings
from tests.covering import covering

BOUNDS = Bounds(features=1.0, classes=(0, 1), target=(0, 1), weights=(0, 5))
X = np.linspace(-1, 1, 400).reshape(200, 2)
y = (np.arange(200) % 3 == 0).astype(int)
ALPHAS = {"alpha": [1e-3, 1e-2]}


def model(kind=DPLogisticRegression, **settings):
    return kind(1.0, bounds=BOUNDS, solver="gd", **settings)


def warned(call, word):
    """Return the privacy warnings with this word, under a filter that shows all of them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [one for one in found if issubclass(one.category, PrivacyWarning) and word in str(one.message)]


@pytest.fixture(autouse=True)
def unwarned(monkeypatch):
    monkeypatch.setattr(privacy_warnings, "_warned_lines", set())


@covering(("kind", [DPLogisticRegression, DPRidge, DPRandomizedSearch]), ("rows", [X, X[:3], 1e9 * X]))
def test_an_exact_score_is_called_a_release_whatever_the_rows(kind, rows):
    fitted = (DPRandomizedSearch(model(), ALPHAS, mean_runs=20) if kind is DPRandomizedSearch else model(kind)).fit(
        X, y
    )
    [found] = warned(lambda: fitted.score(rows, y[: len(rows)]), "private_score")
    assert found.filename == __file__


SEARCHES = {
    "grid": lambda of: GridSearchCV(of, ALPHAS, cv=3).fit(X, y),
    "pipeline": lambda of: GridSearchCV(
        make_pipeline(FunctionTransformer(), of), {"dplogisticregression__alpha": [1e-3, 1e-2]}, cv=3
    ).fit(X, y),
    "folds": lambda of: cross_val_score(of, X, y, cv=4, scoring="accuracy"),
    "nested": lambda of: cross_validate(GridSearchCV(of, ALPHAS, cv=2), X, y, cv=2, scoring="accuracy"),
    "calibration": lambda of: CalibratedClassifierCV(of, cv=3).fit(X, y),
    "bagging": lambda of: BaggingClassifier(of, n_estimators=3).fit(X, y),
    "one class at a time": lambda of: OneVsRestClassifier(of).fit(X, y),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_without_a_ledger_warns_once_at_its_caller(name):
    for _ in range(2):  # another search is another warning, or none; never one per fit
        [found] = warned(lambda: SEARCHES[name](model()), "spends its whole budget again")
        assert found.filename == __file__
        privacy_warnings._warned_lines.clear()


def test_a_search_that_is_charged_or_public_is_silent(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.grant("people", epsilon=100.0, delta=1e-3, neighbors="replace_one")
    for settings in ({"ledger": ledger, "dataset": "people"}, {"ledger": False}):
        of = model(**settings)
        assert not warned(lambda of=of: cross_val_score(of, X, y, cv=2, scoring="accuracy"), "whole budget")


def test_an_error_filter_stops_a_search_before_anything_is_released():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="DPRandomizedSearch"):
            cross_val_score(model(), X, y, cv=2, scoring="accuracy", error_score="raise")
        with pytest.raises(
            PrivacyWarning, match="DPRandomizedSearch"
        ):  # and again: a warning that raised was not shown
            GridSearchCV(model(), ALPHAS, cv=2, error_score="raise").fit(X, y)


PERSONS = np.arange(200) // 2


@pytest.mark.parametrize(
    "search",
    [
        lambda of: GridSearchCV(of, ALPHAS, cv=GroupKFold(2)).fit(X, y, groups=PERSONS),
        lambda of: cross_validate(of, X, y, groups=PERSONS, cv=2),
        lambda of: cross_val_score(make_pipeline(FunctionTransformer(), of), X, y, groups=PERSONS, cv=2),
    ],
)
def test_a_search_that_keeps_groups_for_its_splits_is_told(search):
    """Its models would protect records, while their user named persons."""
    found = warned(lambda: search(model()), "not persons")
    assert found
    assert {one.filename for one in found} == {__file__}
    assert not warned(lambda: search(model(ledger=False)), "not persons")
