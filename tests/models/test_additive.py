"""Additive models of arrays and frames, and curves as features in pipelines."""

import numpy as np
import pytest

from discreet import DPLogisticRegression, TableModel
from discreet.curator import SeededEntropy, use_entropy
from discreet.errors import PrivacyWarning, Unsupported
from discreet.models import CurveFeatures, DPAdditiveClassifier
from discreet.models.additive import TARGET
from discreet.schema import Number, Schema, Target

RANGES = [(-3.0, 3.0), (0.0, 10.0)]


def records(n=4000, seed=0):
    """Return rows whose target has a wave and a line."""
    random = np.random.default_rng(seed)
    X = np.column_stack([random.uniform(-3, 3, n), random.uniform(0, 10, n)])
    score = 2 * np.sin(1.5 * X[:, 0]) + 0.3 * (X[:, 1] - 5)
    return X, score, (random.random(n) < 1 / (1 + np.exp(-2 * score))).astype(int)


def seeded(model, *data):
    with use_entropy(SeededEntropy(3)):
        return model.fit(*data)


def test_a_classifier_learns_what_a_linear_model_does_not():
    X, _, y = records()
    test, _, labels = records(seed=1)
    additive = seeded(DPAdditiveClassifier(bounds=RANGES, classes=(0, 1)), X, y)
    linear = seeded(DPLogisticRegression(bounds=RANGES, classes=(0, 1)), X, y)
    assert np.mean(additive.predict(test) == labels) > np.mean(linear.predict(test) == labels) + 0.1
    assert additive.predict_proba(test).shape == (len(test), 2)
    assert additive.decision_function(test).shape == (len(test),)
    assert additive.classes_.tolist() == [0, 1]
    with pytest.warns(PrivacyWarning):
        assert additive.score(test, labels) > 0.75


def test_it_is_the_model_of_the_same_table():
    X, _, y = records(500)
    additive = seeded(DPAdditiveClassifier(bounds=RANGES, classes=(0, 1)), X, y)
    schema = Schema({f"x{j}": Number(ends) for j, ends in enumerate(RANGES)}, Target(TARGET, classes=(0, 1)))
    table = {"x0": X[:, 0], "x1": X[:, 1], TARGET: y}
    same = seeded(TableModel(schema, DPLogisticRegression(), checks=False), table)
    assert np.array_equal(additive.model_.estimator_.coef_, same.estimator_.coef_)


def test_persons_are_protected_where_they_are_named():
    X, _, y = records(100)
    model = DPAdditiveClassifier(bounds=RANGES, classes=(0, 1)).fit(X, y, groups=np.arange(100) // 2)
    assert model.certificate_.unit == "person"
    assert model.certificate_.assumed_public["n"] == 50


def test_features_of_curves_are_within_their_bounds():
    curves = CurveFeatures(RANGES, knots=5)
    rows = np.array([[-1e9, 1e9], [np.nan, np.inf], [0.3, 7.7]])
    features, bounds = curves.transform(rows), curves.output_bounds
    assert np.isfinite(features).all()
    assert (np.abs(features) <= 1).all()
    assert (np.linalg.norm(features, axis=1) <= bounds.row_norm).all()
    assert len(bounds.features) == features.shape[1] == 12
    assert np.array_equal(curves.transform(rows[2:]), features[2:])
    with pytest.raises(Unsupported, match="fit first"):
        CurveFeatures(1.0).get_feature_names_out()
    assert CurveFeatures(1.0, knots=2).fit(rows).get_feature_names_out().shape == (6,)


def test_a_target_that_is_an_array_is_a_null_record_and_no_error():
    """Whether a fit is refused follows from containers, never from what one cell holds."""
    X, _, y = records(60)
    hostile = [np.array([1, 2]), *y[1:].tolist()]
    for groups in (None, [np.array([1, 2]), *range(59)]):
        model = DPAdditiveClassifier(bounds=RANGES, classes=(0, 1)).fit(X.tolist(), hostile, groups)
        assert model.certificate_.unit == ("record" if groups is None else "person")
