"""Fitted models of every kind, and 10^5 rows for them: in range, out of range, missing and unknown."""

import numpy as np
import pandas as pd

from discreet import (
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    Schema,
    TableModel,
)
from discreet.losses import Poisson, SmoothedHinge
from discreet.models import DPClassifier, DPGammaRegressor, DPNegativeBinomialRegressor, DPRegressor, DPTweedieRegressor
from discreet.schema import Boolean, Category, Number, Ordinal, Target

ROWS, FIT = 100_000, 400
BOUNDS = [(-1, 1), (0, 5), (2, 2), (-2e6, 8e6)]
ESTIMATORS = {
    "binary": (DPLogisticRegression, {"classes": ("no", "yes")}),
    "softmax": (DPLogisticRegression, {"classes": (2, 0, 1)}),
    "mixed labels": (DPLogisticRegression, {"classes": ("a", 3, True)}),
    "svm": (DPLinearSVC, {"classes": (0, 1)}),
    "hinge": (DPClassifier, {"classes": (0, 1), "loss": SmoothedHinge(0.3)}),
    "least squares": (DPLinearRegression, {"target": (-5, 5)}),
    "ridge": (DPRidge, {"target": (-5, 5)}),
    "no intercept": (DPRidge, {"target": (-5, 5), "fit_intercept": False}),
    "lasso": (DPLasso, {"target": (-5, 5)}),
    "elastic net": (DPElasticNet, {"target": (-5, 5)}),
    "huber": (DPHuberRegressor, {"target": (-5, 5)}),
    "poisson": (DPPoissonRegressor, {"target": (0, 9), "limit": 0.5}),
    "negative binomial": (DPNegativeBinomialRegressor, {"target": (0, 9)}),
    "gamma": (DPGammaRegressor, {"target": (0, 9)}),
    "tweedie": (DPTweedieRegressor, {"target": (0, 9), "power": 1.3}),
    "own loss": (DPRegressor, {"target": (0, 9), "loss": Poisson(0.5)}),
}
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


def rows(seed=0):
    """Return features of which a third is out of range."""
    return np.random.default_rng(seed).uniform(-2, 8, (ROWS, 4)) * [1, 1, 1, 1e6]


def fitted(name):
    cls, facts = ESTIMATORS[name]
    classes = facts.get("classes")
    y = (
        np.arange(FIT) % 7
        if classes is None
        else np.array([classes[i % len(classes)] for i in range(FIT)], dtype=object)
    )
    y = y if classes is None or name == "mixed labels" else np.array(y.tolist())
    return cls(epsilon=5.0, bounds=BOUNDS, **facts).fit(rows(1)[:FIT], y)


COLUMNS = {
    "age": Number((18, 110)),
    "pay": Number((0, 1e6), missing=2e4),
    "bmi": Number((10, 70), missing="flag"),
    "dose": Number((0, 9), missing="record"),
    "score": Number((0, 100), knots=(20, 50), missing="flag"),
    "time": Number((0, 24), knots=(6,), missing="record"),
    "hour": Number((0, 24), knots=(12.5,)),
    "weight": Number((30, 200), knots=6, missing="flag"),
    "height": Number((1, 2.5), term="curve", knots=(1.2, 1.7), missing="record"),
    "tenure": Number((0, 40), term="curve"),
    "ward": Category(("north", "south", "7")),
    "code": Category((1, 2, 3), other=False, missing="flag", base=1),
    "site": Category(("a", "b"), missing="b"),
    "drug": Category(("x", "y"), missing="record"),
    "stage": Ordinal(("low", "mid", "high")),
    "grade": Ordinal((1, 2, 3), missing="flag"),
    "smoker": Boolean(),
    "fast": Boolean(true="ja", false="nein", missing=True),
}
SCHEMA = Schema(
    COLUMNS,
    Target("back", classes=("no", "yes")),
    interactions=(
        ("age", "ward"),
        ("bmi", "score"),
        ("drug", "time", "smoker"),
        ("code", "stage"),
        ("weight", "age"),
        ("tenure", "site"),
    ),
    missing_texts=("", "NA", "-9"),
)


def frame(n=ROWS, seed=0):
    """Return a table with every kind of cell."""
    random = np.random.default_rng(seed)

    def numbers(low, high):
        width = high - low
        found = random.uniform(low - width / 2, high + width / 2, n)
        found[random.random(n) < 0.1] = np.nan
        found[random.random(n) < 0.02] = np.inf
        found[random.random(n) < 0.02] = -np.inf
        found[random.random(n) < 0.02] = -9.0
        return found

    def cells(*choices):
        found = np.empty(n, dtype=object)
        found[:] = [choices[i] for i in random.integers(0, len(choices), n)]
        return found

    made = {name: numbers(*kind.limits) for name, kind in COLUMNS.items() if isinstance(kind, Number)}
    made["hour"] = cells("3", " 4.5 ", "1e1", "abc", None, "", "NA", "-9", 7, 30, -2.5)
    made["ward"] = cells("north", " south", "7", 7, 7.0, "west", None, np.nan, "NA", "")
    made["code"] = random.choice([1.0, 2.0, 3.0, 4.0, np.nan, -9.0], n)
    made["site"] = pd.Categorical(cells("a", "b", "c", None))
    made["drug"] = pd.array(cells("x", "y", "z", None), dtype="string")
    made["stage"] = cells("low", "mid", "high", "highest", "NA", None)
    made["grade"] = pd.array(random.choice([1, 2, 3, 4], n), dtype="Int64")
    made["grade"][random.random(n) < 0.1] = pd.NA
    made["smoker"] = cells(True, False, "yes", "NO", "Y", "maybe", None, 1, 0)
    made["fast"] = cells("ja", "Nein", "JA", "vielleicht", "")
    made["back"] = cells("no", "yes")
    return pd.DataFrame({name: made[name] for name in (*COLUMNS, "back")})


def fitted_table(estimator=None, schema=SCHEMA, table=None):
    return TableModel(schema, estimator or DPLogisticRegression(epsilon=20.0)).fit(
        frame(FIT, 1) if table is None else table
    )
