"""Proportional odds: the minimizer, probabilities, whom it protects, tables, files, and what is refused uncharged."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

from discreet import (
    Bounds,
    DPLogisticRegression,
    DPRandomizedSearch,
    Ledger,
    Schema,
    TableModel,
    load,
    private_score,
    public_score,
)
from discreet.curator import ArrayRows, SeededEntropy, ThresholdRows, use_entropy
from discreet.errors import MissingBounds, Unsupported
from discreet.models import DPOrdinalRegression
from discreet.models.base import default_model
from discreet.schema import Category, Number, Ordinal, Target
from discreet.schema.columns import SchemaError
from discreet.solvers import GradientDescent
from discreet.testing import neighbor_pairs
from tests.replaying import worst_ratio

CLASSES = ("none", "some", "much", "all")
SLOPES, CUTS = np.array([2.0, -1.0, 0.5]), (-1.5, 0.0, 1.2)


def records(n=4000, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (n, 3))
    return X, np.array(CLASSES)[np.digitize(X @ SLOPES + random.logistic(size=n), CUTS)]


def estimator(epsilon=1.0, **settings):
    return DPOrdinalRegression(**{"epsilon": epsilon, "bounds": 1.0, "classes": CLASSES, "ledger": False, **settings})


@pytest.fixture(scope="module")
def model():
    with use_entropy(SeededEntropy(1)):
        return estimator(2.0).fit(*records())


def minimizer(X, y, weights=None, offsets=0.0):
    """The mean over thresholds of logistic losses, minimized by scipy."""
    places = np.array([CLASSES.index(label) for label in y])
    weights = np.ones(len(y)) if weights is None else weights

    def loss(w):
        margins = (X @ w[:3] + offsets)[:, None] + w[3:]
        signs = np.where(np.greater.outer(places, np.arange(3)), 1.0, -1.0)
        slopes = -signs / (1 + np.exp(signs * margins)) * weights[:, None] / (3 * weights.sum())
        value = weights @ np.logaddexp(0, -signs * margins).mean(axis=1) / weights.sum()
        return value + 0.5e-8 * w @ w, np.append(X.T @ slopes.sum(axis=1), slopes.sum(axis=0)) + 1e-8 * w

    return minimize(loss, np.zeros(6), jac=True, method="BFGS", options={"gtol": 1e-12}).x


def test_without_noise_it_is_the_minimizer_and_near_the_likeliest_model():
    X, y = records()
    model = estimator(1e6).fit(X, y)
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), minimizer(X, y), atol=2e-4)
    assert (model.coef_ == model.coef_[0]).all()
    ordered = pytest.importorskip("statsmodels.miscmodels.ordinal_model").OrderedModel
    places = np.array([CLASSES.index(label) for label in y])
    likeliest = ordered(places, X, distr="logit").fit(method="bfgs", disp=0)
    np.testing.assert_allclose(model.coef_[0], likeliest.params[:3], atol=0.5 * likeliest.bse[:3].max())


def test_weights_and_offsets_are_those_of_records():
    X, y = records(2000)
    random = np.random.default_rng(3)
    w, o = random.uniform(0, 3, len(y)), random.uniform(-1, 1, len(y))
    bounds = Bounds(1.0, weights=(0, 2), offsets=(-0.5, 0.5))
    with use_entropy(SeededEntropy(1)):  # five of its deviations are the tolerance
        model = estimator(1e6, bounds=bounds).fit(X, y, sample_weight=w, offset=o)
    expected = minimizer(X, y, np.minimum(w, 2), np.clip(o, -0.5, 0.5))
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), expected, atol=5e-4)


def test_probabilities_are_differences_of_falling_chances(model):
    X, _ = records(50, seed=2)
    chances = model.predict_proba(X)
    assert (np.diff(model.intercept_) <= 0).all()
    assert (chances >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    beyond = 1 / (1 + np.exp(-(X @ model.coef_[0])[:, None] - model.intercept_))
    np.testing.assert_allclose(1 - np.cumsum(chances, axis=1)[:, :-1], beyond, atol=1e-12)
    assert model.predict(X).tolist() == [CLASSES[k] for k in chances.argmax(axis=1)]


def test_scores_use_its_probabilities(model):
    X, y = records(600, seed=3)
    places = np.array([CLASSES.index(label) for label in y])
    happened = model.predict_proba(X)[np.arange(len(y)), places]
    assert public_score(model, X, y).value == pytest.approx((model.predict(X) == y).mean())
    assert public_score(model, X, y, "log_loss").value == pytest.approx(-np.log(np.maximum(happened, 0.01)).mean())
    score = private_score(model, X, y, metric="confusion", epsilon=2.0, ledger=False)
    assert len(score.parts) == 16
    with pytest.raises(Unsupported, match="two classes"):
        private_score(model, X, y, metric="auc", epsilon=2.0, ledger=False)


def test_a_record_is_protected_and_a_person_where_persons_are_named():
    X, y = records(300)
    assert estimator().fit(X, y).certificate_.unit == "record"
    assert estimator().quote(X, y).facts[0].n == 300
    persons = estimator().fit(X, y, groups=np.arange(300) // 3).certificate_
    assert (persons.unit, persons.assumed_public["n"]) == ("person", 100)
    hidden = estimator(delta=1e-6, neighbors="add_remove", bounds=Bounds(1.0, n=250)).fit(X, y).certificate_
    assert (hidden.unit, hidden.assumed_public["n"]) == ("record", 250)
    assert hidden.assumed_public["classes"] == list(CLASSES)


def hostile_pairs(relation, has_persons):
    """Neighbors with the nastiest features and labels in one record, or in all of a person's."""
    X, y = records(24)
    lowest = np.where(np.isin(y, CLASSES[:2]), 0, 3)
    persons = np.arange(24) // 3 if has_persons else None
    return list(neighbor_pairs(X, lowest, persons, relation=relation, bounds=Bounds(1.0, classes=(0, 3))))


@pytest.mark.parametrize("has_persons", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("relation", ["replace_one", "zero_out", "add_remove"])
def test_no_record_moves_an_answer_by_more_than_one_contribution(relation, has_persons):
    solver = GradientDescent(n_steps=2, clip=0.5, step_size=0.1)
    n = None if relation != "add_remove" else 8 if has_persons else 24

    def fit(X, y, groups):
        weighed = np.full(len(y), 7.0)
        weighed[-1] = np.inf
        settings = {"solver": solver, "neighbors": relation, "delta": 1e-5}
        bounds = Bounds(1.0, n=n, weights=(0, 2), offsets=(-1, 1))
        beside = {"sample_weight": weighed, "offset": np.full(len(y), 1e300)}
        return estimator(bounds=bounds, classes=(0, 1, 2, 3), **settings).fit(X, y, groups, **beside)

    pairs = hostile_pairs(relation, has_persons)
    assert 0.5 <= worst_ratio(fit, pairs[:: max(1, len(pairs) // 12)], relation) <= 1.0


def test_rows_of_thresholds():
    stream = ThresholdRows(ArrayRows([[0.1], [0.2], [np.nan]], ["b", "?", "c"], classes=("a", "b", "c")), 3, {})
    (block,) = stream.blocks()
    assert stream.shape == block.features.shape == (6, 2)
    np.testing.assert_array_equal(block.features[:, 1], [0, 1] * 3)
    np.testing.assert_array_equal(block.targets, [1, 0, np.nan, np.nan, 1, 1])
    np.testing.assert_array_equal(block.persons, stream.persons())
    assert block.persons.tolist() == [0, 0, 1, 1, 2, 2]


REFUSED = {
    "two classes": ({"classes": (0, 1)}, "three or more"),
    "no constants": ({"fit_intercept": False}, "constants"),
    "a start": ({"start": (np.zeros(3), 0.0)}, "neither start"),
    "class weights": ({"class_weight": {"none": 2.0}}, "sample_weight"),
    "no classes": ({"classes": None}, "not declared"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_served_is_refused_before_a_charge(case, tmp_path):
    settings, words = REFUSED[case]
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.grant("rows", epsilon=5.0, delta=1e-5, neighbors="replace_one")
    X, y = records(60)
    with pytest.raises((Unsupported, MissingBounds), match=words):
        estimator(ledger=ledger, dataset="rows", **settings).fit(X, y)
    assert not ledger.account("rows").charges


def test_inference_and_scikit_learn_are_refused(model):
    with pytest.raises(TypeError, match="no standard errors"):
        estimator(inference="sandwich")
    with pytest.raises(Unsupported, match="ordered classes"):
        model.to_sklearn()


PAIN = Target("pain", classes=("no", "some", "much"), ordered=True)
SCHEMA = Schema({"age": Number((0, 100)), "ward": Category(("a", "b"))}, PAIN)


def table(n=3000, seed=0):
    random = np.random.default_rng(seed)
    age = random.uniform(0, 100, n)
    pain = np.digitize(((age - 50) / 20) ** 2 - 2 + random.logistic(size=n), [-1, 1])
    return pd.DataFrame(
        {"age": age, "ward": random.choice(["a", "b"], n), "pain": np.array(["no", "some", "much"])[pain]}
    )


@pytest.fixture(scope="module")
def table_model():
    with use_entropy(SeededEntropy(2)):
        return TableModel(SCHEMA).fit(table())


def test_tables_with_an_ordered_target(table_model):
    assert default_model(SCHEMA) == "ordinal"
    assert type(table_model.estimator_) is DPOrdinalRegression
    assert table_model.schema_.columns["age"].knots
    assert table_model.certificate_.unit == "record"
    old, middle = table_model.predict_proba({"age": [95, 50], "ward": ["a", "a"]})
    assert old[2] > middle[2]
    effects = table_model.term_effects()
    assert [effect.output for effect in effects if effect.column == "age"] == ["some", "much"]
    assert table_model.explain({"age": [95], "ward": ["a"]}).outputs == ("some", "much")
    assert [c.output for c in table_model.coefficients() if c.name == "(intercept)"] == ["some", "much"]
    assert len(table_model.report().html()) > 1000


def test_schemas_say_that_classes_are_ordered():
    assert Schema.from_toml(SCHEMA.to_toml()) == SCHEMA
    with pytest.raises(SchemaError, match="three or more"):
        Target("y", classes=(0, 1), ordered=True)
    pytest.importorskip("formulaic")
    codebook = {"age": Number((0, 100)), "pain": Ordinal(("no", "some", "much"))}
    assert Schema.from_formula("pain ~ age", codebook).target.ordered


def test_files_and_graphs_predict_the_same(model, table_model, tmp_path):
    X, _ = records(40, seed=4)
    same = load(model.save(tmp_path / "model.discreet"))
    np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params()["classes"] == CLASSES
    again = TableModel.load(table_model.save(tmp_path / "folder"))
    rows = table(20, seed=5)
    np.testing.assert_array_equal(again.predict_proba(rows), table_model.predict_proba(rows))
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(model.to_onnx(tmp_path / "model.onnx")))
    labels, chances = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(chances, model.predict_proba(X), atol=1e-6)
    assert labels.tolist() == model.predict(X).tolist()


def test_a_ledger_knows_the_records_of_many_ordered_classes_again(tmp_path):
    X = records(400)[0]
    y, classes = np.digitize(X[:, 0], np.linspace(-0.9, 0.9, 11)), tuple(range(12))
    ledger = Ledger.create(tmp_path / "ledger.db")
    for dataset in ("grades", "copy"):
        ledger.grant(dataset, 10.0, 1e-3)
    DPLogisticRegression(bounds=1.0, classes=classes, ledger=ledger, dataset="grades").fit(X, y)
    estimator(classes=classes, ledger=ledger, dataset="grades").fit(X, y)
    assert ledger.notices() == []
    estimator(classes=classes, ledger=ledger, dataset="copy").fit(X, y)
    assert [(notice.dataset, notice.other, notice.share) for notice in ledger.notices()] == [("copy", "grades", 1.0)]


def test_a_selection_refuses_ordered_classes_in_their_own_words():
    with pytest.raises(Unsupported, match="does not serve ordered classes"):
        DPRandomizedSearch(estimator(), {"alpha": [1e-3, 1e-1]}, ledger=False).fit(*records(100))
