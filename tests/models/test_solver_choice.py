"""The decision table of ``auto``, line by line: public facts in, a name and its reason out."""

import math

import numpy as np
import pytest

from discreet import Bounds, DPLasso, DPLogisticRegression, DPPoissonRegressor, DPRidge

LIMIT = "without noise, the minimizer itself"
ESTIMATE = "estimating the mean and covariance first improves accuracy"
DECLARED = "the signal is too weak to estimate coordinates"
ONE = "one release is cheapest where noise is pure"
FULL = "full batches have the least noise per pass"
FEW = "greedy steps find the few columns that matter"


# ------------------------------------------------------------------------------- fits


def notes_of(model, X=None, y=None, n=3000):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3)) if X is None else X
    y = rng.integers(0, 2, X.shape[0]) if y is None else y
    return model.fit(X, y).certificate_.notes


CLASS = {"bounds": 1.0, "classes": (0, 1)}
NUMBER = {"bounds": 1.0, "target": (0, 1)}
FITS = {
    "classes": (DPLogisticRegression(2.0, 1e-6, **CLASS), ("recipe", ESTIMATE)),
    "classes, little signal": (DPLogisticRegression(0.01, 1e-6, **CLASS), ("recipe", DECLARED)),
    "ridge": (DPRidge(2.0, 1e-6, **NUMBER), ("recipe", ESTIMATE)),
    "lasso": (DPLasso(2.0, 1e-6, **NUMBER), ("recipe", ESTIMATE)),
    "lasso, little signal": (DPLasso(0.01, 1e-6, **NUMBER), ("gcd", FEW)),
    "counts": (DPPoissonRegressor(2.0, 1e-6, **NUMBER), ("recipe", ESTIMATE)),
    "pure classes": (DPLogisticRegression(2.0, 0.0, **CLASS), ("objective", ONE)),
    "pure counts": (DPPoissonRegressor(2.0, 0.0, **NUMBER), ("gd", FULL)),
    "limit": (DPRidge(math.inf, **NUMBER), ("exact", LIMIT)),
}


@pytest.mark.parametrize("name", FITS)
def test_the_reason_stands_in_the_certificate(name):
    model, (chose, reason) = FITS[name]
    model = type(model)(**{**model.get_params(deep=False), "solver": "auto"})
    notes = notes_of(model)
    assert f"auto chose {chose}: {reason}" in notes
    assert "unset parameters were chosen from declared facts only" in notes
    assert str(reason) in str(model.certificate_)


def test_the_choice_under_add_remove_does_not_count_records():
    bounds = Bounds(1.0, target=(0, 1))
    seen = [
        notes_of(DPLasso(2.0, 1e-6, bounds=bounds, neighbors="add_remove"), np.zeros((n, 2)), np.zeros(n))
        for n in (3, 400)
    ]
    assert seen[0] == seen[1]
    assert any("n is private" in note and "for 2,000 records" in note for note in seen[0])
    assert not any("declared facts only" in note for note in seen[0])
