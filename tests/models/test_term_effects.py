"""Effects of terms, their pictures, and predictions explained by them."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.seeded import SeededWords
from discreet import DPLogisticRegression, DPRidge, Schema, TableModel, load
from discreet.curator import use_entropy
from discreet.errors import Unsupported
from discreet.models.persist import UnreadableModel
from discreet.models.term_effects import OTHER, POINTS
from discreet.schema import Boolean, Category, Number, Ordinal, Target
from discreet.testing import seeded
from tests.models.exports import SCHEMA, fitted_table, frame

COLUMNS = {
    "age": Number((0, 100), knots=6, missing="flag"),
    "dose": Number((0, 10), term="linear"),
    "ward": Category(("a", "b")),
    "stage": Ordinal(("low", "mid", "high")),
    "smoker": Boolean(),
}


def table(n=300, classes=2, seed=0):
    random = np.random.default_rng(seed)
    age = random.uniform(0, 100, n)
    made = {"age": age, "dose": random.uniform(0, 10, n), "ward": random.choice(["a", "b", "c"], n)}
    made |= {"stage": random.choice(["low", "mid", "high"], n), "smoker": random.choice(["yes", "no"], n)}
    return made | {"ill": (age > 50).astype(int) + (classes > 2) * (age > 75)}


def fitted(classes=2, epsilon=100.0, **settings):
    schema = Schema(COLUMNS, Target("ill", classes=tuple(range(classes))), interactions=(("age", "ward"),))
    with seeded(1):
        return TableModel(schema, DPLogisticRegression(epsilon=epsilon, **settings)).fit(table(classes=classes))


@pytest.mark.whole
@pytest.mark.parametrize("classes", [2, 3])
def test_contributions_add_up_to_the_score(classes):
    model, rows = fitted(classes), pd.DataFrame(table(8, classes, seed=1))
    rows.loc[0, "age"], rows.loc[1, "ward"], rows.loc[2, "stage"] = np.nan, None, "none"
    margins = np.concatenate(list(model.predictions(rows, "decision_function")))
    for j in range(len(rows)):
        explained = model.explain(rows.iloc[[j]])
        assert explained.terms == (*COLUMNS, "age x ward")
        assert np.allclose(explained.score, margins[j], atol=1e-12)
        assert str(explained).count("score") == len(explained.outputs) == (1 if classes == 2 else 3)


def test_every_kind_of_column_and_cell_is_explained():
    model, rows = fitted_table(), frame(40, 3)
    margins = np.concatenate(list(model.predictions(rows, "decision_function")))
    scores = [model.explain(rows.iloc[[j]]).score[0] for j in range(len(rows))]
    assert np.allclose(scores, margins, atol=1e-9)
    assert set(model.explain(rows.iloc[:1]).terms) == {
        *SCHEMA.columns,
        *(" x ".join(group) for group in SCHEMA.interactions),
    }


@pytest.mark.parametrize("rows", [0, 2])
def test_an_explanation_is_of_one_row(rows):
    with pytest.raises(Unsupported, match="one row"):
        fitted().explain(pd.DataFrame(table(rows)))


def test_effects_are_against_their_mean_over_what_is_declared():
    effects = {effect.column: effect for effect in fitted().term_effects()}
    assert list(effects) == list(COLUMNS)
    assert len(effects["age"].values) == POINTS
    assert effects["age"].values[::100] == (0.0, 100.0)
    assert effects["ward"].values == ("a", "b", OTHER)
    assert effects["smoker"].values == ("false", "true")
    for effect in effects.values():
        declared = effect.effect[:2] if effect.column == "ward" else effect.effect
        assert abs(declared.mean()) < 1e-9
        assert effect.noise.shape == effect.effect.shape
    age = effects["age"].effect
    assert age[90] - age[10] > 2


def test_with_inference_curves_have_bands_for_a_population():
    pytest.importorskip("matplotlib")
    schema = Schema({"age": Number((0, 100), knots=3), "ward": Category(("a", "b"))}, Target("ill", classes=(0, 1)))
    random, rows = np.random.default_rng(9), table(20_000)
    rows["ill"] = (random.random(20_000) < 1 / (1 + np.exp(2 - ((rows["age"] - 40) / 30) ** 2))).astype(int)
    model = TableModel(schema, DPLogisticRegression(epsilon=8.0, inference="sandwich")).fit(rows)
    age, ward = model.plot_effects().axes
    assert "odds ratio against" in age.get_ylabel()
    assert ward.get_ylabel() == ""


PRODUCTS = Schema(
    {"age": Number((18, 90), knots=5), "bmi": Number((15, 45)), "sex": Category(("f", "m")), "old": Boolean()},
    Target("ill", classes=(0, 1)),
    interactions=(("sex", "age"), ("age", "bmi"), ("sex", "old")),
)


@pytest.fixture(scope="module")
def with_products():
    rng, n = np.random.default_rng(0), 400
    table = {
        "age": rng.uniform(18, 90, n),
        "bmi": rng.uniform(15, 45, n),
        "sex": rng.choice(["f", "m"], n),
        "old": rng.random(n) < 0.5,
        "ill": rng.integers(0, 2, n),
    }
    return TableModel(PRODUCTS, DPLogisticRegression(3.0, ledger=False)).fit(table)


def test_products_are_differences_of_predictions(with_products):
    effects = {(effect.title, effect.at): effect for effect in with_products.product_effects()}
    assert [*effects] == [
        ("age x sex", "f"), ("age x sex", "m"), ("age x bmi", "15"), ("age x bmi", "30"), ("age x bmi", "45"),
        ("sex x old", "false"), ("sex x old", "true"),
    ]  # fmt: skip
    for (_, at), bmi in ((("age x bmi", "15"), 15.0), (("age x bmi", "45"), 45.0)):
        effect = effects["age x bmi", at]
        rows = {"age": list(effect.values), "bmi": [bmi] * 101, "sex": ["f"] * 101, "old": [False] * 101}
        chances = with_products.predict_proba(rows)[:, 1]
        log_odds = np.log(chances / (1 - chances))
        sex = effects["age x sex", "f"].effect - own_effect(with_products, "age")
        np.testing.assert_allclose(np.diff(log_odds), np.diff(effect.effect + sex), atol=1e-9)
        assert effect.noise is not None
        assert (effect.noise > 0).all()


def own_effect(model, name):
    return next(effect.effect for effect in model.term_effects() if effect.column == name)


def crowded(seed, n=6000):
    """Values in a part of their range, so that features of one curve repeat each other; they stay, noise differs."""
    random = np.random.default_rng(0)
    columns = {"x": random.normal(5, 1, n), "z": random.exponential(0.7, n)}
    schema = Schema({name: Number((0, 10), term="curve", knots=6) for name in columns}, Target("y", range=(-10, 10)))
    table = columns | {"y": np.sin(columns["x"]) + 0.3 * columns["z"] + random.normal(0, 1, n)}
    with use_entropy(SeededWords(seed)):
        return TableModel(schema, DPRidge(epsilon=4.0, delta=1e-6), checks=False).fit(table)


def test_bands_of_curves_know_how_noises_of_their_features_offset_each_other(tmp_path):
    """As wide as the noise at every place, next to others: without correlations some places are five times too wide."""
    models = [crowded(seed) for seed in range(24)]
    actual = np.std([[effect.effect for effect in model.term_effects()] for model in models], axis=0, ddof=1)

    def uneven(models):
        said = np.mean([[np.square(effect.noise) for effect in model.term_effects()] for model in models], axis=0)
        ratio = np.sqrt(said) / actual
        return (ratio.max(axis=1) / ratio.min(axis=1)).max()

    loaded = [TableModel.load(model.save(tmp_path / str(j))) for j, model in enumerate(models)]
    assert uneven(models) == uneven(loaded) < 2.6
    for model in models:
        model.estimator_.coef_correlation_ = None
    assert uneven(models) > 3.5


def test_correlations_are_those_of_a_curve_alone():
    """Next to 1 on the diagonal: nothing between columns, none of several classes."""
    near = crowded(0).estimator_.coef_correlation_
    assert near.shape == (14, 7)
    assert (near[:, 0] == 1).all()
    assert all(near[j, 7 - j % 7 :].any() == 0 for j in range(1, 14))
    assert near[0, 1:].any()
    assert fitted(3).estimator_.coef_correlation_ is None


@pytest.mark.parametrize("value", [1.5, np.nan, -np.inf])
def test_saved_correlations_beyond_one_are_refused(value, tmp_path):
    model = crowded(0, 400).estimator_
    model.coef_correlation_[0, 1] = value
    with pytest.raises(UnreadableModel, match="correlation"):
        load(model.save(tmp_path / "model.discreet"))


@pytest.mark.parametrize(("slope", "epsilon"), [(2.0, 1.0), (0.0, 0.2)])
def test_pictures_leave_out_cells_that_no_row_has(slope, epsilon):
    """Of nobody's cells an effect is noise: the others are not compared with them; all are shown where all is noise."""
    random, n = np.random.default_rng(1), 8000
    ward, sex = random.choice(["a", "b", "c"], n), random.choice(["f", "m"], n)
    columns = {"ward": Category(("a", "b", "c", "nobody")), "sex": Category(("f", "m"))}
    ill = random.random(n) < 1 / (1 + np.exp(1 - slope * (ward == "a")))
    with use_entropy(SeededWords(5)):
        model = TableModel(Schema(columns, Target("ill", classes=(0, 1))), DPLogisticRegression(epsilon, 1e-6))
        model.fit({"ward": ward, "sex": sex, "ill": ill.astype(int)})
    plain, shown = model.term_effects(), model.shown_effects()
    for before, after, people in zip(plain, shown, (3, 2), strict=True):
        assert np.isfinite(before.effect).all()
        if slope == 0:
            np.testing.assert_array_equal(after.effect, before.effect)
            continue
        assert np.isfinite(after.noise[:people]).all()
        assert np.isnan(after.effect[people:]).all()
        assert np.isnan(after.noise[people:]).all()
        assert abs(after.effect[:people].mean()) < 1e-9
    assert slope == 0 or shown[0].noise[:3].max() < plain[0].noise[:3].min()
    known, unknown = (model.explain({"ward": [w], "sex": ["f"]}).noise[0, 0] for w in ("a", "z"))
    assert unknown > known > 0
