"""Estimators in a notebook: the claim, parameters and released attributes, and nothing of records."""

import numpy as np
import pytest

from discreet import DPLogisticRegression, DPRidge, Schema, TableModel
from discreet.curator import SeededEntropy, use_entropy
from discreet.schema import Category, Number, Target

SCHEMA = Schema({"age": Number((18, 110)), "ward": Category(("a", "b"))}, Target("back", classes=(0, 1)))
TABLE = {"age": [30, 60, 80] * 40, "ward": ["a", "b", "a"] * 40, "back": [0, 1, 1] * 40}
PUBLIC = {"n_features_in_", "feature_names_in_", "classes_"}
RELEASED = {
    *("coef_", "intercept_", "certificate_", "coef_noise_", "intercept_noise_", "effects_", "schema_"),
    "coef_correlation_",
    "estimator_",
}


def ridge(**settings):
    return DPRidge(epsilon=2.0, bounds=1.0, target=(0, 1), solver="gd", **settings)


@pytest.mark.parametrize(
    ("model", "data"),
    [(ridge(), (np.eye(9), np.ones(9))), (TableModel(SCHEMA, DPLogisticRegression(epsilon=2.0)), (TABLE,))],
    ids=["estimator", "table"],
)
def test_the_claim_is_shown(model, data):
    assert "nothing was spent" in model._repr_mimebundle_()["text/html"]
    made = model.fit(*data)
    html = made._repr_mimebundle_()["text/html"]
    assert f"epsilon 2, delta {made.certificate_.delta:g}, replace one, per record" in html
    assert html.startswith("<p")
    assert "sk-top-container" in html
    assert {name for name in vars(made) if name.endswith("_")} <= PUBLIC | RELEASED


def test_a_claim_without_guarantee_says_so():
    with use_entropy(SeededEntropy(0)):
        assert "NOT PRIVATE" in ridge().fit(np.eye(9), np.ones(9))._repr_html_()
