"""``SchemaEncoder`` and its pipeline as scikit-learn knows transformers and pipelines."""

import numpy as np
import pandas as pd
import pytest

from discreet import DPLogisticRegression
from discreet.curator.tables.encode import Layout
from discreet.models.table_model import make_private_pipeline
from discreet.schema.columns import Boolean, Category, Number, Ordinal, Target
from discreet.schema.schema import Schema
from discreet.solvers import GradientDescent
from tests.curator.tables.shown import SECRET

SCHEMA = Schema(
    {"a": Number((0, 9), missing="flag"), "b": Category(("x", "y")), "c": Boolean(), "d": Ordinal((1, 2, 3))},
    Target("t", classes=("n", "p")),
    interactions=(("a", "b"),),
)
SOLVER = GradientDescent(n_steps=2, clip=1.0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 90
    frame = pd.DataFrame(
        {
            "d": rng.integers(1, 4, n),
            "a": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(0, 9, n)),
            "b": rng.choice(["x", "y", "z"], n),
            "c": rng.choice(["Yes", "no"], n),
            "extra": [SECRET] * n,
        },
        index=np.arange(n) * 7,
    )
    return frame, pd.Series(rng.choice(["n", "p"], n), index=frame.index)


def test_a_record_that_counts_as_null_can_be_fitted_and_predicted(data):
    X, y = data
    given = Schema({**SCHEMA.columns, "a": Number((0, 9), missing="record")}, SCHEMA.target)
    pipeline = make_private_pipeline(given, DPLogisticRegression(1.0, 1e-5, solver=SOLVER)).fit(X, y)
    assert np.isnan(pipeline["encoder"].transform(X)).any(axis=1).sum() == X["a"].isna().sum()
    assert pipeline.predict(X[X["a"].notna()]).shape[0] == X["a"].notna().sum()


def test_indicators_are_what_one_row_has_one_of():
    columns = {
        "age": Number((0, 120)),
        "color": Category(("red", "blue")),
        "smoker": Boolean(),
        "income": Number((0, 9), knots=(3,), missing="flag"),
    }
    layout = Layout(Schema(columns, Target("label", classes=(0, 1)), interactions=(("color", "smoker"),)))
    names = [[layout.features[j].name for j in group] for group in layout.indicators]
    assert names == [
        ["color = red", "color = blue", "color (other)"],
        ["smoker"],
        ["income at 0", "income at 3", "income at 9", "income (missing)"],
    ]
