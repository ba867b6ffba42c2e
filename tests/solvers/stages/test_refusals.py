"""A composition that cannot be run is refused before anything is charged: what is opened is answered."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, DPLinearRegression, DPLogisticRegression
from discreet.curator import PrivateData
from discreet.default import Recipe
from discreet.errors import Unsupported
from discreet.solvers import (
    AdaptiveDescent,
    CoordinateDescent,
    Declared,
    ExponentialMechanism,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Sandwich,
    Standardized,
    StochasticGradientDescent,
    VarianceReducedDescent,
    Whitened,
)
from tests.testing.small_fits import prices_remembered

N = 400
INNER = {
    "gd": GradientDescent(n_steps=2),
    "sgd": StochasticGradientDescent(n_steps=2, sampling_probability=1.0),
    "svrg": VarianceReducedDescent(n_epochs=2, n_inner=2, sampling_probability=1.0),
    "agd": AdaptiveDescent(n_rounds=3),
    "cd": CoordinateDescent(n_inner=3),
    "gcd": GreedyCoordinateDescent(n_steps=2),
    "recipe": Recipe(n_steps=2, n_travel=2, n_newton=2),
    "recipe, declared": Recipe("declared", n_steps=2, n_newton=1),
    "objective": ObjectivePerturbation(regularization=0.2, clip=0.5, row_norm=1.0),
    "output": OutputPerturbation(regularization=0.2, clip=0.5, row_norm=1.0),
    "output, steps": OutputPerturbation(n_steps=3, clip=0.5, row_norm=1.0),
    "exponential": ExponentialMechanism(regularization=0.2, radius=3.0),
}
SAMPLED = {
    "sgd": StochasticGradientDescent(n_steps=2, sampling_probability=0.5),
    "svrg": VarianceReducedDescent(n_epochs=2, n_inner=2, sampling_probability=0.5),
}
"""Their prices take seconds each, so not every kind of table has them."""
AROUND = {
    "alone": lambda solver: solver,
    "whitened": Whitened,
    "standardized": Standardized,
    "declared": Declared,
    "sandwich": Sandwich,
    "sandwich, whitened": lambda solver: Sandwich(Whitened(solver)),
    "sandwich, declared": lambda solver: Sandwich(Declared(solver)),
    "declared, standardized": lambda solver: Declared(Standardized(solver)),
    "standardized, whitened": lambda solver: Standardized(Whitened(solver)),
}
MODELS = {
    "logistic": (DPLogisticRegression, {"classes": (0, 1)}),
    "softmax": (DPLogisticRegression, {"classes": (0, 1, 2)}),
    "linear": (DPLinearRegression, {"target": (-2.0, 2.0)}),
}
KINDS = {
    "plain": {},
    "private n": {"neighbors": "add_remove"},
    "persons": {},
    "pure": {"delta": 0.0},
    "sparse": {},
    "no intercept": {"fit_intercept": False},
    "start": {"start": (np.zeros(3), 0.0)},
    "moments": {"public_moments": (np.zeros(3), np.eye(3) / 3)},
}


@pytest.fixture(autouse=True, scope="module")
def _cheap_prices():
    with prices_remembered():
        yield


def table(model):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (N, 3))
    score = X @ [1.0, -1.0, 0.5] + rng.normal(0, 0.3, N)
    return X, np.clip(score, -2, 2) if model == "linear" else np.digitize(score, [0.0, 0.5][: 1 + (model == "softmax")])


def answered(monkeypatch, solver, model, kind):
    """Fit, and refuse a refusal after the records were opened."""
    opened, opening = [], PrivateData.open

    def spy(self, *args, **words):
        opened.append(opening(self, *args, **words))
        return opened[-1]

    monkeypatch.setattr(PrivateData, "open", spy)
    (made, facts), (X, y) = MODELS[model], table(model)
    X = sparse.csr_array(X) if kind == "sparse" else X
    try:
        settings = {"delta": 1e-6, "bounds": Bounds(1.0, **facts), "solver": solver()}
        fitted = made(300.0, **settings | KINDS[kind]).fit(
            X, y, groups=np.arange(N) // 2 if kind == "persons" else None
        )
    except Unsupported:
        assert not opened, "refused after the charge"
        return
    assert np.isfinite(fitted.coef_).all()


def a_third():
    """Every solver in every stage on every kind of table, with one of the models: a Latin square of these."""
    names = list(MODELS)
    for i, j, k in product(range(len(INNER)), range(len(AROUND)), range(len(KINDS))):
        inner, around, kind = list(INNER)[i], list(AROUND)[j], list(KINDS)[k]
        model = names[(i + j + k) % 3]
        yield inner, around, "logistic" if (model, kind) == ("softmax", "start") else model, kind


@pytest.mark.few(24)
@pytest.mark.parametrize(("inner", "around", "model", "kind"), list(a_third()))
def test_what_is_opened_is_answered(monkeypatch, inner, around, model, kind):
    answered(monkeypatch, lambda: AROUND[around](INNER[inner]), model, kind)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("inner", "model"), [("sgd", "logistic"), ("svrg", "linear")])
def test_with_sampled_steps_too(monkeypatch, inner, model, around):
    answered(monkeypatch, lambda: AROUND[around](SAMPLED[inner]), model, "plain")
