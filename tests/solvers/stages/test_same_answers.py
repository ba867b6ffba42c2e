"""The default's compositions give the answers that one solver class for all of it gave: frozen values, same seeds.

``reference.json`` was written before stages existed, by ``WhitenedDescent`` (its forms full and plain) and
``WhitenedNewton``: coefficients, intercepts and what the noise did to both. On the machine that wrote it the full form
comes out bit by bit, and lassos and averages within 1e-15. The tolerance here is for other linear algebra libraries,
whose eigenvectors may move a record's image by one step of its grid. Entries under the default rules were
written again where these rules changed: they hold what the rules of ``whitened_numbers`` and ``whitened_classes`` give.
"""

import json
import math
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
SETTINGS = {
    "auto": {"solver": "auto"},
    "weak": {"seed": 4, "epsilon": 0.1},
    "nointercept": {"seed": 5, "fit_intercept": False},
    "plain:": {"seed": 6, "solver": "plain"},
    "limit": {"seed": 8, "epsilon": math.inf, "neighbors": "zero_out"},
    "strong": {"seed": 8, "alpha": 0.1, "neighbors": "zero_out"},
    "strongridge": {"seed": 8, "alpha": 0.1, "neighbors": "zero_out", "model": "ridge"},
}


def case(name):
    """The settings behind a name of the reference: kind/model/relation/seed."""
    kind, *rest = name.replace(":", ":/").split("/")
    names = ("model", "neighbors", "seed")
    given = {"model": "logistic", "solver": "whitened", "epsilon": 2.0, **SETTINGS[kind]}
    given |= dict(zip(names, rest, strict=False))
    if kind == "weak" and given["model"] in ("ridge", "huber"):
        given["epsilon"] = 0.05
    return given


def solver_of(name, numbers):
    if name == "plain":
        return descent("plain", n_steps=10, average="tail" if numbers else "last")
    return name


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
    given["solver"] = solver_of(given["solver"], numbers)
    kind = next(key for key, value in MODELS.items() if value is made)
    X, y = records(kind)
    with seeded(int(given.pop("seed"))), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made[0](**{**facts, **made[1], **given}).fit(X, y)
    near(model.coef_, expected["coef"])
    near(model.intercept_, expected["intercept"])
    near(model.coef_noise_, expected["noise"][0])
    near(model.intercept_noise_, expected["noise"][1])
