"""Steps in declared coordinates give the answers that one solver class for all of it gave: frozen values, same seeds.

``reference.json`` was written before stages existed: coefficients, intercepts and what the noise did to both. The
tolerance is for other linear algebra libraries.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.testing import seeded
from tests.solvers.whitened.cases import descent

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())
BOUNDS = [(-1, 2), (0, 1), (0, 8), (-4, 9), (-1, 1)]
NUMBERS = {"target": (-3.0, 3.0)}
MODELS = {
    "logistic": (discreet.DPLogisticRegression, {"classes": (0, 1)}),
    "softmax": (discreet.DPLogisticRegression, {"classes": (0, 1, 2)}),
    "svc": (discreet.DPLinearSVC, {"classes": (0, 1)}),
    "ridge": (discreet.DPRidge, {"alpha": 1e-4, **NUMBERS}),
    "linear": (discreet.DPLinearRegression, NUMBERS),
    "huber": (discreet.DPHuberRegressor, NUMBERS),
    "lasso": (discreet.DPLasso, {"alpha": 1e-2, **NUMBERS}),
    "elastic": (discreet.DPElasticNet, NUMBERS),
}


def case(name):
    """The settings behind a name of the reference: plain:model/relation/seed."""
    names = ("model", "neighbors", "seed")
    return {"model": "logistic", "seed": 6, "epsilon": 2.0, **dict(zip(names, name[6:].split("/"), strict=False))}


def records(model):
    rng, n = np.random.default_rng(0), 400
    X = np.column_stack(
        [
            rng.normal(0.3, 0.2, n),
            rng.integers(0, 2, n),
            rng.exponential(1.0, n) * 2,
            rng.uniform(-4, 9, n),
            rng.normal(0, 0.05, n),
        ]
    )
    score = 2 * X[:, 0] - 0.7 * X[:, 1] + 0.3 * X[:, 2] - 0.1 * X[:, 3] + rng.normal(0, 0.5, n)
    y = np.clip(score, -3, 3)
    if model in ("logistic", "svc"):
        y = np.where(score > np.median(score), 1, 0)
    elif model == "softmax":
        y = np.digitize(score, np.quantile(score, [0.3, 0.7]))
    return X, y


def near(found, expected):
    expected = np.ravel(expected)
    np.testing.assert_allclose(np.ravel(found), expected, rtol=0, atol=1e-6 * np.abs(expected).max(initial=1e-9))


@pytest.mark.few(12)
@pytest.mark.parametrize("name", REFERENCE)
def test_the_answers_are_the_same(name):
    given, expected = case(name), REFERENCE[name]
    made, facts = MODELS[given.pop("model")], {"delta": 1e-6, "bounds": BOUNDS}
    numbers = "target" in made[1]
    given["solver"] = descent("plain", n_steps=10, average="tail" if numbers else "last")
    kind = next(key for key, value in MODELS.items() if value is made)
    X, y = records(kind)
    with seeded(int(given.pop("seed"))), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made[0](**{**facts, **made[1], **given}).fit(X, y)
    near(model.coef_, expected["coef"])
    near(model.intercept_, expected["intercept"])
    near(model.coef_noise_, expected["noise"][0])
    near(model.intercept_noise_, expected["noise"][1])
